//! `cert`, `key` and `ca` of `[node]`: the credential with which this node signs, and the CAs that
//! it trusts.

use crate::Config;
use crate::key::{PrivateKey, private_key};
use crate::reader::{Table, Value};
use crate::revocation;
use crate::warning::Warning;
use crypto::{Certificate, Name, RevocationList, TrustStore, UnixTime, Untrusted};
use model::Identity;
use std::sync::Arc;
use std::time::SystemTime;

/// Days before the expiry of a certificate at which warnings begin.
const NOTICE: u64 = 14;

/// Our key, and its certificate if there is one.
#[derive(Clone, Debug)]
pub struct Credential {
    /// `cert`: a PEM file with our certificate, then the intermediates up to a CA that peers trust.
    /// Empty if all peers have our key as `pubkey`.
    pub chain: Vec<Certificate>,
    /// `key`: a PEM file, mode 0600.
    pub key: Arc<PrivateKey>,
}

impl Credential {
    /// Reads `cert` and `key`, which must match, or `key` alone.
    pub(crate) fn read(node: &mut Table<'_>, identity: Option<&Identity>) -> Option<Self> {
        let certificate = node.value("cert");
        let key = node.optional("key", private_key);
        let Some(certificate) = certificate else {
            return Some(Self {
                chain: Vec::new(),
                key: Arc::new(key?),
            });
        };
        let chain = certificates(&certificate)?;
        if node.value("key").is_none() {
            return certificate.fault("`cert` has no private key", "add `key = \"gw.key\"`");
        }
        let key = key?;
        if chain[0].key.as_ref() != Some(key.public()) {
            return certificate.fault(
                "the first certificate in this file is not for the key in `key`",
                "name the key of this certificate, or put our own certificate first",
            );
        }
        if !chain[0].may_sign {
            return certificate.fault(
                "the key usage of the certificate does not allow signatures",
                "reissue it with the key usage digitalSignature",
            );
        }
        if let Some(identity) = identity.filter(|identity| !vouches(&chain[0], identity)) {
            return certificate.fault(
                format!("{identity} is not a subjectAltName of the certificate, so peers would refuse it"),
                "reissue it for this name, or change `id`",
            );
        }
        Some(Self {
            chain,
            key: Arc::new(key),
        })
    }
}

/// Reads `ca`: one file or a list, each with one or more CAs.
pub(crate) fn authorities(value: &Value<'_>) -> Option<Vec<Certificate>> {
    let all = match value.inner.is_str() {
        true => certificates(value)?,
        false => value.list(certificates)?.concat(),
    };
    match all.iter().find(|certificate| !certificate.is_ca) {
        None => Some(all),
        Some(other) => value.fault(
            format!("`{}` is not the certificate of a CA", other.subject),
            "name the certificate of the CA that issued the peer's",
        ),
    }
}

/// Returns today's warnings about the validity of these certificates and revocation lists.
pub fn expiry<'c>(
    certificates: impl IntoIterator<Item = &'c Certificate>,
    lists: &[RevocationList],
    today: UnixTime,
) -> Vec<Warning> {
    let warn = |certificate: &Certificate| {
        let (subject, end) = (certificate.subject.clone(), certificate.not_after);
        let start = certificate.not_before;
        match end.days_after(today) {
            _ if start > today => Some(Warning::NotYetValid { subject, start }),
            _ if end < today => Some(Warning::Expired { subject, end }),
            days if days < NOTICE => Some(Warning::Expires { subject, end, days }),
            _ => None,
        }
    };
    let certificates = certificates.into_iter().filter_map(warn);
    certificates
        .chain(revocation::expiry(lists, today))
        .collect()
}

/// Returns a warning about our certificate if peers refuse it whatever the time. Its CA may be
/// another than those in our `ca`, whose names and keys say nothing about it then.
pub(crate) fn refused(config: &Config) -> Option<Warning> {
    let own = config.chain().first()?;
    let chain: Vec<_> = config.chain().iter().map(|one| one.der.clone()).collect();
    let store = TrustStore::new(config.authorities.clone());
    match store.judge_own(&chain, own.not_before).err()? {
        Untrusted::Expired(_)
        | Untrusted::NotYetValid(_)
        | Untrusted::AuthorityExpired(_)
        | Untrusted::AuthorityNotYetValid(_) => None,
        why => Some(Warning::Refused { why }),
    }
}

/// Returns the current wall-clock time.
pub fn today() -> UnixTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixTime(since.map_or(0, |since| since.as_secs()))
}

/// Returns true if a certificate names an identity, by the comparison that peers apply.
fn vouches(certificate: &Certificate, identity: &Identity) -> bool {
    let mut names = certificate.names.iter().map(|name| match name {
        Name::Dns(name) => Identity::Fqdn(name.clone()),
        Name::Email(name) => Identity::Email(name.clone()),
        Name::Address(address) => Identity::Address(*address),
    });
    names.any(|name| name == *identity)
}

/// Reads the certificates of the PEM file that a value names.
fn certificates(value: &Value<'_>) -> Option<Vec<Certificate>> {
    let certificates = Certificate::all_from_pem(&value.file()?).ok();
    certificates.or_else(|| {
        value.fault(
            "there is no X.509 certificate in this file",
            "name a PEM file: it has lines `-----BEGIN CERTIFICATE-----`",
        )
    })
}
