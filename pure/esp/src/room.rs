//! The longest datagram whose sealed packet passes the path without fragmentation.
//!
//! This is the path's MTU without the outer headers and the overhead of sealing; for zones, the
//! greatest possible overhead. A datagram that is longer and may be fragmented is fragmented before
//! it is sealed (RFC 4301 section 8.1). Of others, the source is notified.
//!
//! Where routers alone report the MTU, the result is never below the minimum MTU of IPv6: an
//! attacker can forge their messages (RFC 4301 section 8.2.1). On paths with less, packets are left
//! to be fragmented, which is slow but loses none. The same holds while probes have decided
//! nothing. A limit that they have proved may be lower for IPv4; no source of IPv6 is told of less
//! than its minimum.

use model::{Df, Path};
use wire::ip::{V4_HEADER_LEN, V6_HEADER_LEN};
use wire::udp;

/// The datagram size that every link carries (RFC 8200 section 5).
const LEAST: u16 = 1280;

/// The least limit that a source of IPv4 is told (RFC 791: what every host accepts).
const LEAST_V4: u16 = 576;

/// The known path MTU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathMtu {
    /// Path MTU discovery is off or its result not credible: packets may be fragmented.
    #[default]
    Any,
    /// Not measured yet. Packets are sent whole, and a router that cannot forward one reports it.
    Unknown,
    /// The MTU in octets, by the word of a router.
    Octets(u16),
    /// The state of a search by probes.
    Searched(Searched),
}

/// The state of a search by probes, in octets outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Searched {
    /// Packets up to this length are sent with fragmentation forbidden.
    pub whole: u16,
    /// No packet is longer. Those between the two lengths may be fragmented on the path.
    pub most: u16,
    /// The length that TCP segments are clamped to.
    pub segments: u16,
    /// True if probes have shown that nothing longer than `most` comes through.
    pub settled: bool,
    /// True while `most` is a presumption that probes are about to decide.
    pub presumed: bool,
}

/// The limits of an SA's path. By default there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    /// The longest datagram that is sealed, of IPv4 and of IPv6.
    longest: Option<[u16; 2]>,
    /// The longest datagram whose packet is sent without fragmentation.
    whole: u16,
    /// The longest piece of a datagram that may be fragmented.
    piece: Option<u16>,
    /// The longest datagram of a new TCP connection.
    segments: Option<u16>,
    /// True while no probe has decided.
    is_presumed: bool,
}

/// The decision on a datagram of some length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The packet is sent, treated as [`Room::df`] has it.
    Sent,
    /// The datagram is fragmented before it is sealed, into pieces of at most this length.
    Cut(u16),
    /// The packet is not sent, and its source is notified of the longest length that fits.
    TooLong(u16),
}

/// Returns the length of a path's outer headers, in octets.
fn headers(path: Path) -> usize {
    let ip = match path.remote.is_ipv4() {
        true => V4_HEADER_LEN,
        false => V6_HEADER_LEN,
    };
    match path.is_without_udp() {
        true => ip,
        false => ip + udp::HEADER_LEN,
    }
}

/// Returns the length of the ESP packet that has `octets` octets with its outer headers.
pub(crate) fn packet_len(octets: u16, path: Path) -> usize {
    usize::from(octets).saturating_sub(headers(path))
}

impl Room {
    /// Computes the limits from a path's MTU. `within` returns the longest datagram whose packet
    /// has at most the given number of octets.
    pub fn new(mtu: PathMtu, path: Path, within: impl Fn(usize) -> usize) -> Self {
        let fit = |octets| within(packet_len(octets, path)) as u16;
        match mtu {
            // A stream does its own segmentation.
            _ if path.is_stream() => Self::default(),
            PathMtu::Any => Self::default(),
            PathMtu::Unknown => Self {
                whole: u16::MAX,
                ..Self::default()
            },
            PathMtu::Octets(octets) => {
                let longest = fit(octets);
                let is_enough = longest >= LEAST;
                Self {
                    longest: Some([longest.max(LEAST); 2]),
                    whole: if is_enough { longest } else { 0 },
                    piece: is_enough.then_some(longest),
                    segments: Some(longest.max(LEAST)),
                    is_presumed: false,
                }
            }
            PathMtu::Searched(searched) => {
                let [whole, most, segments] =
                    [searched.whole, searched.most, searched.segments].map(fit);
                let least_v4 = if searched.settled { LEAST_V4 } else { LEAST };
                Self {
                    longest: Some([most.max(least_v4), most.max(LEAST)]),
                    whole,
                    piece: Some(whole.max(LEAST_V4)),
                    segments: Some(segments.max(LEAST_V4)),
                    // Routers do not fragment IPv6: what is not told there would be lost.
                    is_presumed: searched.presumed && path.remote.is_ipv4(),
                }
            }
        }
    }

    /// Returns the longest datagram that padding may imitate, if there is a limit.
    pub fn padded(self) -> Option<u16> {
        self.longest.map(|[v4, _]| v4)
    }

    /// Returns the longest datagram of a new TCP connection, if there is a limit.
    pub const fn segments(self) -> Option<u16> {
        self.segments
    }

    /// Returns the treatment of the packet of a datagram that is `octets` octets long, padding
    /// included.
    pub fn df(self, octets: usize) -> Df {
        match octets <= self.whole.into() && self.whole > 0 {
            true => Df::Whole,
            false => Df::Clear,
        }
    }

    /// Decides about a datagram of `octets` octets; `may_be_cut` is true if the datagram itself may
    /// be fragmented.
    ///
    /// Only TCP is told of a limit that is presumed: it sends the segment again, and its first
    /// exchange has mostly decided. Systems keep what they are told for minutes, and would fragment
    /// every datagram of a stream of UDP until then.
    pub fn take(self, octets: usize, version: u8, may_be_cut: bool, is_tcp: bool) -> Fit {
        let longest = self
            .longest
            .map(|[v4, v6]| if version == 4 { v4 } else { v6 });
        let is_told = !may_be_cut && (is_tcp || !self.is_presumed);
        match (longest, self.piece) {
            (_, Some(piece)) if may_be_cut && octets > piece.into() => Fit::Cut(piece),
            (Some(longest), _) if octets > longest.into() && is_told => Fit::TooLong(longest),
            _ => Fit::Sent,
        }
    }
}
