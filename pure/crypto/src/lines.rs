//! Candidate paths ("lines") from an owner's certificate up to a CA in the store, built by
//! comparing names.
//!
//! A peer chooses the certificates it sends. A path builder that gets all of them tries every order
//! of those with the same name: ten CA certificates of one subject and issuer cost 100 ms before
//! anything is proved. So the paths are built here. A path has each subject once, and few paths are
//! tried. No signature is verified.

use crate::certificate::Certificate;

/// Most certificates in a chain: the owner's, six intermediates (webpki's limit), and a few that do
/// not matter.
pub(crate) const MAX_CERTIFICATES: usize = 10;

/// Most candidate paths. Each cross-signed CA adds one, and so does each certificate forged in a
/// CA's name.
const MAX_LINES: usize = 4;

/// Returns the readable certificates of a chain other than the owner's, without duplicates. `None`
/// if there are too many.
pub(crate) fn others(owner: &Certificate, chain: &[Vec<u8>]) -> Option<Vec<Certificate>> {
    let mut seen = vec![&owner.der];
    for der in chain {
        if !seen.contains(&der) {
            seen.push(der);
        }
        if seen.len() > MAX_CERTIFICATES {
            return None;
        }
    }
    let others = seen.into_iter().skip(1);
    Some(
        others
            .filter_map(|der| Certificate::from_der(der).ok())
            .collect(),
    )
}

/// Returns the intermediates between an owner and a CA, in order, for each path that fits by name.
pub(crate) fn leading<'c>(
    owner: &Certificate,
    others: &'c [Certificate],
    authorities: &[Certificate],
) -> Vec<Vec<&'c Certificate>> {
    let mut walk = Walk {
        authorities,
        others,
        found: Vec::new(),
    };
    walk.follow(&owner.issuer_der, &[]);
    walk.found
}

struct Walk<'a, 'c> {
    authorities: &'a [Certificate],
    others: &'c [Certificate],
    found: Vec<Vec<&'c Certificate>>,
}

impl<'c> Walk<'_, 'c> {
    /// Extends a path whose last certificate names this issuer, depth first.
    fn follow(&mut self, issuer: &[u8], line: &[&'c Certificate]) {
        if self.found.len() == MAX_LINES {
            return;
        }
        if self.authorities.iter().any(|ca| ca.subject_der == issuer) {
            self.found.push(line.to_vec());
        }
        if line.iter().any(|above| above.subject_der == issuer) {
            return;
        }
        for next in self.others {
            if next.subject_der == issuer {
                self.follow(&next.issuer_der, &[line, &[next]].concat());
            }
        }
    }
}
