//! `strata explain`: the last attempt with a peer, in a form for people.
//!
//! [`compare`] puts both ends side by side, [`remedy`] finds the line to change, and
//! [`certificate`] does so for certificates. [`advice`] adds a sentence to the facts that the
//! engines state, also for `strata status` and the log.

mod advice;
mod certificate;
mod compare;
mod remedy;

use crate::config_view::ConfigView;
use crate::view;
pub use advice::{of_placement, told, told_not_found};
use advice::{told_end, told_refusal};
use control::{Account, Explain, Outcome, RefusedGrant, Trouble};
use model::Instant;
use node::{Attempt, End, GrantState, Node, PeerState, PeerStatus};
use remedy::Remedy;

/// Explains one peer; returns `None` if no peer has that name. A cause on this host comes before
/// any at the peer, about which a host that sends nothing can find out nothing.
pub fn explain(view: &ConfigView, node: &Node, name: &str, now: Instant) -> Option<Explain> {
    let peers = node.peers();
    let peer = peers.iter().find(|peer| peer.name == name)?;
    let table = view.table(peer.table.as_deref().unwrap_or(name));
    let remedy = Remedy {
        places: view.places(),
        table: &table,
        by_udp: view.is_by_udp(name),
        decodes_psk: view.decodes_psk(name),
    };
    let attempt = node.attempt(name);
    let stranger = node
        .stranger()
        .filter(|stranger| may_be(stranger, peer, attempt.as_ref(), view));
    let local = local(view, node, peer);
    let told = |attempt: &Attempt| {
        let mut account = account(view, attempt, &remedy, now);
        if !local.is_empty() {
            account.fixes.clear();
        }
        account.remarks.extend(view::two_machines(peer, now));
        account
    };
    Some(Explain {
        peer: peer.name.clone(),
        state: view::state(peer),
        lookup: view::lookup(peer, now),
        attempt: attempt.as_ref().map(told),
        stranger: stranger.map(|stranger| account(view, stranger, &remedy, now)),
        refused_grants: refused_grants(node, name),
        local,
    })
}

/// Returns the causes on this host that keep a peer down.
fn local(view: &ConfigView, node: &Node, peer: &PeerStatus) -> Vec<Trouble> {
    if peer.state == PeerState::Up {
        return Vec::new();
    }
    let remote = peer.remote.map(|remote| remote.ip());
    let unreached = |error: &&Trouble| error.remote.is_some() && error.remote == remote;
    let unreached = view.errors.iter().filter(unreached).cloned();
    let agent = view::no_agent(view, node);
    agent.into_iter().chain(unreached).collect()
}

/// Returns true if an unidentified attempt may have come from a peer that is not up: there is no
/// newer attempt of that peer, and the source address is plausible.
fn may_be(
    stranger: &Attempt,
    peer: &PeerStatus,
    attempt: Option<&Attempt>,
    view: &ConfigView,
) -> bool {
    let newest = attempt.is_none_or(|attempt| attempt.began < stranger.began);
    let expected = peer.remote.map(|remote| remote.ip());
    let from = stranger.path.remote.ip();
    let there = !view.reachable().contains(&peer.name) || expected == Some(from);
    peer.state != PeerState::Up && newest && there
}

fn account(view: &ConfigView, attempt: &Attempt, remedy: &Remedy<'_>, now: Instant) -> Account {
    let (outcome, reason) = match &attempt.end {
        Some(End::Up) => (Outcome::Up, None),
        Some(End::Down(why)) => (Outcome::Failed, Some(told_end(why))),
        Some(End::Refused(why)) => (Outcome::Failed, Some(told_refusal(why))),
        None => (Outcome::Trying, None),
    };
    Account {
        outcome,
        reason,
        seconds_ago: now.since(attempt.began).as_secs(),
        initiator: attempt.initiator,
        remote: view::without_scope(attempt.path.remote),
        interface: view.link(attempt.path.remote),
        tries: attempt.tries,
        rows: compare::rows(attempt),
        remarks: attempt.remarks.iter().map(told_refusal).collect(),
        fixes: remedy.fixes(attempt),
    }
}

/// Returns the grants that nodes refused for a peer's packets, or that the peer itself refused if
/// it is a licensed node.
fn refused_grants(node: &Node, name: &str) -> Vec<RefusedGrant> {
    let csas = node.composite_sas();
    let peer = node.names().id(name);
    let grants = csas.iter().flat_map(|csa| {
        let grants = csa.grants.iter();
        grants.filter(move |grant| [csa.peer, grant.peer].map(Some).contains(&peer))
    });
    let refused = grants.filter(|grant| grant.state == GrantState::Refused);
    refused
        .map(|grant| RefusedGrant {
            node: grant.node.to_string(),
            reason: grant.refusal.as_ref().map(told).unwrap_or_default(),
        })
        .collect()
}
