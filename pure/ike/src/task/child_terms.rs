//! What both ends agree on about a child SA, for all exchanges that create one.

use super::licences;
use crate::allowed_suites::{AllowedEspSuites, groups_of};
use crate::child::{self, Agreed, Before, ChildConfig, ChildTerms};
use crate::config::{Lifetimes, Peer, Unencrypted, is_slot};
use crate::exchange::create_child::{Nonce, Offered, Renewal, renewal};
use crate::exchange::notify;
use crate::extension::live_path::live_path;
use crate::extension::path_traffic::path_traffic;
use crate::extension::resource;
use crate::policy::Policy;
use crate::proposal::choose_esp;
use crate::refusal::Refusal;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::child_request::ChildRequest;
use crate::session::children::Age;
use model::{Allowance, ChildSa, ChildSaId, EspSuite, MOST_PATHS, Mode, Spi, TrafficSelector};
use std::net::IpAddr;
use wire::ike::{GroupId, Message, NotifyType, Payload};

/// An answer to a request: the payloads, the child SA, and the lower of both nonces.
pub(crate) type Answer = (Vec<Payload>, Agreed, Vec<u8>);

/// Returns the group of a request's public value, if we can use it: an end that selects NONE "MUST
/// ignore the initiator's KE payload" (RFC 7296 section 3.3.6). `Err` holds the group of an
/// acceptable proposal if the public value is of another group.
fn usable_group(
    theirs: &Renewal<'_>,
    peer: &Peer,
    unencrypted: &[EspSuite],
) -> Result<Option<GroupId>, GroupId> {
    let Some(key) = theirs.key else {
        return Ok(None);
    };
    let chosen = |groups| {
        let offered = theirs.proposals;
        let menu = AllowedEspSuites::to_choose(peer, groups, unencrypted, offered);
        let choice = choose_esp(offered, &menu, Spi(0));
        choice.and_then(|choice| choice.group)
    };
    let ours = groups_of(peer);
    let is_ours = ours.contains(&key.group);
    if is_ours && chosen(vec![key.group]).is_some() {
        return Ok(Some(key.group));
    }
    let same = is_ours.then_some(key.group);
    chosen(ours).map_or(Ok(same), Err)
}

/// Reports once that the peer refuses key exchanges for child SAs.
pub(crate) fn note_exchange(
    session: &mut Session,
    request: &ChildRequest,
    turn: &mut Turn<'_, '_>,
) {
    if request.is_without_exchange() && !session.upkeep.is_without_exchange {
        session.upkeep.is_without_exchange = true;
        turn.ctx
            .refused(Some(turn.core.peer_id()), Refusal::ExchangeRefused);
    }
}

/// Answers a request for a child SA. `before` is the child SA that it replaces.
pub(crate) fn agree(
    session: &Session,
    policy: &Policy<'_>,
    before: Option<Before<'_>>,
    request: &Message,
    turn: &mut Turn<'_, '_>,
) -> Result<Answer, Payload> {
    let refuse = |kind| notify(kind, Vec::new());
    let peer = turn.core.peer(turn.ctx.config);
    let peer = peer.ok_or_else(|| refuse(NotifyType::NO_ADDITIONAL_SAS))?;
    let theirs = Renewal::read(request);
    let theirs = theirs.ok_or_else(|| refuse(NotifyType::INVALID_SYNTAX))?;
    let unencrypted = child::unencrypted(peer, before, turn.ctx.today);
    let group = usable_group(&theirs, peer, unencrypted).map_err(|wanted| {
        let wanted = wanted.0.to_be_bytes().to_vec();
        notify(NotifyType::INVALID_KE_PAYLOAD, wanted)
    })?;
    let nonce: Nonce = turn.ctx.rng.array();
    let key = theirs.key.filter(|_| group.is_some());
    let exchanged = key.map(|key| Offered::answer(key, turn.ctx.rng));
    if matches!(exchanged, Some(None)) {
        turn.ctx.refused(Some(peer.id), Refusal::KeyExchange);
        return Err(refuse(NotifyType::NO_PROPOSAL_CHOSEN));
    }
    let (public, shared) = exchanged.flatten().unzip();
    let keys = session.keys.child(shared, theirs.nonce, &nonce);
    let config = ChildConfig {
        peer,
        policy,
        addresses: session.terms.addresses,
        today: turn.ctx.today,
    };
    let ground = session.mode_context(turn.core);
    let spis = turn.ctx.spis(turn.core.id, policy.name);
    let answer = child::answer(
        config,
        request,
        ground,
        session.terms.private,
        before,
        keys,
        spis,
    );
    let (answer, agreed) = answer.map_err(|(kind, why)| {
        turn.ctx.refused(Some(peer.id), why);
        refuse(kind)
    })?;
    let payloads = renewal(answer, &nonce, public.filter(|_| agreed.is_exchanged()));
    Ok((payloads, agreed, theirs.lower_nonce(&nonce)))
}

