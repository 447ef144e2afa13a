//! Reports and counters of the data plane.

use crate::drop::DropReason;
use crate::ecn::Congestion;
use model::{ChildSaId, Path, PeerId, Spi};
use wire::probe::Probe;

/// A report that control has to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Half of the outbound sequence numbers are used: time to rekey (DESIGN section 3). The SA
    /// stops sealing after the other half.
    RekeySoon(ChildSaId),
    /// The first authentic packet arrived on an SA that is not yet used for sending: the peer has
    /// installed it and sends on it.
    Confirmed(ChildSaId),
    /// An authentic packet had an outer ECN field that does not fit the inner one: a router on the
    /// path or the peer sets it wrongly. Reported once per SA.
    UnusedEcn(ChildSaId),
    /// Padding of datagrams is configured, but the peer does not accept it.
    Unpadded(ChildSaId),
    /// The grant for unencrypted packets on an SA is used up; all packets are encrypted again.
    LevelSpent(ChildSaId),
    /// An unencrypted packet was refused. Reported once per SA.
    LevelRefused(ChildSaId),
    /// A tenth is left of the packets that the SAs with a peer may carry without encryption.
    ClearLow(PeerId),
    /// An SA sealed its first datagram since [`Worker::watch`](crate::Worker::watch).
    Sends(ChildSaId),
    /// The newest authentic packet of an SA came from another address or port than the SA sends to:
    /// its path and its size in octets. Reported for few of such packets.
    Strays(ChildSaId, Path, usize),
    /// A probe of the path MTU, a ping or the answer to one arrived. Reported for few of them.
    Probe(ChildSaId, Probe),
    /// A packet has an SPI of no SA: its path and its size in octets. Reported for few of them.
    Unknown(Spi, Path, usize),
}

/// Numbers of packets and octets of inner datagrams.
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

/// The traffic of one SA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaTraffic {
    /// Outbound traffic.
    pub sealed: Traffic,
    /// Inbound traffic.
    pub opened: Traffic,
}

impl SaTraffic {
    /// Adds the traffic of another SA.
    pub fn add(&mut self, other: Self) {
        self.sealed.add(other.sealed);
        self.opened.add(other.opened);
    }
}

/// All counters of a worker since its creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Packets sealed, and octets of their datagrams.
    pub sealed: Traffic,
    /// Packets opened and delivered, and octets of their datagrams.
    pub opened: Traffic,
    /// Packets sealed with the whole datagram in the payload zone.
    pub opaque: u64,
    /// Datagrams padded to hide their length, and octets of padding.
    pub padded: Traffic,
    /// Dummy packets sealed during silence.
    pub covered: u64,
    /// TCP segments whose maximum segment size option was lowered.
    pub clamped: u64,
    /// Datagrams too long for their path whose source was notified.
    pub too_long: u64,
    /// Datagrams fragmented before they were sealed, because they were too long for their path.
    pub cut: u64,
    /// Probes of path MTUs, pings and the answers to both that arrived.
    pub probes: u64,
    /// Packets that a licensed node changed by an overlay.
    pub written: u64,
    /// Packets that a licensed node injected and that were accepted.
    pub injected: u64,
    /// Congestion signals in outer headers.
    pub congestion: Congestion,
    dropped: [u64; DropReason::ALL.len()],
}

impl Counters {
    /// Returns counters of nothing.
    pub const fn new() -> Self {
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
            cut: 0,
            probes: 0,
            written: 0,
            injected: 0,
            congestion: Congestion::new(),
            dropped: [0; DropReason::ALL.len()],
        }
    }

    /// Adds another worker's counters.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            sealed,
            opened,
            opaque,
            padded,
            covered,
            clamped,
            too_long,
            cut,
            probes,
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
            (cut, other.cut),
            (probes, other.probes),
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

    /// Returns the packets dropped for one reason.
    pub fn dropped(&self, why: DropReason) -> u64 {
        self.dropped[why as usize]
    }

    /// Returns the dummy packets received, other than probes, pings and their answers.
    pub fn dummies(&self) -> u64 {
        self.dropped(DropReason::Dummy).saturating_sub(self.probes)
    }

    /// Returns the count of each drop reason, except for dummies.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        let all = DropReason::ALL.iter().copied().zip(self.dropped);
        all.filter(|(why, _)| *why != DropReason::Dummy)
    }

    /// Counts a packet that was dropped.
    pub fn drop(&mut self, why: DropReason) {
        self.dropped[why as usize] += 1;
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters that are all different multiples of `scale`, so that a wrong addition shows.
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
            cut: next(),
            probes: next(),
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
