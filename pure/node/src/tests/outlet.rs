//! The output of a batch of packets.

use crate::{DropReason, Packet, Sink};
use model::Path;

/// Collects the output of a batch.
#[derive(Default)]
pub struct Outlet {
    pub transmitted: Vec<(Path, Vec<u8>)>,
    pub delivered: Vec<Vec<u8>>,
    pub dropped: Vec<DropReason>,
}

impl Sink for Outlet {
    fn transmit(&mut self, packet: &mut Packet, path: Path) {
        self.transmitted.push((path, packet.octets().to_vec()));
    }

    fn deliver(&mut self, packet: &mut Packet) {
        self.delivered.push(packet.octets().to_vec());
    }

    fn dropped(&mut self, _packet: &mut Packet, why: DropReason) {
        self.dropped.push(why);
    }
}
