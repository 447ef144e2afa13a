//! Observes the holders of shared keys: a witness for agents that hold the keys of one slot, few at
//! a time.
//!
//! At most the allowed number of agents ever gets the keys of a slot. Each of them was, to home's
//! knowledge, near the mobile node at some time since the slot has these keys.

use super::hosts::{AGENT, AGENTS, NAMES};
use model::{Instant, Spi};
use node::{Event, HeldGrant};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Holders {
    /// SPIs whose keys each agent has ever held.
    held: [BTreeSet<Spi>; AGENTS],
    /// Time at which the keys of each SPI were created.
    made: BTreeMap<Spi, Instant>,
    /// Time at which each agent was last near the mobile node.
    near: [Instant; AGENTS],
    /// Agents with keys that they received without having been near since the keys exist.
    strangers: Vec<(usize, Spi)>,
}

impl Holders {
    /// Records the agents near the mobile node, to home's knowledge.
    pub fn note_near(&mut self, near: &BTreeSet<usize>, now: Instant) {
        near.iter().for_each(|agent| self.near[*agent] = now);
    }

    /// Records an event of home, which may announce new keys.
    pub fn note_event(&mut self, event: &Event, now: Instant) {
        if let Event::ChildUp {
            inbound, outbound, ..
        }
        | Event::ChildRekeyed {
            inbound, outbound, ..
        } = event
        {
            self.made.extend([(*inbound, now), (*outbound, now)]);
        }
    }

    /// Records the grants that an agent holds.
    pub fn note_held(&mut self, agent: usize, grants: &[HeldGrant]) {
        let of = |held: &HeldGrant| [held.from_gateway, held.to_gateway];
        for spi in grants.iter().flat_map(of) {
            let made = self.made.get(&spi);
            let is_late = made.is_some_and(|made| self.near[agent] < *made);
            if self.held[agent].insert(spi) && is_late {
                self.strangers.push((agent, spi));
            }
        }
    }

    /// Asserts that at most `most` agents ever had the keys of a slot, all of which were near the
    /// mobile node since the slot has these keys.
    pub fn assert_few(&self, most: usize) {
        for spi in self.made.keys() {
            let holders = self.held.iter().filter(|held| held.contains(spi)).count();
            assert!(holders <= most, "{holders} agents have the key of {spi}");
        }
        if let Some((agent, spi)) = self.strangers.first() {
            let name = NAMES[AGENT + agent];
            panic!("{name} was given the key of {spi}, and was not near");
        }
    }
}
