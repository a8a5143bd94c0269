//! Who holds places of a limit shared by slots, and how to take them away.

use std::time::Duration;

use super::scripts::{SLOTS_KILL, SLOTS_LIST};
use super::{SharedConcurrency, Slots, arg};
use crate::{Script, ScriptCall, Unavailable};

/// One place in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The node that holds it: a random number for each key and start of a process.
    pub incarnation: u64,
    /// For whom: one number for each guard of that node.
    pub ticket: u64,
    /// Which of the guard's places, from 1.
    pub number: u64,
    /// When it becomes free unless it is renewed.
    pub expires_in: Duration,
    /// Whether its holder has been asked to leave.
    pub is_leaving: bool,
}

/// Of [`Scheme::Slots`](super::Scheme::Slots): with others nobody is listed.
impl SharedConcurrency {
    /// Places in use of a key, in the order in which they expire: `count` of them after the first
    /// `skip`.
    ///
    /// # Errors
    /// Where Redis did not answer.
    pub async fn holders(
        &self,
        key: &[u8],
        skip: u32,
        count: u32,
    ) -> Result<Vec<Holder>, Unavailable> {
        let args = vec![arg(skip.into()), arg(count.into())];
        let answer = self.once(&SLOTS_LIST, key, args).await?;
        parse(&answer).ok_or_else(|| Unavailable::BadAnswer(format!("{answer:?}")))
    }

    /// Asks whoever holds this place, and others under the same ticket, to leave: its guard is
    /// [lost](super::SharedPermit::lost) with its next renewal, within a third of the ttl, and the
    /// places are free when it is dropped, or after a ttl. False where there is no such holder.
    ///
    /// # Errors
    /// Where Redis did not answer; the holder may have been asked.
    pub async fn kill(&self, key: &[u8], holder: &Holder) -> Result<bool, Unavailable> {
        let node = Slots::name(holder.incarnation).into_bytes();
        let args = vec![node, arg(holder.ticket)];
        let answer = self.once(&SLOTS_KILL, key, args).await?;
        match answer[..] {
            [marked, _] => Ok(marked > 0),
            _ => Err(Unavailable::BadAnswer(format!("{answer:?}"))),
        }
    }

    async fn once(
        &self,
        script: &'static Script,
        key: &[u8],
        args: Vec<Vec<u8>>,
    ) -> Result<Vec<i64>, Unavailable> {
        let keys = vec![self.in_redis(key)];
        let call = ScriptCall { script, keys, args };
        self.calls.scripts.call(call, self.calls.budget).await
    }
}

fn parse(answer: &[i64]) -> Option<Vec<Holder>> {
    let (&now, rest) = answer.split_first()?;
    let (places, []) = rest.as_chunks::<6>() else {
        return None;
    };
    let now = u64::try_from(now).ok()?;
    let holder = |place: &[i64; 6]| {
        let [upper, lower, ticket, number, expiry, leaving] =
            super::node_share::all_natural(place)?;
        Some(Holder {
            incarnation: upper << 32 | lower,
            ticket,
            number,
            expires_in: Duration::from_micros(expiry.saturating_sub(now)),
            is_leaving: leaving == 1,
        })
    };
    places.iter().map(holder).collect()
}
