//! IKE_INTERMEDIATE (RFC 9242) and its additional key exchanges (RFC 9370). Their values are too
//! long for IKE_SA_INIT, which never comes in fragments, and are needed before IKE_AUTH.
//!
//! ```text
//!  IKE_SA_INIT       ..., SA(ADDKE1 = ML-KEM-768), N(INTERMEDIATE_EXCHANGE_SUPPORTED)  -->
//!                                          <--  ..., SA, N(INTERMEDIATE_EXCHANGE_SUPPORTED)
//!  IKE_INTERMEDIATE  SK {KE(public key)}  -->
//!                                          <--  SK {KE(ciphertext)}      all keys are new
//!  IKE_AUTH          as ever
//! ```
//!
//! The additional key exchange complements the group and does not replace it: an attacker has to
//! break both. The peer is not authenticated yet, so both AUTH payloads cover these messages too,
//! in the form before fragmentation and sealing ([`IntAuth`]). An attacker gains nothing by
//! removing the transform or the notify from the first messages, because AUTH covers these as they
//! were sent.
//!
//! **Bounds.** There are as many exchanges as negotiated methods, of which there are only a few. A
//! responder drops all others unopened. Until IKE_AUTH the SA counts as half open, and expires like
//! one.

use crate::allowed_suites::kem_id;
use crate::exchange::{find_notify, notify};
use crate::keys::{Roots, own_first};
use crate::prf::PrfKey;
use crypto::{BadKemValue, KemKey, Secret};
use model::Kem;
use wire::ike::{Content, ExchangeType, Header, KeyExchange, Message, NotifyType, Payload};
use zeroize::Zeroizing;

/// Returns the notify for IKE_SA_INIT of an end that wants an additional key exchange.
pub(crate) const fn payload() -> Payload {
    notify(NotifyType::INTERMEDIATE_EXCHANGE_SUPPORTED, Vec::new())
}

/// Returns true if an IKE_SA_INIT message announces support. The data of the notify "MUST be
/// ignored" (RFC 9242 section 3.1).
pub(crate) fn is_supported(message: &Message) -> bool {
    find_notify(message, NotifyType::INTERMEDIATE_EXCHANGE_SUPPORTED).is_some()
}

/// Our half of an additional key exchange, as its initiator.
pub(crate) struct Asked {
    kem: Kem,
    key: KemKey,
}

impl Asked {
    /// Generates a key; returns `None` if that fails.
    pub(crate) fn new(kem: Kem) -> Option<Self> {
        let key = KemKey::generate(of(kem))?;
        Some(Self { kem, key })
    }

    /// Returns the payload with the public key.
    pub(crate) fn payload(&self) -> Payload {
        value(self.kem, self.key.public().to_vec())
    }

    /// Returns the shared secret from the answer. Refuses a method that was not requested.
    pub(crate) fn agree(self, answer: &KeyExchange) -> Result<(Kem, Secret), BadKemValue> {
        if answer.group != kem_id(self.kem) {
            return Err(BadKemValue);
        }
        Ok((self.kem, self.key.decapsulate(&answer.public)?))
    }
}

/// Returns the answer to an initiator's half, and the shared secret.
pub(crate) fn answer(kem: Kem, asked: &KeyExchange) -> Result<(Payload, Secret), BadKemValue> {
    if asked.group != kem_id(kem) {
        return Err(BadKemValue);
    }
    let (ciphertext, shared) = of(kem).encapsulate(&asked.public)?;
    Ok((value(kem, ciphertext), shared))
}

const fn value(kem: Kem, public: Vec<u8>) -> Payload {
    let group = kem_id(kem);
    Payload::KeyExchange(KeyExchange { group, public })
}

const fn of(kem: Kem) -> crypto::Kem {
    match kem {
        Kem::MlKem512 => crypto::Kem::MlKem512,
        Kem::MlKem768 => crypto::Kem::MlKem768,
        Kem::MlKem1024 => crypto::Kem::MlKem1024,
    }
}

/// The last IKE_INTERMEDIATE message of either direction, without IV, padding and ICV, in its form
/// before fragmentation (RFC 9242 section 3.3.2).
#[derive(Default)]
pub(crate) struct AuthTranscript {
    ours: Zeroizing<Vec<u8>>,
    theirs: Zeroizing<Vec<u8>>,
}

impl AuthTranscript {
    /// Stores a message that we send.
    pub(crate) fn note_ours(&mut self, message: &Message) {
        let content = Content::new(&message.payloads);
        self.ours = content.bare(content.before_iv(&message.header));
    }

    /// Stores a received message; `before` holds the octets before its IV, or before the IV of its
    /// first fragment.
    pub(crate) fn note_theirs(&mut self, before: Vec<u8>, content: &Content) {
        self.theirs = content.bare(before);
    }
}

