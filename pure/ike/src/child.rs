//! Child SAs (RFC 7296 sections 1.2, 1.3.1, 1.3.3 and 2.17): negotiated in IKE_AUTH, or in
//! CREATE_CHILD_SA as an additional one or as the replacement of an earlier one. Their keys come
//! only from [`ChildKeys`].

use crate::allowed_suites::{AllowedEspSuites, encrypts, group_named};
use crate::config::{self, Peer, ZonePolicy};
use crate::down_reason::DownReason;
use crate::exchange::auth::Child;
use crate::extension::configuration::confine;
use crate::extension::mode::{self, BadMode, Ends, ModeContext};
use crate::extension::path_traffic::is_of_paths;
use crate::extension::resource;
use crate::extension::slot::{self, Offered};
use crate::extension::tfc;
use crate::extension::zones::{self, Beside, Outcome, Spis, ZoneMap};
use crate::keys::{ChildKeys, own_first};
use crate::policy::Policy;
use crate::proposal::{EspChoice, check_esp, choose_esp, offer_esp};
use crate::refusal::Refusal;
use crate::selectors::{can_carry, is_narrowed, narrow};
use crate::spi::Fresh;
use crypto::{Secret, UnixTime};
use model::{
    BesideSa, EspSuite, Exchanges, Half, InnerAddresses, Kem, Keys, Licence, Mode, Spi,
    TrafficSelector, ZoneAgreement,
};
use wire::ike::{Message, NotifyType, Payload, TrafficSelectors};

/// A keyed child SA, before the IKE SA registers it.
pub(crate) struct ChildTerms {
    /// Name of the child SA; `None` for the first.
    pub(crate) name: Option<String>,
    pub(crate) local: Vec<TrafficSelector>,
    pub(crate) remote: Vec<TrafficSelector>,
    pub(crate) mode: Mode,
    /// Mode that the peer asked for, if it was declined.
    pub(crate) declined: Option<Mode>,
    pub(crate) inbound: Half<Secret>,
    pub(crate) outbound: Half<Secret>,
    pub(crate) agreement: Option<ZoneAgreement>,
    /// The companion SAs.
    pub(crate) beside: Beside<BesideSa<Secret>>,
    /// The root of token keys, if this child SA is a slot.
    pub(crate) tokens: Option<Secret>,
    /// The licences of our policy at the time of the negotiation.
    pub(crate) asked: Vec<Licence>,
    /// True if the peer accepts padding behind datagrams (TFC).
    pub(crate) takes_padding: bool,
    /// The key exchanges of the child SA's own that its keys come from.
    pub(crate) exchanges: Exchanges,
}

impl ChildTerms {
    /// Returns true if its packets are not encrypted.
    pub(crate) fn is_unencrypted(&self) -> bool {
        self.outbound.keys.is_unencrypted()
    }
}

/// A negotiated child SA before its keys are derived: additional key exchanges may follow.
pub(crate) struct Agreed {
    pub(crate) name: Option<String>,
    pub(crate) local: Vec<TrafficSelector>,
    pub(crate) remote: Vec<TrafficSelector>,
    mode: Mode,
    declined: Option<Mode>,
    agreement: Option<ZoneAgreement>,
    /// SPIs of the companion SAs.
    beside: Beside<Spis>,
    /// The licences of our policy at the time of the negotiation.
    pub(crate) asked: Vec<Licence>,
    takes_padding: bool,
    choice: EspChoice,
    /// SPI on which we receive.
    pub(crate) spi: Spi,
    initiator: bool,
    keys: ChildKeys,
}

impl Agreed {
    /// Returns the additional key exchanges that have to follow.
    pub(crate) fn kems(&self) -> Vec<Kem> {
        self.choice.kems.clone()
    }

    /// Returns true if its keys come from a key exchange of its own.
    pub(crate) fn is_exchanged(&self) -> bool {
        self.choice.group.is_some()
    }

    /// Returns the SPI on which the peer receives.
    pub(crate) const fn peer_spi(&self) -> Spi {
        self.choice.peer_spi
    }

    /// Returns true if its mode and selectors are within a policy.
    pub(crate) fn is_within(&self, policy: &Policy<'_>) -> bool {
        let carries =
            is_narrowed(&self.local, policy.local) && is_narrowed(&self.remote, policy.remote);
        carries && self.mode == policy.mode
    }

