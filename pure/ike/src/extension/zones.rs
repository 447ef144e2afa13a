//! Negotiation of zones, and their keys (DESIGN sections 3 and 5).
//!
//! The initiator adds a ZONE_MAP notify with its zones, window and licences to the offer of a child
//! SA. The responder answers with what both ends allow: the same zones, the smaller window, and the
//! licences in both policies. The initiator accepts nothing that it did not offer. The agreement
//! enters the key derivation in its canonical form, so two ends that understood it differently
//! share no key.
//!
//! Licences change while packets flow: a rekey negotiates those of both current policies. Either
//! end alone can therefore withdraw a licence, but not give one alone.
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
//! root_w derives the keys of nodes with the right to write, and root_inj those of nodes with the
//! right to inject, if there are any. root_tok derives the keys of tokens, for each licensed node
//! (`migration.rs`).
//!
//! An SA with a fixed map has an opaque companion SA, for datagrams that do not fit the map. Both
//! are negotiated in one exchange: the notify then has the SPI of the companion. It is created and
//! deleted with the main SA. The same holds for the companion SA for unencrypted traffic, which has
//! a notify of its own (`level.rs`).

use crate::config::{Stance, ZonePolicy};
use crate::exchange::find_notify;
use crate::extension::level;
use crate::keys::{ChildKeys, own_first};
use crypto::{Secret, sha256};
use model::{
    BesideSa, Half, Keys, Licence, Right, Spi, Zone, ZoneAgreement, ZoneId, ZoneKey, ZoneSelector,
};
use wire::esp::FIRST_SPI;
use wire::ike::{
    Message, Notify, NotifyType, Payload, Protocol, decode_zone_map, encode_level, encode_zone_map,
};

const LABEL: &[u8] = b"Strata zone map 1";

/// Error: one end requires zones, but there is no agreement.
pub(crate) struct Required;

/// Returns the initiator's offer, or `None` if its policy refuses zones.
pub(crate) fn offer(policy: &ZonePolicy) -> Option<ZoneAgreement> {
    wants_any(policy).then(|| everything(policy))
}

fn wants_any(policy: &ZonePolicy) -> bool {
    policy.stance != Stance::Refuse && policy.zones.len() > 1
}

/// Returns the selector of the first zone of a policy that wants zones.
pub(crate) fn first(policy: &ZonePolicy) -> Option<ZoneSelector> {
    let first = policy.zones.first().filter(|_| wants_any(policy));
    first.map(|(selector, _)| *selector)
}

/// An agreement in the form of a message.
#[derive(Clone)]
pub(crate) struct ZoneMap {
    pub(crate) agreement: ZoneAgreement,
    /// SPIs on which the message's sender receives the companion SAs.
    pub(crate) beside: Beside<Spi>,
}

/// A value for each companion SA of a composite SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beside<T> {
    /// For the SA that carries datagrams that do not fit a fixed map.
    pub(crate) opaque: Option<T>,
    /// For the SA that carries unencrypted traffic, if there is any.
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
    /// Pairs the values of both ends, ours first, for each companion SA that both ends have.
    pub(crate) fn zip(self, peers: Self) -> Beside<Spis> {
        Beside {
            opaque: self.opaque.zip(peers.opaque),
            integrity: self.integrity.zip(peers.integrity),
        }
    }
}

impl ZoneMap {
    /// Adds an SPI for each companion SA to an agreement.
    pub(crate) fn new(agreement: ZoneAgreement, mut spi: impl FnMut() -> Spi) -> Self {
        let beside = Beside {
            opaque: agreement.map.is_fixed().then(&mut spi),
            integrity: agreement.level.map(|_| spi()),
        };
        Self { agreement, beside }
    }

    /// Returns the notifies for an offer or an answer.
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

    /// Reads the agreement of a message. A malformed one counts as absent.
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

/// Returns the responder's agreement to an offer.
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

/// Returns the agreement for a rekeyed SA. Zones and window never exceed the previous ones, and
/// licences are those of the current policies. The bound on unencrypted traffic shrinks with each
/// rekey. An SA without zones stays without.
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

/// Returns the licences of a policy, in the order of an agreement.
pub(crate) fn licences(policy: &ZonePolicy) -> Vec<Licence> {
    let mut licences = policy.licences.clone();
    licences.sort();
    licences.dedup();
    licences
}

/// The initiator's evaluation of an answer.
pub(crate) enum Outcome {
    /// Both ends agree, possibly on plain ESP.
    Agreed(Option<ZoneAgreement>),
    /// Our policy requires zones.
    Required,
    /// The peer answered with more than was offered.
    Widened,
}

/// Compares an answer with the offer.
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

/// Returns true if an agreement has a licence that the policy no longer has.
pub(crate) fn takes_back(policy: &ZonePolicy, agreement: &ZoneAgreement) -> bool {
    let mut agreed = agreement.licences.iter();
    agreed.any(|licence| !policy.licences.contains(licence))
}

/// Returns the licences that we asked for and that the agreement lacks.
pub(crate) fn missing_licences<'a>(
    asked: &'a [Licence],
    agreement: &ZoneAgreement,
) -> impl Iterator<Item = &'a Licence> {
    let ours = asked.iter();
    ours.filter(|licence| !agreement.licences.contains(licence))
}

