//! Sealing and opening the messages of one IKE SA (RFC 7296 section 3.14): with an AEAD (RFC 5282,
//! RFC 7634), or with AES-CBC and an HMAC over the whole message.
//!
//! Each message or fragment is sealed once and retransmitted octet by octet, and each direction has
//! its own keys. The count of sealed messages and fragments therefore yields a nonce, or an IV,
//! that never repeats.

use crypto::{
    Aead, AeadAlgorithm, BLOCK_LEN, BadIcv, CbcHmac, Hmac, HmacAlgorithm, NONCE_LEN, Secret,
};
use model::{Sha2, Suite};
use wire::ike::{Content, Fragment, Frame, Header, Message, NotOpened, Payload, Sealed};

/// Octets of salt that follow an AEAD's key (RFC 5282 section 7.1).
const SALT_LEN: usize = 4;

/// Seals and opens the messages of one IKE SA. Keys are expanded for each message. That takes well
/// under a microsecond, and stored key schedules would be the largest part of an SA that is nearly
/// always idle.
pub(crate) struct Cipher {
    pub(crate) suite: Suite,
    pub(crate) keys: CipherKeys,
    initiator: bool,
    /// Number of the next message or fragment to seal, from 0.
    next: u64,
}

/// Keys of both directions. With an AEAD, the HMAC keys are empty, and the salt follows the
/// cipher's key.
pub(crate) struct CipherKeys {
    pub(crate) sk_ai: Secret,
    pub(crate) sk_ar: Secret,
    pub(crate) sk_ei: Secret,
    pub(crate) sk_er: Secret,
}

enum Half {
    Aead {
        aead: Aead,
        salt: [u8; SALT_LEN],
    },
    /// Boxed because it is large and rare: it has tables for both directions.
    Cbc(Box<CbcHmac>),
}

impl Cipher {
    pub(crate) const fn new(suite: Suite, keys: CipherKeys, initiator: bool) -> Self {
        Self {
            suite,
            keys,
            initiator,
            next: 0,
        }
    }

    /// Expands the keys of the initiator's or the responder's messages.
    fn half(&self, of_initiator: bool) -> Half {
        let CipherKeys {
            sk_ai,
            sk_ar,
            sk_ei,
            sk_er,
        } = &self.keys;
        match of_initiator {
            true => Half::new(self.suite, sk_ei, sk_ai),
            false => Half::new(self.suite, sk_er, sk_ar),
        }
    }

    pub(crate) fn seal(&mut self, message: &Message) -> Vec<u8> {
        self.seal_behind(&[], message)
    }

    /// Seals a message behind clear payloads, which are authenticated as well.
    pub(crate) fn seal_behind(&mut self, clear: &[Payload], message: &Message) -> Vec<u8> {
        self.seal_all(
            &Content::new(&message.payloads),
            &message.header,
            clear,
            None,
        )
    }

    /// Seals a message into datagrams of at most `room` octets: as a whole, or in fragments.
    pub(crate) fn seal_within(&mut self, message: &Message, room: usize) -> Vec<Vec<u8>> {
        let (header, content) = (&message.header, Content::new(&message.payloads));
        let frame = frame(self.suite);
        if content.sealed_len(frame) <= room {
            return vec![self.seal_content(&content, header, None)];
        }
        let pieces = content.pieces(frame, room).into_iter();
        pieces
            .map(|(at, piece)| self.seal_content(&piece, header, Some(at)))
            .collect()
    }

    pub(crate) fn seal_content(
        &mut self,
        content: &Content,
        header: &Header,
        at: Option<Fragment>,
    ) -> Vec<u8> {
        self.seal_all(content, header, &[], at)
    }

    fn seal_all(
        &mut self,
        content: &Content,
        header: &Header,
        clear: &[Payload],
        at: Option<Fragment>,
    ) -> Vec<u8> {
        let (outbound, number) = (self.half(self.initiator), self.next);
        self.next += 1;
        let iv = outbound.iv(number);
        content.seal_with(
            header,
            clear,
            at,
            frame(self.suite),
            &iv,
            |aad, text, icv| {
                outbound.seal(&iv, aad, text, icv);
            },
        )
    }

