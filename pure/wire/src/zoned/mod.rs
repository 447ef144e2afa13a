//! Zoned ESP (DESIGN section 3): the map of each packet, and the positions of its parts.
//!
//! A datagram is divided into *runs*, each in one zone. The map has a word for every run but the
//! last, which belongs to the payload zone and has the rest of the datagram. On the wire, the runs
//! of a zone are contiguous, in datagram order, and form the text of its *body*. Bodies are in
//! ascending order of their serials, the payload zone last:
//!
//! ```text
//! SPI | Seq | Map | [IV_1] text_1 ICV_1 | [IV_2] text_2 ICV_2 | … | [IV_P] text_P ICV_P
//! ```
//!
//! An SA may have one map for all its packets, which then do not carry it.
//!
//! One [`Map`] and one length determine the position of every octet. [`Layout`] computes it for the
//! sealing end (from the length of the datagram), for the opening end (from the length of the
//! packet) and for a licensed node. A writer's [`Overlay`] may follow the last body, and is removed
//! before the map is read. Packets that a node builds itself start with octets that are not a map
//! ([`Injected`]).
//!
//! This module knows no keys: a map that parsed is well-formed, but not yet authenticated.

mod injected;
mod layout;
mod map;
mod overlay;

pub use injected::{INJECTION_ZONE, Injected};
pub use layout::{Body, Layout, Place};
pub use map::{BadMap, Map};
pub use overlay::{BadOverlay, ONE_FIELD_LEN, OVERLAY_ZONE, Overlay, Write, Writes, mark, writes};

use crate::esp::HEADER_LEN;

/// Most runs of a datagram.
pub const MAX_RUNS: usize = 8;
/// Most agreed zones. The fewest are two.
pub const MAX_ZONES: usize = 8;
/// Most octets of a map.
pub const MAX_MAP_LEN: usize = WORD_LEN * (MAX_RUNS - 1);
/// Most octets of padding and its length, behind a text in blocks.
pub const MAX_PADDING: usize = 16;
/// Most octets of an ICV: the whole output of HMAC-SHA-512.
pub const MAX_ICV_LEN: usize = 64;
/// Most octets of an IV.
const MAX_IV_LEN: usize = 16;
/// Most octets in front of the payload zone's text: header, map, and the octets that each other
/// zone adds to its runs (IV, padding and ICV, and one next header for all of them).
pub const MAX_OVERHEAD: usize = HEADER_LEN
    + MAX_MAP_LEN
    + 1
    + (MAX_ZONES - 1) * (MAX_IV_LEN + MAX_PADDING + MAX_ICV_LEN)
    + MAX_IV_LEN;

/// Octets of a word of the map.
pub const WORD_LEN: usize = 4;
