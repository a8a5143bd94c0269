//! What every limit promises, as properties: the engine, by each way into it, against exact
//! oracles.

mod agree;
mod door;

mod bound;
mod time;
mod waits;
