//! Files that are read, and those of a CA that change.

use crate::files::write;
use config::PrivateKey;
use control::Failure;
use crypto::{BadRequest, Certificate, CertificateRequest, RevocationList};
use pem::Pem;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Name of a CA's revocation list.
const LIST: &str = "ca.crl";

/// Reads the certificates of a PEM file, at least one.
pub(super) fn certificates(file: &Path) -> Result<Vec<Certificate>, Failure> {
    let text = fs::read(file).map_err(|error| unreadable(file, &error))?;
    Certificate::all_from_pem(&text).map_err(|_| {
        Failure::new(
            format!("there is no X.509 certificate in {}", file.display()),
            "name a PEM file with `-----BEGIN CERTIFICATE-----`",
        )
    })
}

/// Reads the private key of a PEM file.
pub(super) fn key(file: &Path) -> Result<PrivateKey, Failure> {
    let text = fs::read(file).map_err(|error| unreadable(file, &error))?;
    PrivateKey::from_pem(&Zeroizing::new(text)).ok_or_else(|| {
        Failure::new(
            format!(
                "{} holds no private key for ECDSA P-256 or P-384, Ed25519, or RSA of 2048 bits or more",
                file.display()
            ),
            "name a file made by `strata pki`",
        )
    })
}

/// Returns the PKCS #8 in DER of the private key of a PEM file.
pub(super) fn key_der(file: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let sections = pem::parse_many(text(file)?.as_bytes()).unwrap_or_default();
    let mut keys = sections
        .into_iter()
        .filter(|one| one.tag() == "PRIVATE KEY");
    let der = keys.next().map(|one| Zeroizing::new(one.into_contents()));
    der.ok_or_else(|| {
        Failure::new(
            format!("the private key in {} is not in PKCS #8", file.display()),
            "convert it with `openssl pkcs8 -topk8 -nocrypt`",
        )
    })
}

/// Reads a file of text.
pub(super) fn text(file: &Path) -> Result<Zeroizing<String>, Failure> {
    let text = fs::read_to_string(file).map(Zeroizing::new);
    text.map_err(|error| unreadable(file, &error))
}

/// Reads the certificate signing request of a PEM file, and verifies its signature.
pub(super) fn request(file: &Path) -> Result<CertificateRequest, Failure> {
    let text = fs::read(file).map_err(|error| unreadable(file, &error))?;
    CertificateRequest::from_pem(&text).map_err(|error| {
        let fix = match error {
            BadRequest::Unreadable => "name a PEM file with `-----BEGIN CERTIFICATE REQUEST-----`",
            BadRequest::UnknownKey => "make the request for a key of another kind",
            BadRequest::Forged => "get the request again from its sender, and compare it",
        };
        Failure::new(format!("{}: {error}", file.display()), fix)
    })
}

/// Returns true if a PEM file has a certificate signing request, good or not.
pub(super) fn is_request(file: &Path) -> bool {
    const MARK: &[u8] = b"-----BEGIN CERTIFICATE REQUEST-----";
    let text = fs::read(file).unwrap_or_default();
    text.windows(MARK.len()).any(|window| window == MARK)
}

/// Reads the revocation lists of a PEM file, at least one.
pub(super) fn lists(file: &Path) -> Result<Vec<RevocationList>, Failure> {
    let text = fs::read(file).map_err(|error| unreadable(file, &error))?;
    RevocationList::all_from_pem(&text).map_err(|error| {
        Failure::new(
            format!("{}: {error}", file.display()),
            "name a PEM file with `-----BEGIN X509 CRL-----`",
        )
    })
}

/// Returns the current revocation list of a CA, or `None` if it has none.
pub(super) fn current_list(ca: &Path) -> Result<Option<RevocationList>, Failure> {
    let file = ca.join(LIST);
    match file.exists() {
        true => Ok(lists(&file)?.into_iter().next()),
        false => Ok(None),
    }
}

/// Replaces a CA's revocation list, and returns its file. The list is the only record of
/// revocations, so the old one stays until the new one is complete.
pub(super) fn replace_list(list: &RevocationList, ca: &Path) -> Result<PathBuf, Failure> {
    let text = pem::encode(&Pem::new("X509 CRL", list.der.as_slice()));
    let file = ca.join(LIST);
    replace(&file, &text).map_err(|error| not_owned(&file, &error))?;
    Ok(file)
}

/// Waits for the end of other runs that change the revocation list of a CA, and keeps others from
/// it until the result is dropped.
pub(super) fn lock(ca: &Path) -> Result<File, Failure> {
    let path = ca.join("ca.lock");
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).mode(0o600).open(&path);
    let locked = file.and_then(|file| file.lock().map(|()| file));
    locked.map_err(|error| not_owned(&path, &error))
}

/// Writes the record of a certificate into a folder, which is created.
pub(super) fn record(certificate: &Certificate, folder: &Path, name: &str) -> Result<(), Failure> {
    let file = folder.join(name);
    let written = fs::create_dir_all(folder).and_then(|()| replace(&file, &encoded(certificate)));
    written.map_err(|error| not_owned(&file, &error))
}

/// Returns the files of a folder with an extension, or none if there is no folder.
pub(super) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Failure> {
    let read = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.and_then(|entries| entries.collect::<io::Result<Vec<_>>>()),
    };
    let entries = read.map_err(|error| unreadable(folder, &error))?;
    let paths = entries.into_iter().map(|entry| entry.path());
    let has = |path: &PathBuf| path.extension().is_some_and(|other| other == extension);
    Ok(paths.filter(has).collect())
}

/// Returns a certificate in PEM.
pub(super) fn encoded(certificate: &Certificate) -> String {
    pem::encode(&Pem::new("CERTIFICATE", certificate.der.as_slice()))
}

/// Returns the public key of a private key in PEM.
pub(super) fn public(key: &PrivateKey) -> String {
    pem::encode(&Pem::new("PUBLIC KEY", key.raw().der()))
}

/// Replaces a file by a rename, so that readers find either the old content or the new one.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let new = file.with_extension("new");
    write(&new, text.as_bytes(), 0o644)?;
    fs::rename(&new, file)
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::new(
        format!("cannot read {}: {error}", file.display()),
        "name an existing file that you may read",
    )
}

fn not_owned(file: &Path, error: &io::Error) -> Failure {
    Failure::new(
        format!("cannot write {}: {error}", file.display()),
        "run as the user that owns the folder of the CA",
    )
}
