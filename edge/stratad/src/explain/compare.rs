//! The proposals of both ends, side by side, and their differences.

use control::{Row, Verdict};
use crypto::{Certificate, Name};
use model::{Licence, TrafficSelector, ZoneAgreement};
use node::{Attempt, BadProof, DownReason, End, Offer, Refusal};
use std::fmt::Display;
use wire::ike::{AuthMethod, GroupId, IntegrityId, NotifyType, Transform, TransformType};

/// A subject that both ends must agree on, in the order of the negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    IkeCipher,
    Prf,
    Integrity,
    KeyExchange,
    Kem,
    OurIdentity,
    TheirIdentity,
    Authentication,
    Ppk,
    OurCertificate,
    TheirCertificate,
    OurKey,
    TheirKey,
    EspCipher,
    EspIntegrity,
    SequenceNumbers,
    OurTraffic,
    TheirTraffic,
    Zones,
    Licences,
    Level,
}

impl Topic {
    const ALL: [Self; 21] = [
        Self::IkeCipher,
        Self::Prf,
        Self::Integrity,
        Self::KeyExchange,
        Self::Kem,
        Self::OurIdentity,
        Self::TheirIdentity,
        Self::Authentication,
        Self::Ppk,
        Self::OurCertificate,
        Self::TheirCertificate,
        Self::OurKey,
        Self::TheirKey,
        Self::EspCipher,
        Self::EspIntegrity,
        Self::SequenceNumbers,
        Self::OurTraffic,
        Self::TheirTraffic,
        Self::Zones,
        Self::Licences,
        Self::Level,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::IkeCipher => "IKE cipher",
            Self::Prf => "IKE PRF",
            Self::Integrity => "IKE integrity",
            Self::KeyExchange => "key exchange",
            Self::Kem => "KEM",
            Self::OurIdentity => "our identity",
            Self::TheirIdentity => "peer identity",
            Self::Authentication => "authentication",
            Self::Ppk => "PPK",
            Self::OurCertificate => "our certificate",
            Self::TheirCertificate => "peer certificate",
            Self::OurKey => "our public key",
            Self::TheirKey => "peer public key",
            Self::EspCipher => "ESP cipher",
            Self::EspIntegrity => "ESP integrity",
            Self::SequenceNumbers => "ESN",
            Self::OurTraffic => "prefixes here",
            Self::TheirTraffic => "prefixes there",
            Self::Zones => "zones",
            Self::Licences => "licences",
            Self::Level => "not encrypted",
        }
    }
}

/// Returns a row for every topic that an end has proposed something for, or that explains the
/// failure.
pub fn rows(attempt: &Attempt) -> Vec<Row> {
    let rows = Topic::ALL.map(|topic| row(topic, attempt));
    rows.into_iter().flatten().collect()
}

/// Returns the agreement of both ends on a topic.
pub fn verdict(topic: Topic, attempt: &Attempt) -> Verdict {
    let said = theirs(topic, attempt).is_some();
    let suspect = suspects(attempt).contains(&topic);
    match (said, suspect) {
        (true, _) if !fits(topic, attempt) => Verdict::Differs,
        (true, _) => Verdict::Fits,
        (false, true) => Verdict::Suspect,
        (false, false) => Verdict::Unknown,
    }
}

fn row(topic: Topic, attempt: &Attempt) -> Option<Row> {
    let (ours, theirs) = (ours(topic, &attempt.ours), theirs(topic, attempt));
    let level = |offer: &Offer| offer.zones.as_ref().and_then(|zones| zones.level);
    if topic == Topic::Level && level(&attempt.ours).or(level(&attempt.theirs)).is_none() {
        return None;
    }
    let silent = ours.is_none() && theirs.is_none();
    // A KEM that neither end proposes cannot cause the failure; a missing key or proof can.
    if silent && (topic == Topic::Kem || !suspects(attempt).contains(&topic)) {
        return None;
    }
    Some(Row {
        what: topic.name().to_owned(),
        ours: ours.unwrap_or_else(|| "none".to_owned()),
        theirs,
        verdict: verdict(topic, attempt),
    })
}

