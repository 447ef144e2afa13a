//! Revocation. The CA's current list is the only record, so each new list contains the previous
//! one.

use super::authority::Authority;
use super::{folder, inventory};
use control::Failure;
use crypto::{Certificate, RevocationList, Revoked};
use std::path::{Path, PathBuf};

/// A new list, and the certificates that were to be revoked.
pub(super) struct Renewed {
    pub(super) file: PathBuf,
    pub(super) list: RevocationList,
    pub(super) certificates: Vec<Certificate>,
}

/// Signs a new list for the CA in a folder, and adds the given certificates to it: those of a name
/// or a serial number in the inventory, or the first one of a file. The certificates after it
/// belong to the CAs above.
pub(super) fn renew(ca: &Path, which: &[String], days: u64) -> Result<Renewed, Failure> {
    let authority = Authority::open(ca)?;
    let mut certificates = Vec::new();
    for which in which {
        certificates.extend(meant(ca, which)?);
    }
    let _lock = folder::lock(ca)?;
    let last = folder::current_list(ca)?;
    let mut revoked = last.as_ref().map_or_else(Vec::new, RevocationList::revoked);
    for certificate in &certificates {
        let number = issued_by(&authority, certificate)?;
        if !revoked.iter().any(|one| one.serial == number) {
            revoked.push(Revoked {
                serial: number,
                since: config::today(),
            });
        }
    }
    let number = last.and_then(|last| last.number).unwrap_or(0) + 1;
    let list = authority.revoke(&revoked, number, days)?;
    Ok(Renewed {
        file: folder::replace_list(&list, ca)?,
        list,
        certificates,
    })
}

fn meant(ca: &Path, which: &str) -> Result<Vec<Certificate>, Failure> {
    let file = Path::new(which);
    match file.is_file() {
        true => Ok(vec![folder::certificates(file)?.swap_remove(0)]),
        false => inventory::find(ca, which, config::today()),
    }
}

/// Returns the serial number of a certificate that this CA issued.
fn issued_by(authority: &Authority, certificate: &Certificate) -> Result<Vec<u8>, Failure> {
    let Certificate {
        subject,
        issuer,
        serial,
        ..
    } = certificate;
    if issuer != authority.name() {
        let ca = authority.name();
        return Err(Failure::new(
            format!("`{subject}` was issued by `{issuer}`, and this CA is `{ca}`"),
            "name the folder of the CA that issued it with `--ca`",
        ));
    }
    Ok(serial.clone())
}
