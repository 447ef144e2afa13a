//! Agreeing on zones, and their keys (DESIGN sections 3 and 5).
//!
//! The initiator puts a ZONE_MAP notify with its zones, window and licences beside its child's
//! offer. The responder answers with what both allow: the same zones, the smaller window, the
//! licences that both policies hold. The initiator accepts nothing that it did not offer. The
//! agreement enters the key derivation in its one canonical form, so ends that understood it
//! differently share no key.
//!
//! Licences come and go while packets flow: new keys are made whose agreement has those of both
//! policies of then. So either end alone can take one back, and neither can give one alone.
//!
//! ```text
//! H      = SHA-256("Strata zone map 1" | ZONE_MAP | SPI of the initiator | SPI of the responder)
//! KEYMAT = prf+(SK_d, [g^ir |] Ni | Nr | H)
//!        = (encryption key | HMAC key | salt) of zones 1 to P, initiator to responder, then back
//! ```

use crate::config::{Stance, ZonePolicy};
use crate::exchange::{find_notify, notify};
use crate::keys::{ChildKeys, own_first};
use crypto::sha256;
use model::{Half, Keys, Licence, MapKind, Spi, Zone, ZoneAgreement, ZoneId, ZoneKey};
use wire::ike::{Message, NotifyType, Payload, decode_zone_map, encode_zone_map};

const LABEL: &[u8] = b"Strata zone map 1";

/// Zones are required at one end and not agreed.
pub(crate) struct Required;

/// What the initiator offers; nothing if its policy refuses zones.
pub(crate) fn offer(policy: &ZonePolicy) -> Option<ZoneAgreement> {
    (policy.stance != Stance::Refuse && policy.zones.len() > 1).then(|| everything(policy))
}

/// The notify for an offer or an answer.
pub(crate) fn payload(agreement: &ZoneAgreement) -> Payload {
    notify(NotifyType::ZONE_MAP, encode_zone_map(agreement))
}

/// The agreement a message carries. One that cannot be read counts as none.
pub(crate) fn read(message: &Message) -> Option<ZoneAgreement> {
    decode_zone_map(&find_notify(message, NotifyType::ZONE_MAP)?.data).ok()
}

/// What the responder agrees to.
pub(crate) fn answer(
    policy: &ZonePolicy,
    offered: Option<ZoneAgreement>,
) -> Result<Option<ZoneAgreement>, Required> {
    let ours = offer(policy);
    let common = ours.zip(offered).and_then(|(ours, offered)| {
        (ours.zones == offered.zones && ours.map == offered.map).then(|| ZoneAgreement {
            window: ours.window.min(offered.window),
            licences: common_licences(&ours.licences, &offered.licences),
            ..ours
        })
    });
    match (policy.stance, common) {
        (Stance::Require, None) => Err(Required),
        (_, common) => Ok(common),
    }
}

/// What is left of an agreement when its SA is made anew: the zones and the window are never more
/// than there was, and licences are those of the policies of now. One that was plain stays plain.
pub(crate) fn renew(
    policy: &ZonePolicy,
    offered: Option<ZoneAgreement>,
    before: Option<&ZoneAgreement>,
) -> Result<Option<ZoneAgreement>, Required> {
    let both = answer(policy, offered)?.zip(before);
    let same = both.filter(|(agreed, before)| agreed.zones == before.zones);
    Ok(same.map(|(agreed, before)| ZoneAgreement {
        window: agreed.window.min(before.window),
        ..agreed
    }))
}

/// The licences of a policy, as an agreement has them.
pub(crate) fn licences(policy: &ZonePolicy) -> Vec<Licence> {
    let mut licences = policy.licences.clone();
    licences.sort();
    licences.dedup();
    licences
}

/// What the initiator makes of an answer.
pub(crate) enum Outcome {
    /// Both ends agree, perhaps on plain ESP.
    Agreed(Option<ZoneAgreement>),
    /// Our policy requires zones.
    Required,
    /// The peer answered with more than was offered.
    Widened,
}

/// Compares the answer with the offer.
pub(crate) fn check(
    policy: &ZonePolicy,
    offered: Option<&ZoneAgreement>,
    answered: Option<ZoneAgreement>,
) -> Outcome {
    match (offered, answered) {
        (Some(offered), Some(answered)) if is_within(&answered, offered) => {
            Outcome::Agreed(Some(answered))
        }
        (_, Some(_)) => Outcome::Widened,
        (_, None) if policy.stance == Stance::Require => Outcome::Required,
        (_, None) => Outcome::Agreed(None),
    }
}

/// Whether an agreement has a licence that a policy does not have any more.
pub(crate) fn takes_back(policy: &ZonePolicy, agreement: &ZoneAgreement) -> bool {
    let mut agreed = agreement.licences.iter();
    agreed.any(|licence| !policy.licences.contains(licence))
}

/// Licences that we asked for and that the agreement lacks.
pub(crate) fn missing_licences<'a>(
    asked: &'a [Licence],
    agreement: &ZoneAgreement,
) -> impl Iterator<Item = &'a Licence> {
    let ours = asked.iter();
    ours.filter(|licence| !agreement.licences.contains(licence))
}

