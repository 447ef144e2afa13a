//! A path of certificates from an owner's up to a trusted CA: the rules for CAs that webpki leaves
//! out, and words for what it does not support.
//!
//! To webpki the trusted CA is a name, a key and name constraints. What its certificate says of
//! itself counts here as for any other CA, as operators expect (RFC 5937), except its extended key
//! usage.

use crate::UnixTime;
use crate::certificate::{Certificate, object};
use crate::untrusted::{Unsupported, Untrusted};
use std::mem::discriminant;
use webpki::Error;
use x509_parser::asn1_rs::Oid;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// A path that leads from an owner to a trusted CA by the names of the issuers.
pub(crate) struct Path<'a> {
    /// The certificate whose path it is.
    pub owner: &'a Certificate,
    /// The CAs between, the issuer of the owner first.
    pub between: &'a [&'a Certificate],
    /// The trusted CA.
    pub authority: &'a Certificate,
}

impl Path<'_> {
    /// Judges what each CA may do (RFC 5280 sections 4.2.1.3, 4.2.1.9 and 6.1.4), and the validity
    /// of the trusted one.
    pub fn judge(&self, at: UnixTime) -> Result<(), Untrusted> {
        let authority = self.authority;
        if at < authority.not_before {
            return Err(Untrusted::AuthorityNotYetValid(authority.not_before));
        }
        if at > authority.not_after {
            return Err(Untrusted::AuthorityExpired(authority.not_after));
        }
        if let Some(extension) = &authority.restriction {
            return Err(Unsupported::Extension(extension.clone()).into());
        }
        match self.too_shallow() {
            Some(ca) => Err(Untrusted::TooDeep(ca.subject.clone())),
            None => match self.authorities().find(|ca| !(ca.is_ca && ca.may_certify)) {
                Some(ca) => Err(Untrusted::MayNotCertify(ca.subject.clone())),
                None => Ok(()),
            },
        }
    }

    /// Returns the reason for which webpki refuses the path.
    pub fn refusal(&self, error: Error) -> Untrusted {
        let not_a_ca = || self.authorities().find(|ca| !ca.is_ca);
        match error {
            Error::EndEntityUsedAsCa => {
                let culprit = not_a_ca().unwrap_or(self.authority);
                Untrusted::MayNotCertify(culprit.subject.clone())
            }
            Error::PathLenConstraintViolated => {
                let culprit = self.too_shallow().unwrap_or(self.authority);
                Untrusted::TooDeep(culprit.subject.clone())
            }
            Error::NameConstraintViolation => match self.unsupported_constraint() {
                Some(kind) => Unsupported::Constraints(kind).into(),
                None => Untrusted::NameOutside,
            },
            Error::UnsupportedCriticalExtension => {
                let mut all = std::iter::once(self.owner).chain(self.authorities());
                let name = all.find_map(|one| one.unknown_critical.clone());
                Unsupported::Extension(name.unwrap_or_default()).into()
            }
            other => refusal(other, self.owner),
        }
    }

    fn authorities(&self) -> impl Iterator<Item = &Certificate> {
        let between = self.between.iter().copied();
        between.chain([self.authority])
    }

    /// Returns the first CA that allows fewer CAs below it than there are. Of a CA that issued a
    /// certificate to itself, one counts.
    fn too_shallow(&self) -> Option<&Certificate> {
        let mut below = 0;
        self.authorities().find(|ca| {
            let exceeded = ca.path_len.is_some_and(|most| below > most);
            below += u32::from(ca.subject_der != ca.issuer_der);
            exceeded
        })
    }

    /// Returns a kind of name that a CA constrains, that a certificate below it has, and whose
    /// constraints webpki does not judge. Every certificate has the name of its subject.
    fn unsupported_constraint(&self) -> Option<&'static str> {
        let all: Vec<_> = std::iter::once(self.owner)
            .chain(self.authorities())
            .collect();
        let parsed = all.iter().filter_map(|one| {
            let (_, parsed) = X509Certificate::from_der(&one.der).ok()?;
            Some(parsed)
        });
        let parsed: Vec<_> = parsed.collect();
        let names = |one: &X509Certificate<'_>, kind: &GeneralName<'_>| {
            let names = one.subject_alternative_name().ok().flatten();
            let mut names = names
                .into_iter()
                .flat_map(|names| &names.value.general_names);
            names.any(|name| discriminant(name) == discriminant(kind))
        };
        parsed.iter().enumerate().find_map(|(place, ca)| {
            let constraints = ca.name_constraints().ok().flatten()?.value;
            let lists = [
                &constraints.permitted_subtrees,
                &constraints.excluded_subtrees,
            ];
            let kinds = lists.into_iter().flatten().flatten();
            kinds.map(|subtree| &subtree.base).find_map(|kind| {
                let name = unjudged(kind)?;
                let is_subject = matches!(kind, GeneralName::DirectoryName(_));
                let below = &parsed[..place];
                (is_subject || below.iter().any(|one| names(one, kind))).then_some(name)
            })
        })
    }
}

