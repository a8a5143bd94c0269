//! Definitions that callers of the library make.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Algorithm, Sharing};
use tokio::runtime::Handle;

use super::followed::FollowedLimiter;
use super::{Claim, Definition, Holds, How, call, read};
use crate::backoff::random;
use crate::call::{Scripts, Unavailable};
use crate::exact::{Exact, NotShared, Numbers};

/// How long a definition lasts after it was last told, in milliseconds: 30 days.
const LASTS_MS: u64 = 30 * 86_400_000;
const BUDGET: Duration = Duration::from_millis(500);

/// How limits are defined, for all who use the same Redis and the same names.
///
/// ```no_run
/// # async fn example(scripts: std::sync::Arc<dyn tidegate_redis::Scripts>)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate::Quota;
/// use tidegate_redis::{Definitions, Exact};
///
/// let definitions = Definitions::new(scripts.clone());
/// // Whoever comes first says what it is; the others are told.
/// let held = definitions.set_once("api", Quota::per_minute(100)).await?;
///
/// // Its numbers are those that hold, also when somebody changes them.
/// let runtime = tokio::runtime::Handle::try_current()?;
/// let limiter = definitions.follow("api", held, &Exact::new(scripts), &runtime)?;
/// limiter.current().check("alice", 1).await?;
///
/// // For all of them, within two seconds; what was used stays used.
/// definitions.update("api", held.version + 1, Quota::per_minute(200)).await?;
/// # Ok(())
/// # }
/// ```
///
/// A definition is forgotten 30 days after it was last told, or when Redis loses it.
/// Clones are the same.
#[derive(Clone, Debug)]
pub struct Definitions {
    scripts: Arc<dyn Scripts>,
    holder: u64,
}

/// Why a limit has not been defined.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefineError {
    /// It cannot be shared.
    NotShared(NotShared),
    /// Redis did not answer in time: whether it has been defined is not known.
    Unavailable(Unavailable),
    /// There is a definition of this version that this software does not know.
    Unknown(u64),
}

impl fmt::Display for DefineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotShared(_) => f.write_str("such a limit cannot be shared"),
            Self::Unavailable(_) => f.write_str("Redis does not say how the limit is defined"),
            Self::Unknown(version) => {
                write!(f, "version {version} of the limit is of later software")
            }
        }
    }
}

impl std::error::Error for DefineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotShared(error) => Some(error),
            Self::Unavailable(error) => Some(error),
            Self::Unknown(_) => None,
        }
    }
}

impl Definitions {
    /// Definitions in the Redis behind these scripts.
    pub fn new(scripts: Arc<dyn Scripts>) -> Self {
        let holder = random();
        Self { scripts, holder }
    }

    /// Defines a limit of exact mode unless it is defined already: the first definition stays. Says
    /// which one holds.
    ///
    /// # Errors
    /// [`DefineError`].
    ///
    /// # Cancel safety
    /// Dropped before, it may have defined it, or not.
    pub async fn set_once(
        &self,
        name: &str,
        algorithm: impl Into<Algorithm>,
    ) -> Result<Definition, DefineError> {
        self.tell(name, How::Once, 0, algorithm.into()).await
    }

    /// Defines a limit of exact mode anew, as this version. It holds if it is newer than what held
    /// before; of that, what was used stays used. Otherwise what was there stays: what is newer;
    /// and of the same version what somebody else has told, unless this is stricter. Says which
    /// one holds.
    ///
    /// # Errors
    /// [`DefineError`].
    ///
    /// # Cancel safety
    /// As [`set_once`](Self::set_once).
    pub async fn update(
        &self,
        name: &str,
        version: u64,
        algorithm: impl Into<Algorithm>,
    ) -> Result<Definition, DefineError> {
        self.tell(name, How::Hold, version, algorithm.into()).await
    }

    /// A limiter of this name that counts as `held` says at first, and from then on as what holds
    /// does. It asks every two seconds, in `runtime`, until the last clone of it is dropped. If
    /// Redis has lost what held it puts that back.
    ///
    /// # Errors
    /// [`NotShared`] where `held` is none of exact mode.
    pub fn follow(
        &self,
        name: &str,
        held: Definition,
        exact: &Exact,
        runtime: &Handle,
    ) -> Result<FollowedLimiter, NotShared> {
        FollowedLimiter::new(self.clone(), name, held, exact.clone(), runtime)
    }

    pub(super) async fn tell(
        &self,
        name: &str,
        how: How,
        version: u64,
        algorithm: Algorithm,
    ) -> Result<Definition, DefineError> {
        Numbers::of(&algorithm).map_err(DefineError::NotShared)?;
        let definition = Definition {
            version,
            algorithm,
            sharing: Sharing::Exact,
        };
        let local = || DefineError::NotShared(NotShared::Local("this algorithm"));
        let claims = [Claim::new(name, &[], how, definition).ok_or_else(local)?];
        let call = call(self.holder, LASTS_MS, &claims);
        let answer = self.scripts.call(call, BUDGET).await;
        let answered = answer.and_then(|answer| read(&answer, 1));
        match answered.map_err(DefineError::Unavailable)?.holds[..] {
            [Holds::Definition(holds)] => Ok(holds),
            [Holds::Unknown(version)] => Err(DefineError::Unknown(version)),
            _ => Err(DefineError::Unknown(version)),
        }
    }
}
