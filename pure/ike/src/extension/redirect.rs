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
//! redirections is bounded (section 7). The client never follows a host name, because the engine
//! cannot resolve one.

use crate::config::{Config, Elsewhere, Peer};
use crate::down_reason::DownReason;
use crate::exchange::{find_notify, notify};
use crate::sa::turn::Turn;
use std::net::IpAddr;
use wire::ike::{Message, NotifyType, Payload};

/// Types of gateway identities (section 9.2).
const IPV4: u8 = 1;
const IPV6: u8 = 2;

/// Returns the notify for IKE_SA_INIT of an initiator that may be redirected. `from` is the gateway
/// that redirected it here.
pub(crate) fn willing(peer: &Peer, from: Option<IpAddr>) -> Option<Payload> {
    let payload = match from {
        None => notify(NotifyType::REDIRECT_SUPPORTED, Vec::new()),
        Some(from) => notify(NotifyType::REDIRECTED_FROM, encoded(from)),
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

/// Returns the data of a REDIRECT: the gateway's address and, in IKE_SA_INIT, the initiator's
/// nonce.
pub(crate) fn data(to: IpAddr, nonce: &[u8]) -> Vec<u8> {
    [encoded(to), nonce.to_vec()].concat()
}

/// Returns the REDIRECT for an IKE SA that is up.
pub(crate) fn payload(to: IpAddr) -> Payload {
    notify(NotifyType::REDIRECT, data(to, &[]))
}

/// Returns the gateway to redirect an initiator to, which sent a request to our address `here`, if
/// it supports that. The gateway must not be that address itself, nor the one that redirected the
/// initiator to us.
pub(crate) fn elsewhere(request: &Message, here: IpAddr, config: &Config) -> Option<IpAddr> {
    let Elsewhere { to, .. } = config.elsewhere?;
    let from = find_notify(request, NotifyType::REDIRECTED_FROM);
    let from = from.and_then(|from| Some(decoded(&from.data)?.0));
    let there = to == here || from == Some(Ok(to));
    (is_willing(request) && !there).then_some(to)
}

/// Returns true if initiators are redirected before they are authenticated.
pub(crate) fn is_at_once(config: &Config) -> bool {
    config.elsewhere.is_some_and(|elsewhere| elsewhere.at_once)
}

/// Returns the gateway to which a message redirects us, or the reason not to follow. Returns `None`
/// without a redirection. A REDIRECT also counts as none if its nonce is not ours, as it is no
/// response to us then, or if we did not announce support.
pub(crate) fn sent(
    message: &Message,
    nonce: &[u8],
    turn: &mut Turn<'_, '_>,
) -> Option<Result<IpAddr, DownReason>> {
    let peer = turn.core.peer(turn.ctx.config)?;
    let told = find_notify(message, NotifyType::REDIRECT);
    let told = told.filter(|_| !peer.redirects.is_empty())?;
    let (to, rest) = decoded(&told.data)?;
    if rest != nonce {
        return None;
    }
    let listed = |to: &IpAddr| {
        let mut listed = peer.redirects.iter();
        listed.any(|addresses| addresses.contains(*to, 0, None))
    };
    Some(match to {
        Ok(to) if !listed(&to) => Err(DownReason::RedirectNotListed { to: to.to_string() }),
        Err(to) => Err(DownReason::RedirectNotListed { to }),
        Ok(_) if !turn.ctx.out.redirects.admit(peer.id, turn.ctx.now) => {
            Err(DownReason::RedirectedTooOften)
        }
        Ok(to) => Ok(to),
    })
}

fn encoded(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => [&[IPV4, 4][..], &v4.octets()].concat(),
        IpAddr::V6(v6) => [&[IPV6, 16][..], &v6.octets()].concat(),
    }
}

/// Decodes an address, or anything else in printable form, and returns the rest of the data.
fn decoded(data: &[u8]) -> Option<(Result<IpAddr, String>, &[u8])> {
    let (&[kind, length], rest) = data.split_first_chunk()?;
    let (named, rest) = rest.split_at_checked(length.into())?;
    let address = match kind {
        IPV4 => Ok(IpAddr::from(<[u8; 4]>::try_from(named).ok()?)),
        IPV6 => Ok(IpAddr::from(<[u8; 16]>::try_from(named).ok()?)),
        _ => Err(named.escape_ascii().to_string()),
    };
    Some((address, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn addresses_are_told_as_they_are_read() {
        for text in ["192.0.2.7", "2001:db8::7"] {
            let nonce = [7; 32];
            let told = data(address(text), &nonce);
            assert_eq!(decoded(&told), Some((Ok(address(text)), &nonce[..])));
        }
    }

    #[test]
    fn a_name_is_no_address_and_what_is_cut_off_is_nothing() {
        let name = [&[3, 9][..], b"gw\x1b[m.net!"].concat();
        let shown = "gw\\x1b[m.net".to_owned();
        assert_eq!(decoded(&name), Some((Err(shown), &b"!"[..])));
        for cut in [
            &[][..],
            &[1],
            &[1, 4, 192, 0, 2],
            &[1, 3, 192, 0, 2],
            &[2, 4, 1, 2, 3, 4],
        ] {
            assert_eq!(decoded(cut), None);
        }
    }
}
