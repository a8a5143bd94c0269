//! A real nginx and a real gateway, told the same limits and sent the same requests: what is let
//! through, what is refused, and how long each waits.

mod compare;
mod differences;
mod guide;
mod in_flight;
mod keys;
mod matrix;
mod rounds;
mod schedule;
mod sides;
mod zone;
