//! KEY_DISTRIBUTE, REVOKE and NEIGHBOURS (DESIGN section 5): on the IKE SA with a licensed node, a
//! gateway distributes the keys of the zones that the node may open, and revokes them. The node
//! announces the nodes that mobile nodes may move to from it.
//!
//! The caller decides about the content of a grant. This file only checks its form, and that the
//! sender is the node's gateway and the receiver the gateway's node.

use crate::exchange::{find, find_notify, first_error, notifies, notify};
use crate::refusal::GrantRefusal;
use crypto::Secret;
use model::{CsaId, Grant, GrantHalf, Identity, NODE_SUITE, Onward, Right, ZoneId, ZoneSuite};
use wire::esp::FIRST_SPI;
use wire::ike::{
    GrantOffer, GrantReply, KeyDirection, Message, NotifyType, Payload, RefusalCode, SecretShare,
    TOKEN_ZONE, WINDOWS, decode_csa, decode_licences, decode_nodes, encode_csa, encode_licences,
    encode_nodes,
};
use wire::zoned::{INJECTION_ZONE, OVERLAY_ZONE};

/// Returns the payloads of the request that distributes a grant.
pub(crate) fn payloads(grant: &Grant<Secret>) -> Vec<Payload> {
    let offer = GrantOffer {
        csa: grant.csa,
        line: grant.line,
        grant: grant.grant,
        payload_zone: grant.payload_zone,
        window: grant.window,
        lifetime: grant.lifetime,
        from_gateway: grant.from_gateway.spi,
        to_gateway: grant.to_gateway.spi,
        suites: grant.suites.clone(),
        map: grant.map.clone(),
    };
    let from = shares(KeyDirection::FROM_GATEWAY, &grant.from_gateway);
    let to = shares(KeyDirection::TO_GATEWAY, &grant.to_gateway);
    std::iter::once(Payload::Grant(offer))
        .chain(from)
        .chain(to)
        .chain(grant.onward.iter().flat_map(onward))
        .collect()
}

/// Returns the payloads for onward distribution: the key of the tokens, and the licences of the
/// nodes that may request the grant with one.
fn onward(onward: &Onward<Secret>) -> [Payload; 2] {
    let share = SecretShare {
        direction: KeyDirection::FROM_GATEWAY,
        zone: TOKEN_ZONE,
        suite: NODE_SUITE.into(),
        key: onward.key.expose().to_vec().into(),
    };
    let licences = notify(NotifyType::ONWARD, encode_licences(&onward.licences));
    [Payload::Secret(share), licences]
}

/// Reads the payloads for onward distribution. Without licences, no node may have the grant.
fn read_onward(request: &Message) -> Option<Onward<Secret>> {
    let licences = find_notify(request, NotifyType::ONWARD);
    let licences = licences.and_then(|notify| decode_licences(&notify.data).ok());
    Some(Onward {
        key: own(request, KeyDirection::FROM_GATEWAY, TOKEN_ZONE)?,
        licences: licences.unwrap_or_default(),
    })
}

/// Reads the grant of a request, if it is complete and consistent.
pub(crate) fn read(request: &Message) -> Option<Grant<Secret>> {
    let offer = find(request, |payload| match payload {
        Payload::Grant(offer) => Some(offer),
        _ => None,
    })?;
    let half = |spi, direction| GrantHalf {
        spi,
        zones: secrets(request, direction).collect(),
        overlay: own(request, direction, OVERLAY_ZONE),
        injection: own(request, direction, INJECTION_ZONE),
    };
    let grant = Grant {
        csa: offer.csa,
        line: offer.line,
        grant: offer.grant,
        payload_zone: offer.payload_zone,
        suites: offer.suites.clone(),
        map: offer.map.clone(),
        window: offer.window,
        lifetime: offer.lifetime,
        onward: read_onward(request),
        from_gateway: half(offer.from_gateway, KeyDirection::FROM_GATEWAY),
        to_gateway: half(offer.to_gateway, KeyDirection::TO_GATEWAY),
    };
    is_sound(&grant).then_some(grant)
}

/// Returns the composite SA and the number of the grant of a request.
pub(crate) fn name(request: &Message) -> (CsaId, u16) {
    let offer = find(request, |payload| match payload {
        Payload::Grant(offer) => Some((offer.csa, offer.grant)),
        _ => None,
    });
    offer.unwrap_or((CsaId(0), 0))
}

/// Returns the answer to a grant: accepted, or refused with a code.
pub(crate) fn reply(csa: CsaId, grant: u16, code: Option<RefusalCode>) -> Payload {
    let kind = match code {
        None => NotifyType::KEY_ACCEPTED,
        Some(_) => NotifyType::KEY_REFUSED,
    };
    let code = code.unwrap_or(RefusalCode(0));
    notify(kind, GrantReply { csa, grant, code }.encode())
}

/// Evaluates the node's answer to a grant.
pub(crate) fn outcome(grant: &Grant<Secret>, response: &Message) -> Result<(), GrantRefusal> {
    let answer = |kind| {
        let notify = find_notify(response, kind)?;
        let reply = GrantReply::decode(&notify.data).ok()?;
        ((reply.csa, reply.grant) == (grant.csa, grant.grant)).then_some(reply.code)
    };
    if answer(NotifyType::KEY_ACCEPTED).is_some() {
        return Ok(());
    }
    Err(match answer(NotifyType::KEY_REFUSED) {
        Some(code) => GrantRefusal::Code(code),
        None => first_error(response).map_or(GrantRefusal::NoAnswer, GrantRefusal::Notify),
    })
}

