//! `crl` and `revocation` of `[node]`: the revocation lists of CAs, and the status that is required
//! of a certificate.

use crate::reader::Value;
use crate::warning::Warning;
use crypto::{Revocation, RevocationList, UnixTime};

/// Whole days before the end of a list at which warnings begin. Short, because lists are replaced
/// often.
const NOTICE: u64 = 1;

/// The values of `revocation`.
pub(crate) const WORDS: [(&str, Revocation); 2] = [
    ("relaxed", Revocation::Relaxed),
    ("strict", Revocation::Strict),
];

/// Reads `revocation`.
pub(crate) fn status(value: &Value<'_>) -> Option<Revocation> {
    match value.choice(&WORDS)? {
        Revocation::Strict if !value.is_beside("crl") => value.fault(
            "without `crl` the revocation status of every certificate is unknown, so all would be refused",
            "add `crl = [\"ca.crl\"]` with a list of each CA (`strata pki crl` makes one), or write \"relaxed\"",
        ),
        revocation => Some(revocation),
    }
}

/// Reads one file or a list, each with one or more revocation lists.
pub(crate) fn lists(value: &Value<'_>) -> Option<Vec<RevocationList>> {
    match value.inner.is_str() {
        true => file(value),
        false => Some(value.list(file)?.concat()),
    }
}

fn file(value: &Value<'_>) -> Option<Vec<RevocationList>> {
    let pem = value.file()?;
    match RevocationList::all_from_pem(&pem) {
        Ok(lists) => Some(lists),
        Err(error) => value.fault(
            error.to_string(),
            "name a PEM file with `-----BEGIN X509 CRL-----`; `openssl crl -inform DER` converts a DER file",
        ),
    }
}

/// Returns today's warnings about the end of these lists.
pub(crate) fn expiry(lists: &[RevocationList], today: UnixTime) -> impl Iterator<Item = Warning> {
    lists.iter().filter_map(move |list| {
        let (issuer, end) = (list.issuer.clone(), list.next_update);
        match end.days_after(today) {
            _ if end <= today => Some(Warning::RevocationListEnded { issuer, end }),
            days if days < NOTICE => Some(Warning::RevocationListEnds { issuer, end }),
            _ => None,
        }
    })
}
