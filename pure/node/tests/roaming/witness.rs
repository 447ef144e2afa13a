//! Who could read what: a witness that sees whatever is sealed, and every key that an agent ever gets (invariants 1 and
//! 5 of DESIGN section 4).
//!
//! No SPI has a number twice. And no agent ever gets a key of what an end sealed while, to its knowledge, the mobile node
//! was elsewhere. By DKM alone two may for [`ALLOWED`]: whoever was left, from when the end knows that; and whoever has a
//! token, from when the mobile node gave the first of that slot, or the gateway heard of the move. A gateway that cannot
//! hear of it, for what says so was lost, seals on; what an agent has of another one is gone by then.

use super::hosts::{AGENT, AGENTS, GATEWAY, HOME, NAMES, identity};
use model::{Identity, Instant, Spi};
use node::{Event, Handover, HeldGrant};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::esp::Header;

/// How long both ends go on in a slot that was left, and how long another agent has its keys.
const ALLOWED: Duration = Duration::from_secs(2);

pub struct Witness {
    /// For how long nodes may what DKM takes.
    pub allowed: Duration,
    numbers: BTreeSet<(usize, Spi, u32)>,
    sealed: Vec<Sealed>,
    /// To the knowledge of both ends, of each agent: since when the mobile node is not there.
    left: [[Option<Instant>; AGENTS]; 2],
    /// When something was last lost.
    lost: Option<Instant>,
    agents: [Keys; AGENTS],
    shared: BTreeMap<Spi, Shared>,
}

/// What an end sealed.
struct Sealed {
    end: usize,
    spi: Spi,
    at: Instant,
    /// Where the mobile node was to its knowledge, and since when not elsewhere.
    places: BTreeSet<usize>,
    left: [Option<Instant>; AGENTS],
    lost: Option<Instant>,
}

/// What an agent has had keys of.
#[derive(Default)]
struct Keys {
    /// By the gateway.
    granted: BTreeSet<Spi>,
    /// By another agent.
    borrowed: BTreeSet<Spi>,
    /// What of that it has now, and since when.
    kept: BTreeMap<Spi, Instant>,
}

/// A slot of which the mobile node has given tokens.
struct Shared {
    holder: usize,
    askers: BTreeSet<usize>,
    /// When it gave the first.
    since: Instant,
    /// When the gateway heard of a move after that.
    heard: Option<Instant>,
}

impl Witness {
    pub fn new(handover: Handover) -> Self {
        let migrates = handover == Handover::Dkm;
        Self {
            allowed: if migrates { ALLOWED } else { Duration::ZERO },
            numbers: BTreeSet::new(),
            sealed: Vec::new(),
            left: Default::default(),
            lost: None,
            agents: Default::default(),
            shared: BTreeMap::new(),
        }
    }

    /// Something did not arrive.
    pub const fn note_lost(&mut self, now: Instant) {
        self.lost = Some(now);
    }

    /// An end knows that the mobile node is at these agents.
    pub fn note_places(&mut self, end: usize, places: &BTreeSet<usize>, now: Instant) {
        // Where that is not known it may be where it was.
        if places.is_empty() {
            return;
        }
        for (agent, left) in self.left[end].iter_mut().enumerate() {
            *left = left.or(Some(now)).filter(|_| !places.contains(&agent));
        }
        let moved = self.shared.values_mut();
        for shared in moved.filter(|shared| end == HOME && !places.contains(&shared.holder)) {
            shared.heard.get_or_insert(now);
        }
    }

    /// An end has sealed this, with the mobile node at these agents to its knowledge.
    pub fn note_sealed(&mut self, end: usize, esp: &[u8], places: BTreeSet<usize>, now: Instant) {
        let Header { spi, seq, .. } = Header::parse(esp).expect("it was sealed just now");
        let first = self.numbers.insert((end, spi, seq));
        let name = NAMES[end];
        assert!(first, "{name} seals number {seq} of {spi} twice");
        // Where that is not known nothing leaves.
        if !places.is_empty() {
            let (left, lost) = (self.left[end], self.lost);
            self.sealed.push(Sealed {
                end,
                spi,
                at: now,
                places,
                left,
                lost,
            });
        }
    }

    /// A host has told something.
    pub fn note_event(&mut self, event: &Event, now: Instant) {
        let Event::TokenGiven { sa, holder, asker } = event else {
            return;
        };
        for spi in [sa.inbound, sa.outbound] {
            let shared = self.shared.entry(spi).or_insert_with(|| Shared {
                holder: number(holder),
                askers: BTreeSet::new(),
                since: now,
                heard: None,
            });
            shared.askers.insert(number(asker));
        }
    }

    /// What an agent has now.
    pub fn note_held(&mut self, agent: usize, grants: &[HeldGrant], now: Instant) {
        let keys = &mut self.agents[agent];
        let of = |grant: &HeldGrant| [grant.from_gateway, grant.to_gateway];
        let (granted, borrowed): (Vec<_>, Vec<_>) =
            grants.iter().partition(|grant| grant.gateway == GATEWAY);
        keys.granted.extend(granted.into_iter().flat_map(of));
        let borrowed: BTreeSet<_> = borrowed.into_iter().flat_map(of).collect();
        keys.kept.retain(|spi, _| borrowed.contains(spi));
        let name = NAMES[AGENT + agent];
        for spi in borrowed {
            let shared = self.shared.get(&spi);
            let given = shared.is_some_and(|shared| shared.askers.contains(&agent));
            assert!(given, "{name} has {spi} of another agent, and no token");
            let since = *keys.kept.entry(spi).or_insert(now);
            let kept = now.since(since) <= self.allowed;
            assert!(kept, "{name} keeps {spi} of another agent");
            keys.borrowed.insert(spi);
        }
    }

    /// No agent has had the key of what was sealed while the mobile node was elsewhere.
    pub fn assert_nobody_read_behind(&self) {
        for sealed in &self.sealed {
            for agent in (0..AGENTS).filter(|agent| !sealed.places.contains(agent)) {
                let (who, end) = (NAMES[AGENT + agent], NAMES[sealed.end]);
                let (spi, places) = (sealed.spi, &sealed.places);
                assert!(
                    self.may_have(agent, sealed),
                    "{who} has the key of {spi}, in which {end} seals for {places:?}"
                );
            }
        }
    }

    fn may_have(&self, agent: usize, sealed: &Sealed) -> bool {
        let keys = &self.agents[agent];
        let is_recent = |since: Instant| sealed.at < since + self.allowed;
        let was_left = || sealed.left[agent].is_some_and(is_recent);
        let is_shared = || {
            let shared = &self.shared[&sealed.spi];
            let (since, cannot_know) = match sealed.end {
                HOME => (shared.heard, sealed.lost >= Some(shared.since)),
                _ => (None, false),
            };
            cannot_know || is_recent(since.unwrap_or(shared.since))
        };
        (!keys.granted.contains(&sealed.spi) || was_left())
            && (!keys.borrowed.contains(&sealed.spi) || is_shared())
    }
}

/// An agent, by its number from 0.
fn number(agent: &Identity) -> usize {
    let number = (0..AGENTS).find(|number| identity(AGENT + number) == *agent);
    number.expect("tokens are about agents")
}
