//! Bundles of a certificate, its private key and its CAs (PKCS #12, RFC 7292), which phones and
//! Windows import.
//!
//! The keys of a bundle are derived from its password. The algorithms that all importers know are
//! old (Triple DES, HMAC-SHA-1), so a password is chosen here unless the caller has one.

use super::args::Export;
use super::folder;
use control::Failure;
use crypto::{Certificate, TrustStore, sha1};
use p12_keystore::{EncryptionAlgorithm, KeyStore, KeyStoreEntry, MacAlgorithm, PrivateKeyChain};
use std::path::Path;
use zeroize::Zeroizing;

/// A new bundle.
pub(super) struct Bundle {
    /// The bundle in DER.
    pub(super) der: Vec<u8>,
    /// The certificate, then its CAs up to the root.
    pub(super) chain: Vec<Certificate>,
    /// The password, if it was chosen here.
    pub(super) password: Option<Zeroizing<String>>,
}

/// Creates the bundle of a certificate that its importers can verify.
pub(super) fn new(order: &Export) -> Result<Bundle, Failure> {
    let key_file = match &order.key {
        Some(file) => file.clone(),
        None => order.cert.with_extension("key"),
    };
    let chain = whole_chain(&order.cert, &order.ca)?;
    if chain[0].key.as_ref() != Some(folder::key(&key_file)?.public()) {
        return Err(Failure::new(
            format!(
                "the certificate in {} is not for the key in {}",
                order.cert.display(),
                key_file.display()
            ),
            "name the key of this certificate with `--key`",
        ));
    }
    let key = folder::key_der(&key_file)?;
    let (password, is_new) = match &order.password_file {
        Some(file) => (given_password(file)?, false),
        None => (new_password(), true),
    };
    Ok(Bundle {
        der: encode(&chain, &key, &password, order.aes).map_err(unfit)?,
        chain,
        password: is_new.then_some(password),
    })
}

/// Returns a certificate with its CAs up to the root.
fn whole_chain(cert: &Path, ca: &Path) -> Result<Vec<Certificate>, Failure> {
    let mut chain = folder::certificates(cert)?;
    let file = match ca.is_dir() {
        true => ca.join("ca.pem"),
        false => ca.to_owned(),
    };
    let roots = folder::certificates(&file)?;
    if let Some(other) = roots.iter().find(|root| root.subject != root.issuer) {
        return Err(Failure::new(
            format!("`{}` in {} is not a root CA", other.subject, file.display()),
            "name the root CA with `--ca`: importers trust nothing else",
        ));
    }
    let ders: Vec<_> = chain.iter().map(|one| one.der.clone()).collect();
    let trust = TrustStore::new(roots.clone());
    trust.verify(&ders, config::today()).map_err(|why| {
        Failure::new(
            format!("peers would refuse {}: {why}", cert.display()),
            "name the root CA of the certificate with `--ca`, or issue another certificate",
        )
    })?;
    chain.extend(roots);
    Ok(chain)
}

fn encode(
    chain: &[Certificate],
    key: &[u8],
    password: &str,
    is_modern: bool,
) -> p12_keystore::Result<Vec<u8>> {
    let (encryption, mac) = match is_modern {
        true => (
            EncryptionAlgorithm::PbeWithHmacSha256AndAes256,
            MacAlgorithm::HmacSha256,
        ),
        false => (
            EncryptionAlgorithm::PbeWithShaAnd3KeyTripleDesCbc,
            MacAlgorithm::HmacSha1,
        ),
    };
    let certificate = |one: &Certificate| p12_keystore::Certificate::from_der(&one.der);
    let certificates = chain.iter().map(certificate);
    let entry = PrivateKeyChain::new(
        sha1(&[&chain[0].der]).to_vec(),
        p12_keystore::PrivateKey::from_der(key)?,
        certificates.collect::<p12_keystore::Result<Vec<_>>>()?,
    );
    let mut store = KeyStore::new();
    let subject = &chain[0].subject;
    let name = subject.strip_prefix("CN=").unwrap_or(subject);
    store.add_entry(name, KeyStoreEntry::PrivateKeyChain(entry));
    let writer = store.writer(password).encryption_algorithm(encryption);
    writer.mac_algorithm(mac).write()
}

/// Returns a new password of 100 random bits. Its 32 characters cannot be mistaken for each other.
fn new_password() -> Zeroizing<String> {
    const CHARACTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    const GROUPS: usize = 4;
    const LEN: usize = 5;
    let mut password = Zeroizing::new(String::new());
    let seed = Zeroizing::new(os::entropy::seed());
    for (at, octet) in seed.iter().take(GROUPS * LEN).enumerate() {
        if at > 0 && at % LEN == 0 {
            password.push('-');
        }
        password.push(char::from(CHARACTERS[usize::from(octet % 32)]));
    }
    password
}

/// Reads a password. Programs encode characters beyond ASCII in different ways.
fn given_password(file: &Path) -> Result<Zeroizing<String>, Failure> {
    const SHORTEST: usize = 8;
    let text = folder::text(file)?;
    let line = text.lines().next().unwrap_or_default();
    let is_plain = line.bytes().all(|octet| (b' '..=b'~').contains(&octet));
    match is_plain && line.len() >= SHORTEST {
        true => Ok(Zeroizing::new(line.to_owned())),
        false => Err(Failure::new(
            format!(
                "the first line of {} is not a password of at least {SHORTEST} ASCII characters",
                file.display()
            ),
            "write another password, or omit `--password-file` to have one chosen",
        )),
    }
}

fn unfit(error: impl std::fmt::Display) -> Failure {
    Failure::new(
        format!("cannot create the bundle: {error}"),
        "use a certificate and key made by `strata pki issue`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_passwords_differ_and_are_easy_to_type() {
        let passwords = [new_password(), new_password()];
        assert_ne!(*passwords[0], *passwords[1]);
        for password in passwords {
            let groups: Vec<_> = password.split('-').map(str::len).collect();
            assert_eq!(groups, [5; 4], "{}", *password);
        }
    }
}
