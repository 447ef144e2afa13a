//! Proofs of identity in IKE_AUTH, and AUTH with a pre-shared key (RFC 7296 section 2.15).
//! Signatures are in `signature`.
//!
//! IKE_AUTH is an exchange in rounds. The proofs of one end are a part ([`initiator`],
//! [`responder`]) whose `step` takes the peer's next message and returns a [`Step`]: the proof, or
//! the payloads of another message. The states (`sa/auth_sent.rs`, `sa/await_auth.rs`) carry
//! messages and do not know the methods. Once the peer is proved, `sa/admission.rs` follows.
//!
//! A method is a variant of [`Proof`], and its secrets between two rounds are fields of the two
//! parts. All methods so far prove themselves in one round. A method that needs more bounds their
//! number; the state bounds their time, as the initiator is half open until the last one.
//!
//! ```text
//! AUTH = prf(prf(Shared Secret, "Key Pad for IKEv2"),
//!            first message | peer's nonce | prf(SK_p, ID) [| IntAuth])
//! ```
//!
//! The first message is the prover's own IKE_SA_INIT message, octet by octet. AUTH therefore
//! detects anything that an attacker changed in it (proposals, vendor IDs, NAT detection).
//! A session that is resumed has keys that only the two ends of the lost IKE SA can have, so AUTH
//! has no other key than SK_p (RFC 5723 section 4.3.3):
//!
//! ```text
//! AUTH = prf(SK_p, first message | peer's nonce | prf(SK_p, ID))
//! ```
//!
//! SKID3 has no IKE_AUTH; its proofs are in `transcript`.
//!
//! `IntAuth` covers the messages between IKE_SA_INIT and IKE_AUTH (`extension::intermediate`).

pub(crate) mod handshake;
pub(crate) mod initiator;
pub(crate) mod proof;
pub(crate) mod responder;
pub(crate) mod transcript;

use crate::config::Peer;
use crate::prf::PrfKey;
use crypto::Secret;
use wire::ike::{AuthMethod, Authentication, Identification, Message, Payload};

pub(crate) use proof::Proof;

const KEY_PAD: &[u8] = b"Key Pad for IKEv2";

/// Result of a message of IKE_AUTH.
pub(crate) enum Step<'p> {
    /// The peer is proved.
    Done(Proved<'p>),
    /// The method needs another message from us, with these payloads.
    More(Vec<Payload>),
}

/// A peer that has proved its identity.
pub(crate) struct Proved<'p> {
    pub(crate) peer: &'p Peer,
    pub(crate) evidence: PeerProved,
    /// The peer's message with all that is not a proof: the first request, or the last response.
    pub(crate) message: &'p Message,
    /// The payloads of our own proof that the peer does not have yet: those of a responder.
    pub(crate) payloads: Vec<Payload>,
}

/// Evidence that the peer's AUTH payload has been verified. Only a verification creates one.
pub(crate) struct PeerProved {
    chain: Vec<Vec<u8>>,
}

impl PeerProved {
    /// Creates the evidence for `signature`, after a signature has been verified with the key of
    /// these certificates, or with a raw public key.
    pub(crate) const fn by_signature(chain: Vec<Vec<u8>>) -> Self {
        Self { chain }
    }

    /// Creates the evidence for SKID3's initiator, after it has opened a message that only the
    /// responder of the lost IKE SA can have sealed. The certificates are those of the last full
    /// proof.
    pub(crate) const fn by_answer(chain: Vec<Vec<u8>>) -> Self {
        Self { chain }
    }

    /// Returns the certificates that authenticated the peer. They may be revoked later.
    pub(crate) fn into_chain(self) -> Vec<Vec<u8>> {
        self.chain
    }
}

/// The data that one end's AUTH covers.
pub(crate) struct Claim<'a> {
    /// The prover's IKE_SA_INIT message.
    pub(crate) message: &'a [u8],
    /// The other end's nonce.
    pub(crate) nonce: &'a [u8],
    /// The prover's SK_p.
    pub(crate) proof_key: &'a PrfKey,
    /// The prover's identification payload, as sent.
    pub(crate) id: &'a Identification,
    /// IntAuth of the messages since IKE_SA_INIT; empty if there were none.
    pub(crate) intermediate: &'a [u8],
}

