//! Makes chains of certificates that say what a test wants.

use config::PrivateKey;
use crypto::{KeyKind, PublicKey};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, CustomExtension, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyIdMethod, KeyUsagePurpose,
    NameConstraints, SanType, date_time_ymd,
};

/// A change to one certificate of a good chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    NoKeyUsage,
    NoCertSign,
    NoCa,
    PathLen(u8),
    Future,
    Past,
    UnknownCritical,
    UnknownPlain,
    CriticalPolicies,
    /// Constraints that the names of the end keep (true) or not.
    Permitted(Kind, bool),
    Excluded(Kind, bool),
    NoSignature,
    EndIsCa,
    For(Purpose),
}

/// A kind of name. The end has one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Dns,
    Address,
    Mail,
    Uri,
    Directory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Servers,
    Ike,
    Any,
}

const KINDS: [Kind; 5] = [
    Kind::Dns,
    Kind::Address,
    Kind::Mail,
    Kind::Uri,
    Kind::Directory,
];

/// Returns all changes that a CA can have.
pub fn of_authorities() -> Vec<Change> {
    use Change::*;
    let plain = [
        NoKeyUsage,
        NoCertSign,
        NoCa,
        PathLen(0),
        PathLen(1),
        PathLen(2),
        PathLen(3),
    ];
    let names = KINDS.into_iter().flat_map(|kind| {
        let made = [true, false];
        made.map(|keeps| Permitted(kind, keeps))
            .into_iter()
            .chain(made.map(|keeps| Excluded(kind, keeps)))
    });
    plain.into_iter().chain(of_all()).chain(names).collect()
}

/// Returns all changes that the certificate at the end can have.
pub fn of_ends() -> Vec<Change> {
    use Change::*;
    let purposes = [Purpose::Servers, Purpose::Ike, Purpose::Any].map(For);
    let plain = [NoKeyUsage, NoSignature, EndIsCa].into_iter();
    plain.chain(of_all()).chain(purposes).collect()
}

fn of_all() -> [Change; 5] {
    use Change::*;
    [
        Future,
        Past,
        UnknownCritical,
        UnknownPlain,
        CriticalPolicies,
    ]
}

/// The keys of a chain, the root's first.
pub struct Factory {
    keys: Vec<Key>,
}

impl Factory {
    /// Creates keys for chains of this many certificates.
    pub fn new(length: usize) -> Self {
        let keys = (0..length).map(|_| Key::new()).collect();
        Self { keys }
    }

    /// Issues a chain, the root first. Each change is made to the certificate of this place.
    pub fn issue(&self, changes: &[(usize, Change)]) -> Vec<rcgen::Certificate> {
        let last = self.keys.len() - 1;
        let drafts = (0..=last).map(|place| {
            let mut draft = match place == last {
                true => end(),
                false => authority(place),
            };
            let number = place as u8 + 1;
            draft.serial_number = Some(vec![number].into());
            draft.key_identifier_method = KeyIdMethod::PreSpecified(vec![number]);
            let its = changes.iter().filter(|(at, _)| *at == place);
            its.for_each(|(_, change)| change.make(&mut draft));
            draft
        });
        let drafts: Vec<_> = drafts.collect();
        let issued = drafts.iter().enumerate().map(|(place, draft)| {
            let above = place.saturating_sub(1);
            let issuer = Issuer::from_params(&drafts[above], &self.keys[above]);
            draft
                .signed_by(&self.keys[place], &issuer)
                .expect("the draft is a certificate")
        });
        issued.collect()
    }
}

fn draft(name: &str) -> CertificateParams {
    let mut draft = CertificateParams::default();
    draft.distinguished_name = DistinguishedName::new();
    draft.distinguished_name.push(DnType::CommonName, name);
    draft.not_before = date_time_ymd(2025, 1, 1);
    draft.not_after = date_time_ymd(2045, 1, 1);
    draft
}

fn authority(place: usize) -> CertificateParams {
    let mut draft = draft(&format!("CA {place}"));
    draft.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    draft.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    draft
}

fn end() -> CertificateParams {
    let mut draft = draft("end");
    draft.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let text = |text: &str| text.try_into().expect("it is ASCII");
    draft.subject_alt_names = vec![
        SanType::DnsName(text("gw.example.net")),
        SanType::IpAddress([192, 0, 2, 1].into()),
        SanType::Rfc822Name(text("gw@example.net")),
        SanType::URI(text("https://gw.example.net/")),
    ];
    draft
}