/// Both directions of a composite SA, inbound first.
pub(crate) fn halves(
    keys: &ChildKeys,
    agreement: &ZoneAgreement,
    initiator: bool,
    own_spi: Spi,
    peer_spi: Spi,
) -> (Half<crypto::Secret>, Half<crypto::Secret>) {
    let (spi_i, spi_r) = own_first(initiator, own_spi, peer_spi);
    let bound = sha256(&[
        LABEL,
        &encode_zone_map(agreement),
        &spi_i.0.to_be_bytes(),
        &spi_r.0.to_be_bytes(),
    ]);
    let one_way: usize = agreement
        .zones
        .iter()
        .map(|zone| zone.suite.keymat_len())
        .sum();
    let mut keymat = keys.keymat(&bound, 2 * one_way);
    let mut direction = || {
        let zone_key = |zone: &Zone| ZoneKey {
            zone: zone.id,
            suite: zone.suite,
            key: keymat
                .split_off_front(zone.suite.keymat_len())
                .expect("the length was summed up from the same zones"),
        };
        agreement.zones.iter().map(zone_key).collect::<Vec<_>>()
    };
    let (from_initiator, to_initiator) = (direction(), direction());
    let (outbound, inbound) = own_first(initiator, from_initiator, to_initiator);
    let half = |spi, keys| Half {
        spi,
        keys: Keys::Zoned(keys),
    };
    (half(own_spi, inbound), half(peer_spi, outbound))
}

fn everything(policy: &ZonePolicy) -> ZoneAgreement {
    let zones = policy.zones.iter().zip(1..);
    ZoneAgreement {
        zones: zones
            .map(|(&(selector, suite), serial)| Zone {
                id: ZoneId(serial),
                selector,
                suite,
            })
            .collect(),
        map: MapKind::Changeable,
        window: policy.window,
        licences: licences(policy),
    }
}

/// Both lists are sorted, so the result is.
fn common_licences(ours: &[Licence], theirs: &[Licence]) -> Vec<Licence> {
    let both = ours.iter().filter(|licence| theirs.contains(licence));
    both.cloned().collect()
}

fn is_within(answered: &ZoneAgreement, offered: &ZoneAgreement) -> bool {
    answered.zones == offered.zones
        && answered.map == offered.map
        && answered.window <= offered.window
        && answered
            .licences
            .iter()
            .all(|licence| offered.licences.contains(licence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{licence, two_zones};
    use model::ZoneSuite;

    fn policy(stance: Stance) -> ZonePolicy {
        two_zones(stance, "node.example")
    }

    fn check_changed(change: fn(&mut ZoneAgreement)) -> bool {
        let policy = policy(Stance::Accept);
        let offered = offer(&policy).unwrap();
        let mut answered = offered.clone();
        change(&mut answered);
        matches!(
            check(&policy, Some(&offered), Some(answered)),
            Outcome::Agreed(Some(_))
        )
    }

    #[test]
    fn an_answer_may_be_less_than_the_offer() {
        assert!(check_changed(|_| {}));
        assert!(check_changed(|answer| answer.licences.clear()));
        assert!(check_changed(|answer| answer.window = 4096));
    }

    #[test]
    fn an_answer_that_widens_anything_is_refused() {
        assert!(!check_changed(|a| a
            .licences
            .push(licence("thief.example"))));
        assert!(!check_changed(|a| a.licences[0].zone = ZoneId(2)));
        assert!(!check_changed(|a| a.window += 1));
        assert!(!check_changed(|a| a.zones[0].suite = ZoneSuite::Aes256Gcm16));
        assert!(!check_changed(|a| a.zones.swap(0, 1)));
    }

    #[test]
    fn zones_and_window_made_anew_are_never_more_than_before() {
        let policy = policy(Stance::Accept);
        let wide = offer(&policy).unwrap();
        let mut narrow = wide.clone();
        narrow.window = 4096;
        let renewed = |offered: &ZoneAgreement, before: Option<&ZoneAgreement>| {
            let renewed = renew(&policy, Some(offered.clone()), before);
            renewed.unwrap_or_else(|Required| panic!("zones are not required"))
        };
        assert_eq!(renewed(&wide, Some(&wide)), Some(wide.clone()));
        assert_eq!(renewed(&wide, Some(&narrow)), Some(narrow.clone()));
        assert_eq!(renewed(&narrow, Some(&wide)), Some(narrow));
        assert_eq!(renewed(&wide, None), None);
    }

    #[test]
    fn licences_made_anew_are_those_of_both_policies_whatever_they_were() {
        let policy = policy(Stance::Accept);
        let ours = offer(&policy).unwrap();
        let with = |licences: &[Licence]| ZoneAgreement {
            licences: licences.to_vec(),
            ..ours.clone()
        };
        let renewed = |offered: &ZoneAgreement, before: &ZoneAgreement| {
            let renewed = renew(&policy, Some(offered.clone()), Some(before));
            let renewed = renewed.unwrap_or_else(|Required| panic!("zones are not required"));
            renewed.unwrap().licences
        };
        let (none, thief) = (with(&[]), with(&[licence("thief.example")]));
        assert_eq!(renewed(&ours, &none), ours.licences);
        assert_eq!(renewed(&none, &ours), []);
        assert_eq!(renewed(&thief, &thief), [], "our policy does not have it");
    }

    #[test]
    fn an_answer_without_an_offer_is_refused() {
        let policy = policy(Stance::Refuse);
        let answered = offer(&ZonePolicy {
            stance: Stance::Accept,
            ..policy.clone()
        });
        assert!(matches!(check(&policy, None, answered), Outcome::Widened));
    }

    #[test]
    fn no_answer_is_enough_only_where_zones_are_not_required() {
        let outcome = |stance| {
            let policy = policy(stance);
            check(&policy, offer(&policy).as_ref(), None)
        };
        assert!(matches!(outcome(Stance::Accept), Outcome::Agreed(None)));
        assert!(matches!(outcome(Stance::Refuse), Outcome::Agreed(None)));
        assert!(matches!(outcome(Stance::Require), Outcome::Required));
    }
}