fn ours(topic: Topic, ours: &Offer) -> Option<String> {
    match topic {
        Topic::OurIdentity => ours.identity.as_ref().map(ToString::to_string),
        Topic::TheirIdentity => ours.expects.as_ref().map(ToString::to_string),
        Topic::OurCertificate => ours.certificate.as_deref().map(certificate),
        Topic::TheirCertificate => wanted(ours),
        Topic::OurKey => ours.key.as_ref().map(ToString::to_string),
        Topic::TheirKey => ours.expected_key.as_ref().map(ToString::to_string),
        Topic::OurTraffic => list(&ours.local),
        Topic::TheirTraffic => list(&ours.remote),
        _ => common(topic, ours),
    }
}

/// Returns the other end's proposal. Its `local` is our `remote`, and so on.
fn theirs(topic: Topic, attempt: &Attempt) -> Option<String> {
    let theirs = &attempt.theirs;
    match topic {
        Topic::Licences => {
            let mut zones = theirs.zones.clone()?;
            zones
                .licences
                .retain(|licence| !is_refused(licence, attempt));
            list(licences(&zones))
        }
        Topic::OurIdentity => theirs.expects.as_ref().map(ToString::to_string),
        Topic::TheirIdentity => theirs.identity.as_ref().map(ToString::to_string),
        Topic::TheirCertificate => theirs.certificate.as_deref().map(certificate),
        Topic::TheirKey => theirs.key.as_ref().map(ToString::to_string),
        // A response does not repeat the name.
        Topic::Ppk if theirs.ppk.as_deref() == Some("") => Some("the same".to_owned()),
        Topic::OurTraffic => list(&theirs.remote),
        Topic::TheirTraffic => list(&theirs.local),
        // A child proposal without zones wants none.
        Topic::Zones if theirs.zones.is_none() && !theirs.esp.is_empty() => Some("none".to_owned()),
        Topic::Level if theirs.zones.is_some() => {
            let level = theirs.zones.as_ref().and_then(|zones| zones.level);
            Some(level.map_or_else(|| "nothing".to_owned(), |grant| grant.to_string()))
        }
        _ => common(topic, theirs),
    }
}

fn common(topic: Topic, offer: &Offer) -> Option<String> {
    match topic {
        Topic::IkeCipher => list(of_type(TransformType::ENCR, &offer.ike)),
        Topic::Prf => list(of_type(TransformType::PRF, &offer.ike)),
        Topic::Integrity => list(of_type(TransformType::INTEG, &offer.ike)),
        Topic::KeyExchange => list(of_type(TransformType::KE, &offer.ike)),
        Topic::Kem => list(kems(offer)),
        Topic::Authentication => offer.auth.map(|method| proof(method, offer).to_owned()),
        Topic::Ppk => offer.ppk.clone(),
        Topic::EspCipher => list(of_type(TransformType::ENCR, &offer.esp)),
        Topic::EspIntegrity => list(of_type(TransformType::INTEG, &offer.esp)),
        Topic::SequenceNumbers => list(of_type(TransformType::ESN, &offer.esp)),
        Topic::Zones => offer.zones.as_deref().map(zones),
        Topic::Licences => list(offer.zones.as_deref().into_iter().flat_map(licences)),
        Topic::Level => Some(offer.zones.as_ref()?.level?.to_string()),
        Topic::OurIdentity
        | Topic::TheirIdentity
        | Topic::OurCertificate
        | Topic::TheirCertificate
        | Topic::OurKey
        | Topic::TheirKey
        | Topic::OurTraffic
        | Topic::TheirTraffic => None,
    }
}

