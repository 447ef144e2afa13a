//! Issues certificates and revocation lists, which rcgen encodes.

use super::key::{Key, Subject, new_key};
use super::{folder, names};
use control::Failure;
use crypto::{
    Certificate, KeyKind, PublicKey, RevocationList, Revoked, TrustStore, UnixTime, sha1,
};
use model::Identity;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyUsagePurpose, RevokedCertParams, SerialNumber,
};
use std::path::Path;
use std::time::Duration;
use zeroize::Zeroizing;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// A CA that can issue certificates.
pub(super) struct Authority {
    /// Certificate of the CA, then those of the CAs above it, without the root.
    chain: Vec<Certificate>,
    key: Key,
}

/// Content of a host's certificate.
pub(super) struct Host {
    /// Names of the host, at least one. The first one is its `id`.
    pub(super) names: Vec<Identity>,
    /// Organisational unit of the subject.
    pub(super) unit: Option<String>,
    /// True for a gateway of clients that require the key usage serverAuth.
    pub(super) is_gateway: bool,
    pub(super) key: HostKey,
}

/// Key of a host's certificate.
pub(super) enum HostKey {
    /// A new key of this kind.
    New(KeyKind),
    /// The key of a request.
    Requested(PublicKey),
}

/// A new certificate with its key.
pub(super) struct Issued {
    /// The certificate, then the intermediate certificates up to the root, without the root.
    pub(super) chain: Vec<Certificate>,
    /// The new private key, as PKCS #8 in DER.
    pub(super) key: Option<Zeroizing<Vec<u8>>>,
}

impl Host {
    /// Refuses the certificate of a gateway that its clients would refuse.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if !self.is_gateway {
            return Ok(());
        }
        if !self.names.iter().any(names::is_reachable) {
            return Err(Failure::new(
                format!(
                    "clients cannot connect to `{}`: it is a mail address",
                    self.names[0]
                ),
                "add the name or address that they connect to, as in `--also gw.example.net`",
            ));
        }
        match &self.key {
            HostKey::Requested(key) if key.kind == KeyKind::Ed25519 => Err(Failure::new(
                "the request has an Ed25519 key, which the clients that need `--server` refuse",
                "get a request for an ECDSA or RSA key, or omit `--server`",
            )),
            HostKey::New(_) | HostKey::Requested(_) => Ok(()),
        }
    }
}

impl Authority {
    /// Opens the CA in a folder in which the result of [`new_authority`] was saved.
    pub(super) fn open(folder: &Path) -> Result<Self, Failure> {
        let chain = folder::certificates(&folder.join("ca.pem"))?;
        let key = Key::new(folder::key(&folder.join("ca.key"))?);
        if chain[0].key.as_ref() != Some(&key.subject.0) || !chain[0].is_ca {
            return Err(Failure::new(
                format!(
                    "ca.pem in {} does not begin with the CA of ca.key",
                    folder.display()
                ),
                "name a folder made by `strata pki ca`",
            ));
        }
        if key.subject.0.kind == KeyKind::Rsa {
            return Err(Failure::new(
                "the CA has an RSA key, and Strata does not sign with RSA",
                "use a CA made by `strata pki ca`, or issue with the tool that made this one",
            ));
        }
        if chain[0].not_after <= config::today() {
            return Err(Failure::new(
                format!(
                    "the CA in {} expired on {}",
                    folder.display(),
                    chain[0].not_after
                ),
                "create a new CA with `strata pki ca`",
            ));
        }
        Ok(Self { chain, key })
    }

