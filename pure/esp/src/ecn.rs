//! Congestion signals through a tunnel (RFC 6040).
//!
//! A packet is sent with the ECN field of its datagram, which is "normal mode" (section 4.1): "an
//! IPsec tunnel ingress does not need compatibility mode" (section 4.3), because an IKEv2 peer
//! handles marks correctly. Routers can therefore mark the outer header, and at the tunnel exit the
//! datagram gets the more severe of both fields.
//!
//! Any router on the path can change the outer field. The field is only used if the packet is
//! authentic. A false mark can slow a sender down, but so can dropping packets.

use crate::drop::DropReason;
use crate::packet::Packet;
use wire::ecn::Ecn;

/// Congestion signals in outer headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Congestion {
    /// Datagrams that got the CE mark at the tunnel exit.
    pub marked: u64,
    /// Datagrams with a combination of fields "that is CU and always potentially dangerous",
    /// "(!!!)" in figure 4 of RFC 6040. Includes those dropped for it.
    pub dangerous: u64,
    /// Datagrams with the combination that is "CU and possibly dangerous", "(!)" in the same
    /// figure.
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

    /// Counts the ECN fields of an authentic packet. Returns true if no standard produces the
    /// combination: "the decapsulator SHOULD log the event" (section 4.2).
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

/// Gives an opened datagram the ECN field of section 4.2.
pub(crate) fn leave(packet: &mut Packet, inner: Ecn) -> Result<(), DropReason> {
    let leaving = match (inner, packet.ecn) {
        // Its transport learns of congestion from losses only.
        (Ecn::NotEct, Ecn::Ce) => return Err(DropReason::Congested),
        (Ecn::NotEct, _) => Ecn::NotEct,
        (_, outer) => inner.max(outer),
    };
    if leaving != inner {
        leaving.write(packet.octets_mut());
    }
    Ok(())
}