fn fits(topic: Topic, attempt: &Attempt) -> bool {
    let Attempt { ours, theirs, .. } = attempt;
    match topic {
        Topic::IkeCipher => share(TransformType::ENCR, &ours.ike, &theirs.ike),
        Topic::Prf => share(TransformType::PRF, &ours.ike, &theirs.ike),
        Topic::Integrity => share_integrity(&ours.ike, &theirs.ike),
        Topic::KeyExchange => share(TransformType::KE, &ours.ike, &theirs.ike),
        // The transform type determines only the position of the exchange. After a success the
        // difference did not matter, because an end with a proposal can do without the exchange.
        Topic::Kem => {
            let both = kems(ours).any(|ours| kems(theirs).any(|theirs| ours.id == theirs.id));
            both || attempt.end == Some(End::Up)
        }
        Topic::OurIdentity => ours.identity == theirs.expects,
        Topic::TheirIdentity => ours.expects == theirs.identity,
        Topic::Authentication => {
            let signs = |offer: &Offer| offer.auth.map(AuthMethod::is_signature);
            signs(ours) == signs(theirs) && !suspects(attempt).contains(&topic)
        }
        Topic::Ppk => {
            let same = theirs.ppk.as_deref() == Some("") || ours.ppk == theirs.ppk;
            same && !suspects(attempt).contains(&topic)
        }
        // A peer reveals its opinion of our certificate or key only by refusing it.
        Topic::OurCertificate | Topic::OurKey => true,
        Topic::TheirCertificate | Topic::TheirKey => !suspects(attempt).contains(&topic),
        Topic::EspCipher => share(TransformType::ENCR, &ours.esp, &theirs.esp),
        Topic::EspIntegrity => share_integrity(&ours.esp, &theirs.esp),
        Topic::SequenceNumbers => share(TransformType::ESN, &ours.esp, &theirs.esp),
        Topic::OurTraffic => overlap(&ours.local, &theirs.remote),
        Topic::TheirTraffic => overlap(&ours.remote, &theirs.local),
        Topic::Zones => {
            let agreed = |offer: &Offer| {
                let zones = offer.zones.as_ref();
                zones.map(|z| (z.zones.clone(), z.map.clone()))
            };
            agreed(ours) == agreed(theirs)
        }
        Topic::Licences => {
            let theirs: Vec<_> = theirs.zones.iter().flat_map(|z| &z.licences).collect();
            let mut ours = ours.zones.iter().flat_map(|z| &z.licences);
            ours.all(|licence| theirs.contains(&licence) && !is_refused(licence, attempt))
        }
        // For the same datagrams, the smaller limits are agreed on.
        Topic::Level => {
            let class = |offer: &Offer| Some(offer.zones.as_ref()?.level?.class);
            class(ours) == class(theirs)
        }
    }
}

/// Returns true if the peer has refused a licence, which it may have accepted before.
fn is_refused(licence: &Licence, attempt: &Attempt) -> bool {
    let refused =
        |remark: &Refusal| matches!(remark, Refusal::LicenceNotAccepted(one) if one == licence);
    attempt.remarks.iter().any(refused)
}

/// Returns the proposed additional key exchanges.
fn kems(offer: &Offer) -> impl Iterator<Item = &Transform> {
    let all = offer.ike.iter();
    all.filter(|transform| transform.kind.is_additional() && transform.id != GroupId::NONE.0)
}

fn share(kind: TransformType, ours: &[Transform], theirs: &[Transform]) -> bool {
    of_type(kind, ours).any(|ours| of_type(kind, theirs).any(|theirs| ours == theirs))
}

/// Returns true if integrity algorithms agree. An AEAD needs none, and NONE next to it means the
/// same.
fn share_integrity(ours: &[Transform], theirs: &[Transform]) -> bool {
    let none = |integrity: &Transform| integrity.id == IntegrityId::NONE.0;
    of_type(TransformType::INTEG, theirs).any(none) || share(TransformType::INTEG, ours, theirs)
}

/// Returns the topics that explain the end of an attempt, even if the other end did not send its
/// proposal. For an attempt in progress, the answers so far are used.
fn suspects(attempt: &Attempt) -> &'static [Topic] {
    let lack = attempt.remarks.iter().find_map(|remark| match remark {
        Refusal::UnprovedLack(why) => Some(&**why),
        _ => None,
    });
    match (&attempt.end, attempt.theirs.error, lack) {
        (Some(End::Up), ..) => &[],
        (Some(End::Down(why)), ..) => of_end(why),
        (Some(End::Refused(why)), ..) => of_refusal(why),
        (None, Some(notify), _) => of_notify(notify),
        (None, None, Some(why)) => of_end(why),
        (None, None, None) => &[],
    }
}

const fn of_end(why: &DownReason) -> &'static [Topic] {
    match why {
        DownReason::WrongKey => &[Topic::Authentication],
        // A peer that has another identity than the expected one refuses like that, too.
        DownReason::AuthenticationRefused { .. } => &[
            Topic::OurIdentity,
            Topic::TheirIdentity,
            Topic::Authentication,
        ],
        DownReason::PpkRefused { .. } => &[
            Topic::Ppk,
            Topic::OurIdentity,
            Topic::TheirIdentity,
            Topic::Authentication,
        ],
        DownReason::NoPpk => &[Topic::Ppk],
        DownReason::BadProof(why) => of_proof(why),
        DownReason::KeyRefused { .. } => &[Topic::OurIdentity, Topic::TheirIdentity, Topic::OurKey],
        DownReason::CertificateRefused { .. }
        | DownReason::SignatureNotAccepted(_)
        | DownReason::CannotSign => &[Topic::OurCertificate],
        DownReason::Refused { notify } => of_notify(*notify),
        DownReason::ChildRefused { notify } => match *notify {
            NotifyType::NO_PROPOSAL_CHOSEN => &[Topic::EspCipher, Topic::SequenceNumbers],
            NotifyType::TS_UNACCEPTABLE => &[Topic::OurTraffic, Topic::TheirTraffic],
            NotifyType::ZONES_REQUIRED => &[Topic::Zones],
            _ => &[],
        },
        DownReason::ZonesRequired => &[Topic::Zones],
        _ => &[],
    }
}

