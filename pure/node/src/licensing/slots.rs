//! The slots of one tunnel: requested, used for sending, and closed.

use super::holders::Sharing;
use super::placement::{MIGRATION, PATIENCE};
use super::places::{Handover, Limit};
use super::site::Site;
use crate::effects::{Effect, IkeCommand};
use crate::{Ending, Event};
use esp::Command;
use ike::{Slot, is_slot};
use model::{ChildSaId, Identity, Instant, TrafficSelector};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Time for which a slot that was left still receives.
const STRAGGLERS: Duration = Duration::from_secs(2);

/// Interval of checks which of several ready slots the mobile node uses.
const GLANCE: Duration = Duration::from_millis(200);

/// Most nodes of licensed domains whose locations are remembered: as many as a tunnel may have
/// child SAs.
const MOST_LEARNED: usize = 64;

/// State of one tunnel with slots.
#[derive(Default)]
pub(super) struct Tunnel {
    /// Outer address of the peer, if known.
    end: Option<IpAddr>,
    /// Nodes that the tunnel passes, the likeliest first.
    here: Vec<Identity>,
    /// Locations of nodes of licensed domains, as the other end offered them, the latest last.
    learned: Vec<(Identity, Vec<TrafficSelector>)>,
    /// State of the shared slots.
    sharing: Sharing,
    /// Node that the traffic is sealed for.
    sealed_for: Option<Identity>,
    /// Child SA of the slot that sends; `None` if the first child sends.
    sent_on: Option<ChildSaId>,
    /// Child SAs that sent and were left, each with true once its rekey was requested.
    spent: BTreeMap<ChildSaId, bool>,
    /// Slots that we requested, with the time of closing for those that are not needed any more.
    opened: BTreeMap<String, Option<Instant>>,
    /// End of the time in which a slot that was left may still send.
    migrates_until: Option<Instant>,
    /// Slot whose keys another node may obtain with a token.
    tokened: Option<Tokened>,
    /// Time of the next check which of several ready slots the mobile node uses.
    glance: Option<Instant>,
    /// End of the time in which the rekey of spent slots is left to the other end, if that end
    /// distributes keys.
    asks_at: Option<Instant>,
}

/// A slot whose keys another node may obtain with a token.
struct Tokened {
    child: ChildSaId,
    /// End of the time in which the slot may send, wherever the tunnel is.
    until: Instant,
    /// Time of the rekey request if the tunnel stays or returns, so that the new keys are ready by
    /// `until`.
    asks_at: Option<Instant>,
    /// True if the rekey request is due.
    asks: bool,
}

impl Tunnel {
    pub(super) fn next(&self) -> Option<Instant> {
        let closes = self.opened.values().flatten().copied();
        let tokened = self.tokened.iter();
        let tokened = tokened.flat_map(|tokened| [tokened.asks_at, Some(tokened.until)]);
        let timers = [
            self.migrates_until,
            self.glance,
            self.asks_at,
            self.sharing.next(),
        ];
        let timers = timers.into_iter().chain(tokened);
        closes.chain(timers.flatten()).min()
    }

    /// Cancels everything that is due.
    fn rest(&mut self) {
        self.opened.values_mut().for_each(|closes| *closes = None);
        (self.tokened, self.migrates_until) = (None, None);
        (self.glance, self.asks_at) = (None, None);
        self.sharing.rest();
    }

    /// Records that another node may obtain the keys of a slot from now on. Further tokens do not
    /// extend the time.
    pub(super) fn token(&mut self, child: ChildSaId, until: Instant, asks_at: Option<Instant>) {
        self.tokened.take_if(|tokened| tokened.child != child);
        self.tokened.get_or_insert(Tokened {
            child,
            until,
            asks_at,
            asks: false,
        });
    }

    /// Returns the outer address of the peer, if known.
    pub(super) const fn end(&self) -> Option<IpAddr> {
        self.end
    }

