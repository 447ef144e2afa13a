//! The proof of SKID3's initiator: it has seen the answer to its request.
//!
//! ```text
//! AUTH = prf(SK_pi, first message | second message)
//! ```
//!
//! The responder has proved itself by then, as only the holder of the entry can have sealed the
//! second message with keys that depend on the first one.

use super::PeerProved;
use crate::prf::PrfKey;
use wire::ike::{AuthMethod, Authentication};

/// The first two messages of SKID3, octet by octet.
pub(crate) struct Transcript {
    pub(crate) first: Vec<u8>,
    pub(crate) second: Vec<u8>,
}

impl Transcript {
    /// Creates the AUTH payload.
    pub(crate) fn prove(&self, sk_pi: &PrfKey) -> Authentication {
        Authentication {
            method: AuthMethod::SHARED_KEY,
            data: sk_pi.mac(&[&self.first, &self.second]).expose().to_vec(),
        }
    }

    /// Verifies an AUTH payload, in constant time. The certificates are those of the last full
    /// proof.
    pub(crate) fn verify(
        &self,
        sk_pi: &PrfKey,
        proof: &Authentication,
        chain: Vec<Vec<u8>>,
    ) -> Option<PeerProved> {
        let genuine = crypto::equal(&proof.data, &self.prove(sk_pi).data);
        (proof.method == AuthMethod::SHARED_KEY && genuine).then_some(PeerProved { chain })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::{Prf, Secret};

    #[test]
    fn a_proof_is_good_for_both_messages_as_they_were_and_for_one_key() {
        let key = |octet| PrfKey::new(Prf::HmacSha256, Secret::new(vec![octet; 32]));
        let seen = |first: &[u8], second: &[u8]| Transcript {
            first: first.to_vec(),
            second: second.to_vec(),
        };
        let proof = seen(b"one", b"two").prove(&key(9));
        let is_proved =
            |seen: Transcript, key: PrfKey| seen.verify(&key, &proof, Vec::new()).is_some();
        assert!(is_proved(seen(b"one", b"two"), key(9)));
        assert!(!is_proved(seen(b"one", b"twO"), key(9)));
        assert!(!is_proved(seen(b"onE", b"two"), key(9)));
        assert!(!is_proved(seen(b"one", b"two"), key(8)));
    }
}