const fn of_refusal(why: &Refusal) -> &'static [Topic] {
    match why {
        Refusal::WrongKey(_) | Refusal::AuthenticationMethod => &[Topic::Authentication],
        Refusal::BadProof { why, .. } => of_proof(why),
        Refusal::BadPpk { .. } => &[Topic::Ppk],
        Refusal::NoIkeProposal { .. } => &[Topic::Kem],
        Refusal::CannotProve | Refusal::SignatureNotAccepted(_) => &[Topic::OurCertificate],
        Refusal::ZonesRequired => &[Topic::Zones],
        _ => &[],
    }
}

const fn of_proof(why: &BadProof) -> &'static [Topic] {
    match why {
        BadProof::CertificateExpected | BadProof::SharedKeyExpected | BadProof::KeyExpected => {
            &[Topic::Authentication]
        }
        BadProof::AnotherKey { .. } | BadProof::WrongKey => &[Topic::TheirKey],
        _ => &[Topic::TheirCertificate],
    }
}

const fn of_notify(notify: NotifyType) -> &'static [Topic] {
    match notify {
        NotifyType::NO_PROPOSAL_CHOSEN => {
            &[Topic::IkeCipher, Topic::Prf, Topic::KeyExchange, Topic::Kem]
        }
        NotifyType::INVALID_KE_PAYLOAD => &[Topic::KeyExchange],
        _ => &[],
    }
}

fn of_type(kind: TransformType, transforms: &[Transform]) -> impl Iterator<Item = &Transform> {
    transforms
        .iter()
        .filter(move |transform| transform.kind == kind)
}

fn overlap(ours: &[TrafficSelector], theirs: &[TrafficSelector]) -> bool {
    let common = |a: &TrafficSelector| theirs.iter().any(|b| a.intersection(b).is_some());
    ours.iter().any(common)
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> Option<String> {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    (!items.is_empty()).then(|| items.join(", "))
}

/// Describes a proof. A signature without a certificate uses a raw public key that the other end
/// knows.
const fn proof(method: AuthMethod, offer: &Offer) -> &'static str {
    match method {
        AuthMethod::SHARED_KEY => "a pre-shared key",
        _ if method.is_signature() => match offer.certificate {
            None => "a public key",
            Some(_) => "a certificate",
        },
        _ => "another method",
    }
}

/// Describes the certificates that we accept from the peer.
fn wanted(ours: &Offer) -> Option<String> {
    let authorities = list(&ours.authorities)?;
    let identity = ours.expects.as_ref()?;
    Some(format!("for {identity}, by {authorities}"))
}

fn certificate(certificate: &Certificate) -> String {
    let names = certificate.names.iter().map(Name::to_string);
    let (issuer, end) = (&certificate.issuer, certificate.not_after);
    match list(names) {
        Some(names) => format!("for {names}, by {issuer}, until {end}"),
        None => format!("without a name, by {issuer}, until {end}"),
    }
}

fn zones(agreement: &ZoneAgreement) -> String {
    let zones = agreement.zones.iter();
    let names = zones.map(|zone| format!("{} {}", zone.selector, zone.suite));
    let names = names.collect::<Vec<_>>().join(", ");
    match agreement.fixed_runs() {
        runs if runs.is_empty() => names,
        runs => format!("{names}; in every packet {}", runs.join(", ")),
    }
}

fn licences(agreement: &ZoneAgreement) -> impl Iterator<Item = String> {
    let zone = |licence: &Licence| {
        let mut zones = agreement.zones.iter();
        let zone = zones.find(|zone| zone.id == licence.zone);
        zone.map_or_else(|| "?".to_owned(), |zone| zone.selector.to_string())
    };
    let licences = agreement.licences.iter();
    licences.map(move |licence| {
        format!(
            "{} {}s {}",
            licence.node,
            licence.right.name(),
            zone(licence)
        )
    })
}
