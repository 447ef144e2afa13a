//! The key schedule (RFC 7296 section 2.14, RFC 5282 section 7, RFC 7634 section 3) as types.
//!
//! After IKE_SA_INIT there are [`UnprovedKeys`]. They seal and open IKE_AUTH, and prove and verify
//! identities, nothing else. Only the [`PeerProved`] token turns them into [`ProvedKeys`], and
//! `auth` issues that token only for an AUTH payload that it has verified. Only [`ProvedKeys`]
//! derive keys of child SAs. Code that creates a child SA with an unauthenticated peer therefore
//! does not compile. One thing is computed earlier: what a child SA of SKID3 will be made from
//! ([`UnprovedKeys::first_child`]), as its second message answers a request for one.
//!
//! ```text
//! SKEYSEED = prf(Ni | Nr, g^ir)
//! SK_d | SK_ai | SK_ar | SK_ei | SK_er | SK_pi | SK_pr = prf+(SKEYSEED, Ni | Nr | SPIi | SPIr)
//! ```
//!
//! With an AEAD, SK_ai and SK_ar are empty, and SK_ei and SK_er hold the salt after the key.
//!
//! SK_d, SK_pi and SK_pr are the [`Roots`]. All keys of child SAs and of later IKE SAs come from
//! SK_d, and the proofs from the other two. A post-quantum pre-shared key, if both ends have one,
//! is mixed into these three and into nothing else (RFC 8784 section 3), once. IKE_AUTH itself is
//! sealed without the PPK, because it carries the PPK's name.
//!
//! Each additional key exchange (RFC 9370) renews all of them before the peer is authenticated:
//!
//! ```text
//! SKEYSEED(n) = prf(SK_d(n-1), SK(n) | Ni | Nr)
//! ```
//!
//! A session that is resumed has no key exchange (RFC 5723 section 5.1):
//!
//! ```text
//! SKEYSEED = prf(SK_d of the lost IKE SA, "Resumption" | Ni | Nr)
//! ```
//!
//! With SKID3, the secret that is kept is a child of SK_d, and the keys come from it, from both
//! nonces and from the whole first message. The first message itself is sealed with keys of its own
//! (`extension/skid.rs`):
//!
//! ```text
//! secret = prf(SK_d of the lost IKE SA, "SKID3 secret")
//! SK_ai | SK_ei of the first message = prf+(secret, "SKID3 request" | Ni | SPIi)
//! SKEYSEED = prf(secret, "SKID3 keys" | Ni | Nr | SHA-256(first message) [| g^ir])
//! ```
//!
//! A rekeyed IKE SA has its SKEYSEED from the old SK_d (section 2.18), so the authentication of the
//! old one still counts. Each child SA has [`ChildKeys`]: the nonces of its exchange, the shared
//! secret of a key exchange if there was one (section 2.17), and the secrets of the follow-up key
//! exchanges.

use crate::auth::PeerProved;
use crate::cipher::{Cipher, CipherKeys};
use crate::prf::PrfKey;
use crypto::{Prf, Secret, sha256};
use model::{Kem, Suite};
use resumption::{Keys, Way};
use wire::ike::GroupId;

/// "10 ASCII characters, with no NULL terminator" (RFC 5723 section 5.1).
const RESUMPTION: &[u8] = b"Resumption";

/// Labels of SKID3: no two of them, and none of IKEv2's inputs, begin alike.
const SKID3_SECRET: &[u8] = b"SKID3 secret";
const SKID3_REQUEST: &[u8] = b"SKID3 request";
const SKID3_KEYS: &[u8] = b"SKID3 keys";

/// Inputs of both ends to the key schedule.
pub(crate) struct Inputs<'a> {
    pub(crate) suite: Suite,
    pub(crate) prf: Prf,
    pub(crate) nonce_i: &'a [u8],
    pub(crate) nonce_r: &'a [u8],
    pub(crate) spi_i: u64,
    pub(crate) spi_r: u64,
    /// True if we are the initiator.
    pub(crate) initiator: bool,
}