/// Returns what a kind of name is called whose constraints webpki does not judge.
const fn unjudged(kind: &GeneralName<'_>) -> Option<&'static str> {
    match kind {
        GeneralName::DNSName(_) | GeneralName::IPAddress(_) => None,
        GeneralName::RFC822Name(_) => Some("e-mail addresses"),
        GeneralName::DirectoryName(_) => Some("directory names"),
        GeneralName::URI(_) => Some("URIs"),
        _ => Some("names of a rare kind"),
    }
}

/// Returns the reason for which webpki refuses the certificate of an owner, or a path of which
/// nothing more is known.
pub(crate) fn refusal(error: Error, owner: &Certificate) -> Untrusted {
    let seconds = |time: rustls_pki_types::UnixTime| UnixTime(time.as_secs());
    match error {
        Error::CertExpired { not_after, .. } => Untrusted::Expired(seconds(not_after)),
        Error::CertNotValidYet { not_before, .. } => Untrusted::NotYetValid(seconds(not_before)),
        Error::UnknownIssuer => Untrusted::UnknownAuthority(owner.issuer.clone()),
        Error::InvalidSignatureForPublicKey => Untrusted::Forged(owner.issuer.clone()),
        Error::EmptyEkuExtension => Untrusted::Usage,
        Error::UnknownRevocationStatus => Untrusted::RevocationUnknown(owner.issuer.clone()),
        Error::CrlExpired { next_update, .. } => {
            Untrusted::RevocationListEnded(seconds(next_update))
        }
        Error::InvalidCrlSignatureForPublicKey => {
            Untrusted::RevocationListForged(owner.issuer.clone())
        }
        Error::UnsupportedSignatureAlgorithmContext(context) => {
            Unsupported::Signature(algorithm(&context.signature_algorithm_id)).into()
        }
        Error::UnsupportedSignatureAlgorithmForPublicKeyContext(context) => {
            Unsupported::Key(algorithm(&context.signature_algorithm_id)).into()
        }
        Error::UnsupportedCriticalExtension => {
            Unsupported::Extension(owner.unknown_critical.clone().unwrap_or_default()).into()
        }
        Error::CaUsedAsEndEntity => Unsupported::Authority.into(),
        Error::MaximumPathDepthExceeded => Unsupported::Length.into(),
        Error::UnsupportedCertVersion => Unsupported::Version.into(),
        Error::BadDer | Error::BadDerTime | Error::TrailingData(_) => Untrusted::Unreadable,
        other => Untrusted::Invalid(other.to_string()),
    }
}

/// Returns the name of an algorithm from the content of its AlgorithmIdentifier.
fn algorithm(identifier: &[u8]) -> String {
    let oid = Oid::from_der(identifier).ok();
    oid.map_or_else(|| "an algorithm".to_owned(), |(_, oid)| object(&oid))
}