    /// Sets the outer address of the peer. Returns the one before.
    pub(super) const fn set_end(&mut self, end: Option<IpAddr>) -> Option<IpAddr> {
        std::mem::replace(&mut self.end, end)
    }

    /// Records the location of a node of a licensed domain.
    pub(super) fn learn(&mut self, node: Identity, place: Vec<TrafficSelector>) {
        self.learned.retain(|(known, _)| *known != node);
        if self.learned.len() == MOST_LEARNED {
            self.learned.remove(0);
        }
        self.learned.push((node, place));
    }

    /// Returns the nodes of licensed domains whose locations are known.
    pub(super) fn learned(&self) -> &[(Identity, Vec<TrafficSelector>)] {
        &self.learned
    }

    /// Returns the nodes that the tunnel passes.
    pub(super) fn here(&self) -> &[Identity] {
        &self.here
    }

    #[cfg(test)]
    pub(super) const fn here_mut(&mut self) -> &mut Vec<Identity> {
        &mut self.here
    }

    /// Returns the child SA of the slot that sends.
    pub(super) const fn sent_on(&self) -> Option<ChildSaId> {
        self.sent_on
    }

    /// Returns true if a node is selected for the keys of a shared slot.
    pub(super) fn is_chosen(&self, node: &Identity) -> bool {
        self.sharing.is_chosen(node)
    }

    /// Removes a child SA that is gone.
    pub(super) fn forget(&mut self, child: ChildSaId) {
        self.spent.remove(&child);
        self.sent_on.take_if(|sent_on| *sent_on == child);
    }

    /// Releases the slots of a tunnel that is down or has no locations any more.
    pub(super) fn let_go(&self, site: &mut Site<'_, '_>) {
        for slot in self.opened.keys() {
            // The slot may be gone already.
            site.release(slot);
        }
        if let Some(child) = self.sent_on {
            site.turn.add(Command::Retire(child));
        }
    }

    /// Records the nodes that the tunnel passes now.
    pub(super) fn go_to(&mut self, here: Vec<Identity>, handover: Handover, site: &Site<'_, '_>) {
        if here == self.here {
            return;
        }
        let now = site.turn.now;
        let migrates = handover == Handover::Dkm;
        if migrates {
            self.spend_unused(&here, site);
        }
        let goes_on = migrates && self.sent_on.is_some();
        // A further move in the meantime does not extend the time.
        let until = goes_on.then(|| self.migrates_until.unwrap_or(now + MIGRATION));
        if let (Some(until), Some(child)) = (until, self.sent_on) {
            // Neither does a return to the same location.
            self.token(child, until, None);
        }
        self.migrates_until = until;
        self.asks_at = Some(now + PATIENCE);
        self.here = here;
    }

    /// Marks slots as spent that are left without having sent here. The other end may have sent on
    /// them, so another node may hold their keys as well.
    fn spend_unused(&mut self, here: &[Identity], site: &Site<'_, '_>) {
        let stays = site.slot_names(here);
        let mut left = site.slot_names(&self.here);
        left.retain(|slot| !stays.contains(slot));
        for (id, child) in site.children() {
            let named = child.status.name.as_ref();
            let is_left = named.is_some_and(|name| left.contains(name));
            if is_left && self.sent_on != Some(id) {
                self.spent.entry(id).or_insert(false);
            }
        }
    }

    /// Takes the keys of all slots back from their nodes, because the mobile node is bound nowhere.
    /// No request is sent to the mobile node, which could not answer: its slots are spent, and are
    /// rekeyed when it is bound again.
    pub(super) fn take_back(&mut self, site: &mut Site<'_, '_>) {
        let slots = site.children();
        let slots = slots.filter(|(_, child)| is_slot(child.status.name.as_deref()));
        let slots: Vec<_> = slots.map(|(id, _)| id).collect();
        for slot in slots {
            self.spent.entry(slot).or_insert(false);
            site.limit_to(slot, &[], &Ending::Unbound);
        }
        self.rest();
        self.choose(site);
    }

