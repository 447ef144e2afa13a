//! Ciphers that are not negotiated: they use the same data path, and only they show more than
//! headers.

use crate::bench::*;
use crate::datagram::{UDP, segment, udp, v4};
use crate::licensed::grant;
use crypto::BadIcv;
use esp::{DropReason, Foreign, Licensed, NotOpened, Scratch, Worker};
use model::{CsaId, Frame, ZoneId};
use wire::content::Content;

/// A cipher in form only: blocks of eight octets, a key of one octet, and a sum as ICV.
struct Toy(u8);

impl Toy {
    fn sum(&self, parts: [&[u8]; 3]) -> [u8; 12] {
        let octets = parts.into_iter().flatten();
        let sum = octets.fold(u64::from(self.0), |sum, octet| {
            sum.wrapping_mul(31).wrapping_add(u64::from(*octet))
        });
        let mut icv = [self.0; 12];
        icv[..8].copy_from_slice(&sum.to_be_bytes());
        icv
    }
}

impl Foreign for Toy {
    fn frame(&self) -> Frame {
        Frame {
            iv_len: 8,
            block_len: 8,
            icv_len: 12,
        }
    }

    fn seal(&self, seq: u32, aad: &[u8], iv: &mut [u8], text: &mut [u8], icv: &mut [u8]) {
        iv.fill(seq as u8);
        text.iter_mut().for_each(|octet| *octet ^= self.0);
        icv.copy_from_slice(&self.sum([aad, iv, text]));
    }

    fn open(
        &self,
        _: u32,
        aad: &[u8],
        iv: &[u8],
        text: &mut [u8],
        icv: &[u8],
    ) -> Result<(), BadIcv> {
        if self.sum([aad, iv, text]) != icv {
            return Err(BadIcv);
        }
        text.iter_mut().for_each(|octet| *octet ^= self.0);
        Ok(())
    }
}

/// Recognises all of a UDP payload.
struct Everything;

impl Content for Everything {
    fn header_len(&self, _: [u16; 2], payload: &[u8]) -> usize {
        payload.len()
    }
}

fn toy(zone: ZoneId) -> Box<dyn Foreign> {
    Box::new(Toy(0x80 | zone.0))
}

fn foreign_pair(kind: &Kind) -> (Worker, Worker) {
    let (mut alice, mut bob) = pair(kind);
    for worker in [&mut alice, &mut bob] {
        worker.make_foreign(only_sa(worker), toy);
    }
    (alice, bob)
}

fn only_sa(worker: &Worker) -> model::ChildSaId {
    worker.sa_status().next().unwrap().id
}

fn foreign_node() -> Licensed {
    let mut node = Licensed::new();
    node.install(grant(&two_zones(), &[1])).unwrap();
    node.make_foreign(CsaId(7), toy);
    node
}

#[test]
fn what_foreign_ciphers_seal_they_open_and_an_end_without_them_does_not() {
    for kind in [EXPLICIT, two_zones()] {
        let (mut alice, mut bob) = foreign_pair(&kind);
        let packet = seal(&mut alice, &segment()).unwrap();
        let (_, mut agreed) = pair(&kind);
        assert!(open(&mut agreed, &packet).is_err(), "{kind:?}");
        for at in 4..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 1;
            assert!(open(&mut bob, &changed).is_err(), "{kind:?}, octet {at}");
        }
        assert_eq!(open(&mut bob, &packet), Ok(segment()), "{kind:?}");
        assert_eq!(open(&mut bob, &packet), Err(DropReason::Replayed));
    }
}

#[test]
fn a_foreign_frame_says_how_long_packets_are() {
    let (mut alice, _) = foreign_pair(&EXPLICIT);
    let text = (segment().len() + 2).next_multiple_of(8);
    let packet = seal(&mut alice, &segment()).unwrap();
    assert_eq!(packet.len(), 8 + 8 + text + 12);
    let (mut alice, _) = foreign_pair(&two_zones());
    let texts = (40_usize + 2).next_multiple_of(8) + (segment().len() - 40 + 1).next_multiple_of(8);
    let packet = seal(&mut alice, &segment()).unwrap();
    assert_eq!(packet.len(), 8 + 4 + texts + 2 * (8 + 12));
}

#[test]
fn a_licensed_node_reads_a_foreign_zone_with_its_cipher_alone() {
    let (mut alice, _) = foreign_pair(&two_zones());
    let packet = seal(&mut alice, &segment()).unwrap();
    let (mut node, mut scratch) = (foreign_node(), Scratch::new());
    let view = node.open(&packet, &mut scratch).unwrap();
    assert_eq!(view.headers().unwrap().ip, &segment()[..20]);
    let mut agreed = Licensed::new();
    agreed.install(grant(&two_zones(), &[1])).unwrap();
    assert!(agreed.open(&packet, &mut scratch).is_err());
    let mut changed = packet;
    changed[30] ^= 1;
    let refused = node.open(&changed, &mut scratch).map(|_| ());
    assert_eq!(refused, Err(NotOpened::BadIcv(ZoneId(1))));
}

/// Octets recognised in UDP are visible under foreign ciphers. Under agreed ones they never are,
/// even if a caller asks for it.
#[test]
fn only_a_foreign_zone_shows_what_is_no_header() {
    let datagram = v4(UDP, &udp(&[7; 300]));
    let shown = |mut alice: Worker, mut node: Licensed| {
        alice.recognise(only_sa(&alice), Box::new(Everything));
        let packet = seal(&mut alice, &datagram).unwrap();
        let mut scratch = Scratch::new();
        let view = node.open(&packet, &mut scratch).unwrap();
        view.zone(ZoneId(1)).unwrap().len()
    };
    let foreign = shown(foreign_pair(&two_zones()).0, foreign_node());
    assert!(foreign >= datagram.len(), "{foreign}");
    let mut agreed = Licensed::new();
    agreed.install(grant(&two_zones(), &[1])).unwrap();
    let agreed = shown(pair(&two_zones()).0, agreed);
    assert!(agreed <= 28 + 1, "{agreed}");
}
