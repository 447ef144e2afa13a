//! How long a datagram may be that is sealed, so that its packet gets through whole.
//!
//! The room that a path has is its MTU without the headers outside and what sealing adds, of zones the
//! most that it can be. It is never taken to be less than IPv6 demands of every link: below, packets are
//! left to be cut on their way, which is slow and loses none (RFC 4301 section 8.2.1 has an attacker
//! who forges what routers say; he gains no more than that).

use model::{ChildSa, Keys, Path};
use wire::esp::HEADER_LEN;
use wire::ip::{V4_HEADER_LEN, V6_HEADER_LEN};
use wire::zoned::MAX_MAP_LEN;

/// What every link takes (RFC 8200 section 5).
const LEAST: u16 = 1280;
const UDP_HEADER_LEN: usize = 8;
/// IV and alignment of an AEAD in plain ESP, and blocks of AES-CBC.
const IV_LEN: usize = 8;
const ALIGNMENT: usize = 4;
const BLOCK_LEN: usize = 16;
/// Pad length and next header.
const TRAILER_LEN: usize = 2;

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

/// What sealing adds to a datagram. Small, for every SA has one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shell {
    /// Before and after, but for what follows.
    fixed: u16,
    /// The trailer, which is within what is padded, and to what multiple.
    padded: Option<u16>,
}

/// What an SA's path has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Shell {
    /// Of the packets that are sent on an SA.
    pub fn of<K>(sa: &ChildSa<K>) -> Self {
        match (&sa.outbound.keys, &sa.agreement) {
            (
                Keys::Plain {
                    suite, implicit_iv, ..
                },
                _,
            ) => {
                let (iv, block) = match suite.hash() {
                    Some(_) => (BLOCK_LEN, BLOCK_LEN),
                    None if *implicit_iv => (0, ALIGNMENT),
                    None => (IV_LEN, ALIGNMENT),
                };
                Self {
                    fixed: (HEADER_LEN + iv + suite.icv_len()) as u16,
                    padded: Some(block as u16),
                }
            }
            (Keys::Zoned(_), agreement) => {
                let zones = agreement.iter().flat_map(|agreement| &agreement.zones);
                let zones: usize = zones.map(|zone| zone.suite.overhead()).sum();
                Self {
                    fixed: (HEADER_LEN + MAX_MAP_LEN + 1 + zones) as u16,
                    padded: None,
                }
            }
        }
    }

    /// The longest datagram whose packet has at most so many octets.
    const fn longest(self, packet: usize) -> usize {
        let text = packet.saturating_sub(self.fixed as usize);
        match self.padded {
            None => text,
            Some(block) => {
                let block = block as usize;
                (text / block * block).saturating_sub(TRAILER_LEN)
            }
        }
    }
}

impl Room {
    /// Of a path of which this is known.
    pub fn new(mtu: PathMtu, shell: Shell, path: Path) -> Self {
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
                let packet = usize::from(octets).saturating_sub(ip + UDP_HEADER_LEN);
                let longest = shell.longest(packet) as u16;
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
