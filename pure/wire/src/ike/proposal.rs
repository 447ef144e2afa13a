//! The Security Association payload (RFC 7296 section 3.3): proposals, their transforms and
//! attributes.
//!
//! ```text
//!  proposal:  Last Substruc (1) | RESERVED | Length (2) | Num (1) | Protocol (1) | SPI Size (1)
//!             Num Transforms (1) | SPI | transforms
//!  transform: Last Substruc (1) | RESERVED | Length (2) | Type (1) | RESERVED | ID (2) | attributes
//!  attribute: AF (1 bit) | Type (15 bits) | value (2) if AF, else length (2) and value
//! ```

use super::{EncryptionId, EsnId, GroupId, IntegrityId, PrfId, Protocol, TransformType};
use crate::codec::{Codec, LengthPrefixed, Malformed, Reader};
use model::{EspSuite, Sha2, Suite};
use std::fmt;

/// Most proposals of an SA payload that are read. Later ones are never chosen.
pub const MAX_PROPOSALS: usize = 64;

/// Most transforms of a proposal. The count is one octet.
pub const MAX_TRANSFORMS: usize = u8::MAX as usize;

/// Most other attributes of a transform that are kept. One is enough to match none of ours.
const MAX_ATTRIBUTES: usize = 8;
const LAST: u8 = 0;
const MORE_PROPOSALS: u8 = 2;
const MORE_TRANSFORMS: u8 = 3;
const SHORT_ATTRIBUTE: u16 = 0x8000;
const KEY_LENGTH: u16 = SHORT_ATTRIBUTE | 14;

/// A way to protect an SA. The responder chooses one transform of each type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Number of the proposal, which the answer repeats.
    pub number: u8,
    /// Protocol of the SA.
    pub protocol: Protocol,
    /// Inbound SPI of the sender: empty for an initial IKE SA, 4 octets for ESP.
    pub spi: Vec<u8>,
    /// Transforms, grouped by type.
    pub transforms: Vec<Transform>,
}

/// An algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transform {
    /// Type of the algorithm.
    pub kind: TransformType,
    /// Identifier in the registry of its type.
    pub id: u16,
    /// Key length in bits: the only attribute that is supported (RFC 7296 section 3.3.5).
    pub key_bits: Option<u16>,
    /// Attributes other than one key length. A transform with any cannot be chosen.
    pub others: Vec<Attribute>,
}

/// An unsupported parameter of a transform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Attribute type with the format bit.
    pub kind: u16,
    /// Value of the attribute.
    pub value: Vec<u8>,
}

impl Transform {
    /// Returns a transform without attributes.
    pub const fn plain(kind: TransformType, id: u16) -> Self {
        Self {
            kind,
            id,
            key_bits: None,
            others: Vec::new(),
        }
    }

    /// Returns a cipher with its key length in bits.
    pub const fn encryption(id: EncryptionId, bits: u16) -> Self {
        Self {
            kind: TransformType::ENCR,
            id: id.0,
            key_bits: Some(bits),
            others: Vec::new(),
        }
    }

    /// Returns the cipher of a suite with an explicit IV, or for AEADs with the sequence number as
    /// IV (RFC 8750). A cipher with a single key length has no key length attribute (RFC 7296
    /// section 3.3.5).
    pub fn suite(suite: Suite, implicit_iv: bool) -> Self {
        use EncryptionId as Id;
        let bits = suite.key_len() as u16 * 8;
        match (suite, implicit_iv) {
            (Suite::Aes128Gcm16 | Suite::Aes256Gcm16, false) => {
                Self::encryption(Id::AES_GCM_16, bits)
            }
            (Suite::Aes128Gcm16 | Suite::Aes256Gcm16, true) => {
                Self::encryption(Id::AES_GCM_16_IIV, bits)
            }
            (Suite::ChaCha20Poly1305, false) => {
                Self::plain(TransformType::ENCR, Id::CHACHA20_POLY1305.0)
            }
            (Suite::ChaCha20Poly1305, true) => {
                Self::plain(TransformType::ENCR, Id::CHACHA20_POLY1305_IIV.0)
            }
            (Suite::Aes128Cbc(_) | Suite::Aes256Cbc(_), _) => Self::encryption(Id::AES_CBC, bits),
        }
    }

    /// Returns the cipher of a suite of plain ESP, as [`Self::suite`] does.
    pub fn esp(suite: EspSuite, implicit_iv: bool) -> Self {
        match suite {
            EspSuite::Encrypted(suite) => Self::suite(suite, implicit_iv),
            EspSuite::Null(_) => Self::plain(TransformType::ENCR, EncryptionId::NULL.0),
            EspSuite::Aes128Gmac | EspSuite::Aes256Gmac => {
                let bits = suite.key_len() as u16 * 8;
                Self::encryption(EncryptionId::NULL_AUTH_AES_GMAC, bits)
            }
        }
    }

    /// Returns the HMAC of a suite, or `None` for an AEAD.
    pub fn integrity(suite: Suite) -> Option<Self> {
        suite.hash().map(Self::hmac)
    }

    /// Returns an HMAC, cut to half.
    pub const fn hmac(hash: Sha2) -> Self {
        let id = match hash {
            Sha2::Sha256 => IntegrityId::HMAC_SHA2_256_128,
            Sha2::Sha384 => IntegrityId::HMAC_SHA2_384_192,
            Sha2::Sha512 => IntegrityId::HMAC_SHA2_512_256,
        };
        Self::plain(TransformType::INTEG, id.0)
    }

    /// Returns true for a cipher that encrypts, also one that is not supported here.
    pub fn encrypts(&self) -> bool {
        let without = [EncryptionId::NULL, EncryptionId::NULL_AUTH_AES_GMAC];
        self.kind == TransformType::ENCR && !without.contains(&EncryptionId(self.id))
    }

