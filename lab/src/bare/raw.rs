//! The AEAD calls that packets need, without the rest of the data plane.

use super::segment::HEADERS;
use super::{BATCH, KEY_LEN, Shape, each};
use anyhow::{Result, ensure};
use crypto::{Aead, AeadAlgorithm, ICV_LEN};
use std::time::Duration;
use wire::ip;

/// Octets of additional authenticated data of plain ESP (RFC 4106 section 5) and, with short maps,
/// of a zone (DESIGN section 3). The payload zone also authenticates all other bodies.
const PLAIN_AAD: usize = 8;
const ZONE_AAD: usize = 21;

/// A batch of packets, as the texts of their AEAD calls.
pub(crate) struct Raw {
    aead: Aead,
    packets: Vec<Vec<Text>>,
}

/// Input of one AEAD call.
struct Text {
    aad: Vec<u8>,
    octets: Vec<u8>,
    icv: [u8; ICV_LEN],
}

/// Time of the calls for one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alone {
    pub sealing: Duration,
    /// Time for all zones.
    pub opening: Duration,
    /// Time for the first zone alone.
    pub first: Duration,
}

impl Raw {
    /// Prepares a batch of packets with these lengths in turn.
    pub fn new(shape: Shape, octets: &[usize]) -> Result<Self> {
        let packets = octets.iter().cycle().take(BATCH);
        Ok(Self {
            aead: Aead::new(AeadAlgorithm::Aes128Gcm, &[7; KEY_LEN])?,
            packets: packets.map(|octets| texts(shape, *octets)).collect(),
        })
    }

    /// Times the calls.
    pub fn time(&mut self) -> Result<Alone> {
        let (aead, mut opened) = (&self.aead, 0);
        let sealing = each(|| {
            for (number, text) in numbered(&mut self.packets, 0) {
                text.icv = aead.seal(&[number; 12], &text.aad, &mut text.octets);
            }
        })?;
        let mut open = |(number, text): (u8, &mut Text)| {
            let result = aead.open(&[number; 12], &text.aad, &mut text.octets, &text.icv);
            opened += usize::from(result.is_ok());
        };
        let mut firsts = self.packets.iter_mut().zip(0..);
        let first = each(|| {
            firsts
                .by_ref()
                .for_each(|(texts, number)| open((number, &mut texts[0])));
        })?;
        let rest = each(|| numbered(&mut self.packets, 1).for_each(&mut open))?;
        let texts: usize = self.packets.iter().map(Vec::len).sum();
        ensure!(opened == texts, "{opened} of {texts} texts opened");
        Ok(Alone {
            sealing,
            opening: first + rest,
            first,
        })
    }
}

/// Iterates over the texts of all packets, starting at text `from`, with the number of the packet.
fn numbered(packets: &mut [Vec<Text>], from: usize) -> impl Iterator<Item = (u8, &mut Text)> {
    let packets = packets.iter_mut().zip(0..);
    packets
        .flat_map(move |(texts, number)| texts[from..].iter_mut().map(move |text| (number, text)))
}

/// Returns the texts of a packet, including the next header.
fn texts(shape: Shape, octets: usize) -> Vec<Text> {
    let ip = ip::V4_HEADER_LEN;
    let lengths = match shape {
        Shape::Plain => vec![(octets + 2).next_multiple_of(4)],
        Shape::One => vec![octets + 1],
        Shape::Two => vec![HEADERS + 1, octets - HEADERS],
        Shape::Three => vec![ip + 1, HEADERS - ip, octets - HEADERS],
    };
    let others = lengths.split_last().map_or(0, |(_, others)| {
        others.iter().map(|len| len + ICV_LEN).sum::<usize>()
    });
    let last = lengths.len() - 1;
    let text = |(place, len)| Text {
        aad: match shape {
            Shape::Plain => vec![1; PLAIN_AAD],
            _ if place == last => vec![1; ZONE_AAD + others],
            _ => vec![1; ZONE_AAD],
        },
        octets: vec![0; len],
        icv: [0; ICV_LEN],
    };
    lengths.into_iter().enumerate().map(text).collect()
}