impl<'a> Inputs<'a> {
    /// Returns those of a session that is resumed, with nonces and SPIs of initiator and responder.
    pub(crate) const fn of_session(
        old: &Keys,
        nonces: [&'a [u8]; 2],
        spis: [u64; 2],
        initiator: bool,
    ) -> Self {
        let ([nonce_i, nonce_r], [spi_i, spi_r]) = (nonces, spis);
        Self {
            suite: old.suite,
            prf: old.prf,
            nonce_i,
            nonce_r,
            spi_i,
            spi_r,
            initiator,
        }
    }
}

/// Keys shared with a peer that is not yet authenticated.
pub(crate) struct UnprovedKeys {
    pub(crate) cipher: Cipher,
    pub(crate) nonce_i: Vec<u8>,
    pub(crate) nonce_r: Vec<u8>,
    pub(crate) roots: Roots,
}

/// Roots of the proofs and of all later keys.
pub(crate) struct Roots {
    sk_d: PrfKey,
    /// SK_pi and SK_pr, ours first.
    pub(crate) own_proof: PrfKey,
    pub(crate) peer_proof: PrfKey,
    /// True if a PPK is mixed in.
    pub(crate) ppk: bool,
    /// The additional key exchanges that are mixed in.
    pub(crate) kems: Vec<Kem>,
}

/// Keys shared with an authenticated peer.
pub(crate) struct ProvedKeys {
    pub(crate) cipher: Cipher,
    sk_d: PrfKey,
    nonces: Vec<u8>,
    /// The lower of both nonces, which decides between SAs that were established at the same time.
    pub(crate) lowest_nonce: Vec<u8>,
    /// True if SK_d includes a PPK, possibly through the rekeyed IKE SA.
    pub(crate) ppk: bool,
    /// The additional key exchanges that SK_d includes, possibly through the rekeyed IKE SA.
    pub(crate) kems: Vec<Kem>,
}

impl Roots {
    /// Returns the roots with a PPK mixed in.
    pub(crate) fn with_ppk(&self, ppk: &Secret) -> Self {
        Self {
            sk_d: self.sk_d.with_ppk(ppk),
            own_proof: self.own_proof.with_ppk(ppk),
            peer_proof: self.peer_proof.with_ppk(ppk),
            ppk: true,
            kems: self.kems.clone(),
        }
    }
}

impl UnprovedKeys {
    /// Derives the keys from the shared secret of a key exchange.
    pub(crate) fn derive(shared: &Secret, inputs: &Inputs<'_>) -> Self {
        let nonces = [inputs.nonce_i, inputs.nonce_r].concat();
        let skeyseed = inputs.prf.mac(&nonces, &[shared.expose()]);
        Self::expand(&skeyseed, &nonces, inputs)
    }

    /// Derives the keys of a session that is resumed, from those of the lost IKE SA. Suite and PRF
    /// have to be the same.
    pub(crate) fn resumed(old: &Keys, inputs: &Inputs<'_>) -> Self {
        let nonces = [inputs.nonce_i, inputs.nonce_r].concat();
        let skeyseed = inputs.prf.mac(old.secret.expose(), &[RESUMPTION, &nonces]);
        Self::expand_resumed(&skeyseed, &nonces, old, inputs)
    }

    /// The same by SKID3, with the octets of the first message and the shared secret of a key
    /// exchange, if there is one.
    pub(crate) fn resumed_by_skid(
        old: &Keys,
        first: &[u8],
        shared: Option<&Secret>,
        inputs: &Inputs<'_>,
    ) -> Self {
        let nonces = [inputs.nonce_i, inputs.nonce_r].concat();
        let shared = shared.map(Secret::expose).unwrap_or_default();
        let parts: [&[u8]; 4] = [SKID3_KEYS, &nonces, &sha256(&[first]), shared];
        let skeyseed = inputs.prf.mac(old.secret.expose(), &parts);
        Self::expand_resumed(&skeyseed, &nonces, old, inputs)
    }

    /// The secrets that went into the keys of the lost IKE SA went into these, too.
    fn expand_resumed(skeyseed: &Secret, nonces: &[u8], old: &Keys, inputs: &Inputs<'_>) -> Self {
        let mut keys = Self::expand(skeyseed, nonces, inputs);
        keys.roots.ppk = old.ppk;
        keys.roots.kems.clone_from(&old.kems);
        keys
    }

    /// Returns the inputs to the keys of the child SA that the second message of SKID3 agrees on.
    /// The child SA is created, and its keys are derived, once the peer is proved.
    pub(crate) fn first_child(&self) -> ChildKeys {
        ChildKeys {
            sk_d: self.roots.sk_d.clone(),
            exchanged: None,
            nonces: [self.nonce_i.as_slice(), &self.nonce_r].concat(),
            further: Vec::new(),
        }
    }