    /// Leaves a slot in time if another node may obtain its keys. If the move fails, only our rekey
    /// request informs the other end of that.
    pub(super) fn leave_tokened(&mut self, site: &mut Site<'_, '_>) {
        let now = site.turn.now;
        let Some(tokened) = &mut self.tokened else {
            return;
        };
        let child = tokened.child;
        let is_used = self.sent_on == Some(child);
        tokened.asks |= tokened.asks_at.take_if(|at| *at <= now).is_some();
        let here = site.slot_names(&self.here);
        let stays = is_used && site.slot_of(child).is_some_and(|slot| here.contains(slot));
        if let Some(ike) = site.ike_of(child)
            && stays
            && std::mem::take(&mut tokened.asks)
        {
            site.turn.add(IkeCommand::RekeyChild(ike, child));
        }
        let over = self.tokened.take_if(|tokened| tokened.until <= now);
        if over.is_some() && is_used {
            self.spent.insert(child, false);
        }
    }

    /// Requests the slots that are wanted, and closes others. Covers only nodes that we can
    /// distribute keys to. All other slots are left to the peer.
    pub(super) fn tend(&mut self, near: &[Identity], limits: &[Limit], site: &mut Site<'_, '_>) {
        let wanted = site.slot_names(near);
        self.close_left(&wanted, site);
        let new = wanted.into_iter();
        let mut new: Vec<_> = new.filter(|slot| !self.opened.contains_key(slot)).collect();
        let here = site.slot_names(&self.here);
        new.sort_by_key(|slot| !here.contains(slot));
        for slot in new {
            // A neighbour waits: packets may be under way to the slot that was left.
            let is_here = here.contains(&slot);
            if self.has_room(&slot, limits) || is_here && self.make_room(&slot, limits, site) {
                // Every node with a location has a slot.
                site.open(&slot);
                self.opened.insert(slot, None);
            }
        }
    }

    /// Closes slots that were left, once their time is over.
    fn close_left(&mut self, wanted: &BTreeSet<String>, site: &mut Site<'_, '_>) {
        let now = site.turn.now;
        let sent_on = self.sent_on.and_then(|child| site.slot_of(child));
        for (slot, closes) in &mut self.opened {
            let is_left = !wanted.contains(slot) && sent_on != Some(slot.as_str());
            *closes = is_left.then(|| closes.unwrap_or(now + STRAGGLERS));
        }
        let due = |_: &String, closes: &mut Option<Instant>| closes.is_some_and(|at| at <= now);
        let closed: Vec<_> = self.opened.extract_if(.., due).collect();
        for (slot, _) in closed {
            site.release(&slot);
        }
    }

    /// Returns true if a slot may be opened: if it is for a node of a domain, fewer of them have
    /// slots than may.
    fn has_room(&self, slot: &str, limits: &[Limit]) -> bool {
        let is_full = |limit: &Limit| {
            let slots = self.opened.keys();
            slots.filter(|other| limit.slots.contains(*other)).count() >= limit.most
        };
        let mut limits = limits.iter().filter(|limit| limit.slots.contains(slot));
        !limits.any(is_full)
    }

    /// Closes the slot of the same domain that was left first. Returns false if none was left.
    fn make_room(&mut self, slot: &str, limits: &[Limit], site: &mut Site<'_, '_>) -> bool {
        let Some(limit) = limits.iter().find(|limit| limit.slots.contains(slot)) else {
            return false;
        };
        let all = self.opened.iter();
        let all = all.filter(|(other, _)| limit.slots.contains(*other));
        let left = all.filter_map(|(other, closes)| Some((closes.as_ref()?, other)));
        let Some(left) = left.min().map(|(_, left)| left.clone()) else {
            return false;
        };
        self.opened.remove(&left);
        site.release(&left);
        true
    }

