//! Who shares keys: a witness of where agents have the keys of one slot, few at a time.
//!
//! No more of them than may ever get those of one slot, and each of them only if it was near the mobile node, to home's
//! knowledge, since the slot has them.

use super::hosts::{AGENT, AGENTS, NAMES};
use model::{Instant, Spi};
use node::{Event, HeldGrant};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Holders {
    /// What each agent has ever had.
    held: [BTreeSet<Spi>; AGENTS],
    /// Since when there are the keys of each SPI.
    made: BTreeMap<Spi, Instant>,
    /// When each agent was last near the mobile node.
    near: [Instant; AGENTS],
    /// Agents that got keys though they were not near since there were any.
    strangers: Vec<(usize, Spi)>,
}

impl Holders {
    /// These agents are near the mobile node, to home's knowledge.
    pub fn note_near(&mut self, near: &BTreeSet<usize>, now: Instant) {
        near.iter().for_each(|agent| self.near[*agent] = now);
    }

    /// Home has told something: it may have keys that it had not.
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

    /// What an agent has now.
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

    /// No more agents than these ever had the keys of one slot, and all of those were near the mobile node since it has
    /// them.
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
