//! Observes which agents could read which packets: a witness that sees every sealed packet, and
//! every key that an agent ever gets (invariants 1 and 5 of DESIGN section 4).
//!
//! No number of an SPI is used twice. No agent ever gets a key for packets that an end sealed
//! while, to the end's knowledge, the mobile node was elsewhere. With DKM alone there are two
//! exceptions, each for [`ALLOWED`]: the agent that was left, from the time when the end knows of
//! the move; and an agent with a token, from the time when the mobile node issued the first token
//! of the slot, or when the gateway learnt of the move. A gateway that cannot learn of the move,
//! because a message was lost, continues to seal. By then the agent has discarded keys from other
//! agents.

use super::hosts::{AGENT, AGENTS, HOME, NAMES, identity};
use model::{Identity, Instant, PeerId, Spi};
use node::{Event, Handover, HeldGrant};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::esp::Header;

/// Time for which both ends continue in a slot that was left, and for which another agent has its
/// keys.
const ALLOWED: Duration = Duration::from_secs(2);

pub struct Witness {
    /// Time allowed by the hand-over mode.
    pub allowed: Duration,
    numbers: BTreeSet<(usize, Spi, u32)>,
    sealed: Vec<Sealed>,
    /// Time since which the mobile node is not at each agent, to the knowledge of each end.
    left: [[Option<Instant>; AGENTS]; 2],
    /// Time of the last lost message.
    lost: Option<Instant>,
    agents: [Keys; AGENTS],
    shared: BTreeMap<Spi, Shared>,
}

/// A packet sealed by an end.
struct Sealed {
    end: usize,
    spi: Spi,
    at: Instant,
    /// Agents that the mobile node was at, to the end's knowledge.
    places: BTreeSet<usize>,
    left: [Option<Instant>; AGENTS],
    lost: Option<Instant>,
}

/// SPIs whose keys an agent has held.
#[derive(Default)]
struct Keys {
    /// SPIs with keys from the gateway.
    granted: BTreeSet<Spi>,
    /// SPIs with keys from another agent.
    borrowed: BTreeSet<Spi>,
    /// SPIs with keys from another agent that are held now, with the time of arrival.
    kept: BTreeMap<Spi, Instant>,
}

/// A slot with tokens issued by the mobile node.
struct Shared {
    holder: usize,
    askers: BTreeSet<usize>,
    /// Time of the first token.
    since: Instant,
    /// Time at which the gateway learnt of a later move.
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

    /// Records that a message was lost.
    pub const fn note_lost(&mut self, now: Instant) {
        self.lost = Some(now);
    }

    /// Records the agents that the mobile node is at, to the knowledge of an end.
    pub fn note_places(&mut self, end: usize, places: &BTreeSet<usize>, now: Instant) {
        // Without a known location the mobile node may be where it was.
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

    /// Records a packet sealed by an end, with the location of the mobile node to the end's
    /// knowledge.
    pub fn note_sealed(&mut self, end: usize, esp: &[u8], places: BTreeSet<usize>, now: Instant) {
        let Header { spi, seq, .. } = Header::parse(esp).expect("it was sealed just now");
        let first = self.numbers.insert((end, spi, seq));
        let name = NAMES[end];
        assert!(first, "{name} seals number {seq} of {spi} twice");
        // Without a known location no packet leaves.
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

    /// Records an event of a host.
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

    /// Records the grants that an agent holds, and which of its peers is the gateway.
    pub fn note_held(
        &mut self,
        agent: usize,
        gateway: Option<PeerId>,
        grants: &[HeldGrant],
        now: Instant,
    ) {
        let keys = &mut self.agents[agent];
        let of = |grant: &HeldGrant| [grant.from_gateway, grant.to_gateway];
        let (granted, borrowed): (Vec<_>, Vec<_>) = grants
            .iter()
            .partition(|grant| Some(grant.gateway) == gateway);
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

    /// Asserts that no agent had the keys of packets sealed while the mobile node was elsewhere.
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

/// Returns the number of an agent, from 0.
fn number(agent: &Identity) -> usize {
    let number = (0..AGENTS).find(|number| identity(AGENT + number) == *agent);
    number.expect("tokens are about agents")
}