    fn expand(skeyseed: &Secret, nonces: &[u8], inputs: &Inputs<'_>) -> Self {
        let (spi_i, spi_r) = (inputs.spi_i.to_be_bytes(), inputs.spi_r.to_be_bytes());
        let mac_len = inputs.suite.mac_key_len();
        let cipher_len = inputs.suite.key_len() + inputs.suite.salt_len();
        let prf = inputs.prf;
        let length = 3 * prf.len() + 2 * mac_len + 2 * cipher_len;
        let mut keys = prf.plus(skeyseed.expose(), &[nonces, &spi_i, &spi_r], length);
        let mut next = |length| {
            keys.split_off_front(length)
                .expect("prf+ gave as many octets as asked for")
        };
        let sk_d = PrfKey::new(prf, next(prf.len()));
        let (sk_ai, sk_ar) = (next(mac_len), next(mac_len));
        let (sk_ei, sk_er) = (next(cipher_len), next(cipher_len));
        let (sk_pi, sk_pr) = (next(prf.len()), next(prf.len()));
        let (own_proof, peer_proof) = own_first(inputs.initiator, sk_pi, sk_pr);
        let keys = CipherKeys {
            sk_ai,
            sk_ar,
            sk_ei,
            sk_er,
        };
        Self {
            cipher: Cipher::new(inputs.suite, keys, inputs.initiator),
            nonce_i: inputs.nonce_i.to_vec(),
            nonce_r: inputs.nonce_r.to_vec(),
            roots: Roots {
                sk_d,
                own_proof: PrfKey::new(prf, own_proof),
                peer_proof: PrfKey::new(prf, peer_proof),
                ppk: false,
                kems: Vec::new(),
            },
        }
    }

    /// Returns the keys after an additional key exchange (RFC 9370 section 2.2.2). SPIs and role
    /// have to be those of the first keys.
    pub(crate) fn renewed(
        &self,
        kem: Kem,
        shared: Secret,
        spi_i: u64,
        spi_r: u64,
        initiator: bool,
    ) -> Self {
        let inputs = Inputs {
            suite: self.cipher.suite,
            prf: self.roots.sk_d.prf,
            nonce_i: &self.nonce_i,
            nonce_r: &self.nonce_r,
            spi_i,
            spi_r,
            initiator,
        };
        let nonces = [inputs.nonce_i, inputs.nonce_r].concat();
        let sk_d = &self.roots.sk_d;
        let seed = sk_d.mac(&[shared.expose(), &nonces]);
        let mut keys = Self::expand(&seed, &nonces, &inputs);
        keys.roots.kems.clone_from(&self.roots.kems);
        keys.roots.kems.push(kem);
        keys
    }

    /// Turns the keys into those of an authenticated peer.
    pub(crate) fn proved(self, _: &PeerProved) -> ProvedKeys {
        ProvedKeys {
            cipher: self.cipher,
            sk_d: self.roots.sk_d,
            ppk: self.roots.ppk,
            kems: self.roots.kems,
            lowest_nonce: self.nonce_i.clone().min(self.nonce_r.clone()),
            nonces: [self.nonce_i, self.nonce_r].concat(),
        }
    }
}

impl ProvedKeys {
    /// Returns the keys that resume the session once the IKE SA is lost.
    pub(crate) fn kept(&self, way: Way) -> Keys {
        Keys {
            way,
            suite: self.cipher.suite,
            prf: self.sk_d.prf,
            kems: self.kems.clone(),
            ppk: self.ppk,
            secret: match way {
                Way::Ticket => self.sk_d.secret().clone(),
                Way::Skid3 | Way::Skid3Pfs => self.sk_d.mac(&[SKID3_SECRET]),
            },
        }
    }

    /// Returns the inputs to the keys of the child SA that IKE_AUTH creates.
    pub(crate) fn first_child(&self) -> ChildKeys {
        ChildKeys {
            sk_d: self.sk_d.clone(),
            exchanged: None,
            nonces: self.nonces.clone(),
            further: Vec::new(),
        }
    }

    /// Returns the inputs to the keys of a child SA that CREATE_CHILD_SA creates.
    pub(crate) fn child(
        &self,
        exchanged: Option<(GroupId, Secret)>,
        nonce_i: &[u8],
        nonce_r: &[u8],
    ) -> ChildKeys {
        ChildKeys {
            sk_d: self.sk_d.clone(),
            exchanged,
            nonces: [nonce_i, nonce_r].concat(),
            further: Vec::new(),
        }
    }

