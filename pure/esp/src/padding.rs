//! Padding behind a datagram, which hides the datagram's length (RFC 4303 section 2.7).
//!
//! The padding is encrypted, in a composite SA at the end of the payload zone, so only the key
//! shows where it begins. The receiver removes it by the length in the datagram, and so does a
//! licensed node that may read that length.

use crate::drop::DropReason;
use crate::packet::Packet;

/// Pads a datagram to `len` octets, and returns the number of octets added. The padding is zeroed,
/// because the buffer may hold octets of another peer's datagram.
pub(crate) fn pad(packet: &mut Packet, len: usize) -> Result<usize, DropReason> {
    let own = packet.len();
    let padding = len.saturating_sub(own);
    packet.grow(0, padding)?;
    packet.octets_mut()[own..].fill(0);
    Ok(padding)
}