    /// Derives the keys, with the secrets of the additional key exchanges.
    pub(crate) fn terms(self, further: Vec<(Kem, Secret)>) -> ChildTerms {
        let kems = further.iter().map(|(kem, _)| *kem).collect();
        let group = self.choice.group.and_then(group_named);
        let keys = self.keys.with(further);
        let spis = (self.spi, self.choice.peer_spi);
        let is_slot = config::is_slot(self.name.as_deref());
        let (inbound, outbound, beside, tokens) = match &self.agreement {
            Some(agreed) => {
                zones::halves(&keys, agreed, is_slot, self.initiator, spis, self.beside)
            }
            None => {
                let (inbound, outbound) = plain(&keys, &self.choice, self.initiator, self.spi);
                (inbound, outbound, Beside::default(), None)
            }
        };
        ChildTerms {
            name: self.name,
            local: self.local,
            remote: self.remote,
            mode: self.mode,
            declined: self.declined,
            inbound,
            outbound,
            agreement: self.agreement,
            beside,
            tokens,
            asked: self.asked,
            takes_padding: self.takes_padding,
            exchanges: Exchanges { group, kems },
        }
    }
}

/// The configuration of a child SA, and the inner addresses that one end has leased to the other,
/// if known by now.
#[derive(Clone, Copy)]
pub(crate) struct ChildConfig<'c> {
    pub(crate) peer: &'c Peer,
    pub(crate) policy: &'c Policy<'c>,
    pub(crate) addresses: Option<InnerAddresses>,
    pub(crate) today: UnixTime,
}

/// The child SA that a new one replaces.
#[derive(Clone, Copy)]
pub(crate) struct Before<'a> {
    pub(crate) agreement: Option<&'a ZoneAgreement>,
    /// The licences of our policy at the time of its negotiation.
    pub(crate) asked: &'a [Licence],
    /// True if its packets are encrypted.
    pub(crate) encrypted: bool,
}

/// Returns the suites without encryption that a new child SA may have now. The successor of an
/// encrypted one has none: a second step down would take another consent.
pub(crate) fn unencrypted<'p>(
    peer: &'p Peer,
    before: Option<Before<'_>>,
    today: UnixTime,
) -> &'p [EspSuite] {
    match before {
        Some(Before {
            encrypted: true, ..
        }) => &[],
        _ => peer.unencrypted_now(today),
    }
}

impl ChildConfig<'_> {
    /// Confines selectors of both ends to the addresses that one has leased to the other.
    fn confine(&self, local: &[TrafficSelector], remote: &[TrafficSelector]) -> Ends {
        lent(self.peer, self.addresses, local, remote)
    }
}

/// An initiator's offer for a child SA.
pub(crate) struct Offer {
    pub(crate) spi: Spi,
    mode: Mode,
    ground: ModeContext,
    zones: Option<Box<ZoneMap>>,
    menu: AllowedEspSuites,
}

impl Offer {
    /// Creates the offer for a child SA, with zones only if the peer knows our private numbers.
    pub(crate) fn new(
        menu: AllowedEspSuites,
        policy: &Policy<'_>,
        ground: ModeContext,
        private: bool,
        mut spis: Fresh<'_>,
    ) -> Result<Self, BadMode> {
        ground.allows(policy)?;
        let zones = private.then(|| zones::offer(policy.zones)).flatten();
        Ok(Self {
            spi: spis.fresh(),
            mode: policy.mode,
            ground,
            zones: zones.map(|zones| Box::new(ZoneMap::new(zones, || spis.fresh()))),
            menu,
        })
    }

    /// Creates the offer for the replacement of a child SA: the same zones and the current
    /// licences, as far as the policy still allows them. The slot of a domain keeps its node.
    /// Returns `None` as well if the policy requires zones but the replaced SA has none.
    pub(crate) fn again(
        menu: AllowedEspSuites,
        policy: &Policy<'_>,
        ground: ModeContext,
        before: Before<'_>,
        mut spis: Fresh<'_>,
    ) -> Option<Self> {
        ground.allows(policy).ok()?;
        let zones = policy.zones_for(before.asked);
        let zones = zones::renew(&zones, zones::offer(&zones), before.agreement).ok()?;
        Some(Self {
            spi: spis.fresh(),
            mode: policy.mode,
            ground,
            zones: zones.map(|zones| Box::new(ZoneMap::new(zones, || spis.fresh()))),
            menu,
        })
    }

    /// Returns true if an additional key exchange is wanted.
    pub(crate) fn is_hybrid(&self) -> bool {
        self.menu.kems.iter().any(Option::is_some)
    }

