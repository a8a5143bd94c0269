//! Code of your own that limits, tested in no time: take the clock as an argument.
//!
//! `cargo run -p tidegate-examples --bin manual_clock`, and `cargo test` beside it.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use tidegate::{Algorithm, Clock, KeyedLimiter, QuotaError, SystemClock};

/// Refuses a login after three wrong passwords within ten minutes.
#[derive(Debug)]
pub struct Logins<C = SystemClock> {
    failures: KeyedLimiter<C>,
}

impl<C: Clock> Logins<C> {
    /// On this clock.
    ///
    /// # Errors
    /// Never with these numbers.
    pub fn new(clock: C) -> Result<Self, QuotaError> {
        // In every ten minutes, wherever they begin: a log has no edge to wait for.
        let limit = Algorithm::SlidingLog {
            permits: 3,
            window: Duration::from_mins(10),
        };
        let failures = KeyedLimiter::builder(limit)
            .max_keys(100_000)
            .clock(clock)
            .build()?;
        Ok(Self { failures })
    }

    /// Whether `user` may try, and is who they say. A right password costs nothing.
    pub fn is_welcome(&self, user: &str, is_password_right: bool) -> bool {
        // Taken first and given back, not looked at first and taken afterwards: of two that come
        // at once, only one gets the last try.
        let (_, receipt) = self.failures.reserve(user, tidegate::Ask::ONE);
        let Some(receipt) = receipt else { return false };
        if is_password_right {
            let given_back = self.failures.give_back(receipt);
            debug_assert!(given_back.is_ok(), "it goes back to where it came from");
        }
        is_password_right
    }
}

fn main() -> Result<(), QuotaError> {
    let logins = Logins::new(SystemClock::new())?;
    for password in ["1234", "password", "letmein", "correct horse"] {
        let welcome = logins.is_welcome("alice", password == "correct horse");
        println!("{password}: {}", if welcome { "welcome" } else { "no" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tidegate::{ManualClock, Timestamp};

    use super::*;

    #[test]
    fn three_wrong_passwords_close_the_door_for_ten_minutes() {
        let clock = ManualClock::new(Timestamp::from_secs(1_000));
        let logins = Logins::new(clock.clone()).unwrap();
        assert!(!logins.is_welcome("alice", false));
        clock.advance(Duration::from_mins(4));
        assert!(!logins.is_welcome("alice", false));
        assert!(!logins.is_welcome("alice", false));
        assert!(
            !logins.is_welcome("alice", true),
            "she is right, and too late"
        );
        assert!(logins.is_welcome("bob", true), "he has done nothing");

        // Ten minutes after the first of the three, one try is free again.
        clock.advance(Duration::from_mins(6) - Duration::from_nanos(1));
        assert!(!logins.is_welcome("alice", true));
        clock.advance(Duration::from_nanos(1));
        assert!(logins.is_welcome("alice", true));
    }

    #[test]
    fn right_passwords_cost_nothing() {
        let logins = Logins::new(ManualClock::default()).unwrap();
        for _ in 0..100 {
            assert!(logins.is_welcome("alice", true));
        }
    }
}