    /// Returns a pseudorandom function.
    pub const fn prf(id: PrfId) -> Self {
        Self::plain(TransformType::PRF, id.0)
    }

    /// Returns a key exchange method.
    pub const fn group(id: GroupId) -> Self {
        Self::plain(TransformType::KE, id.0)
    }

    /// Returns a choice of extended or 32-bit sequence numbers.
    pub const fn esn(id: EsnId) -> Self {
        Self::plain(TransformType::ESN, id.0)
    }
}

impl fmt::Display for Transform {
    /// Written with the name in the registry of its type. A cipher shows its key length.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TransformType::ENCR => write!(f, "{}", EncryptionId(self.id)),
            TransformType::PRF => write!(f, "{}", PrfId(self.id)),
            TransformType::INTEG => write!(f, "{}", IntegrityId(self.id)),
            TransformType::KE => write!(f, "{}", GroupId(self.id)),
            TransformType::ESN => write!(f, "{}", EsnId(self.id)),
            kind if kind.is_additional() => write!(f, "{}", GroupId(self.id)),
            TransformType(kind) => write!(f, "{} of type {kind}", self.id),
        }?;
        self.key_bits.map_or(Ok(()), |bits| write!(f, "-{bits}"))?;
        let mut others = self.others.iter();
        others.try_for_each(|other| write!(f, " with attribute {}", other.kind))
    }
}

impl Proposal {
    pub(super) fn encode_all(proposals: &[Self], out: &mut Vec<u8>) {
        for (index, proposal) in proposals.iter().enumerate() {
            let last = index + 1 == proposals.len();
            let head = [if last { LAST } else { MORE_PROPOSALS }, 0];
            proposal.encode_body(&mut LengthPrefixed::after(&head, out));
        }
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        out.push(self.number);
        self.protocol.encode(out);
        out.push(u8::try_from(self.spi.len()).unwrap_or(u8::MAX));
        out.push(u8::try_from(self.transforms.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(&self.spi);
        for (index, transform) in self.transforms.iter().enumerate() {
            let last = index + 1 == self.transforms.len();
            let head = [if last { LAST } else { MORE_TRANSFORMS }, 0];
            transform.encode_body(&mut LengthPrefixed::after(&head, out));
        }
    }

    pub(super) fn read_all(reader: &mut Reader<'_>) -> Result<Vec<Self>, Malformed> {
        let mut proposals = Vec::new();
        loop {
            let (more, mut body) = substructure("a proposal", MORE_PROPOSALS, reader)?;
            if proposals.len() < MAX_PROPOSALS {
                proposals.push(Self::read_body(&mut body)?);
                body.finish()?;
            }
            if !more {
                return Ok(proposals);
            }
        }
    }

    fn read_body(body: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (number, protocol) = (body.u8()?, Protocol::read(body)?);
        let (spi_len, count) = (usize::from(body.u8()?), body.u8()?);
        let spi = body.take(spi_len)?.to_vec();
        let mut transforms = Vec::new();
        for index in 1..=count {
            let (more, mut inner) = substructure("a transform", MORE_TRANSFORMS, body)?;
            if more != (index < count) {
                return Err(Malformed::Value("a transform"));
            }
            transforms.push(Transform::read_body(&mut inner)?);
        }
        Ok(Self {
            number,
            protocol,
            spi,
            transforms,
        })
    }
}

impl Transform {
    fn encode_body(&self, out: &mut Vec<u8>) {
        self.kind.encode(out);
        out.push(0);
        out.extend_from_slice(&self.id.to_be_bytes());
        if let Some(bits) = self.key_bits {
            out.extend_from_slice(&KEY_LENGTH.to_be_bytes());
            out.extend_from_slice(&bits.to_be_bytes());
        }
        self.others.iter().for_each(|other| other.encode(out));
    }

    fn read_body(body: &mut Reader<'_>) -> Result<Self, Malformed> {
        let kind = TransformType::read(body)?;
        body.take(1)?;
        let id = body.u16()?;
        let mut transform = Self::plain(kind, id);
        while !body.is_empty() {
            transform.read_attribute(body)?;
        }
        Ok(transform)
    }

    fn read_attribute(&mut self, body: &mut Reader<'_>) -> Result<(), Malformed> {
        let kind = body.u16()?;
        let length = match kind & SHORT_ATTRIBUTE {
            0 => usize::from(body.u16()?),
            _ => 2,
        };
        let value = body.take(length)?;
        match (value, self.key_bits) {
            (&[high, low], None) if kind == KEY_LENGTH => {
                self.key_bits = Some(u16::from_be_bytes([high, low]));
            }
            _ if self.others.len() < MAX_ATTRIBUTES => {
                let value = value.to_vec();
                self.others.push(Attribute { kind, value });
            }
            _ => {}
        }
        Ok(())
    }
}

impl Attribute {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.kind.to_be_bytes());
        if self.kind & SHORT_ATTRIBUTE == 0 {
            let length = u16::try_from(self.value.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&length.to_be_bytes());
        }
        out.extend_from_slice(&self.value);
    }
}

/// Reads the common head of proposals and transforms. Returns true if more follow, and the content.
fn substructure<'a>(
    what: &'static str,
    more: u8,
    reader: &mut Reader<'a>,
) -> Result<(bool, Reader<'a>), Malformed> {
    let follow = match reader.u8()? {
        LAST => false,
        value if value == more => true,
        _ => return Err(Malformed::Value(what)),
    };
    reader.take(1)?;
    let length = usize::from(reader.u16()?)
        .checked_sub(4)
        .ok_or(Malformed::Length(what))?;
    Ok((follow, reader.sub(what, length)?))
}
