//! How long a datagram may be that is sealed, so that its packet gets through whole.
//!
//! The room that a path has is its MTU without the headers outside and what sealing adds, of zones the
//! most that it can be. It is never taken to be less than IPv6 demands of every link: below, packets are
//! left to be cut on their way, which is slow and loses none (RFC 4301 section 8.2.1 has an attacker
//! who forges what routers say; he gains no more than that).

use model::Path;
use wire::ip::{V4_HEADER_LEN, V6_HEADER_LEN};
use wire::udp;

/// What every link takes (RFC 8200 section 5).
const LEAST: u16 = 1280;

/// What is known of the longest IP datagram that a path takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathMtu {
    /// Nobody asks, or nobody believes the answer: packets may be cut on their way.
    #[default]
    Any,
    /// Nothing yet. Packets are sent whole, and who cannot pass one on says so.
    Unknown,
    /// So many octets.
    Octets(u16),
}

/// What an SA's path has room for. Nobody has asked at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    /// The longest datagram that fits.
    longest: Option<u16>,
    /// Whether packets that fit are sent so that nobody cuts them.
    whole: bool,
}

/// What becomes of a datagram of some length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Its packet is sent so that nobody cuts it.
    Whole,
    /// Its packet may be cut.
    Fragments,
    /// It is not sent, and its source hears what fits.
    TooLong(u16),
}

impl Room {
    /// Of a path of which this is known. `within` gives the longest datagram whose packet has at most so
    /// many octets.
    pub fn new(mtu: PathMtu, path: Path, within: impl FnOnce(usize) -> usize) -> Self {
        let (longest, whole) = match mtu {
            // A stream cuts for itself.
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

    /// The longest datagram that fits, if that is known.
    pub const fn longest(self) -> Option<u16> {
        self.longest
    }

    /// Whether a datagram fits that may be cut itself or not.
    pub fn take(self, octets: usize, may_be_cut: bool) -> Fit {
        match self.longest.filter(|longest| octets > (*longest).into()) {
            Some(_) if may_be_cut => Fit::Fragments,
            Some(longest) => Fit::TooLong(longest),
            None if self.whole => Fit::Whole,
            None => Fit::Fragments,
        }
    }
}