    /// Returns the payloads of the offer.
    pub(crate) fn payloads(&self, config: ChildConfig<'_>) -> Vec<Payload> {
        let ends = config.confine(config.policy.local, config.policy.remote);
        let (local, remote) = self.ground.confine(self.mode, ends);
        let mut payloads = vec![
            Payload::SecurityAssociation(offer_esp(&self.menu, self.spi)),
            Payload::TsInitiator(TrafficSelectors(local)),
            Payload::TsResponder(TrafficSelectors(remote)),
        ];
        payloads.extend(mode::payload(self.mode));
        payloads.extend(tfc::payload(self.mode));
        payloads.extend(self.zones.iter().flat_map(|zones| zones.payloads()));
        payloads
    }

    /// Evaluates the responder's answer.
    pub(crate) fn conclude(
        &self,
        config: ChildConfig<'_>,
        response: &Message,
        keys: ChildKeys,
    ) -> Result<Agreed, DownReason> {
        let policy = config.policy;
        let answer = Child::read(response).ok_or_else(|| refusal(response))?;
        let choice =
            check_esp(answer.proposals, &self.menu).ok_or(DownReason::NotOffered("ESP suite"))?;
        let keys = keys
            .settled(choice.group)
            .ok_or(DownReason::NotOffered("key exchange"))?;
        self.ground.check(self.mode, response)?;
        let (local, remote) = self.carried(config, &answer)?;
        // Only an answer to our offer is read: without the vendor ID, others may use the private
        // number.
        let answered = self.zones.as_ref().and_then(|_| ZoneMap::read(response));
        let both = self.zones.as_ref().zip(answered.as_ref());
        let beside = both.map(|(ours, theirs)| ours.beside.zip(theirs.beside));
        let offered = self.zones.as_ref().map(|zones| &zones.agreement);
        let answered = answered.map(|map| map.agreement);
        let agreement = match zones::check(policy.zones, offered, answered) {
            Outcome::Agreed(agreement) => agreement,
            Outcome::Required => return Err(DownReason::ZonesRequired),
            Outcome::Widened => return Err(DownReason::ZonesWidened),
        };
        Ok(Agreed {
            name: policy.name.map(str::to_owned),
            local,
            remote,
            mode: self.mode,
            declined: None,
            agreement,
            beside: beside.unwrap_or_default(),
            asked: offered.map_or_else(Vec::new, |zones| zones.licences.clone()),
            takes_padding: tfc::is_taken(response),
            choice,
            spi: self.spi,
            initiator: true,
            keys,
        })
    }

    /// Returns the selectors of the child SA that the responder's answer describes.
    fn carried(&self, config: ChildConfig<'_>, answer: &Child<'_>) -> Result<Ends, DownReason> {
        let policy = config.policy;
        let (ours, theirs) = (answer.initiator, answer.responder);
        if !(is_narrowed(ours, policy.local) && is_narrowed(theirs, policy.remote)) {
            return Err(DownReason::NotOffered("traffic selectors"));
        }
        let ends = config.confine(ours, theirs);
        let ends = self.ground.confine(self.mode, ends);
        self.ground.is_pair(self.mode, &ends)?;
        if ends.0.is_empty() || ends.1.is_empty() {
            return Err(DownReason::NotOffered(
                "traffic selectors without the inner address",
            ));
        }
        let none = DownReason::NotOffered("traffic selectors that match no packet");
        can_carry(&ends.0, &ends.1).then_some(ends).ok_or(none)
    }
}

/// A request for a child SA, as [`meant`] reads it.
pub(crate) struct Requested<'r> {
    pub(crate) request: &'r Message,
    /// True if the request names an additional child SA for the same traffic.
    pub(crate) resource: bool,
    /// The nodes of the requested slot.
    pub(crate) offered: Option<Offered>,
}

