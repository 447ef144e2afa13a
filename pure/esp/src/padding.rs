//! Padding behind a datagram, which hides how long that is (RFC 4303 section 2.7).
//!
//! It is in what is sealed, in a composite SA at the end of the payload zone, so nobody without the key
//! of that sees where it begins. The receiver takes it off by the length that is in the datagram, and
//! so does a licensed node that may read that.

use crate::drop::DropReason;
use crate::packet::Packet;

/// Makes a datagram as long as it is to look, and says how many octets that took. They are zeros: what
/// is in the buffer may be of another datagram, for somebody else.
pub(crate) fn pad(packet: &mut Packet, len: usize) -> Result<usize, DropReason> {
    let own = packet.len();
    let padding = len.saturating_sub(own);
    packet.grow(0, padding)?;
    packet.octets_mut()[own..].fill(0);
    Ok(padding)
}
