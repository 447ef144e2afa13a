//! Licences that change under children that are up.
//!
//! They are a part of what keys are made of, so a change takes new keys and nothing else: the child is
//! asked for a successor at once, whose agreement has the licences of both policies of then. Whether
//! anything is still sealed for somebody who must not read it any more is for the owner of the engine to
//! see to. What we do not know is when the peer does what is asked: keys that open something to somebody
//! whose licence is gone are given up after a time, with or without new ones.

use super::children::{Age, Child, Life};
use super::established::Established;
use super::{Context, Core};
use crate::child::Terms;
use crate::config::ZonePolicy;
use crate::down_reason::DownReason;
use crate::extension::zones;
use crate::refusal::Refusal;
use model::{ChildSaId, Instant, Licence, ZoneAgreement};

/// Has a child renewed at once that was agreed on with other licences of ours than those of now.
pub(super) fn adapt(
    age: &mut Age,
    policy: &ZonePolicy,
    (asked, agreement): (&[Licence], &ZoneAgreement),
    now: Instant,
) {
    if zones::licences(policy) != asked {
        age.hasten(zones::takes_back(policy, agreement), now);
    }
}

impl Established {
    /// The configuration has other licences than before.
    pub(crate) fn relicense(&mut self, core: &Core, ctx: &Context<'_>) {
        let Some(peer) = core.peer(ctx.config).filter(|_| !self.is_leaving()) else {
            return;
        };
        for child in self.children.all_current_mut() {
            let policy = peer.policy(child.name.as_deref());
            if let (Some(policy), Some(agreement), Life::Current(age)) =
                (policy, &child.agreement, &mut child.life)
            {
                adapt(age, policy.zones, (&child.asked, agreement), ctx.now);
            }
        }
    }

    /// Tells which licences of ours a successor has not, unless that was so before.
    pub(super) fn tell_unlicensed(
        &self,
        old: ChildSaId,
        terms: &Terms,
        core: &Core,
        ctx: &mut Context<'_>,
    ) {
        let Some(agreement) = &terms.agreement else {
            return;
        };
        let before = self.children.get(old);
        let before = before.and_then(|old| Some((&old.asked, old.agreement.as_ref()?)));
        let known = |missing: &&Licence| {
            before.is_some_and(|(asked, agreement)| {
                zones::missing_licences(asked, agreement).any(|known| known == *missing)
            })
        };
        let missing = zones::missing_licences(&terms.asked, agreement);
        for licence in missing.filter(|missing| !known(missing)) {
            let why = Refusal::LicenceNotAccepted(licence.clone());
            ctx.refused(Some(core.name()), why);
        }
    }

    /// Why keys are given up whose time is over.
    pub(super) fn why_over(&self, core: &Core, ctx: &Context<'_>) -> DownReason {
        let peer = core.peer(ctx.config);
        let unlicensed = |child: &Child| {
            let policy = peer.and_then(|peer| peer.policy(child.name.as_deref()));
            let agreed = policy.zip(child.agreement.as_ref());
            agreed.is_some_and(|(policy, agreement)| zones::takes_back(policy.zones, agreement))
        };
        match self.children.all_current().any(unlicensed) {
            true => DownReason::Reconfigured,
            false => DownReason::LifetimeOver,
        }
    }
}
