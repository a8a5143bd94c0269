//! One entry for each place in use.

use std::collections::BTreeMap;

use super::{Args, ScriptModel, reply};

/// The state of `slots.lua`.
#[derive(Clone, Debug, Default)]
pub struct SlotsModel {
    places: BTreeMap<(String, u64, u64), Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    expiry: u64,
    leaving: bool,
}

impl SlotsModel {
    /// What `slots_kill.lua` does.
    pub fn kill(&mut self, node: &str, ticket: u64) -> u64 {
        let mut marked = 0;
        while let Some(place) = self.places.get_mut(&(node.to_owned(), ticket, marked + 1)) {
            place.leaving = true;
            marked += 1;
        }
        marked
    }
}

impl ScriptModel for SlotsModel {
    fn call(&mut self, now: u64, args: &[Vec<u8>]) -> Vec<i64> {
        let mut args = Args::of(args);
        let (limit, ttl, node) = (args.number(), args.number(), args.text());
        for (ticket, places) in args.pairs() {
            for number in 1..=places {
                self.places.remove(&(node.clone(), ticket, number));
            }
        }
        self.places.retain(|_, place| place.expiry > now);
        for place in self.places.values_mut() {
            place.expiry = place.expiry.min(now + ttl);
        }
        let mut flags = Vec::new();
        while !args.is_empty() {
            let (ticket, places) = (args.number(), args.number());
            let names = || (1..=places).map(|number| (node.clone(), ticket, number));
            let missing = names().filter(|name| !self.places.contains_key(name));
            let missing = missing.count() as u64;
            let leaving = |name: &_| self.places.get(name).is_some_and(|place| place.leaving);
            let inside = self.places.len() as u64;
            let fits = missing == 0 || inside + missing <= limit;
            let has = fits && !names().any(|name| leaving(&name));
            if has {
                for name in names() {
                    let place = Place {
                        expiry: now + ttl,
                        leaving: false,
                    };
                    self.places.insert(name, place);
                }
            }
            flags.push(u64::from(has));
        }
        reply([self.places.len() as u64, now].into_iter().chain(flags))
    }

    fn snapshot(&self) -> Box<dyn ScriptModel> {
        Box::new(self.clone())
    }
}
