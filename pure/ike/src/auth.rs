//! Proofs of identity, and AUTH with a pre-shared key (RFC 7296 section 2.15). Signatures are in
//! `signature`.
//!
//! ```text
//! AUTH = prf(prf(Shared Secret, "Key Pad for IKEv2"),
//!            first message | peer's nonce | prf(SK_p, ID) [| IntAuth])
//! ```
//!
//! The first message is the prover's own IKE_SA_INIT message, octet by octet. AUTH therefore
//! detects anything that an attacker changed in it (proposals, vendor IDs, NAT detection).
//! `IntAuth` covers the messages between IKE_SA_INIT and IKE_AUTH (`extension::intermediate`).

use crate::config::Peer;
use crate::prf::PrfKey;
use crypto::{RawKey, Secret};
use wire::ike::{AuthMethod, Authentication, Identification};

const KEY_PAD: &[u8] = b"Key Pad for IKEv2";

/// Evidence that the peer's AUTH payload has been verified. Only a verification creates one.
pub(crate) struct PeerProved(());

impl PeerProved {
    /// Creates the evidence for `signature`, after a signature has been verified.
    pub(crate) const fn by_signature() -> Self {
        Self(())
    }
}

/// How a peer and we prove our identities to each other, as configured.
#[derive(Clone, Copy)]
pub(crate) enum Proof<'p> {
    /// With a pre-shared key.
    Psk(&'p Secret),
    /// With certificates.
    Signature,
    /// With raw public keys, of which this is the peer's.
    RawKey(&'p RawKey),
}

impl<'p> Proof<'p> {
    pub(crate) fn of(peer: &'p Peer) -> Self {
        match (&peer.psk, peer.key.as_deref()) {
            (Some(psk), _) => Self::Psk(psk),
            (None, Some(key)) => Self::RawKey(key),
            (None, None) => Self::Signature,
        }
    }

    /// Returns the peer's raw public key, if it proves its identity with one.
    pub(crate) const fn known_key(self) -> Option<&'p RawKey> {
        match self {
            Self::RawKey(key) => Some(key),
            Self::Psk(_) | Self::Signature => None,
        }
    }

    pub(crate) const fn is_signature(self) -> bool {
        matches!(self, Self::Signature | Self::RawKey(_))
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
        (shared_key && genuine).then_some(PeerProved(()))
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