impl Change {
    fn make(self, draft: &mut CertificateParams) {
        match self {
            Self::NoKeyUsage => draft.key_usages.clear(),
            Self::NoCertSign => draft.key_usages = vec![KeyUsagePurpose::CrlSign],
            Self::NoCa => draft.is_ca = IsCa::ExplicitNoCa,
            Self::PathLen(most) => draft.is_ca = IsCa::Ca(BasicConstraints::Constrained(most)),
            Self::Future => draft.not_before = date_time_ymd(2031, 1, 1),
            Self::Past => draft.not_after = date_time_ymd(2029, 1, 1),
            Self::UnknownCritical => draft.custom_extensions.push(unknown(true)),
            Self::UnknownPlain => draft.custom_extensions.push(unknown(false)),
            Self::CriticalPolicies => draft.custom_extensions.push(policies()),
            Self::Permitted(Kind::Uri, keeps) => draft.custom_extensions.push(uris(0xa0, keeps)),
            Self::Excluded(Kind::Uri, keeps) => draft.custom_extensions.push(uris(0xa1, !keeps)),
            Self::Permitted(kind, keeps) => {
                constraints(draft)
                    .permitted_subtrees
                    .push(kind.subtree(keeps));
            }
            Self::Excluded(kind, keeps) => {
                constraints(draft)
                    .excluded_subtrees
                    .push(kind.subtree(!keeps));
            }
            Self::NoSignature => draft.key_usages = vec![KeyUsagePurpose::KeyEncipherment],
            Self::EndIsCa => draft.is_ca = IsCa::Ca(BasicConstraints::Unconstrained),
            Self::For(purpose) => draft.extended_key_usages.push(match purpose {
                Purpose::Servers => ExtendedKeyUsagePurpose::ServerAuth,
                Purpose::Ike => ExtendedKeyUsagePurpose::Other(vec![1, 3, 6, 1, 5, 5, 7, 3, 17]),
                Purpose::Any => ExtendedKeyUsagePurpose::Any,
            }),
        }
    }
}

fn constraints(draft: &mut CertificateParams) -> &mut NameConstraints {
    draft.name_constraints.get_or_insert(NameConstraints {
        permitted_subtrees: Vec::new(),
        excluded_subtrees: Vec::new(),
    })
}

impl Kind {
    /// Returns names that are those of the end, or others.
    fn subtree(self, ends: bool) -> GeneralSubtree {
        let domain = if ends { "example.net" } else { "example.org" };
        match self {
            Self::Dns => GeneralSubtree::DnsName(domain.to_owned()),
            Self::Mail => GeneralSubtree::Rfc822Name(domain.to_owned()),
            Self::Address if ends => {
                GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix([192, 0, 2, 0], 24))
            }
            Self::Address => {
                GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix([198, 51, 100, 0], 24))
            }
            Self::Directory | Self::Uri => {
                let mut name = DistinguishedName::new();
                name.push(DnType::CommonName, if ends { "end" } else { "another" });
                GeneralSubtree::DirectoryName(name)
            }
        }
    }
}

fn unknown(critical: bool) -> CustomExtension {
    let mut extension = CustomExtension::from_oid_content(&[1, 2, 3, 4, 5], vec![5, 0]);
    extension.set_criticality(critical);
    extension
}

/// Policies that are critical: one of the CA/Browser forum's.
fn policies() -> CustomExtension {
    let policy = [0x30, 10, 0x30, 8, 6, 6, 0x67, 0x81, 0x0c, 1, 2, 1];
    let mut extension = CustomExtension::from_oid_content(&[2, 5, 29, 32], policy.into());
    extension.set_criticality(true);
    extension
}

/// Constraints on URIs, which rcgen does not write.
fn uris(tag: u8, ends: bool) -> CustomExtension {
    let host: &[u8] = if ends {
        b".example.net"
    } else {
        b".example.org"
    };
    let length = host.len() as u8;
    let head = [
        0x30,
        length + 6,
        tag,
        length + 4,
        0x30,
        length + 2,
        0x86,
        length,
    ];
    let mut extension =
        CustomExtension::from_oid_content(&[2, 5, 29, 30], [&head[..], host].concat());
    extension.set_criticality(true);
    extension
}

/// A key for ECDSA.
struct Key(PrivateKey, PublicKey);

impl Key {
    fn new() -> Self {
        let (private, _) = PrivateKey::generate(KeyKind::P256).expect("the system has randomness");
        let public = private.public().clone();
        Self(private, public)
    }
}

impl rcgen::PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        &self.1.octets
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

impl rcgen::SigningKey for Key {
    fn sign(&self, octets: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        self.0.sign(octets).ok_or(rcgen::Error::RemoteKeyError)
    }
}
