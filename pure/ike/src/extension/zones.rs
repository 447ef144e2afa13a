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
//! H      = SHA-256("Strata zone map 1" | ZONE_MAP | SPI of the initiator | SPI of the responder
//!                  [| SPIs of the opaque SA, in that order]
//!                  [| LEVEL_GRANT | SPIs of what goes without encryption, in that order])
//! KEYMAT = prf+(SK_d, [g^ir |] Ni | Nr | H)
//!        = (encryption key | HMAC key | salt) of zones 1 to P, initiator to responder, then back,
//!          then root_w | root_inj of both directions in the same order
//!          [| keys of the opaque SA, initiator to responder, then back]
//!          [| keys of what goes without encryption, in the same order]
//!          [| root_tok of a slot]
//! ```
//!
//! root_w is what the keys of those are made of who may write, and root_inj of those who may inject, if anybody
//! may. root_tok is what the keys of tokens are made of, for each licensed node (`migration.rs`).
//!
//! An SA with a fixed map has an opaque one beside it, for datagrams that the map does not fit. It is agreed on
//! in the same exchange, by the SPI that the notify has then, and it comes and goes with the other one. So does
//! the SA for what goes without encryption, by a notify of its own (`level.rs`).

use crate::config::{Stance, ZonePolicy};
use crate::exchange::find_notify;
use crate::extension::level;
use crate::keys::{ChildKeys, PRF, own_first};
use crypto::{Secret, sha256};
use model::{
    BesideSa, Half, Keys, Licence, Right, Spi, Zone, ZoneAgreement, ZoneId, ZoneKey, ZoneSelector,
};
use wire::esp::FIRST_SPI;
use wire::ike::{
    Message, Notify, NotifyType, Payload, Protocol, decode_zone_map, encode_level, encode_zone_map,
};

const LABEL: &[u8] = b"Strata zone map 1";

/// Zones are required at one end and not agreed.
pub(crate) struct Required;

/// What the initiator offers; nothing if its policy refuses zones.
pub(crate) fn offer(policy: &ZonePolicy) -> Option<ZoneAgreement> {
    wants_any(policy).then(|| everything(policy))
}

fn wants_any(policy: &ZonePolicy) -> bool {
    policy.stance != Stance::Refuse && policy.zones.len() > 1
}

/// What the first zone of a policy that wants any asks for.
pub(crate) fn first(policy: &ZonePolicy) -> Option<ZoneSelector> {
    let first = policy.zones.first().filter(|_| wants_any(policy));
    first.map(|(selector, _)| *selector)
}

/// An agreement as a message carries it.
#[derive(Clone)]
pub(crate) struct ZoneMap {
    pub(crate) agreement: ZoneAgreement,
    /// Where the message's sender receives the SAs beside.
    pub(crate) beside: Beside<Spi>,
}

/// Something about each SA beside a composite one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beside<T> {
    /// The one for what does not fit the map, if that is fixed.
    pub(crate) opaque: Option<T>,
    /// The one for what goes without encryption, if anything may.
    pub(crate) integrity: Option<T>,
}

impl<T> Default for Beside<T> {
    fn default() -> Self {
        Self {
            opaque: None,
            integrity: None,
        }
    }
}

impl Beside<Spi> {
    /// Both directions of each that both ends have, ours first.
    pub(crate) fn zip(self, peers: Self) -> Beside<Spis> {
        Beside {
            opaque: self.opaque.zip(peers.opaque),
            integrity: self.integrity.zip(peers.integrity),
        }
    }
}

impl ZoneMap {
    /// An agreement with an SPI for each SA that there is to be beside.
    pub(crate) fn new(agreement: ZoneAgreement, mut spi: impl FnMut() -> Spi) -> Self {
        let beside = Beside {
            opaque: agreement.map.is_fixed().then(&mut spi),
            integrity: agreement.level.map(|_| spi()),
        };
        Self { agreement, beside }
    }

    /// The notifies for an offer or an answer.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = Payload> {
        let spi = self.beside.opaque.map(|spi| spi.0.to_be_bytes().to_vec());
        let map = Payload::Notify(Notify {
            protocol: spi.as_ref().map_or(Protocol::NONE, |_| Protocol::ESP),
            spi: spi.unwrap_or_default(),
            ..Notify::new(NotifyType::ZONE_MAP, encode_zone_map(&self.agreement))
        });
        let level = self.agreement.level.zip(self.beside.integrity);
        let level = level.map(|(grant, spi)| level::payload(&grant, spi));
        std::iter::once(map).chain(level)
    }

    /// What a message carries. One that cannot be read counts as none.
    pub(crate) fn read(message: &Message) -> Option<Self> {
        let notify = find_notify(message, NotifyType::ZONE_MAP)?;
        let agreement = decode_zone_map(&notify.data).ok()?;
        let spi = <[u8; 4]>::try_from(notify.spi.as_slice());
        let opaque = spi.ok().map(|spi| Spi(u32::from_be_bytes(spi)));
        let opaque = opaque.filter(|spi| *spi >= FIRST_SPI);
        let (level, integrity) = level::read(message).unzip();
        (opaque.is_some() == agreement.map.is_fixed()).then_some(Self {
            agreement: ZoneAgreement { level, ..agreement },
            beside: Beside { opaque, integrity },
        })
    }
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
            level: level::common(ours.level, offered.level),
            ..ours
        })
    });
    match (policy.stance, common) {
        (Stance::Require, None) => Err(Required),
        (_, common) => Ok(common),
    }
}

