//! The longest datagram whose sealed packet passes the path without fragmentation.
//!
//! This is the path's MTU without the outer headers and the overhead of sealing; for zones, the
//! greatest possible overhead. The result is never below the minimum MTU of IPv6. On paths with
//! less, packets are left to be fragmented, which is slow but loses none. RFC 4301 section 8.2.1
//! describes an attacker who forges router messages; such an attacker gains no more than that.

use model::Path;
use wire::ip::{V4_HEADER_LEN, V6_HEADER_LEN};
use wire::udp;

/// The datagram size that every link carries (RFC 8200 section 5).
const LEAST: u16 = 1280;

/// The known path MTU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathMtu {
    /// Path MTU discovery is off or its result not credible: packets may be fragmented.
    #[default]
    Any,
    /// Not measured yet. Packets are sent whole, and a router that cannot forward one reports it.
    Unknown,
    /// The MTU in octets.
    Octets(u16),
}

/// The limits of an SA's path. By default there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    /// The longest datagram that fits.
    longest: Option<u16>,
    /// True if packets that fit are sent without fragmentation.
    whole: bool,
}

/// The decision on a datagram of some length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The packet is sent with fragmentation forbidden.
    Whole,
    /// The packet may be fragmented.
    Fragments,
    /// The packet is not sent, and its source is notified of the longest length that fits.
    TooLong(u16),
}

impl Room {
    /// Computes the limits from a path's MTU. `within` returns the longest datagram whose packet
    /// has at most the given number of octets.
    pub fn new(mtu: PathMtu, path: Path, within: impl FnOnce(usize) -> usize) -> Self {
        let (longest, whole) = match mtu {
            // A stream does its own segmentation.
            _ if path.is_stream() => (None, false),
            PathMtu::Any => (None, false),
            PathMtu::Unknown => (None, true),
            PathMtu::Octets(octets) => {
                let ip = if path.remote.is_ipv4() {
                    V4_HEADER_LEN
                } else {
                    V6_HEADER_LEN
                };
                let udp = match path.is_without_udp() {
                    true => 0,
                    false => udp::HEADER_LEN,
                };
                let packet = usize::from(octets).saturating_sub(ip + udp);
                let longest = within(packet) as u16;
                (Some(longest.max(LEAST)), longest >= LEAST)
            }
        };
        Self { longest, whole }
    }

    /// Returns the longest datagram that fits, if known.
    pub const fn longest(self) -> Option<u16> {
        self.longest
    }

    /// Decides about a datagram of `octets` octets; `may_be_cut` is true if the datagram itself may
    /// be fragmented.
    pub fn take(self, octets: usize, may_be_cut: bool) -> Fit {
        match self.longest.filter(|longest| octets > (*longest).into()) {
            Some(_) if may_be_cut => Fit::Fragments,
            Some(longest) => Fit::TooLong(longest),
            None if self.whole => Fit::Whole,
            None => Fit::Fragments,
        }
    }
}