/// Returns true if AUTH covers a message of this exchange through IntAuth.
pub(crate) fn is_covered(header: &Header) -> bool {
    header.exchange == ExchangeType::IKE_INTERMEDIATE
}

/// The data of all IKE_INTERMEDIATE exchanges that AUTH covers: one chain for our messages and one
/// for the peer's, `IntAuth_n = prf(SK_p(n), IntAuth_(n-1) | message)`.
#[derive(Default)]
pub(crate) struct IntAuth {
    ours: Vec<u8>,
    theirs: Vec<u8>,
}

impl IntAuth {
    /// Adds a complete exchange. `roots` are those from before it.
    pub(crate) fn add(&mut self, roots: &Roots, said: &mut AuthTranscript) {
        let said = std::mem::take(said);
        let chain = |key: &PrfKey, before: &[u8], message: &[u8]| {
            let mac = key.mac(&[before, message]);
            mac.expose().to_vec()
        };
        self.ours = chain(&roots.own_proof, &self.ours, &said.ours);
        self.theirs = chain(&roots.peer_proof, &self.theirs, &said.theirs);
    }

    /// Returns `IntAuth_i | IntAuth_r | message ID of IKE_AUTH`, or nothing if there was no
    /// exchange.
    pub(crate) fn octets(&self, initiator: bool, id: u32) -> Vec<u8> {
        if self.ours.is_empty() {
            return Vec::new();
        }
        let (of_i, of_r) = own_first(initiator, &self.ours, &self.theirs);
        [of_i.as_slice(), of_r, &id.to_be_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Inputs, UnprovedKeys};
    use model::Suite;
    use wire::ike::{Flags, VERSION_2};

    fn keys(initiator: bool) -> UnprovedKeys {
        let inputs = Inputs {
            suite: Suite::Aes128Gcm16,
            prf: crypto::Prf::HmacSha256,
            nonce_i: &[1; 32],
            nonce_r: &[2; 16],
            spi_i: 0x1111_1111_1111_1111,
            spi_r: 0x2222_2222_2222_2222,
            initiator,
        };
        UnprovedKeys::derive(&Secret::new(vec![3; 32]), &inputs)
    }

    fn message(id: u32, response: bool, octet: u8) -> Message {
        let header = Header {
            spi_i: 0x1111_1111_1111_1111,
            spi_r: 0x2222_2222_2222_2222,
            version: VERSION_2,
            exchange: ExchangeType::IKE_INTERMEDIATE,
            flags: Flags {
                initiator: !response,
                response,
                ..Flags::default()
            },
            message_id: id,
        };
        let payloads = vec![value(Kem::MlKem768, vec![octet; 5])];
        Message { header, payloads }
    }

    fn octets(initiator: bool) -> Vec<u8> {
        let (keys, mut said, mut covered) = (
            keys(initiator),
            AuthTranscript::default(),
            IntAuth::default(),
        );
        for id in [1, 2] {
            let both = [message(id, false, 7), message(id, true, 8)];
            let (ours, theirs) = own_first(initiator, &both[0], &both[1]);
            said.note_ours(ours);
            let content = Content::new(&theirs.payloads);
            said.note_theirs(content.before_iv(&theirs.header), &content);
            covered.add(&keys.roots, &mut said);
        }
        covered.octets(initiator, 3)
    }

    /// The expected value comes from Python's hmac module, over octets written out according to
    /// figure 1 of RFC 9242.
    #[test]
    fn what_auth_covers_is_that_of_rfc_9242_section_3_3_2() {
        let hex: String = octets(true).iter().map(|o| format!("{o:02x}")).collect();
        assert_eq!(
            hex,
            concat!(
                "9811f59dc5ebb855e87209e7690c9b06ec45e078839025897a8d88a9ba18821e",
                "fc78659974bdc5008c8bb65378d097c05312098638967c5f939c0b2531fd3900",
                "00000003"
            )
        );
    }

    #[test]
    fn both_ends_cover_the_same() {
        assert_eq!(octets(true), octets(false));
    }

    #[test]
    fn without_an_exchange_auth_covers_what_it_always_did() {
        assert!(IntAuth::default().octets(true, 1).is_empty());
    }

    #[test]
    fn a_value_of_another_method_is_refused() {
        let KeyExchange { public, .. } = match Asked::new(Kem::MlKem768).unwrap().payload() {
            Payload::KeyExchange(asked) => asked,
            other => panic!("{other:?}"),
        };
        for (group, right) in [
            (kem_id(Kem::MlKem768), true),
            (kem_id(Kem::MlKem512), false),
        ] {
            let public = public.clone();
            let asked = KeyExchange { group, public };
            assert_eq!(answer(Kem::MlKem768, &asked).is_ok(), right);
        }
    }
}