    /// SKEYSEED = prf(SK_d (old), g^ir (new) | Ni | Nr) (RFC 7296 section 2.18), followed by the
    /// secrets of additional key exchanges in their order (RFC 9370 section 2.2.4). The old SK_d
    /// already includes the PPK, which must not be mixed in again (RFC 8784 section 3).
    pub(crate) fn successor(
        &self,
        shared: &Secret,
        further: &[(Kem, Secret)],
        inputs: &Inputs<'_>,
    ) -> Self {
        let nonces = [inputs.nonce_i, inputs.nonce_r].concat();
        let mut parts = vec![shared.expose(), &nonces];
        parts.extend(further.iter().map(|(_, secret)| secret.expose()));
        let seed = self.sk_d.mac(&parts);
        let mut kems = self.kems.clone();
        let others = further.iter().map(|(kem, _)| *kem);
        kems.extend(others.filter(|kem| !self.kems.contains(kem)));
        let keys = UnprovedKeys::expand(&seed, &nonces, inputs);
        Self {
            cipher: keys.cipher,
            sk_d: keys.roots.sk_d,
            ppk: self.ppk,
            kems,
            nonces,
            lowest_nonce: inputs.nonce_i.min(inputs.nonce_r).to_vec(),
        }
    }
}

#[cfg(test)]
impl ProvedKeys {
    /// For tests that derive keys on their own.
    pub(crate) fn sk_d(&self) -> &[u8] {
        self.sk_d.expose()
    }
}

/// Returns the cipher of SKID3's first message, which its initiator seals.
pub(crate) fn first_cipher(old: &Keys, nonce_i: &[u8], spi_i: u64, initiator: bool) -> Cipher {
    let mac_len = old.suite.mac_key_len();
    let cipher_len = old.suite.key_len() + old.suite.salt_len();
    let parts: [&[u8]; 3] = [SKID3_REQUEST, nonce_i, &spi_i.to_be_bytes()];
    let secret = old.secret.expose();
    let mut keys = old.prf.plus(secret, &parts, mac_len + cipher_len);
    let mut next = |length| {
        keys.split_off_front(length)
            .expect("prf+ gave as many octets as asked for")
    };
    let (sk_ai, sk_ei) = (next(mac_len), next(cipher_len));
    let keys = CipherKeys {
        sk_ar: sk_ai.clone(),
        sk_er: sk_ei.clone(),
        sk_ai,
        sk_ei,
    };
    Cipher::new(old.suite, keys, initiator)
}

/// Inputs to the keys of one child SA.
pub(crate) struct ChildKeys {
    sk_d: PrfKey,
    /// The key exchange of the exchange that carried the nonces.
    exchanged: Option<(GroupId, Secret)>,
    nonces: Vec<u8>,
    /// The secrets of the additional key exchanges.
    further: Vec<(Kem, Secret)>,
}

impl ChildKeys {
    /// Returns the groups that may be chosen: that of the key exchange.
    pub(crate) fn groups(&self) -> Vec<GroupId> {
        self.exchanged.iter().map(|(group, _)| *group).collect()
    }

    /// Returns the inputs with the negotiated group: the key exchange is dropped if `group` is
    /// `None`. Returns `None` if the negotiated group differs from the exchanged one.
    pub(crate) fn settled(self, group: Option<GroupId>) -> Option<Self> {
        let exchanged = self.exchanged.filter(|(with, _)| Some(*with) == group);
        (exchanged.is_some() == group.is_some()).then_some(Self { exchanged, ..self })
    }

    /// Returns the inputs with the secrets of all additional key exchanges.
    pub(crate) fn with(self, further: Vec<(Kem, Secret)>) -> Self {
        Self { further, ..self }
    }

    /// Returns the length of the PRF's output, in octets.
    pub(crate) const fn prf_len(&self) -> usize {
        self.sk_d.prf.len()
    }

