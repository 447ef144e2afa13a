//! What the data plane says of itself.

use crate::drop::DropReason;
use crate::ecn::Congestion;
use model::{ChildSaId, Path};

/// What control has to act upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Half of the outbound sequence numbers are used: time for new keys (DESIGN section 3). After
    /// the other half the SA seals no more.
    RekeySoon(ChildSaId),
    /// The first genuine packet came on an SA that was installed beside another: the peer has it
    /// and sends on it.
    Confirmed(ChildSaId),
    /// A packet came whose ECN field outside does not fit that inside: somebody on the way writes it
    /// who should not, or the peer does. Told of the first in each SA.
    UnusedEcn(ChildSaId),
    /// The lengths of datagrams were to be hidden, and the peer said that it takes no padding.
    Unpadded(ChildSaId),
    /// Nothing more goes without encryption on an SA: what was granted of that is used up.
    LevelSpent(ChildSaId),
    /// A packet came without encryption that may not. Told of the first in each SA.
    LevelRefused(ChildSaId),
    /// An SA sealed its first datagram since [`Worker::watch`](crate::Worker::watch).
    Sends(ChildSaId),
    /// The newest authentic packet of an SA came from another address or port than the SA sends to: its
    /// path and its size in octets. Reported for few of such packets.
    Strays(ChildSaId, Path, usize),
}

/// Packets and octets of inner datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Octets.
    pub octets: u64,
}

impl Traffic {
    pub(crate) fn count(&mut self, octets: usize) {
        self.packets += 1;
        self.octets += octets as u64;
    }

    fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.octets += other.octets;
    }
}

/// What one SA carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaTraffic {
    /// From us.
    pub sealed: Traffic,
    /// To us.
    pub opened: Traffic,
}

/// Everything a worker counted since it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Packets sealed, and octets of the datagrams in them.
    pub sealed: Traffic,
    /// Packets opened and delivered, and octets of the datagrams.
    pub opened: Traffic,
    /// Sealed packets whose datagram went into the payload zone as a whole.
    pub opaque: u64,
    /// Datagrams that were padded so that nobody outside sees how long they are, and octets of that.
    pub padded: Traffic,
    /// Dummies that were sealed where there was silence.
    pub covered: u64,
    /// Segments that began a TCP connection and offered longer ones than fit.
    pub clamped: u64,
    /// Datagrams that their path has no room for, and whose sources were told so.
    pub too_long: u64,
    /// Packets that a licensed node has changed by an overlay.
    pub written: u64,
    /// Packets that a licensed node has made, and that were believed.
    pub injected: u64,
    /// What the headers outside said about congestion.
    pub congestion: Congestion,
    dropped: [u64; DropReason::ALL.len()],
}

impl Counters {
    pub(crate) const fn new() -> Self {
        let none = Traffic {
            packets: 0,
            octets: 0,
        };
        Self {
            sealed: none,
            opened: none,
            opaque: 0,
            padded: none,
            covered: 0,
            clamped: 0,
            too_long: 0,
            written: 0,
            injected: 0,
            congestion: Congestion::new(),
            dropped: [0; DropReason::ALL.len()],
        }
    }

    /// Counts what another has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            sealed,
            opened,
            opaque,
            padded,
            covered,
            clamped,
            too_long,
            written,
            injected,
            congestion,
            dropped,
        } = self;
        sealed.add(other.sealed);
        opened.add(other.opened);
        padded.add(other.padded);
        for (sum, more) in [
            (opaque, other.opaque),
            (covered, other.covered),
            (clamped, other.clamped),
            (too_long, other.too_long),
            (written, other.written),
            (injected, other.injected),
        ] {
            *sum += more;
        }
        congestion.add(other.congestion);
        for (sum, more) in dropped.iter_mut().zip(other.dropped) {
            *sum += more;
        }
    }

    /// Packets dropped for one reason.
    pub fn dropped(&self, why: DropReason) -> u64 {
        self.dropped[why as usize]
    }

    /// Packets that came and only hide the silence.
    pub fn dummies(&self) -> u64 {
        self.dropped(DropReason::Dummy)
    }

    /// Every reason to worry about with its count: not dummies.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        let all = DropReason::ALL.iter().copied().zip(self.dropped);
        all.filter(|(why, _)| *why != DropReason::Dummy)
    }

    pub(crate) fn drop(&mut self, why: DropReason) {
        self.dropped[why as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each count is a multiple of its own of the scale, so that one added to another shows.
    fn counted(scale: u64) -> Counters {
        let mut multiple = 0;
        let mut next = || {
            multiple += scale;
            multiple
        };
        let mut traffic = || Traffic {
            packets: next(),
            octets: next(),
        };
        Counters {
            sealed: traffic(),
            opened: traffic(),
            padded: traffic(),
            opaque: next(),
            covered: next(),
            clamped: next(),
            too_long: next(),
            written: next(),
            injected: next(),
            congestion: Congestion {
                marked: next(),
                dangerous: next(),
                unused: next(),
            },
            dropped: std::array::from_fn(|_| next()),
        }
    }

    #[test]
    fn a_sum_has_every_count_of_both() {
        let mut sum = counted(1);
        sum.add(&counted(10));
        assert_eq!(sum, counted(11));
    }
}
