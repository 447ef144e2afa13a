//! Certificates for scenes that authenticate with them, created by openssl for the tests of `ike`
//! and valid in
//! 2030. Ed25519 signatures are deterministic, so the twin of a handshake sends the same messages.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use crypto::{Certificate, RawKey, SignatureAlgorithm, TrustStore, UnixTime};
use ike::{Credential, Signer};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use std::sync::Arc;

/// 2030-03-17.
pub const TODAY: UnixTime = UnixTime(1_900_000_000);

const CA: &[u8] = include_bytes!("../../../ike/src/tests/certificates/ca.pem");
const GATEWAY: &[u8] = include_bytes!("../../../ike/src/tests/certificates/gateway.pem");
const GATEWAY_KEY: &[u8] = include_bytes!("../../../ike/src/tests/certificates/gateway.key");
const MIDDLE: &[u8] = include_bytes!("../../../ike/src/tests/certificates/middle.pem");
const MOBILE: &[u8] = include_bytes!("../../../ike/src/tests/certificates/mobile-middle.pem");
const MOBILE_KEY: &[u8] = include_bytes!("../../../ike/src/tests/certificates/mobile-middle.key");

/// Returns the credential of `mobile.example.net`, issued by an intermediate.
pub fn mobile() -> Credential {
    credential(&[MOBILE, MIDDLE], MOBILE_KEY)
}

/// Returns the credential of `gateway.example.net`.
pub fn gateway() -> Credential {
    credential(&[GATEWAY], GATEWAY_KEY)
}

/// Returns the trust store of both ends.
pub fn trust() -> TrustStore {
    TrustStore::new(certificates(CA))
}

/// Returns the certificates of a PEM file.
pub fn certificates(pem: &[u8]) -> Vec<Certificate> {
    Certificate::all_from_pem(pem).expect("openssl made it")
}

fn credential(chain: &[&[u8]], key: &[u8]) -> Credential {
    let key = PrivateKeyDer::from_pem_slice(key).expect("openssl made it");
    let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.secret_der());
    let key = key.expect("it is for Ed25519");
    let public: PublicKeyX509Der<'_> = key.public_key().as_der().expect("it was read");
    let chain = chain.iter().flat_map(|pem| certificates(pem));
    Credential {
        chain: chain.map(|certificate| certificate.der).collect(),
        key: RawKey::from_der(public.as_ref()).expect("it is for Ed25519"),
        algorithm: SignatureAlgorithm::Ed25519,
        signer: Arc::new(Key(key)),
    }
}

#[derive(Debug)]
struct Key(Ed25519KeyPair);

impl Signer for Key {
    fn sign(&self, octets: &[u8]) -> Option<Vec<u8>> {
        Some(self.0.sign(octets).as_ref().to_vec())
    }
}
