//! What every limit promises, as properties: the engine, by each way into it, against exact
//! oracles.

mod agree;
mod door;

mod bound;
mod change;
mod guava;
mod rates;
mod time;
mod waits;
