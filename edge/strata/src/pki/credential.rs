//! Keys and certificates for the verbs that write configurations.

use super::authority::{Authority, Host, HostKey, new_authority};
use super::{folder, inventory, key, names};
use crate::files::{self, New};
use control::Failure;
use crypto::{Certificate, KeyKind};
use model::Identity;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Validity of a new CA, and of a host's certificate, in days.
const CA_DAYS: u64 = 3650;
const HOST_DAYS: u64 = 365;

/// A key with its certificate.
pub struct Credential {
    /// The certificate and the intermediate ones in PEM.
    pub chain: String,
    /// The private key, as PKCS #8 in DER.
    pub key: Zeroizing<Vec<u8>>,
    /// The certificate.
    pub certificate: Certificate,
}

/// A key without a certificate.
pub struct NewKey {
    /// The private key, as PKCS #8 in DER.
    pub key: Zeroizing<Vec<u8>>,
    /// The public key in PEM.
    pub public: String,
}

impl NewKey {
    /// Generates an ECDSA P-256 key.
    pub fn generate() -> Result<Self, Failure> {
        let (private, key) = key::new_key(KeyKind::P256)?;
        let public = folder::public(&private);
        Ok(Self { key, public })
    }
}

impl Credential {
    /// Creates a root CA in a folder, as `strata pki ca` does. Returns its files.
    pub fn found(ca: &Path, name: &str) -> Result<Vec<PathBuf>, Failure> {
        let issued = new_authority(name, None, KeyKind::P256, CA_DAYS)?;
        let chain: String = issued.chain.iter().map(folder::encoded).collect();
        let key = issued.key.as_ref();
        let key = key.map(|der| New::key("ca.key", der));
        let files: Vec<_> = key
            .into_iter()
            .chain([New::public("ca.pem", &chain)])
            .collect();
        files::save(ca, &files)
    }

    /// Issues a certificate with a new key, as `strata pki issue` does. A gateway has further
    /// names, and its certificate is one that other clients accept too.
    pub fn issue(
        ca: &Path,
        id: &Identity,
        also: &[Identity],
        is_gateway: bool,
    ) -> Result<Self, Failure> {
        let host = Host {
            names: names::of_host(id, also)?,
            unit: None,
            is_gateway,
            key: HostKey::New(KeyKind::P256),
        };
        host.check()?;
        let issued = Authority::open(ca)?.issue(&host, HOST_DAYS)?;
        inventory::record(ca, &issued.chain[0])?;
        let chain = issued.chain.iter().map(folder::encoded).collect();
        Ok(Self {
            chain,
            key: issued.key.unwrap_or_default(),
            certificate: issued.chain[0].clone(),
        })
    }

    /// Refuses an identity that a certificate cannot have.
    pub fn check(id: &Identity) -> Result<(), Failure> {
        names::of_host(id, &[]).map(drop)
    }
}