    /// Distributes the keys of shared slots to the nodes that are near, up to the limit.
    pub(super) fn share(
        &mut self,
        most: Option<usize>,
        near: &[Identity],
        site: &mut Site<'_, '_>,
    ) {
        self.sharing.tend(most, near, &self.here, site);
    }

    /// Requests a rekey of spent slots that are wanted again: at once if we distribute their keys,
    /// otherwise after the time reserved for the other end. The engine rekeys no child SA that the
    /// other end has rekeyed.
    pub(super) fn renew_spent(&mut self, site: &mut Site<'_, '_>) {
        let now = site.turn.now;
        self.asks_at.take_if(|at| *at <= now);
        let asks = self.asks_at.is_none();
        let here = site.slot_names(&self.here);
        for (spent, renewed) in &mut self.spent {
            let child = site.child(*spent).filter(|_| !*renewed);
            let is_wanted = |slot: &String| {
                let gives = matches!(self.opened.get(slot), Some(None));
                gives || asks && here.contains(slot)
            };
            if let Some(child) = child
                && child.status.name.as_ref().is_some_and(is_wanted)
            {
                *renewed = true;
                let rekey = IkeCommand::RekeyChild(child.ike, *spent);
                site.turn.add(rekey);
            }
        }
    }

    /// Sends on the slot of the tunnel's location, if one is ready.
    pub(super) fn choose(&mut self, site: &mut Site<'_, '_>) {
        let now = site.turn.now;
        let slots = site.slots_of(&self.here).into_iter();
        let ready = slots.filter_map(|slot| {
            let child = self.ready_child(slot, site)?;
            let serves = site.serves(slot, child, &self.here);
            serves.then(|| (child, site.turn.plane.observed(child).heard))
        });
        let ready: Vec<_> = ready.collect();
        self.glance = (ready.len() > 1).then(|| now + GLANCE);
        // If several are ready: the one that received last or, if none did, the first.
        let chosen = ready
            .into_iter()
            .reduce(|best, next| match next.1 > best.1 {
                true => next,
                false => best,
            });
        self.migrates_until
            .take_if(|until| *until <= now || chosen.is_some());
        let migrates = self.migrates_until.is_some();
        let migrating = self.sent_on.filter(|child| {
            migrates && !self.spent.contains_key(child) && site.may_be_sent_on(*child)
        });
        let chosen = chosen.map(|(child, _)| child).or(migrating);
        let node = chosen.and_then(|child| site.node_of(child, &self.here));
        if chosen != self.sent_on {
            self.send_on(chosen, site);
        } else if node == self.sealed_for {
            return;
        }
        self.sealed_for.clone_from(&node);
        let peer = site.peer;
        site.turn.add(Event::SealedFor { peer, node });
    }

    /// Leaves the slot that sends, for another slot or for the first child.
    fn send_on(&mut self, chosen: Option<ChildSaId>, site: &mut Site<'_, '_>) {
        if let Some(left) = self.sent_on {
            site.turn.add(Command::Retire(left));
            if site.slot_of(left) != chosen.and_then(|child| site.slot_of(child)) {
                self.spent.insert(left, false);
                // The slot may be wanted again, with new keys.
                site.turn.check(site.peer);
            }
        }
        if let Some(chosen) = chosen.filter(|chosen| !site.is_off(*chosen)) {
            site.turn.add(Command::Prefer(chosen));
        }
        self.sent_on = chosen;
        site.turn.add(Effect::ReviewPaths(site.peer));
    }

    /// Returns the newest child SA of a slot that is not spent, and that the peer and the nodes are
    /// ready for.
    fn ready_child(&self, slot: &Slot, site: &Site<'_, '_>) -> Option<ChildSaId> {
        let mut children = site.slot_children(&slot.name).map(|(id, _)| id);
        children.find(|id| {
            let is_new = !self.spent.contains_key(id) && !site.is_waiting(*id);
            is_new && site.is_for(slot, *id, &self.here) && site.may_be_sent_on(*id)
        })
    }
}
