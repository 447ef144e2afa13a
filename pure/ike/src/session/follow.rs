//! Where the peer is followed to: the check of a new address (`task/follow.rs`).

use super::pace::Pace;
use crate::sa::turn::{Context, Turn};
use model::{Instant, Path, Stray};
use std::net::IpAddr;
use std::time::Duration;

/// Time to wait for an address, in intervals of the first retransmission.
const PATIENCE: u32 = 2;

/// Minimum and maximum of this time. Other requests wait as long.
const SHORTEST_PATIENCE: Duration = Duration::from_secs(1);
const LONGEST_PATIENCE: Duration = Duration::from_secs(4);

/// Minimum time to wait for the old address.
pub(crate) const SHORTEST: Duration = Duration::from_millis(50);

/// Length of the longest question in any suite. Twice the shortest request is as long.
const QUESTION: usize = 112;

/// The same with the hashes of both addresses.
const QUESTION_WITH_HASHES: usize = 176;

/// The addresses to which a peer is followed.
pub(crate) struct Follow {
    /// The check of a new address of the peer. Boxed because it is rare.
    pub(crate) check: Option<Box<Following>>,
    /// Rate of the checks that packets of child SAs start.
    pub(crate) pace: Pace,
    /// Address of the peer when the SA was established.
    pub(crate) home: IpAddr,
}

impl Follow {
    pub(crate) fn begin(home: IpAddr) -> Self {
        Self {
            check: None,
            pace: Pace::default(),
            home,
        }
    }

    /// Returns true if the next request is the question to a new address, for which all others
    /// wait.
    pub(crate) fn is_to_ask(&self, announced: bool) -> bool {
        self.check.as_ref().is_some_and(|following| {
            following.is_waiting() && following.credit >= following.longest_question(announced)
        })
    }

    /// Returns true if a child SA's packet started the check. Such a packet is a hint, so a check
    /// without a response is no reason to give the SA up.
    pub(crate) fn is_led_by_packets(&self) -> bool {
        let following = self.check.as_ref();
        following.is_some_and(|following| following.packets.is_some())
    }
}

/// The check of a new address of a peer.
pub(crate) struct Following {
    pub(crate) to: Path,
    pub(crate) step: Step,
    /// Time at which the step ends.
    pub(crate) until: Instant,
    /// Octets that may still be sent to the new address.
    pub(crate) credit: usize,
    /// Number of questions that were answered at the new address.
    pub(crate) answers: u8,
    /// State of the child SAs' packets, if one of them started the check.
    pub(crate) packets: Option<Packets>,
}

/// Child SAs' packets while their new address is checked.
#[derive(Clone, Copy)]
pub(crate) struct Packets {
    /// Start of the check.
    pub(crate) since: Instant,
    /// The newest packet, unless it came from the old address.
    pub(crate) stray: Option<Stray>,
    /// True if the old address has answered, and is one that the peer announced.
    pub(crate) old_answers: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// Requests from before the check are outstanding.
    Waiting,
    /// The new address has been asked.
    New { asked: Instant, repeated: bool },
    /// The old address has been asked.
    Old,
}

impl Packets {
    /// Begins with a packet that came on a new path.
    pub(crate) const fn begin(path: Path, now: Instant) -> Self {
        let (since, away) = (now, now);
        Self {
            since,
            stray: Some(Stray { path, since, away }),
            old_answers: false,
        }
    }

    /// Returns true if child SAs' packets come on the new path now, and on the old one no more.
    /// Where the old path still answers, they have to come on the new one alone, and only another
    /// port of the same address counts: a NAT that maps ESP apart from IKE. Otherwise, an attacker
    /// who forwards packets faster than the network could take the tunnel to another host.
    pub(crate) fn moved(self, new: Path, old: Path) -> bool {
        // The data plane reads the time of a packet later than control that of its turn.
        let begun = self.since + SHORTEST;
        self.stray.is_some_and(|stray| {
            let enough = match self.old_answers {
                true => stray.since <= begun && new.remote.ip() == old.remote.ip(),
                false => stray.away <= begun,
            };
            stray.path.remote == new.remote && enough
        })
    }
}

impl Following {
    pub(crate) fn begin(to: Path, packets: Option<Packets>, turn: &Turn<'_, '_>) -> Self {
        Self {
            to,
            step: Step::Waiting,
            until: turn.ctx.now + patience(turn),
            credit: 0,
            answers: 0,
            packets,
        }
    }

    /// Returns the size of the longest check of the new address, in octets. It includes hashes if
    /// moves are `announced`.
    pub(crate) const fn longest_question(&self, announced: bool) -> usize {
        match announced && self.packets.is_some() {
            true => QUESTION_WITH_HASHES,
            false => QUESTION,
        }
    }

    pub(crate) const fn asks_new(&self) -> bool {
        matches!(self.step, Step::New { .. })
    }

    pub(crate) const fn is_waiting(&self) -> bool {
        matches!(self.step, Step::Waiting)
    }

    /// Sends a request to the new address, if the octets that came from there allow it.
    pub(crate) fn send(&mut self, datagrams: &[Vec<u8>], ctx: &mut Context<'_>) {
        let octets = datagrams.iter().map(Vec::len).sum();
        if let Some(left) = self.credit.checked_sub(octets) {
            self.credit = left;
            ctx.transmit_all(self.to, datagrams);
        }
    }
}

pub(crate) fn patience(turn: &Turn<'_, '_>) -> Duration {
    let first = turn.core.requests.timeout(&turn.ctx.config.timers);
    (first * PATIENCE).clamp(SHORTEST_PATIENCE, LONGEST_PATIENCE)
}
