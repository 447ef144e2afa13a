//! The protection of one zone in one direction: sealing and opening of a packet's bodies.
//!
//! ```text
//! AEAD        text ICV           the text encrypted
//! GMAC        text ICV           the text as it is: the ICV covers it behind the other data
//! CTR, HMAC   text ICV           the ICV covers what was encrypted
//! CBC, HMAC   IV text ICV        the same, with padding 1 2 3 … and its length at the end of the text
//! foreign     as its frame says
//! ```
//!
//! No suite decrypts anything before its ICV is verified.

use crate::foreign::Foreign;
use crate::key::{Key, SALT_LEN, Unusable, hmac, nonce};
use crypto::{BLOCK_LEN, BadIcv, CbcHmac, CtrHmac, Secret};
use model::{Suite, ZoneSuite};
use wire::zoned::Body;

/// The expanded key of a zone. HMAC variants are boxed because they are large and rare.
pub(crate) enum Guard {
    Aead(Key),
    Gmac(Key),
    Ctr(Box<Ctr>),
    Cbc(Box<CbcHmac>),
    Foreign(Box<dyn Foreign>),
}

pub(crate) struct Ctr {
    cipher: CtrHmac,
    salt: Secret,
}

impl Guard {
    /// Expands encryption key, HMAC key and salt, concatenated as far as the suite has them.
    pub fn new(suite: ZoneSuite, keymat: &Secret) -> Result<Self, Unusable> {
        use ZoneSuite as S;
        match suite {
            S::Aes128Gcm16 => Key::new(Suite::Aes128Gcm16, keymat).map(Self::Aead),
            S::Aes256Gcm16 => Key::new(Suite::Aes256Gcm16, keymat).map(Self::Aead),
            S::ChaCha20Poly1305 => Key::new(Suite::ChaCha20Poly1305, keymat).map(Self::Aead),
            S::Aes128Gmac => Key::new(Suite::Aes128Gcm16, keymat).map(Self::Gmac),
            S::Aes256Gmac => Key::new(Suite::Aes256Gcm16, keymat).map(Self::Gmac),
            S::Aes128Ctr(_) | S::Aes256Ctr(_) | S::Aes128Cbc(_) | S::Aes256Cbc(_) => {
                Self::with_hmac(suite, keymat)
            }
        }
    }

    fn with_hmac(suite: ZoneSuite, keymat: &Secret) -> Result<Self, Unusable> {
        let mut salt = keymat.clone();
        let mut part = |len| salt.split_off_front(len).ok_or(Unusable::KeyLength);
        let agreed = suite.hmac().ok_or(Unusable::KeyLength)?;
        let (key, mac_key) = (part(suite.key_len())?, part(agreed.hash.output_len())?);
        let mac = hmac(agreed.hash, mac_key.expose())?;
        let mac = if agreed.whole { mac.whole() } else { mac };
        match salt.len() {
            0 if suite.iv_len() > 0 => {
                let cipher = CbcHmac::new(key.expose(), mac)?;
                Ok(Self::Cbc(Box::new(cipher)))
            }
            SALT_LEN if suite.iv_len() == 0 => {
                let cipher = CtrHmac::new(key.expose(), mac)?;
                Ok(Self::Ctr(Box::new(Ctr { cipher, salt })))
            }
            _ => Err(Unusable::KeyLength),
        }
    }

    /// Seals the body of packet number `seq` in place. The text is complete except for its padding.
    /// `room` is a buffer for data that must be contiguous.
    pub fn seal(&self, seq: u32, aad: &[u8], packet: &mut [u8], body: &Body, room: &mut Vec<u8>) {
        pad(&mut packet[body.padding()]);
        let (iv, text, icv) = parts(packet, body);
        match self {
            Self::Aead(key) => icv.copy_from_slice(&key.seal(seq.into(), aad, text)),
            Self::Gmac(key) => {
                let tag = key.seal(seq.into(), together(room, aad, text), &mut []);
                icv.copy_from_slice(&tag);
            }
            Self::Ctr(ctr) => {
                let nonce = nonce(&ctr.salt, seq.into());
                ctr.cipher.seal(&nonce, aad, text, icv);
            }
            Self::Cbc(cbc) => {
                let fresh = cbc.iv(seq.into());
                iv.copy_from_slice(&fresh);
                cbc.seal(&fresh, aad, text, icv);
            }
            Self::Foreign(foreign) => foreign.seal(seq, aad, iv, text, icv),
        }
    }

    /// Authenticates a body and decrypts it in place.
    pub fn open(
        &self,
        seq: u32,
        aad: &[u8],
        packet: &mut [u8],
        body: &Body,
        room: &mut Vec<u8>,
    ) -> Result<(), BadIcv> {
        let (iv, text, icv) = parts(packet, body);
        match self {
            Self::Aead(key) => key.open(seq.into(), aad, text, icv),
            Self::Gmac(key) => key.open(seq.into(), together(room, aad, text), &mut [], icv),
            Self::Ctr(ctr) => {
                let nonce = nonce(&ctr.salt, seq.into());
                ctr.cipher.open(&nonce, aad, text, icv)
            }
            Self::Cbc(cbc) => {
                let iv: &[u8; BLOCK_LEN] = (&*iv).try_into().map_err(|_| BadIcv)?;
                cbc.open(iv, aad, text, icv)
            }
            Self::Foreign(foreign) => foreign.open(seq, aad, iv, text, icv),
        }
    }
}

/// Splits a body into IV, text and ICV.
fn parts<'p>(packet: &'p mut [u8], body: &Body) -> (&'p mut [u8], &'p mut [u8], &'p mut [u8]) {
    let (iv, rest) = packet[body.all()].split_at_mut(body.iv().len());
    let (text, icv) = rest.split_at_mut(body.text().len());
    (iv, text, icv)
}

/// Returns the data that a GMAC covers (RFC 4543 section 3.3).
fn together<'r>(room: &'r mut Vec<u8>, aad: &[u8], text: &[u8]) -> &'r [u8] {
    room.clear();
    room.extend_from_slice(aad);
    room.extend_from_slice(text);
    room
}

/// Writes padding and its length (RFC 4303 section 2.4), if there is any.
fn pad(padding: &mut [u8]) {
    for (octet, number) in padding.iter_mut().zip(1..) {
        *octet = number;
    }
    let len = padding.len();
    if let Some(last) = padding.last_mut() {
        *last = (len - 1) as u8;
    }
}

/// Returns true if padding counts up from one and ends with its length, or is empty.
pub(crate) fn is_padding(padding: &[u8]) -> bool {
    let Some((len, octets)) = padding.split_last() else {
        return true;
    };
    octets.len() == usize::from(*len) && octets.iter().copied().eq(1..=*len)
}
