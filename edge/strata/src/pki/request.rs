//! Certificate signing requests: made for a key of this host, or checked before a CA certifies
//! their key.

use super::authority::HostKey;
use super::key::{Key, new_key};
use super::{folder, names};
use control::Failure;
use crypto::{CertificateRequest, KeyKind};
use model::Identity;
use rcgen::{CertificateParams, DistinguishedName, DnType};
use std::path::Path;
use zeroize::Zeroizing;

/// A new request.
pub(super) struct Request {
    /// The request in PEM.
    pub(super) pem: String,
    /// Its names and its key.
    pub(super) content: CertificateRequest,
    /// The private key, as PKCS #8 in DER.
    pub(super) key: Zeroizing<Vec<u8>>,
}

/// Creates a key and a request for its certificate.
pub(super) fn new(host: &[Identity], kind: KeyKind) -> Result<Request, Failure> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if let Some(id) = host.first() {
        let subject = &mut params.distinguished_name;
        subject.push(DnType::CommonName, id.to_string());
    }
    params.subject_alt_names = names::alternatives(host, false).map_err(unfit)?;
    let (private, key) = new_key(kind)?;
    let request = params.serialize_request(&Key::new(private));
    let request = request.map_err(unfit)?;
    Ok(Request {
        pem: pem::encode(&pem::Pem::new(
            "CERTIFICATE REQUEST",
            request.der().to_vec(),
        )),
        content: CertificateRequest::from_der(request.der()).map_err(unfit)?,
        key,
    })
}

/// Returns the key of a request, whose signature was verified, and the names that it asks for.
pub(super) fn open(file: &Path) -> Result<(HostKey, Vec<Identity>), Failure> {
    let request = folder::request(file)?;
    let names = request.names.iter().map(names::identity).collect();
    Ok((HostKey::Requested(request.key), names))
}

fn unfit(error: impl std::fmt::Display) -> Failure {
    Failure::new(
        format!("cannot create the request: {error}"),
        "use other names",
    )
}