    /// KEYMAT = prf+(SK_d, [g^ir (new) |] Ni | Nr | extra) (RFC 7296 section 2.17; `extra` binds
    /// zones), with the secrets of additional key exchanges after the nonces (RFC 9370 section
    /// 2.2.4).
    pub(crate) fn keymat(&self, extra: &[u8], length: usize) -> Secret {
        let shared = self.exchanged.as_ref().map(|(_, shared)| shared.expose());
        let mut parts = vec![shared.unwrap_or_default(), &self.nonces];
        parts.extend(self.further.iter().map(|(_, secret)| secret.expose()));
        parts.push(extra);
        self.sk_d.plus(&parts, length)
    }
}

#[cfg(test)]
impl ChildKeys {
    /// Made-up inputs for tests.
    pub(crate) fn made_up() -> Self {
        Self {
            sk_d: PrfKey::new(Prf::HmacSha256, Secret::new(vec![9; 32])),
            exchanged: None,
            nonces: vec![5; 64],
            further: Vec::new(),
        }
    }

    /// Returns the inputs to the keys of the first child SA, as a thief of SK_d has them.
    pub(crate) fn first(sk_d: Secret, nonces: Vec<u8>) -> Self {
        Self {
            sk_d: PrfKey::new(Prf::HmacSha256, sk_d),
            nonces,
            ..Self::made_up()
        }
    }

