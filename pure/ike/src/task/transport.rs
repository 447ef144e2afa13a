//! Moves of child SAs in transport mode (MOBIKE-X), whose selectors are the outer addresses.
//!
//! MOBIKE "supports only tunnel mode IPsec SAs" (RFC 4555 section 1.2), because a move of the outer
//! addresses moves what a transport SA carries too. Both ends therefore check the new addresses
//! first, and then change path, selectors and lookup together ([`crate::Event::PathMoved`]). The
//! configuration stays as it is: it lists the addresses that either end may have, and what goes to
//! any of them is protected or dropped.
//!
//! The end that chooses the path moves its child SAs when the other end has agreed, and the other
//! end when the cookie has come back from the new address. In between, packets are dropped.
//!
//! A NAT would need the selectors of RFC 7296 section 2.23.1. The request names the addresses that
//! its sender believes in, so a NAT shows, and the move is refused.

use super::upkeep;
use crate::config::Peer;
use crate::extension::mobikex::Named;
use crate::placed::Unplaced;
use crate::refusal::Refusal;
use crate::sa::turn::Turn;
use crate::session::Session;
use model::{Mode, Path, TrafficSelector};
use std::net::IpAddr;
use wire::ike::Message;

/// Returns `Ok` if a request of the peer may move the child SAs in transport mode to its path.
pub(crate) fn admit(
    session: &Session,
    request: &Message,
    path: Path,
    turn: &Turn<'_, '_>,
) -> Result<(), Unplaced> {
    if !session.children.are_fixed() {
        return Ok(());
    }
    let named = Named::read(request);
    let (local, remote) = (path.local.ip(), path.remote.ip());
    if named.sender != Some(remote) {
        return Err(Unplaced::Translated(remote));
    }
    if named.receiver != Some(local) {
        return Err(Unplaced::Translated(local));
    }
    check(session, path, turn)
}

/// Returns `Ok` if the child SAs in transport mode may have the addresses of a path: both ends are
/// listed, and nothing else has the peer's address.
pub(crate) fn check(session: &Session, path: Path, turn: &Turn<'_, '_>) -> Result<(), Unplaced> {
    let peer = turn.core.peer(turn.ctx.config);
    let Some(peer) = peer.filter(|_| session.children.are_fixed()) else {
        return Ok(());
    };
    let (local, remote) = (path.local.ip(), path.remote.ip());
    if local.is_ipv4() != turn.core.proved.local.is_ipv4() {
        return Err(Unplaced::NotListed(local));
    }
    for name in session.children.fixed() {
        let policy = peer.policy(name);
        let (ours, theirs) = policy.map_or((&[][..], &[][..]), |p| (p.local, p.remote));
        is_listed(ours, local)?;
        is_listed(theirs, remote)?;
    }
    match remote == turn.core.esp.remote.ip() {
        true => Ok(()),
        false => is_free(remote, peer, turn),
    }
}

fn is_listed(selectors: &[TrafficSelector], address: IpAddr) -> Result<(), Unplaced> {
    let mut selectors = selectors.iter();
    match selectors.any(|selector| selector.has_address(address)) {
        true => Ok(()),
        false => Err(Unplaced::NotListed(address)),
    }
}

/// Returns `Ok` if no bypass, no other peer's configuration and no other peer's SA has an address.
fn is_free(remote: IpAddr, peer: &Peer, turn: &Turn<'_, '_>) -> Result<(), Unplaced> {
    let config = turn.ctx.config;
    // What bypasses for one service leaves the rest protected.
    let whole = |selector: &&TrafficSelector| selector.protocol == 0;
    let mut bypassed = config.bypassed.iter().filter(whole);
    if bypassed.any(|selector| selector.has_address(remote)) {
        return Err(Unplaced::Bypassed(remote));
    }
    // Users of one table have the same addresses there.
    let table = config.users.table(peer.id).unwrap_or(peer.id);
    if config.hosts.is_anothers(remote, table) {
        return Err(Unplaced::Claimed(remote));
    }
    match turn.ctx.out.placed.is_anothers(remote, peer.id) {
        true => Err(Unplaced::Taken(remote)),
        false => Ok(()),
    }
}

/// Checks the addresses again once they are verified: another peer may have moved there meanwhile.
/// Returns false if the child SAs in transport mode end instead.
pub(crate) fn settle(session: &mut Session, turn: &mut Turn<'_, '_>) -> bool {
    let Err(why) = check(session, turn.core.path, turn) else {
        return true;
    };
    let refusal = Refusal::Unplaced(why);
    turn.ctx.refused(Some(turn.core.peer_id()), refusal);
    for child in session.children.current_in(Mode::Transport) {
        upkeep::delete_current(session, child, turn);
    }
    false
}
