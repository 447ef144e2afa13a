//! Redirection to another gateway (RFC 5685).
//!
//! A gateway that is overloaded, or about to be shut down, names another gateway: in response to a
//! client's first message, once it has authenticated the client, or while an IKE SA is up. Nothing
//! else changes for the client. The other gateway has to prove the same identity, and the
//! configuration of the first applies (section 3).
//!
//! The client follows only to addresses that its configuration lists. The response to the first
//! message is not authenticated, and an attacker that reads this message can forge the response: it
//! could direct many clients to a victim (section 11). For the same reason, the number of
//! redirections is bounded (section 7). The caller looks up the name of a gateway, and the same
//! applies to its addresses. Until one is found, an attempt that is not authenticated continues.

use crate::config::{Config, Peer};
use crate::destination::Destination;
use crate::down_reason::DownReason;
use crate::exchange::{find_notify, notify};
use crate::sa::turn::Turn;
use std::net::IpAddr;
use wire::ike::{Message, NotifyType, Payload};

/// Returns the notify for IKE_SA_INIT of an initiator that may be redirected. `from` is the gateway
/// that redirected it here.
pub(crate) fn willing(peer: &Peer, from: Option<IpAddr>) -> Option<Payload> {
    let payload = match from {
        None => notify(NotifyType::REDIRECT_SUPPORTED, Vec::new()),
        Some(from) => notify(
            NotifyType::REDIRECTED_FROM,
            Destination::from(from).encode(),
        ),
    };
    (!peer.redirects.is_empty()).then_some(payload)
}

/// Returns true if an initiator may be redirected: "the responder MUST NOT send the REDIRECT
/// payload" to others (section 3).
pub(crate) fn is_willing(request: &Message) -> bool {
    let kinds = [NotifyType::REDIRECT_SUPPORTED, NotifyType::REDIRECTED_FROM];
    let mut kinds = kinds.into_iter();
    kinds.any(|kind| find_notify(request, kind).is_some())
}

/// Returns the data of a REDIRECT: the gateway and, in IKE_SA_INIT, the initiator's nonce.
pub(crate) fn data(to: &Destination, nonce: &[u8]) -> Vec<u8> {
    [to.encode(), nonce.to_vec()].concat()
}

/// Returns the REDIRECT for an IKE SA that is up.
pub(crate) fn payload(to: &Destination) -> Payload {
    notify(NotifyType::REDIRECT, data(to, &[]))
}

/// Returns the gateway to redirect an initiator to, which sent a request to our address `here`, if
/// it supports that. The gateway must not be that address itself, nor the one that redirected the
/// initiator to us. A name may stand for either, so nobody is redirected twice to a name.
pub(crate) fn elsewhere(request: &Message, here: IpAddr, config: &Config) -> Option<Destination> {
    let to = &config.elsewhere.as_ref()?.to;
    let from = find_notify(request, NotifyType::REDIRECTED_FROM);
    let is_back = match to {
        Destination::Name(_) => from.is_some(),
        Destination::Address(address) => {
            let from = from.and_then(|from| Destination::decode(&from.data)?.0.ok());
            *address == here || from.as_ref() == Some(to)
        }
    };
    (is_willing(request) && !is_back).then(|| to.clone())
}

/// Returns true if initiators are redirected before they are authenticated.
pub(crate) fn is_at_once(config: &Config) -> bool {
    let elsewhere = config.elsewhere.as_ref();
    elsewhere.is_some_and(|elsewhere| elsewhere.at_once)
}

/// Returns the gateway to which a message redirects us, or the reason not to follow. Returns `None`
/// without a redirection. A REDIRECT also counts as none if its nonce is not ours, as it is no
/// response to us then, or if we did not announce support. The addresses of a name are known later:
/// [`is_listed`].
pub(crate) fn sent(
    message: &Message,
    nonce: &[u8],
    turn: &mut Turn<'_, '_>,
) -> Option<Result<Destination, DownReason>> {
    let peer = turn.core.peer(turn.ctx.config)?;
    let told = find_notify(message, NotifyType::REDIRECT);
    let told = told.filter(|_| !peer.redirects.is_empty())?;
    let (to, rest) = Destination::decode(&told.data)?;
    if rest != nonce {
        return None;
    }
    Some(match to {
        Ok(Destination::Address(to)) if !is_listed(peer, to) => {
            Err(DownReason::RedirectNotListed { to: to.to_string() })
        }
        Err(to) => Err(DownReason::RedirectNotListed { to }),
        Ok(_) if !turn.ctx.out.redirects.admit(peer.id, turn.ctx.now) => {
            Err(DownReason::RedirectedTooOften)
        }
        Ok(to) => Ok(to),
    })
}

/// Returns true if a peer may redirect us to an address.
pub(crate) fn is_listed(peer: &Peer, to: IpAddr) -> bool {
    let mut listed = peer.redirects.iter();
    listed.any(|addresses| addresses.contains(to, 0, None))
}