    /// Returns the content of a message, or the piece of it that a fragment holds.
    pub(crate) fn open(&self, sealed: &Sealed<'_>) -> Result<Content, NotOpened<BadIcv>> {
        let inbound = self.half(!self.initiator);
        sealed.content_with(frame(self.suite), |iv, aad, text, icv| {
            inbound.open(iv, aad, text, icv)
        })
    }
}

/// Returns the lengths of IV, block and ICV of a suite.
fn frame(suite: Suite) -> Frame {
    match suite.hash() {
        None => Frame::AEAD,
        Some(_) => Frame {
            iv_len: BLOCK_LEN,
            block_len: BLOCK_LEN,
            icv_len: suite.icv_len(),
        },
    }
}

impl Half {
    fn new(suite: Suite, sk_e: &Secret, sk_a: &Secret) -> Self {
        let (key, salt) = sk_e.expose().split_at(suite.key_len());
        let cbc = |hash| {
            let algorithm = match hash {
                Sha2::Sha256 => HmacAlgorithm::Sha256,
                Sha2::Sha384 => HmacAlgorithm::Sha384,
                Sha2::Sha512 => HmacAlgorithm::Sha512,
            };
            let cbc = Hmac::new(algorithm, sk_a.expose()).and_then(|mac| CbcHmac::new(key, mac));
            Self::Cbc(Box::new(
                cbc.expect("the schedule gives keys of the suite's lengths"),
            ))
        };
        let aead = |algorithm| Self::Aead {
            aead: Aead::new(algorithm, key).expect("split to the length of the suite's key"),
            salt: salt.try_into().expect("the schedule gives key and salt"),
        };
        match suite {
            Suite::Aes128Gcm16 => aead(AeadAlgorithm::Aes128Gcm),
            Suite::Aes256Gcm16 => aead(AeadAlgorithm::Aes256Gcm),
            Suite::ChaCha20Poly1305 => aead(AeadAlgorithm::ChaCha20Poly1305),
            Suite::Aes128Cbc(hash) | Suite::Aes256Cbc(hash) => cbc(hash),
        }
    }

    /// Returns the explicit IV for the sealed message with this number.
    fn iv(&self, number: u64) -> Vec<u8> {
        match self {
            Self::Aead { .. } => number.to_be_bytes().to_vec(),
            Self::Cbc(cbc) => cbc.iv(number).to_vec(),
        }
    }

    fn seal(&self, iv: &[u8], aad: &[u8], text: &mut [u8], icv: &mut [u8]) {
        match self {
            Self::Aead { aead, salt } => {
                icv.copy_from_slice(&aead.seal(&nonce(salt, iv), aad, text));
            }
            Self::Cbc(cbc) => cbc.seal(&block(iv), aad, text, icv),
        }
    }

    fn open(&self, iv: &[u8], aad: &[u8], text: &mut [u8], icv: &[u8]) -> Result<(), BadIcv> {
        match self {
            Self::Aead { aead, salt } => aead.open(&nonce(salt, iv), aad, text, icv),
            Self::Cbc(cbc) => cbc.open(&block(iv), aad, text, icv),
        }
    }
}

fn nonce(salt: &[u8; SALT_LEN], iv: &[u8]) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    nonce[..SALT_LEN].copy_from_slice(salt);
    nonce[SALT_LEN..].copy_from_slice(iv);
    nonce
}

