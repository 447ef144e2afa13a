//! The lines that certificates form by their names, from an owner up to a CA in the store.
//!
//! A peer chooses which certificates it sends, and a path builder that is given all of them tries
//! every order of those with one name: ten CA certificates of the same subject and issuer cost 100 ms
//! before anything is proved. So the choices are made here, by comparing names: a line has each subject
//! once, and few lines are tried. No signature is looked at.

use crate::certificate::Certificate;

/// The owner's certificate, six intermediates (webpki follows no more), and some that do not matter.
pub(crate) const MAX_CERTIFICATES: usize = 10;

/// Each cross-signed CA adds a line; so does each certificate that is forged in the name of one.
const MAX_LINES: usize = 4;

/// The certificates of a chain besides the owner's that can be read, each once. `None` if they are too many.
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

/// The intermediates between an owner and a CA, in order, for each way in which the names fit.
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
    /// Goes on from a line whose last certificate names this issuer, depth first.
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