/// What is left of an agreement when its SA is made anew: the zones and the window are never more
/// than there was, and licences are those of the policies of now. What may go without encryption is less
/// each time. One that was plain stays plain.
pub(crate) fn renew(
    policy: &ZonePolicy,
    offered: Option<ZoneAgreement>,
    before: Option<&ZoneAgreement>,
) -> Result<Option<ZoneAgreement>, Required> {
    let both = answer(policy, offered)?.zip(before);
    let same = both
        .filter(|(agreed, before)| (&agreed.zones, &agreed.map) == (&before.zones, &before.map));
    Ok(same.map(|(agreed, before)| ZoneAgreement {
        window: agreed.window.min(before.window),
        level: level::renewed(agreed.level, before.level),
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

/// Both directions of an SA: first where we receive, then where the peer does.
pub(crate) type Spis = (Spi, Spi);

/// What a composite SA is made of.
pub(crate) type Halves = (
    Half<Secret>,
    Half<Secret>,
    Beside<BesideSa<Secret>>,
    Option<Secret>,
);

/// Both directions of a composite SA, inbound first, the SAs beside whose SPIs are given, and the root of tokens if it
/// is a slot.
pub(crate) fn halves(
    keys: &ChildKeys,
    (agreement, is_slot): (&ZoneAgreement, bool),
    initiator: bool,
    spis: Spis,
    beside: Beside<Spis>,
) -> Halves {
    let opaque = agreement.opaque().zip(beside.opaque);
    let integrity = agreement.integrity().zip(beside.integrity);
    let besides = opaque.iter().chain(&integrity);
    let besides_len: usize = besides.map(|(agreed, _)| one_way(agreed)).sum();
    let tokens_len = if is_slot { PRF.len() } else { 0 };
    let len = 2 * one_way(agreement) + 4 * PRF.len() + 2 * besides_len + tokens_len;
    let bound = bound(agreement, initiator, spis, beside);
    let mut keymat = keys.keymat(&sha256(&[&bound]), len);
    let (inbound, outbound) = both_ways(agreement, initiator, spis, &mut keymat);
    let mut roots = || {
        let mut root = |right| {
            let root = keymat.split_off_front(PRF.len());
            root.filter(|_| agreement.has(right))
        };
        (root(Right::Write), root(Right::Inject))
    };
    let (from_initiator, to_initiator) = (roots(), roots());
    let (outbound_roots, inbound_roots) = own_first(initiator, from_initiator, to_initiator);
    let mut sa = |(agreed, spis): (ZoneAgreement, Spis)| {
        let (inbound, outbound) = both_ways(&agreed, initiator, spis, &mut keymat);
        BesideSa { inbound, outbound }
    };
    let beside = Beside {
        opaque: opaque.map(&mut sa),
        integrity: integrity.map(&mut sa),
    };
    let with = |half, (writers, injectors)| Half {
        writers,
        injectors,
        ..half
    };
    (
        with(inbound, inbound_roots),
        with(outbound, outbound_roots),
        beside,
        Some(keymat).filter(|_| is_slot),
    )
}

/// What H is the hash of.
fn bound(agreement: &ZoneAgreement, initiator: bool, spis: Spis, beside: Beside<Spis>) -> Vec<u8> {
    let both = |(own, peer): Spis| {
        let (spi_i, spi_r) = own_first(initiator, own, peer);
        [spi_i.0.to_be_bytes(), spi_r.0.to_be_bytes()].concat()
    };
    let mut bound = [LABEL, &encode_zone_map(agreement), &both(spis)].concat();
    bound.extend(beside.opaque.into_iter().flat_map(both));
    if let Some((grant, spis)) = agreement.level.as_ref().zip(beside.integrity) {
        bound.extend(encode_level(grant));
        bound.extend(both(spis));
    }
    bound
}

/// Octets of the keys of one direction.
fn one_way(agreement: &ZoneAgreement) -> usize {
    let zones = agreement.zones.iter();
    zones.map(|zone| zone.suite.keymat_len()).sum()
}

/// Takes the keys of both directions off the front of KEYMAT, that of the initiator first.
fn both_ways(
    agreement: &ZoneAgreement,
    initiator: bool,
    (own, peer): Spis,
    keymat: &mut Secret,
) -> (Half<Secret>, Half<Secret>) {
    let mut direction = || {
        let zone_key = |zone: &Zone| ZoneKey {
            zone: zone.id,
            suite: zone.suite,
            key: keymat
                .split_off_front(zone.suite.keymat_len())
                .expect("the length was summed up from the same zones"),
        };
        agreement.zones.iter().map(zone_key).collect()
    };
    let (from_initiator, to_initiator) = (direction(), direction());
    let (outbound, inbound) = own_first(initiator, from_initiator, to_initiator);
    let half = |spi, keys| Half {
        spi,
        keys: Keys::Zoned(keys),
        writers: None,
        injectors: None,
    };
    (half(own, inbound), half(peer, outbound))
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
        map: policy.map.clone(),
        window: policy.window,
        licences: licences(policy),
        level: policy.level,
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
        && level::is_within(answered.level.as_ref(), offered.level.as_ref())
        && answered
            .licences
            .iter()
            .all(|licence| offered.licences.contains(licence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{fixed_map, licence, saying, two_zones};
    use model::{MapKind, ZoneSuite};

    fn policy(stance: Stance) -> ZonePolicy {
        two_zones(stance, "node.example")
    }

    fn check_changed(change: impl Fn(&mut ZoneAgreement)) -> bool {
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

    /// DESIGN section 3: what is behind the keys of the zones in KEYMAT changes none of them.
    #[test]
    fn each_right_has_a_root_for_each_direction_that_both_ends_know_and_readers_have_none() {
        let policy = policy(Stance::Accept);
        let readers = offer(&policy).unwrap();
        let keys = ChildKeys::made_up();
        let (own, peers, none) = (Spi(0x1000), Spi(0x2000), Beside::default());
        let roots = |agreed: &ZoneAgreement, initiator, spis| {
            let (inbound, outbound, ..) = halves(&keys, (agreed, false), initiator, spis, none);
            let roots = |half: Half<Secret>| [half.writers, half.injectors];
            [roots(inbound), roots(outbound)]
        };
        for (right, number) in [(Right::Write, 0), (Right::Inject, 1)] {
            let mut more = readers.clone();
            more.licences[0].right = right;
            let [inbound, outbound] = roots(&more, true, (own, peers));
            let [theirs_in, theirs_out] = roots(&more, false, (peers, own));
            assert!(inbound[number].is_some() && inbound == theirs_out);
            assert!(outbound[number].is_some() && outbound == theirs_in);
            assert!(inbound[number] != outbound[number]);
            // Of another right there is none.
            assert!(inbound[1 - number].is_none() && outbound[1 - number].is_none());
        }
        let roots = roots(&readers, true, (own, peers));
        assert!(roots.iter().flatten().all(Option::is_none));
    }

    /// What it has besides is behind all keys, so these are those of any child.
    #[test]
    fn a_slot_has_a_root_of_tokens_that_both_ends_know_and_others_have_none() {
        let agreed = offer(&policy(Stance::Accept)).unwrap();
        let keys = ChildKeys::made_up();
        let (own, peers, none) = (Spi(0x1000), Spi(0x2000), Beside::default());
        let of = |is_slot, initiator, spis| {
            let (inbound, .., tokens) = halves(&keys, (&agreed, is_slot), initiator, spis, none);
            let Keys::Zoned(zones) = inbound.keys else {
                panic!("there are zones")
            };
            (zones[0].key.clone(), tokens)
        };
        let (zone, tokens) = of(true, true, (own, peers));
        assert!(tokens.as_ref().is_some_and(|root| root.len() == PRF.len()));
        assert_eq!(of(true, false, (peers, own)).1, tokens);
        assert_eq!(of(false, true, (own, peers)), (zone, None));
        assert_ne!(of(true, true, (peers, own)).1, tokens);
    }

    #[test]
    fn an_answer_that_gives_a_reader_more_is_refused() {
        for right in [Right::Write, Right::Inject] {
            assert!(!check_changed(|a| a.licences[0].right = right));
        }
    }

    #[test]
    fn a_fixed_map_comes_with_an_spi_and_another_without() {
        let read = |map: MapKind, opaque| {
            let agreement = offer(&ZonePolicy {
                map,
                ..policy(Stance::Accept)
            });
            let map = ZoneMap {
                agreement: agreement.unwrap(),
                beside: Beside {
                    opaque,
                    integrity: None,
                },
            };
            let read = ZoneMap::read(&saying(map.payloads().collect()))?;
            assert_eq!((read.agreement, read.beside), (map.agreement, map.beside));
            Some(())
        };
        let (good, reserved) = (Some(Spi(256)), Some(Spi(255)));
        assert_eq!(read(fixed_map(52), good), Some(()));
        assert_eq!(read(fixed_map(52), reserved), None);
        assert_eq!(read(fixed_map(52), None), None);
        assert_eq!(read(MapKind::Changeable, None), Some(()));
        assert_eq!(read(MapKind::Changeable, good), None);
    }

    #[test]
    fn a_map_made_anew_is_the_one_before() {
        let policy = policy(Stance::Accept);
        let now = offer(&policy).unwrap();
        let before = ZoneAgreement {
            map: fixed_map(52),
            ..now.clone()
        };
        let renewed = renew(&policy, Some(now), Some(&before));
        assert!(renewed.is_ok_and(|renewed| renewed.is_none()));
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
