//! Certificates that a CA has issued: one file each in `issued` of the CA's folder.
//!
//! A record is written before its certificate is handed out. It appears whole, by a rename, and
//! never changes. An interrupted run therefore leaves no certificate without a record, and
//! runs at the same time write different files. Revocations are in the CA's list alone.

use super::{folder, names};
use crate::text::hex;
use control::Failure;
use crypto::{Certificate, RevocationList, UnixTime};
use model::Identity;
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the folder.
const FOLDER: &str = "issued";

/// An issued certificate.
pub(super) struct Entry {
    pub(super) certificate: Certificate,
    pub(super) state: State,
}

/// Use of an issued certificate today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Valid for this number of whole days.
    Valid(u64),
    /// Valid later.
    Future,
    /// No longer valid.
    Expired,
    /// Revoked at this time.
    Revoked(UnixTime),
}

/// All certificates of a CA, by name and end of validity.
pub(super) struct Inventory {
    pub(super) entries: Vec<Entry>,
    /// Warnings of certificates and lists that expire soon.
    pub(super) warnings: Vec<String>,
}

impl Inventory {
    /// Reads the inventory of a CA. Needs no private key.
    pub(super) fn read(ca: &Path, today: UnixTime) -> Result<Self, Failure> {
        let authority = folder::certificates(&ca.join("ca.pem"))?;
        let list = folder::current_list(ca)?;
        let certificates = issued(ca)?;
        let entry = |certificate: Certificate| Entry {
            state: State::new(&certificate, list.as_ref(), today),
            certificate,
        };
        let entries: Vec<_> = certificates.into_iter().map(entry).collect();
        let warnings = {
            let soon = current(&entries).chain(&authority);
            let lists: Vec<_> = list.into_iter().collect();
            let warnings = config::expiry(soon, &lists, today);
            warnings.iter().map(ToString::to_string).collect()
        };
        Ok(Self { entries, warnings })
    }
}

impl State {
    fn new(certificate: &Certificate, list: Option<&RevocationList>, today: UnixTime) -> Self {
        let revoked = list.and_then(|list| list.revokes(certificate));
        match revoked {
            Some(since) => Self::Revoked(since),
            None if certificate.not_after < today => Self::Expired,
            None if certificate.not_before > today => Self::Future,
            None => Self::Valid(certificate.not_after.days_after(today)),
        }
    }
}

/// Returns the certificate of each name that ends last, unless it has ended or is revoked. The
/// expiry of a certificate that was renewed needs no attention.
fn current(entries: &[Entry]) -> impl Iterator<Item = &Certificate> {
    let mut last = BTreeMap::new();
    let in_use = |entry: &&Entry| matches!(entry.state, State::Valid(_) | State::Future);
    for Entry { certificate, .. } in entries.iter().filter(in_use) {
        // Entries of a name are sorted by their end.
        last.insert(id(certificate), certificate);
    }
    last.into_values()
}

/// Records a new certificate.
pub(super) fn record(ca: &Path, certificate: &Certificate) -> Result<(), Failure> {
    let name = format!("{}.pem", hex(&certificate.serial));
    folder::record(certificate, &ca.join(FOLDER), &name)
}

/// Returns all recorded certificates, sorted by name and end of validity.
fn issued(ca: &Path) -> Result<Vec<Certificate>, Failure> {
    let files = folder::files(&ca.join(FOLDER), "pem")?;
    let first = |file| folder::certificates(file).map(|mut all| all.swap_remove(0));
    let mut all: Vec<_> = files
        .iter()
        .map(|file| first(file))
        .collect::<Result<_, _>>()?;
    all.sort_by_key(|certificate| (id(certificate), certificate.not_after));
    Ok(all)
}

/// Returns the recorded certificates of a name, or that with a serial number, without those that
/// have expired.
pub(super) fn find(
    ca: &Path,
    name_or_serial: &str,
    today: UnixTime,
) -> Result<Vec<Certificate>, Failure> {
    let Ok(name): Result<Identity, _> = name_or_serial.parse();
    let is_meant = |certificate: &Certificate| {
        id(certificate) == name || hex(&certificate.serial).eq_ignore_ascii_case(name_or_serial)
    };
    let mut all = issued(ca)?;
    all.retain(is_meant);
    if all.is_empty() {
        return Err(Failure::new(
            format!(
                "`{name}` is neither a file nor the name or serial number of a certificate in {}",
                ca.join(FOLDER).display()
            ),
            format!(
                "choose one of `strata pki list --ca {}`, or name the file of a certificate",
                ca.display()
            ),
        ));
    }
    all.retain(|certificate| certificate.not_after >= today);
    match all.is_empty() {
        true => Err(Failure::new(
            format!("all certificates of `{name}` have expired"),
            "nothing is to do: peers refuse expired certificates without a list",
        )),
        false => Ok(all),
    }
}

/// Returns the identity for which a certificate was issued: its first name, or the subject of a CA.
fn id(certificate: &Certificate) -> Identity {
    match certificate.names.first() {
        Some(name) => names::identity(name),
        None => {
            let subject = certificate.subject.as_str();
            let name = subject.strip_prefix("CN=").unwrap_or(subject);
            Identity::Fqdn(name.to_owned())
        }
    }
}
