//! Revocation. The CA's current list is the only record, so each new list contains the previous
//! one.

use super::authority::Authority;
use super::folder;
use control::Failure;
use crypto::{Certificate, RevocationList, Revoked};
use std::path::{Path, PathBuf};

/// Signs a new list for the CA in a folder, and adds the given certificates to it. Of each file
/// only the first certificate is revoked; those after it belong to the CAs above.
pub(super) fn renew(
    ca: &Path,
    files: &[PathBuf],
    days: u64,
) -> Result<(PathBuf, RevocationList), Failure> {
    let authority = Authority::open(ca)?;
    let file = ca.join("ca.crl");
    let last = match file.exists() {
        true => folder::lists(&file)?.into_iter().next(),
        false => None,
    };
    let mut revoked = last.as_ref().map_or_else(Vec::new, RevocationList::revoked);
    for file in files {
        let certificate = folder::certificates(file)?.swap_remove(0);
        let number = issued_by(&authority, &certificate)?;
        if !revoked.iter().any(|one| one.serial == number) {
            revoked.push(Revoked {
                serial: number,
                since: config::today(),
            });
        }
    }
    let number = last.and_then(|last| last.number).unwrap_or(0) + 1;
    let list = authority.revoke(&revoked, number, days)?;
    folder::replace_list(&list, &file)?;
    Ok((file, list))
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
