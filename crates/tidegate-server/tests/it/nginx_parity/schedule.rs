//! When requests are sent: drawn from a seed, and away from where a few milliseconds matter.

use super::zone::{Model, Status, Zone};

/// So far may a request be from its time without a change of any verdict.
const MARGIN_MILLIS: i64 = 8;
/// Within a group, one request after the other.
const STEP_MICROS: i64 = 800;

/// Requests of one client at (nearly) one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// Since the start.
    pub(crate) millis: i64,
    pub(crate) client: i64,
    pub(crate) count: i64,
}

impl Group {
    /// When each is sent, in microseconds since the start.
    pub(crate) fn micros(self) -> impl Iterator<Item = i64> {
        (0..self.count).map(move |at| self.millis * 1_000 + at * STEP_MICROS)
    }
}

/// A dozen within 10 ms, and some at odd times. Of two clients each sends half of the dozen.
pub(crate) fn schedule(zones: &[Zone], clients: i64, seed: u64) -> Vec<Group> {
    let mut random = Random(seed);
    let mut groups: Vec<_> = (0..clients)
        .map(|client| Group {
            millis: 20 * client,
            client,
            count: 12 / clients,
        })
        .collect();
    assert!(is_robust(zones, &groups, &mut random), "{zones:?}");
    for _ in 0..7 {
        let last = groups[groups.len() - 1].millis;
        for _ in 0..200 {
            let group = Group {
                millis: last + random.between(60, 450),
                client: random.between(0, clients - 1),
                count: random.between(1, 3),
            };
            groups.push(group);
            if is_robust(zones, &groups, &mut random) {
                break;
            }
            groups.pop();
        }
    }
    assert!(groups.len() > 4, "few times are robust: {zones:?}");
    groups
}

/// Whether small shifts of the requests change no verdict.
fn is_robust(zones: &[Zone], groups: &[Group], random: &mut Random) -> bool {
    let kinds = kinds(zones, groups, || 0);
    let mut shift = || random.between(-MARGIN_MILLIS, MARGIN_MILLIS);
    (0..40).all(|_| self::kinds(zones, groups, &mut shift) == kinds)
}

/// What becomes of each request, without delays; those of a group may change places.
fn kinds(zones: &[Zone], groups: &[Group], mut shift: impl FnMut() -> i64) -> Vec<Status> {
    let mut model = Model::new(zones);
    let mut kinds = Vec::new();
    for group in groups {
        let times = group.micros().map(|micros| micros / 1_000 + shift());
        let mut times: Vec<_> = times.collect();
        times.sort_unstable();
        let statuses = times
            .into_iter()
            .map(|time| match model.ask(time, group.client) {
                Status::Delayed(_) => Status::Delayed(0),
                other => other,
            });
        let mut statuses: Vec<_> = statuses.collect();
        statuses.sort_unstable();
        kinds.extend(statuses);
    }
    kinds
}

/// splitmix64.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn between(&mut self, least: i64, most: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        least
            + (mixed ^ (mixed >> 31))
                .cast_signed()
                .rem_euclid(most - least + 1)
    }
}
