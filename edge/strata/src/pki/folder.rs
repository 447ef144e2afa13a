//! Files of a CA, of the certificates that it issued, and of keys without a certificate.

use super::authority::Issued;
use config::PrivateKey;
use control::Failure;
use crypto::{Certificate, RevocationList};
use pem::Pem;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

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

/// Replaces a CA's revocation list by a rename. The list is the only record of revocations, so the
/// old one stays until the new one is complete.
pub(super) fn replace_list(list: &RevocationList, file: &Path) -> Result<(), Failure> {
    let text = pem::encode(&Pem::new("X509 CRL", list.der.as_slice()));
    let new = file.with_extension("new");
    let replaced = write(&new, &text, 0o644).and_then(|()| fs::rename(&new, file));
    replaced.map_err(|error| {
        Failure::new(
            format!("cannot write {}: {error}", file.display()),
            "run as the user that owns the folder of the CA",
        )
    })
}

/// Writes `NAME.key`, readable by its owner only, then `NAME.pem`. Replaces files only with
/// `force`.
pub(super) fn save(
    issued: &Issued,
    folder: &Path,
    name: &str,
    force: bool,
) -> Result<Vec<PathBuf>, Failure> {
    let certificate = |one: &Certificate| Pem::new("CERTIFICATE", one.der.as_slice());
    let chain: Vec<_> = issued.chain.iter().map(certificate).collect();
    let chain = pem::encode_many(&chain);
    save_pair(&issued.key, &chain, "pem", folder, name, force)
}

/// Writes `NAME.key` and `NAME.pub` in the same way.
pub(super) fn save_key(
    key: &PrivateKey,
    der: &[u8],
    folder: &Path,
    name: &str,
    force: bool,
) -> Result<Vec<PathBuf>, Failure> {
    save_pair(der, &public(key), "pub", folder, name, force)
}

/// Returns the public key of a private key in PEM.
pub(super) fn public(key: &PrivateKey) -> String {
    pem::encode(&Pem::new("PUBLIC KEY", key.raw().der()))
}

fn save_pair(
    key: &[u8],
    text: &str,
    extension: &str,
    folder: &Path,
    name: &str,
    force: bool,
) -> Result<Vec<PathBuf>, Failure> {
    let key = Zeroizing::new(pem::encode(&Pem::new("PRIVATE KEY", key)));
    let files = [
        (folder.join(format!("{name}.key")), key.as_str(), 0o600),
        (folder.join(format!("{name}.{extension}")), text, 0o644),
    ];
    if let Some((there, ..)) = files.iter().find(|(file, ..)| !force && file.exists()) {
        return Err(Failure::new(
            format!("{} already exists", there.display()),
            "choose another folder with `--out`, or replace both files with `--force`",
        ));
    }
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    for (file, text, mode) in &files {
        write(file, text, *mode).map_err(|error| unwritable(file, &error))?;
    }
    Ok(files.into_iter().map(|(file, ..)| file).collect())
}

/// Writes a file. Removes an old file first, because it would keep its mode.
fn write(file: &Path, text: &str, mode: u32) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(file)?;
    file.write_all(text.as_bytes())
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::new(
        format!("cannot read {}: {error}", file.display()),
        "name an existing file that you may read",
    )
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::new(
        format!("cannot write {}: {error}", file.display()),
        "choose a folder that you may write to with `--out`",
    )
}
