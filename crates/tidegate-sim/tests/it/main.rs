//! What every limit promises, as properties: the engine, by each way into it, against exact
//! oracles.

mod agree;
mod door;

mod all_or_nothing;
mod batch;
mod bound;
mod change;
#[cfg(feature = "doors")]
mod cluster;
mod eviction;
mod faults;
mod give_back;
mod guava;
mod keyed_places;
mod limits_by_name;
mod line;
mod many_keys;
mod overdraft;
mod rates;
mod redis_cell;
mod saved;
mod several_rates;
mod shared_concurrency;
mod time;
mod waits;
