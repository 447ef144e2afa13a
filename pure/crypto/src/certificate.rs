//! Parsing of X.509 certificates as IKE uses them (RFC 5280, RFC 4945). [`crate::TrustStore`]
//! decides if a certificate is trusted.

use crate::{PublicKey, UnixTime, raw_key, sha1};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::fmt;
use std::net::IpAddr;
use thiserror::Error;
use x509_parser::asn1_rs::Oid;
use x509_parser::objects::{oid_registry, oid2sn};
use x509_parser::oid_registry::{
    OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER, OID_X509_EXT_BASIC_CONSTRAINTS,
    OID_X509_EXT_CERTIFICATE_POLICIES, OID_X509_EXT_CRL_DISTRIBUTION_POINTS,
    OID_X509_EXT_EXTENDED_KEY_USAGE, OID_X509_EXT_INHIBIT_ANY_POLICY, OID_X509_EXT_KEY_USAGE,
    OID_X509_EXT_NAME_CONSTRAINTS, OID_X509_EXT_POLICY_MAPPINGS, OID_X509_EXT_SUBJECT_ALT_NAME,
    OID_X509_EXT_SUBJECT_KEY_IDENTIFIER,
};
use x509_parser::prelude::{FromDer, GeneralName, KeyUsage, X509Certificate, X509Name};

/// The content of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate in DER.
    pub der: Vec<u8>,
    /// Subject, as text for people.
    pub subject: String,
    /// Issuer, as text for people.
    pub issuer: String,
    /// Subject in DER.
    pub(crate) subject_der: Vec<u8>,
    /// Issuer in DER.
    pub(crate) issuer_der: Vec<u8>,
    /// Serial number, unique within the issuing CA, as encoded in DER.
    pub serial: Vec<u8>,
    /// Start of the validity.
    pub not_before: UnixTime,
    /// End of the validity.
    pub not_after: UnixTime,
    /// The subjectAltNames of the kinds that an IKE identity can have.
    pub names: Vec<Name>,
    /// The organisational units of the subject, as text for people.
    pub units: Vec<String>,
    /// The public key, if its kind is supported.
    pub key: Option<PublicKey>,
    /// SHA-1 of the SubjectPublicKeyInfo, by which CERTREQ names a CA (RFC 7296 section 3.7).
    pub key_id: [u8; 20],
    /// True if it is the certificate of a CA.
    pub is_ca: bool,
    /// True if the key may sign certificates, by its key usage (RFC 5280 section 4.2.1.3).
    pub may_certify: bool,
    /// Most CAs between this one and an owner, if limited (RFC 5280 section 4.2.1.9).
    pub path_len: Option<u32>,
    /// The first critical extension that webpki does not read.
    pub unknown_critical: Option<String>,
    /// The first of them that may change what a trusted CA vouches for.
    pub restriction: Option<String>,
    /// True if the key may sign an exchange (RFC 4945 section 5.1.3.2).
    pub may_sign: bool,
    /// True if the extended key usage has serverAuth, which other clients require of a gateway.
    pub is_for_servers: bool,
}

/// A name that a certificate vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// dNSName.
    Dns(String),
    /// rfc822Name.
    Email(String),
    /// iPAddress.
    Address(IpAddr),
}

/// The octets are no certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("this is not an X.509 certificate")]
pub struct NoCertificate;

impl Certificate {
    /// Parses a certificate in DER; trailing octets are an error.
    pub fn from_der(der: &[u8]) -> Result<Self, NoCertificate> {
        let (rest, parsed) = X509Certificate::from_der(der).map_err(|_| NoCertificate)?;
        let usage = parsed.key_usage().map_err(|_| NoCertificate)?;
        let usage = usage.map(|usage| usage.value);
        let constraints = parsed.basic_constraints().map_err(|_| NoCertificate)?;
        let alternative = parsed.subject_alternative_name();
        let alternative = alternative.map_err(|_| NoCertificate)?;
        let names = alternative.map_or(&[][..], |names| &names.value.general_names);
        // An unreadable usage is refused by webpki when the certificate is verified.
        let purposes = parsed.extended_key_usage().ok().flatten();
        let validity = parsed.validity();
        rest.is_empty().then_some(()).ok_or(NoCertificate)?;
        Ok(Self {
            der: der.to_vec(),
            subject: text(parsed.subject()),
            issuer: text(parsed.issuer()),
            subject_der: parsed.subject().as_raw().to_vec(),
            issuer_der: parsed.issuer().as_raw().to_vec(),
            serial: parsed.raw_serial().to_vec(),
            not_before: UnixTime::from_timestamp(validity.not_before.timestamp()),
            not_after: UnixTime::from_timestamp(validity.not_after.timestamp()),
            names: names.iter().filter_map(name).collect(),
            units: units(parsed.subject()),
            key: raw_key::read(parsed.public_key()),
            key_id: sha1(&[parsed.public_key().raw]),
            is_ca: parsed.is_ca(),
            may_certify: usage.is_none_or(KeyUsage::key_cert_sign),
            path_len: constraints.and_then(|constraints| constraints.value.path_len_constraint),
            unknown_critical: unknown_critical(&parsed, &[]),
            restriction: unknown_critical(&parsed, &HARMLESS),
            may_sign: usage
                .is_none_or(|usage| usage.digital_signature() || usage.non_repudiation()),
            is_for_servers: purposes.is_some_and(|purposes| purposes.value.server_auth),
        })
    }