/// SPIs of both directions of an SA: ours, then the peer's.
pub(crate) type Spis = (Spi, Spi);

/// The parts of a composite SA.
pub(crate) type Halves = (
    Half<Secret>,
    Half<Secret>,
    Beside<BesideSa<Secret>>,
    Option<Secret>,
);

/// Derives both directions of a composite SA, inbound first, the companion SAs with the given SPIs,
/// and the root of the tokens if it is a slot.
pub(crate) fn halves(
    keys: &ChildKeys,
    agreement: &ZoneAgreement,
    is_slot: bool,
    initiator: bool,
    spis: Spis,
    beside: Beside<Spis>,
) -> Halves {
    let opaque = agreement.opaque().zip(beside.opaque);
    let integrity = agreement.integrity().zip(beside.integrity);
    let besides = opaque.iter().chain(&integrity);
    let besides_len: usize = besides.map(|(agreed, _)| one_way(agreed)).sum();
    let root_len = keys.prf_len();
    let tokens_len = if is_slot { root_len } else { 0 };
    let len = 2 * one_way(agreement) + 4 * root_len + 2 * besides_len + tokens_len;
    let bound = bound(agreement, initiator, spis, beside);
    let mut keymat = keys.keymat(&sha256(&[&bound]), len);
    let (inbound, outbound) = both_ways(agreement, initiator, spis, &mut keymat);
    let mut roots = || {
        let mut root = |right| {
            let root = keymat.split_off_front(root_len);
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

/// Returns the input of the hash H.
pub(crate) fn bound(
    agreement: &ZoneAgreement,
    initiator: bool,
    spis: Spis,
    beside: Beside<Spis>,
) -> Vec<u8> {
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

/// Returns the length of the keys of one direction, in octets.
fn one_way(agreement: &ZoneAgreement) -> usize {
    let zones = agreement.zones.iter();
    zones.map(|zone| zone.suite.keymat_len()).sum()
}

/// Takes the keys of both directions from the front of KEYMAT, those of the initiator's packets
/// first.
fn both_ways(
    agreement: &ZoneAgreement,
    initiator: bool,
    spis: Spis,
    keymat: &mut Secret,
) -> (Half<Secret>, Half<Secret>) {
    let (own, peer) = spis;
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

    /// DESIGN section 3: the roots follow the zone keys in KEYMAT, and leave these unchanged.
    #[test]
    fn each_right_has_a_root_for_each_direction_that_both_ends_know_and_readers_have_none() {
        let policy = policy(Stance::Accept);
        let readers = offer(&policy).unwrap();
        let keys = ChildKeys::made_up();
        let (own, peers, none) = (Spi(0x1000), Spi(0x2000), Beside::default());
        let roots = |agreed: &ZoneAgreement, initiator, spis| {
            let (inbound, outbound, ..) = halves(&keys, agreed, false, initiator, spis, none);
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
            // There is no root for the other right.
            assert!(inbound[1 - number].is_none() && outbound[1 - number].is_none());
        }
        let roots = roots(&readers, true, (own, peers));
        assert!(roots.iter().flatten().all(Option::is_none));
    }

    /// The root of the tokens follows all keys in KEYMAT, so the keys are those of any child SA.
    #[test]
    fn a_slot_has_a_root_of_tokens_that_both_ends_know_and_others_have_none() {
        let agreed = offer(&policy(Stance::Accept)).unwrap();
        let keys = ChildKeys::made_up();
        let (own, peers, none) = (Spi(0x1000), Spi(0x2000), Beside::default());
        let of = |is_slot, initiator, spis| {
            let (inbound, .., tokens) = halves(&keys, &agreed, is_slot, initiator, spis, none);
            let Keys::Zoned(zones) = inbound.keys else {
                panic!("there are zones")
            };
            (zones[0].key.clone(), tokens)
        };
        let (zone, tokens) = of(true, true, (own, peers));
        assert!(tokens.as_ref().is_some_and(|root| root.len() == 32));
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
