//! The node through its public face.

mod decide;
mod reload;
mod request;
