//! Our proof of identity, in any of the ways that peers have ([`Proof`]).

use crate::auth::{Claim, Proof};
use crate::config::Config;
use crate::signature;
use wire::ike::{AuthMethod, Authentication, Payload};

/// Our CERT payloads, if any, and our AUTH.
pub(crate) struct OwnProof {
    pub(crate) certificates: Vec<Payload>,
    pub(crate) authentication: Authentication,
}

impl OwnProof {
    /// Proves our identity. `method` is the one by which the peer verifies our signatures. Returns
    /// `None` if the key cannot be used.
    pub(crate) fn new(
        proof: Proof<'_>,
        method: Option<AuthMethod>,
        claim: &Claim<'_>,
        config: &Config,
    ) -> Option<Self> {
        let (certificates, authentication) = match proof {
            Proof::Psk(psk) => (Vec::new(), claim.prove(psk)),
            Proof::Signature | Proof::RawKey(_) => {
                let credential = config.credential.as_ref()?;
                signature::prove(credential, method?, claim, proof)?
            }
        };
        Some(Self {
            certificates,
            authentication,
        })
    }
}