impl Claim<'_> {
    /// Creates the AUTH payload.
    pub(crate) fn prove(&self, psk: &Secret) -> Authentication {
        Authentication {
            method: AuthMethod::SHARED_KEY,
            data: self.mac(psk).expose().to_vec(),
        }
    }

    /// Verifies an AUTH payload, in constant time.
    pub(crate) fn verify(&self, proof: &Authentication, psk: &Secret) -> Option<PeerProved> {
        let shared_key = proof.method == AuthMethod::SHARED_KEY;
        let genuine = crypto::equal(&proof.data, self.mac(psk).expose());
        let chain = Vec::new();
        (shared_key && genuine).then_some(PeerProved { chain })
    }

    /// Creates the AUTH payload of a session that is resumed.
    pub(crate) fn prove_keys(&self) -> Authentication {
        Authentication {
            method: AuthMethod::SHARED_KEY,
            data: self.proof_key.mac(&[&self.octets()]).expose().to_vec(),
        }
    }

    /// Verifies such a payload, in constant time. The certificates are those of the last full
    /// proof.
    pub(crate) fn verify_keys(
        &self,
        proof: &Authentication,
        chain: Vec<Vec<u8>>,
    ) -> Option<PeerProved> {
        let genuine = crypto::equal(&proof.data, &self.prove_keys().data);
        (proof.method == AuthMethod::SHARED_KEY && genuine).then_some(PeerProved { chain })
    }

    /// Returns the octets to sign.
    pub(crate) fn octets(&self) -> Vec<u8> {
        let id = self.proof_key.mac(&[&self.id.octets()]);
        [self.message, self.nonce, id.expose(), self.intermediate].concat()
    }

    fn mac(&self, psk: &Secret) -> Secret {
        let prf = self.proof_key.prf;
        let key = prf.mac(psk.expose(), &[KEY_PAD]);
        prf.mac(key.expose(), &[&self.octets()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> Identification {
        Identification::from("a.example".parse::<model::Identity>().unwrap())
    }

    fn key() -> PrfKey {
        PrfKey::new(crypto::Prf::HmacSha256, Secret::new(vec![9; 32]))
    }

    fn claim<'a>(id: &'a Identification, proof_key: &'a PrfKey) -> Claim<'a> {
        Claim {
            message: b"message one",
            nonce: &[7; 32],
            proof_key,
            id,
            intermediate: &[],
        }
    }

    /// The expected value comes from Python's hmac module.
    #[test]
    fn the_proof_is_that_of_rfc_7296_section_2_15() {
        let (id, key) = (id(), key());
        let proof = claim(&id, &key).prove(&Secret::new(b"secret".to_vec()));
        let hex: String = proof.data.iter().map(|o| format!("{o:02x}")).collect();
        assert_eq!(
            hex,
            "a5c57d44ccc75cab9b8961166345fd8be2cb0e3677d70be43757fa0acc874210"
        );
    }

    // Weakness: 46
    #[test]
    fn nothing_but_the_right_octets_proves() {
        let (id, key) = (id(), key());
        let psk = Secret::new(b"secret".to_vec());
        let claim = claim(&id, &key);
        let good = claim.prove(&psk);
        assert!(claim.verify(&good, &psk).is_some());
        let variants: [fn(&mut Authentication); 4] = [
            |proof| proof.data.clear(),
            |proof| proof.data.fill(0),
            |proof| proof.data.push(0),
            |proof| proof.method = AuthMethod::DIGITAL_SIGNATURE,
        ];
        for change in variants {
            let mut bad = good.clone();
            change(&mut bad);
            assert!(claim.verify(&bad, &psk).is_none());
        }
        assert!(
            claim
                .verify(&good, &Secret::new(b"Secret".to_vec()))
                .is_none()
        );
    }
}
