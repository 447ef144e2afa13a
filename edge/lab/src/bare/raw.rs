//! The AEAD calls that packets need, and nothing else.

use super::segment::HEADERS;
use super::{BATCH, KEY_LEN, Shape, each};
use anyhow::{Result, ensure};
use crypto::{Aead, AeadAlgorithm, ICV_LEN};
use std::time::Duration;
use wire::ip;

/// Octets of other data of plain ESP (RFC 4106 section 5) and, in short maps, of a zone (DESIGN section
/// 3). That of the payload zone has all other bodies besides.
const PLAIN_AAD: usize = 8;
const ZONE_AAD: usize = 21;

/// A batch of packets, as texts.
pub(crate) struct Raw {
    aead: Aead,
    packets: Vec<Vec<Text>>,
}

/// What one call encrypts.
struct Text {
    aad: Vec<u8>,
    octets: Vec<u8>,
    icv: [u8; ICV_LEN],
}

/// How long the calls took for one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alone {
    pub sealing: Duration,
    /// Of all zones.
    pub opening: Duration,
    /// Of the first one alone.
    pub first: Duration,
}

impl Raw {
    /// For datagrams of these lengths in turn.
    pub fn new(shape: Shape, octets: &[usize]) -> Result<Self> {
        let packets = octets.iter().cycle().take(BATCH);
        Ok(Self {
            aead: Aead::new(AeadAlgorithm::Aes128Gcm, &[7; KEY_LEN])?,
            packets: packets.map(|octets| texts(shape, *octets)).collect(),
        })
    }

    /// Times them.
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

/// The texts of all packets from one of them on, with the number of the packet.
fn numbered(packets: &mut [Vec<Text>], from: usize) -> impl Iterator<Item = (u8, &mut Text)> {
    let packets = packets.iter_mut().zip(0..);
    packets
        .flat_map(move |(texts, number)| texts[from..].iter_mut().map(move |text| (number, text)))
}

/// Each with its next header, where it has one.
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