/// Finds the child SA that an initiator requests: the first policy whose selectors overlap with the
/// requested ones and that has no child SA yet. If no policy matches, returns the first, whose
/// evaluation then reports the reason. With `resource`, an additional child SA for the same traffic
/// qualifies too. With an offer, the slot of these nodes is meant. `asked` returns the licences
/// that we asked for with a slot, none if it does not exist.
pub(crate) fn meant<'p, 's>(
    peer: &'p Peer,
    addresses: Option<InnerAddresses>,
    requested: Requested<'_>,
    is_there: impl Fn(Option<&str>) -> bool,
    asked: impl Fn(&str) -> &'s [Licence],
) -> Result<Policy<'p>, (NotifyType, Refusal)> {
    let Requested {
        request,
        resource,
        offered,
    } = requested;
    let none = (NotifyType::NO_ADDITIONAL_SAS, Refusal::NoChildForRole);
    let first = peer.policies().next().ok_or(none)?;
    if let Some(offered) = offered {
        let slot = slot::meant(peer, offered, asked)?;
        return match is_there(slot.name) {
            true => Err((NotifyType::NO_ADDITIONAL_SAS, Refusal::AnotherChild)),
            false => Ok(slot),
        };
    }
    let offer = Child::read(request).ok_or((NotifyType::INVALID_SYNTAX, Refusal::ChildMissing))?;
    let fits = |policy: &Policy<'_>| {
        let (local, remote) = lent(peer, addresses, policy.local, policy.remote);
        let (theirs, ours) = (
            narrow(offer.initiator, &remote),
            narrow(offer.responder, &local),
        );
        can_carry(&ours, &theirs)
    };
    let meant = |policy: &Policy<'_>| {
        let is_apart = config::is_slot(policy.name) || is_of_paths(policy.name);
        !is_apart && (resource || !resource::is_additional(policy.name))
    };
    let fitting: Vec<_> = peer.policies().filter(meant).filter(fits).collect();
    match fitting.iter().find(|policy| !is_there(policy.name)) {
        Some(policy) => Ok(*policy),
        None if fitting.is_empty() => Ok(first),
        None if resource => {
            let why = Refusal::TooManyResources(peer.features.resources);
            Err((NotifyType::TS_MAX_QUEUE, why))
        }
        None => Err((NotifyType::NO_ADDITIONAL_SAS, Refusal::AnotherChild)),
    }
}

/// A responder's answer: its payloads and the child SA.
pub(crate) type Answer = (Vec<Payload>, Agreed);

/// Answers an initiator's offer, or returns the error notify and the reason for the refusal.
/// `before` is the child SA that this one replaces.
pub(crate) fn answer(
    config: ChildConfig<'_>,
    request: &Message,
    ground: ModeContext,
    private: bool,
    before: Option<Before<'_>>,
    keys: ChildKeys,
    mut spis: Fresh<'_>,
) -> Result<Answer, (NotifyType, Refusal)> {
    let ChildConfig { peer, policy, .. } = config;
    let asked = ground.answer(policy, request).map_err(bad_mode)?;
    let offer = Child::read(request).ok_or((NotifyType::INVALID_SYNTAX, Refusal::ChildMissing))?;
    let spi = spis.fresh();
    let unencrypted = unencrypted(peer, before, config.today);
    let offered = offer.proposals;
    let menu = AllowedEspSuites::to_choose(peer, keys.groups(), unencrypted, offered);
    let choice = choose_esp(offered, &menu, spi).ok_or_else(|| {
        let why = match encrypts(offered) || !unencrypted.is_empty() {
            true => Refusal::NoEspProposal {
                allowed: menu.suites.clone(),
                esn: menu.esn,
            },
            false => Refusal::Unencrypted,
        };
        (NotifyType::NO_PROPOSAL_CHOSEN, why)
    })?;
    let (ours, theirs) = common(config, ground, &offer)?;
    let offered = private.then(|| ZoneMap::read(request)).flatten();
    let peers = offered.as_ref().map(|map| map.beside);
    let offered = offered.map(|map| map.agreement);
    let slot = Offered::read(request);
    let new = slot::licences(policy, slot.as_ref());
    let zones = policy.zones_for(before.map_or(&new[..], |before| before.asked));
    let agreement = agree(&zones, offered, private, before)?;
    if before.is_none() {
        slot::check(peer, policy.name, slot.as_ref(), agreement.as_ref())?;
    }
    let zone_map = agreement.map(|agreed| ZoneMap::new(agreed, || spis.fresh()));
    let keys = keys
        .settled(choice.group)
        .ok_or((NotifyType::INVALID_SYNTAX, Refusal::KeyExchange))?;
    let mut payloads = vec![
        Payload::SecurityAssociation(vec![choice.answer.clone()]),
        Payload::TsInitiator(TrafficSelectors(theirs.clone())),
        Payload::TsResponder(TrafficSelectors(ours.clone())),
    ];
    payloads.extend(mode::payload(policy.mode));
    payloads.extend(tfc::payload(policy.mode));
    payloads.extend(zone_map.iter().flat_map(ZoneMap::payloads));
    let own = zone_map.as_ref().map(|map| map.beside);
    let beside = own.zip(peers).map(|(own, peers)| own.zip(peers));
    let agreed = Agreed {
        name: policy.name.map(str::to_owned),
        local: ours,
        remote: theirs,
        mode: policy.mode,
        declined: Some(asked).filter(|asked| *asked != policy.mode),
        agreement: zone_map.map(|map| map.agreement),
        beside: beside.unwrap_or_default(),
        asked: zones::licences(&zones),
        takes_padding: tfc::is_taken(request),
        choice,
        spi,
        initiator: false,
        keys,
    };
    Ok((payloads, agreed))
}

