//! Zoned ESP (DESIGN section 3): the map that each packet carries, and where everything is.
//!
//! A datagram is cut into *runs*, each in one zone. The map has a word for every run but the last,
//! which belongs to the payload zone and has the rest of the datagram. On the wire the runs of a
//! zone stand together, in datagram order, and make up the text of its *body*; bodies stand in
//! ascending order of their serials, the payload zone last:
//!
//! ```text
//! SPI | Seq | Map | [IV_1] text_1 ICV_1 | [IV_2] text_2 ICV_2 | … | [IV_P] text_P ICV_P
//! ```
//!
//! An SA may have one map for all its packets, which then do not have it.
//!
//! One [`Map`] and one length say where every octet is: [`Layout`] works it out for the sealing
//! end (from the datagram's length), for the opening end (from the packet's) and for a licensed
//! node. Behind it all may be the [`Overlay`] of a writer, which is taken off before a map is read. What an
//! SA's packets cannot begin with is in front of those that a node has made ([`Injected`]).
//! Nothing here knows keys; a map that parsed is well-formed, not yet true.

mod injected;
mod layout;
mod map;
mod overlay;

pub use injected::{INJECTION_ZONE, Injected};
pub use layout::{Body, Layout, Place};
pub use map::{BadMap, Map};
pub use overlay::{BadOverlay, ONE_FIELD_LEN, OVERLAY_ZONE, Overlay, Write, Writes, mark, writes};

use crate::esp::HEADER_LEN;

/// Runs of a datagram at most.
pub const MAX_RUNS: usize = 8;
/// Agreed zones at most; two at least.
pub const MAX_ZONES: usize = 8;
/// Octets of a map at most.
pub const MAX_MAP_LEN: usize = WORD_LEN * (MAX_RUNS - 1);
/// Octets of padding and its length at most, behind a text in blocks.
pub const MAX_PADDING: usize = 16;
/// Octets of an ICV at most: all that HMAC-SHA-512 gives.
pub const MAX_ICV_LEN: usize = 64;
/// Octets of an IV at most.
const MAX_IV_LEN: usize = 16;
/// Octets in front of the payload zone's text at most: header, map, and what each other zone adds
/// to its runs (IV, padding and ICV, and one next header among them all).
pub const MAX_OVERHEAD: usize = HEADER_LEN
    + MAX_MAP_LEN
    + 1
    + (MAX_ZONES - 1) * (MAX_IV_LEN + MAX_PADDING + MAX_ICV_LEN)
    + MAX_IV_LEN;

/// Octets of a word of the map.
pub const WORD_LEN: usize = 4;
