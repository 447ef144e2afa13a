//! Results of IKE_SA_INIT and IKE_INTERMEDIATE that IKE_AUTH needs: the keys, and the data that
//! AUTH covers.

use super::{Claim, Proof};
use crate::config::Config;
use crate::extension::intermediate::IntAuth;
use crate::keys::{Roots, UnprovedKeys, own_first};
use crate::sa::core::Core;
use crate::signature;
use crypto::Secret;
use model::Kem;
use wire::ike::{AuthMethod, Authentication, Identification, Payload};

/// The part of an IKE SA that IKE_AUTH is about.
pub(crate) struct Handshake {
    pub(crate) keys: UnprovedKeys,
    initiator: bool,
    /// Our IKE_SA_INIT message, and the peer's.
    ours: Vec<u8>,
    pub(crate) theirs: Vec<u8>,
    /// IntAuth of the exchanges between IKE_SA_INIT and IKE_AUTH.
    covered: IntAuth,
}

/// Our CERT payloads, if any, and our AUTH.
pub(crate) struct OwnProof {
    pub(crate) certificates: Vec<Payload>,
    pub(crate) authentication: Authentication,
}

impl Handshake {
    pub(crate) fn new(keys: UnprovedKeys, initiator: bool, ours: Vec<u8>, theirs: Vec<u8>) -> Self {
        Self {
            keys,
            initiator,
            ours,
            theirs,
            covered: IntAuth::default(),
        }
    }

    /// Continues with the keys of an additional key exchange. Returns the previous ones.
    pub(crate) fn renew(&mut self, kem: Kem, shared: Secret, core: &mut Core) -> UnprovedKeys {
        self.covered.add(&self.keys.roots, &mut core.transcript);
        let (spi_i, spi_r) = (core.spi_i, core.spi_r);
        let keys = self.keys.renewed(kem, shared, spi_i, spi_r, self.initiator);
        std::mem::replace(&mut self.keys, keys)
    }

    /// Returns the octets that AUTH covers of IKE_INTERMEDIATE. `first` is the message ID "of the
    /// first round of the IKE_AUTH exchange" (RFC 9242 section 3.3.2), whichever round has AUTH.
    pub(crate) fn intermediate(&self, first: u32) -> Vec<u8> {
        self.covered.octets(self.initiator, first)
    }

    /// Returns what the peer's AUTH has to cover.
    pub(crate) fn peer_claim<'a>(
        &'a self,
        id: &'a Identification,
        intermediate: &'a [u8],
    ) -> Claim<'a> {
        let (ours, _) = self.nonces();
        Claim {
            message: &self.theirs,
            nonce: ours,
            proof_key: &self.keys.roots.peer_proof,
            id,
            intermediate,
        }
    }

    /// Returns what our AUTH has to cover, with these roots.
    fn own_claim<'a>(
        &'a self,
        roots: &'a Roots,
        id: &'a Identification,
        intermediate: &'a [u8],
    ) -> Claim<'a> {
        let (_, theirs) = self.nonces();
        Claim {
            message: &self.ours,
            nonce: theirs,
            proof_key: &roots.own_proof,
            id,
            intermediate,
        }
    }

    /// Returns our nonce and the peer's.
    fn nonces(&self) -> (&[u8], &[u8]) {
        let UnprovedKeys {
            nonce_i, nonce_r, ..
        } = &self.keys;
        own_first(self.initiator, nonce_i.as_slice(), nonce_r.as_slice())
    }

    /// Proves our identity with these roots. `method` is the one by which the peer verifies our
    /// signatures, `first` the message ID of the first round. Returns `None` if the key cannot be
    /// used.
    pub(crate) fn prove(
        &self,
        roots: &Roots,
        first: u32,
        proof: Proof<'_>,
        method: Option<AuthMethod>,
        config: &Config,
    ) -> Option<OwnProof> {
        let id = config.identity.clone().into();
        let intermediate = self.intermediate(first);
        let claim = self.own_claim(roots, &id, &intermediate);
        let (certificates, authentication) = match proof {
            Proof::Psk(psk) => (Vec::new(), claim.prove(psk)),
            Proof::Resumed => (Vec::new(), claim.prove_keys()),
            Proof::Signature | Proof::RawKey(_) => {
                let credential = config.credential.as_ref()?;
                signature::prove(credential, method?, &claim, proof)?
            }
        };
        Some(OwnProof {
            certificates,
            authentication,
        })
    }
}