    /// Returns the inputs of a test vector.
    pub(crate) fn known(sk_d: Vec<u8>, shared: Vec<u8>, nonces: Vec<u8>) -> Self {
        Self {
            sk_d: PrfKey::new(Prf::HmacSha256, Secret::new(sk_d)),
            exchanged: Some((GroupId::CURVE25519, Secret::new(shared))),
            nonces,
            further: Vec::new(),
        }
    }
}

/// Orders the initiator's and the responder's value as ours and the peer's.
pub(crate) fn own_first<T>(initiator: bool, of_i: T, of_r: T) -> (T, T) {
    match initiator {
        true => (of_i, of_r),
        false => (of_r, of_i),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Sha2;

    fn derive(initiator: bool) -> UnprovedKeys {
        derive_for(Suite::Aes128Gcm16, initiator)
    }

    fn derive_for(suite: Suite, initiator: bool) -> UnprovedKeys {
        let inputs = Inputs {
            suite,
            prf: Prf::HmacSha256,
            nonce_i: &[1; 32],
            nonce_r: &[2; 16],
            spi_i: 0x1111_1111_1111_1111,
            spi_r: 0x2222_2222_2222_2222,
            initiator,
        };
        UnprovedKeys::derive(&Secret::new(vec![3; 32]), &inputs)
    }

    fn hex(octets: &[u8]) -> String {
        octets.iter().map(|o| format!("{o:02x}")).collect()
    }

    fn proved() -> ProvedKeys {
        with_roots(|roots| roots)
    }

    fn with_roots(of: impl FnOnce(Roots) -> Roots) -> ProvedKeys {
        let mut keys = derive(true);
        keys.roots = of(keys.roots);
        ProvedKeys {
            cipher: keys.cipher,
            sk_d: keys.roots.sk_d,
            ppk: keys.roots.ppk,
            kems: keys.roots.kems,
            nonces: Vec::new(),
            lowest_nonce: Vec::new(),
        }
    }

    /// Shared secret of a renewal.
    fn agreed() -> Secret {
        Secret::new(vec![4; 32])
    }

    fn renewal() -> Inputs<'static> {
        Inputs {
            suite: Suite::Aes128Gcm16,
            prf: Prf::HmacSha256,
            nonce_i: &[5; 32],
            nonce_r: &[6; 32],
            spi_i: 0x3333_3333_3333_3333,
            spi_r: 0x4444_4444_4444_4444,
            initiator: true,
        }
    }

    /// The expected values come from Python's hmac module.
    #[test]
    fn a_ppk_is_stirred_into_the_roots_as_rfc_8784_section_3_has_it() {
        let keys = derive(true);
        let roots = keys.roots.with_ppk(&Secret::new(vec![10; 43]));
        assert_eq!(
            hex(roots.sk_d.expose()),
            "0942cc97776ff0b35391d74f8efc6efbf34c50ab3747a8b452b569945ff71bf9"
        );
        assert_eq!(
            hex(roots.own_proof.expose()),
            "09c378f030074e9cb342d22846b38db8578de345f3ecee18e3634d6fcf6ec2c9"
        );
        assert_eq!(
            hex(roots.peer_proof.expose()),
            "bcb92567ab5abfc0f8b3a11cf0fd15a0f9f0605c31fa3dc97f1c090ec57d877a"
        );
        assert!(roots.ppk && !keys.roots.ppk);
    }

    /// "It MUST NOT be used when these subkeys are calculated as result of IKE SA rekey": the value
    /// from Python's hmac module includes the PPK only through the old SK_d.
    #[test]
    fn a_ppk_is_not_stirred_in_once_more_by_a_rekey() {
        let ppk = Secret::new(vec![10; 43]);
        let successor =
            with_roots(|roots| roots.with_ppk(&ppk)).successor(&agreed(), &[], &renewal());
        assert_eq!(
            hex(successor.sk_d.expose()),
            "295e63615fd86f05f70ec59705370c2cc6c58722335d2939849e4ec7f4d9f81a"
        );
        assert!(successor.ppk && !proved().successor(&agreed(), &[], &renewal()).ppk);
    }

    /// The expected values come from Python's hmac module, after the first and the second exchange.
    #[test]
    fn an_additional_key_exchange_renews_all_keys_as_rfc_9370_section_2_2_2_has_it() {
        let (spi_i, spi_r) = (0x1111_1111_1111_1111, 0x2222_2222_2222_2222);
        let first = derive(true);
        let second = first.renewed(Kem::MlKem768, Secret::new(vec![12; 32]), spi_i, spi_r, true);
        let third = second.renewed(
            Kem::MlKem1024,
            Secret::new(vec![13; 32]),
            spi_i,
            spi_r,
            true,
        );
        let of = |keys: &UnprovedKeys| {
            let (roots, sk_ei) = (&keys.roots, &keys.cipher.keys.sk_ei);
            [
                roots.sk_d.expose(),
                sk_ei.expose(),
                roots.own_proof.expose(),
            ]
            .map(hex)
        };
        assert_eq!(
            of(&second),
            [
                "7f83a09deec7f6f926635260d084400b20cca7cb09e2f9be9afcd1e762fff70d",
                "b74e0cbeec86bd6584abca0f8cdb61c3d5fb5c6e",
                "7397f3d42f813ebdfc8de76449500f28579fd1ef160403a3e9dc13ce5552bdd6"
            ]
        );
        assert_eq!(
            of(&third),
            [
                "96a70c70655b98497163085077f8718be69297fbcbe3ed6734a33527ba8ca5ee",
                "223996bc49fb1de773bdaffad71b83013366b6c6",
                "3d0ce97a29e4d7e019fb85166f5aa055f6d7ad652e10eeafcbb882a6dc808c9b"
            ]
        );
        assert_eq!(third.roots.kems, [Kem::MlKem768, Kem::MlKem1024]);
        let responders = derive(false).renewed(
            Kem::MlKem768,
            Secret::new(vec![12; 32]),
            spi_i,
            spi_r,
            false,
        );
        let (theirs, ours) = (responders.roots.peer_proof, second.roots.own_proof);
        assert_eq!(theirs.expose(), ours.expose());
    }

    /// The expected value comes from Python's hmac module.
    #[test]
    fn a_successors_schedule_is_that_of_rfc_7296_section_2_18() {
        let successor = proved().successor(&agreed(), &[], &renewal());
        assert_eq!(
            hex(successor.sk_d.expose()),
            "0a65b3b84a6f4a05fb3558ae3b13cd66c7f5a50a7db93ac36242ddeb40e7e1c8"
        );
        assert_eq!(
            hex(successor.cipher.keys.sk_ei.expose()),
            "faaf90fb9dfcc8b4ad0352b4026c6729b85d1b56"
        );
    }

    /// The expected values come from Python's hmac module.
    #[test]
    fn further_secrets_are_in_a_successors_keys_as_rfc_9370_section_2_2_4_has_it() {
        let secret = |octet| Secret::new(vec![octet; 32]);
        let further = [(Kem::MlKem768, secret(12)), (Kem::MlKem1024, secret(13))];
        let successor = proved().successor(&agreed(), &further, &renewal());
        assert_eq!(
            hex(successor.sk_d.expose()),
            "60baecedfda4f2dd8b8363d45001b7d04f4c2cb41b3f94182f9c67d9d2fe7eaa"
        );
        assert_eq!(
            hex(successor.cipher.keys.sk_ei.expose()),
            "85560ecc38d55f2ff151dd89e853c4733fea0aa8"
        );
        assert_eq!(successor.kems, [Kem::MlKem768, Kem::MlKem1024]);
    }

    /// The expected value comes from Python's hmac module.
    #[test]
    fn keymat_with_a_key_exchange_is_that_of_rfc_7296_section_2_17() {
        let keys = proved();
        let exchanged = (GroupId::CURVE25519, Secret::new(vec![7; 32]));
        let child = keys.child(Some(exchanged), &[8; 32], &[9; 32]);
        assert_eq!(
            hex(child.keymat(&[], 40).expose()),
            "f64182ac1d365aecd8013e6ae276409200fe019cbf2fd3666be7b4b13cc796f48dbdaad12aba04de"
        );
    }

    /// The expected values come from Python's hmac module: with one further secret, with two in
    /// this order, and with the binding of zones after them.
    #[test]
    fn further_secrets_are_in_keymat_as_rfc_9370_section_2_2_4_has_it() {
        let secret = |octet| Secret::new(vec![octet; 32]);
        let both = || vec![(Kem::MlKem768, secret(12)), (Kem::MlKem1024, secret(13))];
        let one = || vec![(Kem::MlKem768, secret(12))];
        let keys = proved();
        let keymat = |further, extra: &[u8]| {
            let exchanged = (GroupId::CURVE25519, Secret::new(vec![7; 32]));
            let child = keys.child(Some(exchanged), &[8; 32], &[9; 32]);
            hex(child.with(further).keymat(extra, 40).expose())
        };
        assert_eq!(
            [
                keymat(one(), &[]),
                keymat(both(), &[]),
                keymat(one(), &[5; 3])
            ],
            [
                "4bd6d9de88d1a995c175158294b705ba1784a5492f6c1ddc61a8919d9f681587cf5ea27bff57a989",
                "ec0a605c48bd017952cffe459fa88c719334f8ca8bd780b8cd3f860ea7d43ce50cb2dfbafc4af724",
                "a0ef2278bdcb010a398205f78c8d4532cbf0680c3f0a0368a6b39a65f672d2b160a1a29025c05dcc"
            ]
        );
    }

    #[test]
    fn a_key_exchange_that_was_not_chosen_does_not_count() {
        let keys = proved();
        let exchanged = || Some((GroupId::CURVE25519, Secret::new(vec![7; 32])));
        let plain = keys.child(None, &[8; 32], &[9; 32]).keymat(&[], 20);
        let settle = |group| keys.child(exchanged(), &[8; 32], &[9; 32]).settled(group);
        let unused = settle(None).unwrap().keymat(&[], 20);
        let used = settle(Some(GroupId::CURVE25519)).unwrap().keymat(&[], 20);
        assert!(unused == plain && used != plain);
        assert!(settle(Some(GroupId::SECP256R1)).is_none());
        let nothing = keys.child(None, &[8; 32], &[9; 32]);
        assert!(nothing.settled(Some(GroupId::CURVE25519)).is_none());
    }

    /// The expected values come from an implementation of RFC 7296 section 2.14 in Python that uses
    /// only its hmac module.
    #[test]
    fn the_schedule_is_that_of_rfc_7296_section_2_14() {
        let keys = derive(true);
        assert_eq!(
            hex(keys.roots.sk_d.expose()),
            "3f85176c0bb4967f4cd998ce64d11e1be11811abd18d296c05da2ed6a1a122fa"
        );
        assert_eq!(
            hex(keys.cipher.keys.sk_ei.expose()),
            "c89fdfbe380f13cb18b7f7a51c543eade3c3b94e"
        );
        assert_eq!(
            hex(keys.cipher.keys.sk_er.expose()),
            "eb17d8052c7a53809f9270a0228cd17f7c59540a"
        );
        assert_eq!(
            hex(keys.roots.own_proof.expose()),
            "7bb2737b7cc161d5259b4ac350aa1b0aae9794f2964830612852b343375458cf"
        );
        assert_eq!(
            hex(keys.roots.peer_proof.expose()),
            "0f2eaa096ba696937227e210b69854329373b06b28132d0bf41657113d644886"
        );
    }

    /// The expected values come from Python's hmac module.
    #[test]
    fn the_schedule_of_a_resumed_session_is_that_of_rfc_5723_section_5_1() {
        let old = Keys {
            way: Way::Ticket,
            suite: Suite::Aes128Gcm16,
            prf: Prf::HmacSha256,
            kems: vec![Kem::MlKem768],
            ppk: true,
            secret: Secret::new(vec![7; 32]),
        };
        let keys = UnprovedKeys::resumed(&old, &renewal());
        assert_eq!(
            hex(keys.roots.sk_d.expose()),
            "301cc5879b472a06dbe9723f3f7207316a4dd9e0141fa7f9e8263d6ac18d73d2"
        );
        assert_eq!(
            hex(keys.cipher.keys.sk_ei.expose()),
            "f2c36099a8b2a59951ab927401c5a4bc30ff23ba"
        );
        assert_eq!(
            hex(keys.roots.own_proof.expose()),
            "ebbbe4e8ae6a4d46486d597ab242c4531e9d108dddf93b39a73cace1f038f7a1"
        );
        let proved = keys.proved(&PeerProved::by_signature(Vec::new()));
        let kept = proved.kept(Way::Ticket);
        assert_eq!((kept.ppk, &kept.kems), (true, &old.kems));
        assert_ne!(
            kept.secret, old.secret,
            "each session has a secret of its own"
        );
    }

    /// The expected values come from Python's hmac module.
    #[test]
    fn the_schedule_of_skid_is_that_of_the_protocol() {
        let lost = derive(true).proved(&PeerProved::by_signature(Vec::new()));
        let old = lost.kept(Way::Skid3);
        assert_eq!(
            hex(old.secret.expose()),
            "d01599cced68af2463b524d7e857e5ce973e4211dfc9f3686ee28b66694165a1"
        );
        let cipher = first_cipher(&old, &[5; 32], 0x3333_3333_3333_3333, true);
        assert_eq!(
            hex(cipher.keys.sk_ei.expose()),
            "93e0ddae9b9ac1c4a6da9d305620daaa033bbaaf"
        );
        let keys = UnprovedKeys::resumed_by_skid(&old, b"first message", None, &renewal());
        assert_eq!(
            hex(keys.roots.sk_d.expose()),
            "ffc193e61dd422e8a86a5155d3813dbca8248f4bb710cb2837ebb0ca511ae8cf"
        );
        assert_eq!(
            hex(keys.cipher.keys.sk_er.expose()),
            "6eef7bd07cbf5df5c85d80bea416f51066766e96"
        );
        assert_eq!(
            hex(keys.roots.own_proof.expose()),
            "47add03692e43300a812c5a0a436dad3779db93e5f97d0d1baf92ee8fa0c0a14"
        );
        let child = keys.first_child().keymat(&[], 16);
        let proved = keys.proved(&PeerProved::by_answer(Vec::new()));
        assert_eq!(child, proved.first_child().keymat(&[], 16));
    }

    /// The same schedule with HMAC keys between SK_d and SK_ei.
    #[test]
    fn keys_of_an_hmac_come_before_those_of_the_cipher() {
        let keys = derive_for(Suite::Aes256Cbc(Sha2::Sha384), true);
        let CipherKeys {
            sk_ai,
            sk_ar,
            sk_ei,
            sk_er,
        } = &keys.cipher.keys;
        let roots = &keys.roots;
        let (sk_d, sk_p) = (roots.sk_d.expose(), roots.own_proof.expose());
        let [sk_ai, sk_ar, sk_ei, sk_er] = [sk_ai, sk_ar, sk_ei, sk_er].map(Secret::expose);
        let taken = [sk_d, sk_ai, sk_ar, sk_ei, sk_er, sk_p];
        assert_eq!(taken.map(<[u8]>::len), [32, 48, 48, 32, 32, 32]);
        assert_eq!(
            taken.map(hex).concat(),
            concat!(
                "3f85176c0bb4967f4cd998ce64d11e1be11811abd18d296c05da2ed6a1a122fac89fdfbe380f13cb",
                "18b7f7a51c543eade3c3b94eeb17d8052c7a53809f9270a0228cd17f7c59540a7bb2737b7cc161d5",
                "259b4ac350aa1b0aae9794f2964830612852b343375458cf0f2eaa096ba696937227e210b6985432",
                "9373b06b28132d0bf41657113d644886b57c0695b66c23c0b3948effa7190c3ae4b2bae05d59ebb4",
                "fdd58ce16d9d8bfc7a1082f150f2b43fb22ada980078a004c133facb8f393db0dfe0bba2709a4428",
                "9561132e4088c93657847afce62ce47a5260062c5e131335"
            )
        );
    }

    #[test]
    fn both_ends_order_the_keys_alike() {
        let (ours, theirs) = (derive(true), derive(false));
        assert_eq!(
            ours.roots.own_proof.expose(),
            theirs.roots.peer_proof.expose()
        );
        assert_eq!(ours.cipher.keys.sk_ei, theirs.cipher.keys.sk_ei);
    }
}