    /// Issues a certificate for a host.
    pub(super) fn issue(&self, host: &Host, days: u64) -> Result<Issued, Failure> {
        let mut params = params(&host.names[0].to_string(), days);
        if let Some(unit) = &host.unit {
            let subject = &mut params.distinguished_name;
            subject.push(DnType::OrganizationalUnitName, unit);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = purposes(host.is_gateway);
        params.is_ca = IsCa::ExplicitNoCa;
        params.subject_alt_names =
            names::alternatives(&host.names, host.is_gateway).map_err(unfit)?;
        let (public, key) = match &host.key {
            HostKey::New(kind) => {
                let (key, der) = new_key(*kind)?;
                (key.public().clone(), Some(der))
            }
            HostKey::Requested(public) => (public.clone(), None),
        };
        let chain = self.certify(params, &Subject(public))?;
        // Verifies the certificate as peers will, before it is handed out.
        let ders: Vec<_> = chain.iter().map(|one| one.der.clone()).collect();
        let trust = TrustStore::new(vec![self.chain[0].clone()]);
        trust.verify(&ders, config::today()).map_err(unfit)?;
        Ok(Issued { chain, key })
    }

    /// Issues a certificate for a key. Returns it with the intermediate certificates up to the
    /// root.
    fn certify(
        &self,
        mut params: CertificateParams,
        subject: &Subject,
    ) -> Result<Vec<Certificate>, Failure> {
        identify(&mut params, subject);
        params.not_after = params.not_after.min(date(self.chain[0].not_after));
        let made = read(params.signed_by(subject, &self.issuer()?))?;
        let middle = self.chain.iter().filter(|ca| ca.subject != ca.issuer);
        Ok(std::iter::once(&made).chain(middle).cloned().collect())
    }

    /// Returns the subject of the CA's certificate.
    pub(super) fn name(&self) -> &str {
        &self.chain[0].subject
    }

    /// Signs a revocation list.
    pub(super) fn revoke(
        &self,
        revoked: &[Revoked],
        number: u64,
        days: u64,
    ) -> Result<RevocationList, Failure> {
        let now = config::today();
        let revoked = revoked.iter().map(|one| RevokedCertParams {
            serial_number: SerialNumber::from_slice(&one.serial),
            revocation_time: date(one.since),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: date(now),
            next_update: date(UnixTime(now.0 + days * DAY)),
            crl_number: SerialNumber::from(number),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: self.key.subject.identifier(),
        };
        let made = params.signed_by(&self.issuer()?).map_err(unfit)?;
        RevocationList::from_der(made.der()).map_err(unfit)
    }

    /// Returns the CA as an issuer, with the name that `strata pki ca` wrote.
    fn issuer(&self) -> Result<Issuer<'static, &Key>, Failure> {
        let subject = &self.chain[0].subject;
        let name = subject.strip_prefix("CN=").ok_or_else(|| {
            Failure::new(
                format!("unsupported name of the CA, `{subject}`: only a CN is supported"),
                "use a CA made by `strata pki ca`",
            )
        })?;
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.key_identifier_method = self.key.subject.identifier();
        Ok(Issuer::new(params, &self.key))
    }
}

/// Creates a root CA, or a CA below another one.
pub(super) fn new_authority(
    name: &str,
    above: Option<&Authority>,
    kind: KeyKind,
    days: u64,
) -> Result<Issued, Failure> {
    let mut params = params(name, days);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let (key, der) = new_key(kind)?;
    let key = Key::new(key);
    let chain = match above {
        Some(above) => above.certify(params, &key.subject)?,
        None => {
            identify(&mut params, &key.subject);
            vec![read(params.self_signed(&key))?]
        }
    };
    Ok(Issued {
        chain,
        key: Some(der),
    })
}

/// Returns the extended key usages. "CAs SHOULD NOT include the ExtendedKeyUsage extension in
/// certificates for use with IKE" (RFC 4945 section 5.1.3.12), but clients of Windows and Apple
/// require serverAuth of a gateway. Other peers, which follow the RFC, then need ipsecIKE.
fn purposes(is_gateway: bool) -> Vec<ExtendedKeyUsagePurpose> {
    const IPSEC_IKE: [u64; 9] = [1, 3, 6, 1, 5, 5, 7, 3, 17];
    // iKEIntermediate, which old versions of macOS require.
    const INTERMEDIATE: [u64; 9] = [1, 3, 6, 1, 5, 5, 8, 2, 2];
    match is_gateway {
        true => vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::Other(IPSEC_IKE.to_vec()),
            ExtendedKeyUsagePurpose::Other(INTERMEDIATE.to_vec()),
        ],
        false => Vec::new(),
    }
}

/// Returns the common parameters. Validity starts an hour ago, because other clocks may be behind.
fn params(name: &str, days: u64) -> CertificateParams {
    let now = config::today().0;
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date(UnixTime(now.saturating_sub(HOUR)));
    params.not_after = date(UnixTime(now + days * DAY));
    params.use_authority_key_identifier_extension = true;
    params
}

/// Converts a time to rcgen's type.
fn date(time: UnixTime) -> time::OffsetDateTime {
    rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(time.0)
}

/// Adds the identifier of the key, and a serial number that is unique and unpredictable, also for
/// another certificate of the same key (RFC 5280 section 4.1.2.2). The first bit of the number is
/// clear, as in any positive number.
fn identify(params: &mut CertificateParams, subject: &Subject) {
    let mut number = sha1(&[&subject.0.octets, &os::entropy::seed()]);
    number[0] = number[0] & 0x7f | 0x40;
    params.serial_number = Some(SerialNumber::from_slice(&number));
    params.key_identifier_method = subject.identifier();
}

fn read(made: Result<rcgen::Certificate, rcgen::Error>) -> Result<Certificate, Failure> {
    Certificate::from_der(made.map_err(unfit)?.der()).map_err(unfit)
}

fn unfit(error: impl std::fmt::Display) -> Failure {
    Failure::new(
        format!("cannot create the certificate or list: {error}"),
        "use another name, or a CA made by `strata pki ca`",
    )
}