    /// Parses all certificates of a PEM file in their order; other sections are skipped.
    pub fn all_from_pem(text: &[u8]) -> Result<Vec<Self>, NoCertificate> {
        let sections = CertificateDer::pem_slice_iter(text);
        let read = |section: Result<CertificateDer<'_>, _>| {
            section.map_or(Err(NoCertificate), |der| Self::from_der(&der))
        };
        let certificates: Vec<_> = sections.map(read).collect::<Result<_, _>>()?;
        (!certificates.is_empty())
            .then_some(certificates)
            .ok_or(NoCertificate)
    }

    /// Returns true if the certificate names a CA as its issuer. Verifies no signature.
    pub fn names_issuer(&self, authority: &Self) -> bool {
        self.issuer_der == authority.subject_der
    }

    /// Returns true if both certificates are of one subject, or of two with the same name.
    pub fn has_subject_of(&self, other: &Self) -> bool {
        self.subject_der == other.subject_der
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) | Self::Email(name) => f.write_str(&shown(name)),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Returns a name as text for people.
pub(crate) fn text(name: &X509Name<'_>) -> String {
    shown(&name.to_string())
}

/// Extensions of a trusted CA that change nothing without a required policy: identifiers of keys,
/// and policies (RFC 5280 section 6.1.1).
const HARMLESS: [Oid<'static>; 5] = [
    OID_X509_EXT_SUBJECT_KEY_IDENTIFIER,
    OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER,
    OID_X509_EXT_CERTIFICATE_POLICIES,
    OID_X509_EXT_POLICY_MAPPINGS,
    OID_X509_EXT_INHIBIT_ANY_POLICY,
];

/// Returns the name of the first critical extension that is neither one of these nor read by
/// webpki.
fn unknown_critical(certificate: &X509Certificate<'_>, these: &[Oid<'_>]) -> Option<String> {
    const READ: [Oid<'static>; 6] = [
        OID_X509_EXT_KEY_USAGE,
        OID_X509_EXT_SUBJECT_ALT_NAME,
        OID_X509_EXT_BASIC_CONSTRAINTS,
        OID_X509_EXT_NAME_CONSTRAINTS,
        OID_X509_EXT_CRL_DISTRIBUTION_POINTS,
        OID_X509_EXT_EXTENDED_KEY_USAGE,
    ];
    let mut extensions = certificate.extensions().iter();
    let is_read = |oid| READ.contains(oid) || these.contains(oid);
    let unknown = extensions.find(|one| one.critical && !is_read(&one.oid));
    unknown.map(|extension| object(&extension.oid))
}

/// Returns the short name of an object, or its numbers.
pub(crate) fn object(oid: &Oid<'_>) -> String {
    // A peer may send one of any length, before it has proved anything.
    const LONGEST: usize = 32;
    match oid2sn(oid, oid_registry()) {
        Ok(name) => name.to_owned(),
        Err(_) if oid.as_bytes().len() > LONGEST => "with a very long number".to_owned(),
        Err(_) => oid.to_id_string(),
    }
}

/// Returns the organisational units of a subject. One that is no text is left out.
fn units(subject: &X509Name<'_>) -> Vec<String> {
    let units = subject.iter_organizational_unit();
    let units = units.filter_map(|unit| unit.as_str().ok());
    units.map(shown).collect()
}

/// Returns a peer's text in a form that is safe for a terminal: short and without control
/// characters.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 200;
    let characters = text.chars().take(LONGEST);
    let visible = characters.map(|c| if c.is_control() { '\u{fffd}' } else { c });
    visible.collect()
}

/// Returns a name, if it is of a kind that an IKE identity can have.
pub(crate) fn name(name: &GeneralName<'_>) -> Option<Name> {
    match name {
        GeneralName::DNSName(text) => Some(Name::Dns((*text).to_owned())),
        GeneralName::RFC822Name(text) => Some(Name::Email((*text).to_owned())),
        GeneralName::IPAddress(octets) => {
            let v4 = <[u8; 4]>::try_from(*octets).map(IpAddr::from);
            let v6 = <[u8; 16]>::try_from(*octets).map(IpAddr::from);
            v4.or(v6).ok().map(Name::Address)
        }
        _ => None,
    }
}
