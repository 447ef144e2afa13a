//! The algorithms of a paper in a Strata SA, and their calls alone.

use super::{BATCH, Shape, cycles};
use crate::legacy::{Algorithms, Make};
use anyhow::Result;
use esp::Foreign;
use model::ZoneId;
use wire::content::Content;
use wire::udp;

/// Octets of additional authenticated data of a plain packet and, with short maps, of a zone
/// (DESIGN section 3). The payload zone also authenticates all other bodies.
const PLAIN_AAD: usize = 8;
const ZONE_AAD: usize = 21;

/// The algorithms of a paper for an SA, and the length of its first zone.
pub(crate) struct Legacy {
    makes: Vec<Make>,
    pub(super) links: Links,
}

/// Puts this many octets after the UDP header into the first zone, whatever they hold. The paper
/// also passes its prototype the length of a page's links.
#[derive(Clone, Copy)]
pub(super) struct Links(usize);

impl Content for Links {
    fn header_len(&self, _ports: [u16; 2], payload: &[u8]) -> usize {
        self.0.min(payload.len())
    }
}

impl Legacy {
    /// Creates an SA with one entry of `algorithms` for each of its two zones, or a single entry
    /// for a plain SA. The first `first` octets of a datagram are in the first zone.
    pub fn new(algorithms: &[Algorithms], first: usize) -> Self {
        let makes = algorithms.iter().map(|algorithms| algorithms.make());
        Self {
            makes: makes.collect(),
            links: Links(first.saturating_sub(wire::ip::V4_HEADER_LEN + udp::HEADER_LEN)),
        }
    }

    pub(super) fn shape(&self) -> Shape {
        match self.makes.len() {
            1 => Shape::Plain,
            _ => Shape::Two,
        }
    }

    /// Returns the cipher of a zone. Zones beyond the last have the cipher of the last.
    pub(super) fn cipher(&self, zone: ZoneId) -> Box<dyn Foreign> {
        let place = usize::from(zone.0).clamp(1, self.makes.len());
        self.makes[place - 1](zone.0)
    }

    /// Prepares the calls that seal a packet with zones of these lengths. The next header is in the
    /// first zone.
    pub fn calls(&self, lengths: &[usize]) -> Calls {
        let aad = match self.shape() {
            Shape::Plain => PLAIN_AAD,
            _ => ZONE_AAD,
        };
        let (mut others, mut next_header) = (0, 1);
        let zones = (1..).map(ZoneId).zip(lengths);
        let calls = zones.map(|(zone, octets)| {
            let cipher = self.cipher(zone);
            let frame = cipher.frame();
            let text = vec![0; frame.text_len(octets + std::mem::take(&mut next_header))];
            let call = Call {
                aad: vec![1; aad + others],
                iv: vec![0; frame.iv_len.into()],
                icv: vec![0; frame.icv_len.into()],
                cipher,
                text,
            };
            others += call.iv.len() + call.text.len() + call.icv.len();
            call
        });
        Calls(calls.collect())
    }
}

/// The calls that seal a packet, without the rest of the data plane.
pub(crate) struct Calls(Vec<Call>);

struct Call {
    cipher: Box<dyn Foreign>,
    aad: Vec<u8>,
    iv: Vec<u8>,
    text: Vec<u8>,
    icv: Vec<u8>,
}

impl Calls {
    /// Returns the cycles of the calls for one packet.
    pub fn sealing(&mut self) -> Result<f64> {
        cycles(|| {
            for seq in 0..BATCH as u32 {
                for call in &mut self.0 {
                    let (iv, text, icv) = (&mut call.iv, &mut call.text, &mut call.icv);
                    call.cipher.seal(seq, &call.aad, iv, text, icv);
                }
            }
        })
    }
}
