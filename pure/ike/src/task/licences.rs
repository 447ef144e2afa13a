//! Changes of licences while child SAs are up.
//!
//! Licences are an input of the keys, so a change requires a rekey and nothing else: the child SA
//! is rekeyed at once, and its successor has the licences of both current policies. The caller has
//! to stop sealing packets for nodes that must no longer read them. The time of the peer's change
//! is unknown. Keys that still license a node whose licence was withdrawn therefore expire after a
//! time, with or without new ones.

use crate::child::ChildTerms;
use crate::config::ZonePolicy;
use crate::down_reason::DownReason;
use crate::extension::zones;
use crate::refusal::Refusal;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::children::{Age, Child, Life};
use model::{ChildSaId, Instant, Licence, ZoneAgreement};

/// Rekeys a child SA at once if it was negotiated with other licences than the current ones.
pub(crate) fn adapt(
    age: &mut Age,
    policy: &ZonePolicy,
    asked: &[Licence],
    agreement: &ZoneAgreement,
    now: Instant,
) {
    if zones::licences(policy) != asked {
        age.hasten(zones::takes_back(policy, agreement), now);
    }
}

/// Applies changed licences: of the configuration, or of a path that has moved.
pub(crate) fn relicense(session: &mut Session, turn: &Turn<'_, '_>) {
    let Some(peer) = turn
        .core
        .peer(turn.ctx.config)
        .filter(|_| !session.is_leaving())
    else {
        return;
    };
    let current = session.children.all_current();
    let policies = current.map(|child| session.policy(peer, child.name.as_deref()));
    let policies: Vec<_> = policies.collect();
    for (child, policy) in session.children.all_current_mut().zip(policies) {
        if let (Some(policy), Some(agreement), Life::Current(age)) =
            (policy, &child.agreement, &mut child.life)
        {
            let zones = policy.zones_for(&child.asked);
            adapt(age, &zones, &child.asked, agreement, turn.ctx.now);
        }
    }
}

/// Reports the licences of ours that a successor lacks, unless its predecessor lacked them too.
pub(crate) fn tell_unlicensed(
    session: &Session,
    old: ChildSaId,
    terms: &ChildTerms,
    turn: &mut Turn<'_, '_>,
) {
    let Some(agreement) = &terms.agreement else {
        return;
    };
    let before = session.children.get(old);
    let before = before.and_then(|old| Some((&old.asked, old.agreement.as_ref()?)));
    let known = |missing: &&Licence| {
        before.is_some_and(|(asked, agreement)| {
            zones::missing_licences(asked, agreement).any(|known| known == *missing)
        })
    };
    let missing = zones::missing_licences(&terms.asked, agreement);
    for licence in missing.filter(|missing| !known(missing)) {
        let why = Refusal::LicenceNotAccepted(licence.clone());
        turn.ctx.refused(Some(turn.core.peer_id()), why);
    }
}

/// Returns the reason for which expired keys are given up.
pub(crate) fn why_over(session: &Session, turn: &Turn<'_, '_>) -> DownReason {
    let peer = turn.core.peer(turn.ctx.config);
    let unlicensed = |child: &Child| {
        let policy = peer.and_then(|peer| session.policy(peer, child.name.as_deref()));
        let agreed = policy.zip(child.agreement.as_ref());
        agreed.is_some_and(|(policy, agreement)| {
            zones::takes_back(&policy.zones_for(&child.asked), agreement)
        })
    };
    match session.children.all_current().any(unlicensed) {
        true => DownReason::Reconfigured,
        false => DownReason::LifetimeOver,
    }
}
