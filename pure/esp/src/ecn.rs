//! Signs of congestion that pass a tunnel (RFC 6040).
//!
//! A packet is sent with the ECN field of the datagram in it, which is "normal mode" (section 4.1):
//! "an IPsec tunnel ingress does not need compatibility mode" (section 4.3), for whoever speaks IKEv2
//! knows what to do with a mark. So a router on the way marks what it could not mark inside, and
//! where the tunnel ends the datagram gets the more severe of both fields.
//!
//! The field outside is what anybody on the way wants it to be, and is looked at only when the packet
//! is authentic. Who lies there can make a sender slower, as can who drops packets.

use crate::drop::DropReason;
use crate::packet::Packet;
use wire::ecn::Ecn;

/// What the headers outside said about congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Congestion {
    /// Datagrams that got the mark CE where the tunnel ended.
    pub marked: u64,
    /// Datagrams with a combination of fields "that is CU and always potentially dangerous", "(!!!)"
    /// in figure 4 of RFC 6040. Those that were dropped for it are among them.
    pub dangerous: u64,
    /// Datagrams with the one that is "CU and possibly dangerous", "(!)" there.
    pub unused: u64,
}

impl Congestion {
    pub(crate) const fn new() -> Self {
        Self {
            marked: 0,
            dangerous: 0,
            unused: 0,
        }
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.marked += other.marked;
        self.dangerous += other.dangerous;
        self.unused += other.unused;
    }

    /// Counts the fields of an authentic packet, and says whether nobody makes such a combination who
    /// follows a standard: "the decapsulator SHOULD log the event" (section 4.2).
    pub(crate) fn count(&mut self, inner: Ecn, outer: Ecn) -> bool {
        use Ecn::{Ce, Ect0, Ect1, NotEct};
        match (inner, outer) {
            (NotEct, Ect0 | Ect1 | Ce) | (Ce, Ect1) => self.dangerous += 1,
            (Ect1, Ect0) => self.unused += 1,
            (Ect0 | Ect1, Ce) => {
                self.marked += 1;
                return false;
            }
            _ => return false,
        }
        true
    }
}

/// Gives an opened datagram the field of section 4.2.
pub(crate) fn leave(packet: &mut Packet, inner: Ecn) -> Result<(), DropReason> {
    let leaving = match (inner, packet.ecn) {
        // Its transport knows no other sign of congestion than a loss.
        (Ecn::NotEct, Ecn::Ce) => return Err(DropReason::Congested),
        (Ecn::NotEct, _) => Ecn::NotEct,
        (_, outer) => inner.max(outer),
    };
    if leaving != inner {
        leaving.write(packet.octets_mut());
    }
    Ok(())
}
