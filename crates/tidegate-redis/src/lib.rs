//! Limits that several machines share through one Redis.
