//! Peers that connect from several addresses in turns, which replace each other's IKE SAs: several
//! machines have one key. A peer that restarts elsewhere does so once.

use model::{Instant, PeerId};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Time for which a displaced address is remembered.
const SPAN: Duration = Duration::from_secs(600);

/// Most displaced addresses of a peer to remember.
const MOST: usize = 8;

/// The addresses from which peers were displaced.
#[derive(Default)]
pub(crate) struct Rivals(BTreeMap<PeerId, Rival>);

/// Two addresses from which a peer connects in turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTurns {
    /// Time of the last change.
    pub at: Instant,
    /// The address that was displaced, and the one that displaced it.
    pub addresses: [SocketAddr; 2],
}

impl InTurns {
    /// Returns true if the last change was not long ago.
    pub fn lasts(&self, now: Instant) -> bool {
        now.since(self.at) < SPAN
    }
}

#[derive(Default)]
struct Rival {
    /// Displaced addresses, oldest first.
    displaced: VecDeque<(SocketAddr, Instant)>,
    in_turns: Option<InTurns>,
}

impl Rivals {
    /// Notes that a peer connected from `new` instead of `old`. Returns true if it had been
    /// displaced from `new` shortly before.
    pub(crate) fn note(
        &mut self,
        peer: PeerId,
        old: SocketAddr,
        new: SocketAddr,
        now: Instant,
    ) -> bool {
        let rival = self.0.entry(peer).or_default();
        rival.displaced.retain(|(_, at)| now.since(*at) < SPAN);
        let returns = rival.displaced.iter().any(|(from, _)| *from == new);
        rival.in_turns = returns.then_some(InTurns {
            at: now,
            addresses: [old, new],
        });
        rival.displaced.retain(|(from, _)| *from != old);
        rival.displaced.push_back((old, now));
        if rival.displaced.len() > MOST {
            rival.displaced.pop_front();
        }
        returns
    }

    /// Returns the addresses from which a peer connects in turns.
    pub(crate) fn of(&self, peer: PeerId) -> Option<InTurns> {
        self.0.get(&peer)?.in_turns.clone()
    }

    /// Forgets every peer that `keeps` rejects.
    pub(crate) fn retain(&mut self, keeps: impl Fn(PeerId) -> bool) {
        self.0.retain(|peer, _| keeps(*peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: PeerId = PeerId(0);

    fn from(last: u8) -> SocketAddr {
        ([192, 0, 2, last], 4500).into()
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn a_peer_that_restarts_elsewhere_has_no_rival() {
        let mut rivals = Rivals::default();
        assert!(!rivals.note(ALICE, from(1), from(2), at(0)));
        assert!(!rivals.note(ALICE, from(2), from(3), at(46)));
        assert_eq!(rivals.of(ALICE), None);
    }

    // Weakness: 152
    #[test]
    fn two_or_three_machines_that_take_turns_are_told() {
        for machines in [2, 3] {
            let mut rivals = Rivals::default();
            let mut returned = Vec::new();
            for turn in 0..6_u8 {
                let (old, new) = (turn % machines, (turn + 1) % machines);
                let now = at(u64::from(turn) * 46);
                returned.push(rivals.note(ALICE, from(old), from(new), now));
            }
            let first = returned.iter().position(|returns| *returns);
            assert_eq!(first, Some(usize::from(machines) - 1));
            assert!(rivals.of(ALICE).is_some());
            assert_eq!(rivals.of(PeerId(1)), None);
        }
    }

    #[test]
    fn a_return_after_a_while_is_no_rival_and_ends_the_report() {
        let mut rivals = Rivals::default();
        rivals.note(ALICE, from(1), from(2), at(0));
        assert!(rivals.note(ALICE, from(2), from(1), at(599)));
        let in_turns = rivals.of(ALICE).unwrap();
        assert_eq!(in_turns.addresses, [from(2), from(1)]);
        assert!(in_turns.lasts(at(1198)) && !in_turns.lasts(at(1199)));
        assert!(!rivals.note(ALICE, from(1), from(2), at(1300)));
        assert_eq!(rivals.of(ALICE), None);
    }

    #[test]
    fn few_addresses_are_remembered() {
        let mut rivals = Rivals::default();
        for last in 0..=254 {
            rivals.note(ALICE, from(last), from(last + 1), at(0));
        }
        assert_eq!(rivals.0[&ALICE].displaced.len(), MOST);
    }
}