fn block(iv: &[u8]) -> [u8; BLOCK_LEN] {
    iv.try_into().expect("the frame says how long an IV is")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ike::{Datagram, ExchangeType, Flags, Payload, VERSION_2};

    fn ends(suite: Suite) -> (Cipher, Cipher) {
        let keys = || {
            let mac_key = |octet| Secret::new(vec![octet; suite.mac_key_len()]);
            let key = |octet| Secret::new(vec![octet; suite.key_len() + suite.salt_len()]);
            CipherKeys {
                sk_ai: mac_key(1),
                sk_ar: mac_key(2),
                sk_ei: key(3),
                sk_er: key(4),
            }
        };
        let end = |initiator| Cipher::new(suite, keys(), initiator);
        (end(true), end(false))
    }

    /// A message with `len` octets in its one payload.
    fn message(len: usize) -> Message {
        let header = Header {
            spi_i: 1,
            spi_r: 2,
            version: VERSION_2,
            exchange: ExchangeType::INFORMATIONAL,
            flags: Flags::default(),
            message_id: 3,
        };
        let payloads = vec![Payload::VendorId(vec![7; len])];
        Message { header, payloads }
    }

    fn opened(cipher: &Cipher, octets: &[u8]) -> Result<Message, NotOpened<BadIcv>> {
        match Datagram::decode(octets).expect("the length is right") {
            Datagram::Sealed(sealed) => {
                let content = cipher.open(&sealed)?;
                content.message(sealed.header).map_err(NotOpened::Malformed)
            }
            Datagram::Clear(_) => panic!("it was sealed"),
        }
    }

    #[test]
    fn a_message_of_any_length_opens_at_the_other_end_only() {
        for suite in Suite::ALL {
            let (mut ours, theirs) = ends(suite);
            for len in 0..40 {
                let octets = ours.seal(&message(len));
                assert_eq!(opened(&theirs, &octets), Ok(message(len)), "{suite}");
                let reflected = opened(&ours, &octets);
                assert_eq!(reflected, Err(NotOpened::Refused(BadIcv)), "{suite}");
            }
        }
    }

    /// RFC 7383, also with a block cipher.
    #[test]
    fn pieces_of_a_message_fit_and_open_at_the_other_end() {
        for suite in Suite::ALL {
            let (mut ours, theirs) = ends(suite);
            for room in [200, 213, 230, 544] {
                let fragments = ours.seal_within(&message(1000), room);
                let mut joined = Vec::new();
                for octets in &fragments {
                    assert!(octets.len() <= room, "{suite}");
                    let Ok(Datagram::Sealed(sealed)) = Datagram::decode(octets) else {
                        panic!("it was sealed");
                    };
                    joined.extend_from_slice(&theirs.open(&sealed).expect("genuine").octets);
                }
                let whole = Content::new(&message(1000).payloads);
                assert!(fragments.len() > 1 && joined == *whole.octets, "{suite}");
            }
        }
    }

    #[test]
    fn the_same_message_is_never_sealed_to_the_same_octets() {
        for suite in Suite::ALL {
            let (mut ours, _) = ends(suite);
            let mut sealed: Vec<_> = (0..100)
                .map(|_| ours.seal(&message(9))[32..48].to_vec())
                .collect();
            sealed.sort();
            sealed.dedup();
            assert_eq!(sealed.len(), 100, "{suite}");
        }
    }

    /// Every modification leads to the same error: the receiver parses neither padding nor payloads
    /// of a message that is not genuine.
    #[test]
    fn a_damaged_message_tells_nothing_about_its_inside() {
        for suite in Suite::ALL {
            let (mut ours, theirs) = ends(suite);
            let octets = ours.seal(&message(20));
            for at in 32..octets.len() {
                let mut damaged = octets.clone();
                damaged[at] ^= 0x10;
                assert_eq!(
                    opened(&theirs, &damaged),
                    Err(NotOpened::Refused(BadIcv)),
                    "{suite}, {at}"
                );
            }
            for cut in 1..octets.len() - 32 - 24 {
                let mut short = octets[..octets.len() - cut].to_vec();
                let len = short.len() as u32;
                short[24..28].copy_from_slice(&len.to_be_bytes());
                short[30..32].copy_from_slice(&(len as u16 - 28).to_be_bytes());
                let refused = opened(&theirs, &short);
                let unknown = [Err(NotOpened::Refused(BadIcv)), Err(NotOpened::Unframed)];
                assert!(unknown.contains(&refused), "{suite}: {refused:?}");
            }
        }
    }
}
