//! Certificates and private keys of strongSwan, which its configuration does not name: it uses all
//! files of some folders.

use config::PrivateKey;
use crypto::{Certificate, PublicKey, RawKey};
use import::{Draft, Found};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Folders of private keys, beside that of certificates.
const PRIVATE: [&str; 4] = ["private", "rsa", "ecdsa", "pkcs8"];
/// Folders of CAs.
const AUTHORITIES: [&str; 2] = ["x509ca", "cacerts"];

/// Finds the private key of our certificate or public key, and the CAs. Notes what is missing.
pub(super) fn find(draft: &mut Draft) -> Found {
    let mut found = Found::default();
    if let Some(own) = draft.certificate.clone() {
        let certificate = certificates(Path::new(&own)).into_iter().next();
        let key = certificate.and_then(|certificate| certificate.key);
        found.key = key.and_then(|key| private_key(Path::new(&own), &key));
        if found.key.is_none() {
            let why = "no readable private key belongs to it: write `key` of [node]";
            draft.note_missing(&own, why);
        }
    } else if let Some(own) = draft.public_key.clone() {
        let key = std::fs::read(&own).ok();
        let key = key.and_then(|pem| RawKey::from_pem(&pem).ok());
        found.key = key.and_then(|key| private_key(Path::new(&own), key.key()));
        if found.key.is_none() {
            let why = "no readable private key belongs to it: write `key` of [node]";
            draft.note_missing(&own, why);
        }
    }
    if draft.needs_certificate && draft.certificate.is_none() {
        let why = "the file names no certificate of this host: write `cert` and `key` of [node]";
        draft.note_missing("certs", why);
    }
    if draft.needs_authorities {
        found.ca = authorities(draft);
        if found.ca.is_empty() {
            let why = "there is no CA beside the certificate: write `ca` of [node]";
            draft.note_missing("cacerts", why);
        }
    }
    found
}

/// Returns all CAs beside our certificate.
fn authorities(draft: &Draft) -> Vec<String> {
    let Some(own) = &draft.certificate else {
        return Vec::new();
    };
    let files = AUTHORITIES
        .iter()
        .flat_map(|folder| beside(Path::new(own), folder));
    let is_ca = |file: &PathBuf| certificates(file).iter().any(|one| one.is_ca);
    let files = files.filter(is_ca);
    files.map(|file| file.display().to_string()).collect()
}

fn private_key(own: &Path, public: &PublicKey) -> Option<String> {
    let files = PRIVATE.iter().flat_map(|folder| beside(own, folder));
    let mut files = files.filter(|file| {
        let pem = std::fs::read(file).map(Zeroizing::new).ok();
        let key = pem.and_then(|pem| PrivateKey::from_pem(&pem));
        key.is_some_and(|key| key.public() == public)
    });
    files.next().map(|file| file.display().to_string())
}

/// Returns the files of a folder beside that of a file.
fn beside(file: &Path, folder: &str) -> Vec<PathBuf> {
    let parent = file
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("/"));
    let folder = parent.join(folder);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn certificates(file: &Path) -> Vec<Certificate> {
    let pem = std::fs::read(file).unwrap_or_default();
    Certificate::all_from_pem(&pem).unwrap_or_default()
}