/// Returns the selectors that an offer and a policy have in common, in the mode of the policy.
fn common(
    config: ChildConfig<'_>,
    ground: ModeContext,
    offer: &Child<'_>,
) -> Result<Ends, (NotifyType, Refusal)> {
    let policy = config.policy;
    let ends = config.confine(policy.local, policy.remote);
    let (local, remote) = ground.confine(policy.mode, ends);
    let ends = (
        narrow(offer.responder, &local),
        narrow(offer.initiator, &remote),
    );
    if let Some(addresses) = config.addresses.filter(|_| ends.1.is_empty()) {
        let why = Refusal::NotItsAddress(addresses);
        return Err((NotifyType::TS_UNACCEPTABLE, why));
    }
    ground.is_pair(policy.mode, &ends).map_err(bad_mode)?;
    let none = (NotifyType::TS_UNACCEPTABLE, Refusal::TrafficSelectors);
    can_carry(&ends.0, &ends.1).then_some(ends).ok_or(none)
}

fn bad_mode(why: BadMode) -> (NotifyType, Refusal) {
    (why.notify(), Refusal::Mode(why))
}

/// Confines the selectors of both ends to the addresses that one has leased to the other.
fn lent(
    peer: &Peer,
    addresses: Option<InnerAddresses>,
    local: &[TrafficSelector],
    remote: &[TrafficSelector],
) -> Ends {
    match peer.pool() {
        Some(_) => (local.to_vec(), confine(remote, addresses)),
        None => (confine(local, addresses), remote.to_vec()),
    }
}

/// Returns the remarks to log about the mode and the zones of a new child SA.
pub(crate) fn remarks(policy: &ZonePolicy, terms: &ChildTerms) -> Vec<Refusal> {
    let declined = terms.declined.map(Refusal::ModeDeclined).into_iter();
    let zones: Vec<_> = match &terms.agreement {
        Some(agreement) => zones::missing_licences(&terms.asked, agreement)
            .map(|licence| Refusal::LicenceNotAccepted(licence.clone()))
            .collect(),
        None if zones::offer(policy).is_some() => vec![Refusal::ZonesNotAgreed],
        None => Vec::new(),
    };
    let levels = terms.agreement.as_ref().map(|agreed| agreed.level);
    let level = levels.filter(|level| policy.level.is_some() && level.is_none());
    let level = level.map(|_| Refusal::LevelNotAgreed);
    declined.chain(zones).chain(level).collect()
}

fn agree(
    policy: &ZonePolicy,
    offered: Option<ZoneAgreement>,
    private: bool,
    before: Option<Before<'_>>,
) -> Result<Option<ZoneAgreement>, (NotifyType, Refusal)> {
    let agreed = match before {
        None => zones::answer(policy, offered),
        Some(before) => zones::renew(policy, offered, before.agreement),
    };
    agreed.map_err(|zones::Required| {
        // A peer without our vendor ID does not know the private number.
        let notify = match private {
            true => NotifyType::ZONES_REQUIRED,
            false => NotifyType::NO_PROPOSAL_CHOSEN,
        };
        (notify, Refusal::ZonesRequired)
    })
}

/// Derives KEYMAT: the keys of the initiator's packets, then those of the responder's.
fn plain(
    keys: &ChildKeys,
    choice: &EspChoice,
    initiator: bool,
    own_spi: Spi,
) -> (Half<Secret>, Half<Secret>) {
    let length = choice.suite.keymat_len();
    let mut from_responder = keys.keymat(&[], 2 * length);
    let from_initiator = from_responder
        .split_off_front(length)
        .expect("twice the length was derived");
    let (outbound, inbound) = own_first(initiator, from_initiator, from_responder);
    let half = |spi, key| Half {
        spi,
        keys: Keys::Plain {
            suite: choice.suite,
            implicit_iv: choice.implicit_iv,
            esn: choice.esn,
            key,
        },
        writers: None,
        injectors: None,
    };
    (half(own_spi, inbound), half(choice.peer_spi, outbound))
}

fn refusal(response: &Message) -> DownReason {
    match crate::exchange::first_error(response) {
        Some(notify) => DownReason::ChildRefused { notify },
        None => DownReason::NotOffered("no child SA"),
    }
}