/// Starts the lifetime of a new child SA. The configuration may have changed since its request.
pub(crate) fn age_of(session: &Session, terms: &ChildTerms, turn: &mut Turn<'_, '_>) -> Age {
    let peer = turn.core.peer(turn.ctx.config);
    let policy = peer.and_then(|peer| session.policy(peer, terms.name.as_deref()));
    let lifetime = policy.map_or(Lifetimes::default().child, |policy| policy.lifetime);
    let mut age = Age::begin(lifetime, turn.ctx.config, turn.ctx.rng, turn.ctx.now);
    let accepted = peer.and_then(|peer| peer.unencrypted.as_ref());
    if let Some(accepted) = accepted.filter(|_| terms.is_unencrypted()) {
        let left = accepted.left(turn.ctx.today);
        age.end_within(left, Unencrypted::NOTICE, turn.ctx.now);
    }
    if let (Some(policy), Some(agreement)) = (policy, &terms.agreement) {
        licences::adapt(
            &mut age,
            &policy.zones_for(&terms.asked),
            &terms.asked,
            agreement,
            turn.ctx.now,
        );
    }
    age
}

/// Creates the description of a child SA for the caller.
pub(crate) fn described(
    session: &Session,
    id: ChildSaId,
    mut terms: ChildTerms,
    initiator: bool,
    turn: &Turn<'_, '_>,
) -> ChildSa<crypto::Secret> {
    let name = terms.name.as_deref();
    let path = session.paths.carrying(name).map(|known| known.path);
    let path = path.unwrap_or(turn.core.esp);
    // A move may have come between the request and its answer.
    if terms.mode == Mode::Transport {
        relocate(&mut terms.local, path.local.ip());
        relocate(&mut terms.remote, path.remote.ip());
    }
    let peer = turn.core.peer(turn.ctx.config);
    let accepted = peer.and_then(|peer| peer.unencrypted.as_ref());
    let packets = || accepted.map_or_else(Allowance::default, |accepted| accepted.packets.clone());
    let allowance = terms.is_unencrypted().then(packets);
    ChildSa {
        id,
        resource: place(session, name, turn),
        narrowed: path_traffic(name).is_some(),
        ike: turn.core.id,
        peer: turn.core.peer_id(),
        name: terms.name,
        mode: terms.mode,
        path,
        local: terms.local,
        remote: terms.remote,
        inbound: terms.inbound,
        outbound: terms.outbound,
        agreement: terms.agreement,
        opaque: terms.beside.opaque,
        integrity: terms.beside.integrity,
        tokens: terms.tokens,
        takes_padding: terms.takes_padding,
        allowance,
        exchanges: terms.exchanges,
        initiator,
    }
}

fn relocate(selectors: &mut [TrafficSelector], address: IpAddr) {
    for selector in selectors {
        *selector = selector.at(address);
    }
}

/// Returns the index of a child SA among those for the same traffic, if there may be several.
fn place(session: &Session, name: Option<&str>, turn: &Turn<'_, '_>) -> Option<u8> {
    if let Some(number) = live_path(name) {
        return Some(number - 1);
    }
    if let Some(traffic) = path_traffic(name) {
        return Some(MOST_PATHS + traffic.path - 1);
    }
    let paths = session.most_paths(turn.core.peer(turn.ctx.config)) > 1;
    // A slot takes the place of the first child SA.
    let is_first = name.is_none() || is_slot(name);
    match paths && is_first {
        true => Some(0),
        false => resource::number(name).filter(|_| session.terms.resources),
    }
}