/// Returns the code of a refusal, for any grant.
pub(crate) fn refusal(response: &Message) -> Option<RefusalCode> {
    let notify = find_notify(response, NotifyType::KEY_REFUSED)?;
    let reply = GrantReply::decode(&notify.data).ok()?;
    Some(reply.code)
}

/// Returns the notify that revokes a grant.
pub(crate) fn revocation(csa: CsaId) -> Payload {
    notify(NotifyType::REVOKE, encode_csa(csa))
}

/// Returns the composite SAs whose grants an INFORMATIONAL request revokes.
pub(crate) fn revoked(request: &Message) -> impl Iterator<Item = CsaId> + '_ {
    notifies(request)
        .filter(|notify| notify.kind == NotifyType::REVOKE)
        .filter_map(|notify| decode_csa(&notify.data).ok())
}

/// Returns the notify that announces the nodes that mobile nodes may move to from us.
pub(crate) fn neighbours(nodes: &[Identity]) -> Payload {
    notify(NotifyType::NEIGHBOURS, encode_nodes(nodes))
}

/// Returns the nodes that an INFORMATIONAL request announces.
pub(crate) fn said_neighbours(request: &Message) -> Option<Vec<Identity>> {
    let notify = find_notify(request, NotifyType::NEIGHBOURS)?;
    decode_nodes(&notify.data).ok()
}

fn shares(
    direction: KeyDirection,
    half: &GrantHalf<Secret>,
) -> impl Iterator<Item = Payload> + use<'_> {
    let share = move |(zone, suite, key): (ZoneId, ZoneSuite, &Secret)| {
        Payload::Secret(SecretShare {
            direction,
            zone,
            suite,
            key: key.expose().to_vec().into(),
        })
    };
    let zones = half.zones.iter();
    let own = [
        (OVERLAY_ZONE, &half.overlay),
        (INJECTION_ZONE, &half.injection),
    ];
    let own = own
        .into_iter()
        .filter_map(|(zone, key)| Some((zone, NODE_SUITE.into(), key.as_ref()?)));
    let zones = zones.map(|(zone, suite, key)| (*zone, *suite, key));
    zones.chain(own).map(share)
}

/// Returns the keys of the zones, in one direction.
fn secrets(
    request: &Message,
    direction: KeyDirection,
) -> impl Iterator<Item = (ZoneId, ZoneSuite, Secret)> {
    let own = [OVERLAY_ZONE, INJECTION_ZONE, TOKEN_ZONE];
    let zones = shared(request, direction).filter(move |share| !own.contains(&share.zone));
    zones.map(|share| (share.zone, share.suite, Secret::new(share.key.to_vec())))
}

/// Returns the key of overlays, of injected packets or of tokens, if present. A key of another
/// suite is returned empty, which makes the grant unsound.
fn own(request: &Message, direction: KeyDirection, zone: ZoneId) -> Option<Secret> {
    let mut shares = shared(request, direction);
    let share = shares.find(|share| share.zone == zone)?;
    let known = share.suite == NODE_SUITE.into();
    Some(Secret::new(if known {
        share.key.to_vec()
    } else {
        Vec::new()
    }))
}

fn shared(request: &Message, direction: KeyDirection) -> impl Iterator<Item = &SecretShare> {
    let payloads = request.payloads.iter();
    payloads.filter_map(move |payload| match payload {
        Payload::Secret(share) if share.direction == direction => Some(share),
        _ => None,
    })
}

/// Returns true if a grant is consistent. Both directions open the same zones, zone 1 first, with
/// the negotiated suites. The lifetime is not zero, the window is within its limits, and the SPIs
/// are not reserved. The node may write or inject in both directions or in neither.
fn is_sound(grant: &Grant<Secret>) -> bool {
    let zones = |half: &GrantHalf<Secret>| half.zones.iter().map(|zone| zone.0).collect::<Vec<_>>();
    let (from, to) = (zones(&grant.from_gateway), zones(&grant.to_gateway));
    let suite_of = |zone: ZoneId| grant.suites.get(usize::from(zone.0).wrapping_sub(1));
    let as_agreed = |half: &GrantHalf<Secret>| {
        let mut zones = half.zones.iter();
        zones.all(|(zone, suite, _)| suite_of(*zone) == Some(suite))
    };
    let own = |half: &GrantHalf<Secret>| {
        [&half.overlay, &half.injection].map(|key| key.as_ref().map(Secret::len))
    };
    let lens = own(&grant.from_gateway);
    let to_read = |onward: &Onward<Secret>| {
        let mut licences = onward.licences.iter();
        onward.key.len() == NODE_SUITE.keymat_len() && licences.all(|one| one.right == Right::Read)
    };
    let mut there = lens.into_iter().flatten();
    from == to
        && lens == own(&grant.to_gateway)
        && there.all(|len| len == NODE_SUITE.keymat_len())
        && from.first() == Some(&ZoneId::DESIGNATED)
        && from.is_sorted_by(|a, b| a < b)
        && as_agreed(&grant.from_gateway)
        && as_agreed(&grant.to_gateway)
        && grant.onward.as_ref().is_none_or(to_read)
        && !grant.lifetime.is_zero()
        && WINDOWS.contains(&grant.window)
        && [&grant.from_gateway, &grant.to_gateway]
            .iter()
            .all(|half| half.spi >= FIRST_SPI)
}
