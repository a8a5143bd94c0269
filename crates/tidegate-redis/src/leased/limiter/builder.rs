//! Makes a leased limiter.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tidegate::{Algorithm, Clock, SystemClock};
use tokio::sync::{Notify, watch};

use super::table::Table;
use super::{LeaseDriver, LeasedLimiter, Open, Shared};
use crate::call::Scripts;
use crate::leased::pipeline::LeasePipeline;
use crate::leased::terms::{LeaseError, LeaseTerms, Scheme};

/// Keys that are held at once unless told otherwise.
const MAX_KEYS: usize = 100_000;

/// Makes a [`LeasedLimiter`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct LeasedLimiterBuilder {
    name: String,
    algorithm: Algorithm,
    scheme: Scheme,
    max_keys: usize,
    clock: Option<Arc<dyn Clock>>,
}

impl LeasedLimiterBuilder {
    pub(super) fn new(name: &str, algorithm: Algorithm) -> Self {
        Self {
            name: name.to_owned(),
            algorithm,
            scheme: Scheme::default(),
            max_keys: MAX_KEYS,
            clock: None,
        }
    }

    /// How nodes that have fallen silent are treated; strict unless said.
    pub const fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// The most keys that this node holds at once, at least 1; 100,000 unless said. Beyond that a
    /// new key takes the place of another, which says goodbye: of up to 16 that have not been
    /// looked at for longest, the one that nobody has asked for for longest. Keys are spread over
    /// 32 parts with room for as many each, so that a few percent fewer may be held.
    pub fn max_keys(mut self, max_keys: usize) -> Self {
        self.max_keys = max_keys.max(1);
        self
    }

    /// Another clock than the system's: it must go on as tokio's timers do.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Its name, how it counts, and most keys.
    pub(in crate::leased) fn what(&self) -> (String, Algorithm, usize) {
        (self.name.clone(), self.algorithm, self.max_keys)
    }

    /// The limiter, and what has to run for it to have anything. Where several limiters use the
    /// same Redis, better [in one pipeline](Self::build_in).
    ///
    /// # Errors
    /// [`LeaseError`] where the limit cannot be leased.
    pub fn build(
        self,
        scripts: Arc<dyn Scripts>,
    ) -> Result<(LeasedLimiter, LeaseDriver), LeaseError> {
        self.build_in(&LeasePipeline::new(scripts))
    }

    /// The same, with calls that share a pipeline with those of others.
    ///
    /// # Errors
    /// [`LeaseError`] where the limit cannot be leased.
    pub fn build_in(
        self,
        pipeline: &LeasePipeline,
    ) -> Result<(LeasedLimiter, LeaseDriver), LeaseError> {
        let terms = LeaseTerms::of(&self.algorithm, self.scheme)?;
        let shared = Arc::new(Shared {
            table: Table::new(terms, &self.name, self.max_keys),
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock::new())),
            name: self.name.into(),
            pipeline: pipeline.clone(),
            ended: watch::Sender::new(false),
            wake: Notify::new(),
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            asked: AtomicU64::new(0),
        });
        let limiter = LeasedLimiter {
            shared: Arc::clone(&shared),
            _open: Arc::new(Open(Arc::clone(&shared))),
        };
        Ok((limiter, LeaseDriver::new(shared, pipeline.clone())))
    }
}
