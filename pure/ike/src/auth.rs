//! What proves an identity, and proofs with a pre-shared key (RFC 7296 section 2.15). Those by
//! certificate are in `signature`.
//!
//! ```text
//! AUTH = prf(prf(Shared Secret, "Key Pad for IKEv2"),
//!            first message | peer's nonce | prf(SK_p, ID) [| IntAuth])
//! ```
//!
//! The first message is the prover's own of IKE_SA_INIT, octet by octet: whatever an attacker
//! changed there (proposals, vendor IDs, NAT detection) comes out here. `IntAuth` stands for what came
//! between that message and IKE_AUTH (`extension::intermediate`).

use crate::keys::PRF;
use crypto::Secret;
use wire::ike::{AuthMethod, Authentication, Identification};

const KEY_PAD: &[u8] = b"Key Pad for IKEv2";

/// Evidence that the peer's AUTH payload verified. There is no other way to get one.
pub(crate) struct PeerProved(());

impl PeerProved {
    /// For `signature`, which verified one.
    pub(crate) const fn by_signature() -> Self {
        Self(())
    }
}

/// What one end proves.
pub(crate) struct Claim<'a> {
    /// The prover's message of IKE_SA_INIT.
    pub(crate) message: &'a [u8],
    /// The other end's nonce.
    pub(crate) nonce: &'a [u8],
    /// The prover's SK_p.
    pub(crate) proof_key: &'a Secret,
    /// Who the prover says it is, as it was sent.
    pub(crate) id: &'a Identification,
    /// IntAuth of what both ends sent since; nothing if they sent nothing.
    pub(crate) intermediate: &'a [u8],
}

impl Claim<'_> {
    /// The AUTH payload for it.
    pub(crate) fn prove(&self, psk: &Secret) -> Authentication {
        Authentication {
            method: AuthMethod::SHARED_KEY,
            data: self.mac(psk).expose().to_vec(),
        }
    }

    /// Whether an AUTH payload proves it. Compares in constant time.
    pub(crate) fn verify(&self, proof: &Authentication, psk: &Secret) -> Option<PeerProved> {
        let shared_key = proof.method == AuthMethod::SHARED_KEY;
        let genuine = crypto::equal(&proof.data, self.mac(psk).expose());
        (shared_key && genuine).then_some(PeerProved(()))
    }

    /// What is signed.
    pub(crate) fn octets(&self) -> Vec<u8> {
        let id = PRF.mac(self.proof_key.expose(), &[&self.id.octets()]);
        [self.message, self.nonce, id.expose(), self.intermediate].concat()
    }

    fn mac(&self, psk: &Secret) -> Secret {
        let key = PRF.mac(psk.expose(), &[KEY_PAD]);
        PRF.mac(key.expose(), &[&self.octets()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> Identification {
        Identification::from("a.example".parse::<model::Identity>().unwrap())
    }

    fn claim<'a>(id: &'a Identification, proof_key: &'a Secret) -> Claim<'a> {
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
        let (id, key) = (id(), Secret::new(vec![9; 32]));
        let proof = claim(&id, &key).prove(&Secret::new(b"secret".to_vec()));
        let hex: String = proof.data.iter().map(|o| format!("{o:02x}")).collect();
        assert_eq!(
            hex,
            "a5c57d44ccc75cab9b8961166345fd8be2cb0e3677d70be43757fa0acc874210"
        );
    }

    #[test]
    fn nothing_but_the_right_octets_proves() {
        let (id, key) = (id(), Secret::new(vec![9; 32]));
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
