//! The tickets of one host (`extension/ticket.rs`): those that it holds as a client, and the
//! accounts of the IKE SAs whose peers it has given tickets as a gateway.
//!
//! A gateway's entries are in a store, which the caller has. [`Tickets::poll`] returns the requests
//! to it. An *account* has what an entry needs and an IKE SA does not know otherwise: how the peer
//! has proved its identity, and what has been used of that proof so far. The IKE SA that resumes a
//! session inherits this use.
//!
//! A gateway that is killed loses its accounts, so entries are charged in advance. Where time
//! counts, an entry has that of the next [`CHECKPOINT`], and a checkpoint renews it. Where data
//! count, it has a part of the limit ([`PART`]), and more as soon as half of that is used. The
//! caller meters what child SAs carry (`Engine::meter`).
//!
//! Of tickets by value, the store has only those that are void, and the keys, so that they outlive
//! the process.

use crate::repeats::Repeats;
use crate::shown::Shown;
use crypto::{Prf, Rng, UnixTime};
use model::{ChildSaId, Deadline, Group, Identity, IkeSaId, Instant, PeerId};
use resumption::{
    Entry, Fingerprint, Handle, Kept, Keys, Operation, Proof, Reference, ReferenceKey, Strategy,
    Ticket, TicketKeys, Usage, Way,
};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Time between two checkpoints.
const CHECKPOINT: Duration = Duration::from_secs(600);

/// Part of a limit of data that is charged in advance: so many writes to the store use it up.
const PART: u64 = 16;

/// Tickets, accounts, and requests to the store.
pub(crate) struct Tickets {
    key: ReferenceKey,
    /// Keys of the tickets by value.
    value_keys: TicketKeys,
    /// The newest ticket of each peer.
    held: BTreeMap<PeerId, Held>,
    accounts: BTreeMap<IkeSaId, Account>,
    /// The IKE SAs of entries, as long as they are up.
    of_handles: BTreeMap<Handle, IkeSaId>,
    repeats: Repeats,
    /// Time of the next checkpoint, if time counts or there are tickets by value.
    checkpoint_at: Option<Instant>,
    operations: VecDeque<Operation>,
}

/// A ticket that a peer has given us.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Held {
    /// The IKE SA that it resumes.
    pub(crate) of: IkeSaId,
    pub(crate) ticket: Vec<u8>,
    pub(crate) ends: Instant,
    pub(crate) keys: Keys,
    /// The certificates by which the peer has proved its identity. They may be revoked since.
    pub(crate) chain: Vec<Vec<u8>>,
    /// Time at which they were believed.
    pub(crate) believed: UnixTime,
    /// Where it was presented without an answer.
    pub(crate) shown: Shown,
}

/// The part of an entry that stays the same for all tickets of an IKE SA, and its use.
#[derive(Clone)]
pub(crate) struct Account {
    pub(crate) identity: Identity,
    pub(crate) proof: Proof,
    pub(crate) chain: Vec<Vec<u8>>,
    pub(crate) group: Group,
    /// Use before this IKE SA.
    pub(crate) before: Usage,
    pub(crate) since: Instant,
    pub(crate) carried: Carried,
    /// Latest end of an entry: that of the certificate, or of the authentication.
    pub(crate) ends: Option<UnixTime>,
    /// The ticket of the peer, if it has one.
    pub(crate) issued: Option<Outstanding>,
}

/// A ticket that a peer has.
#[derive(Clone, Copy)]
pub(crate) struct Outstanding {
    /// The way for which it is good.
    way: Way,
    handle: Handle,
    /// [`Strategy::is_by_value`] when it was given. It is by reference nevertheless if its entry is
    /// too long.
    wanted_by_value: bool,
    /// Its end, if it is by value.
    by_value: Option<UnixTime>,
}

/// Octets that the child SAs of an IKE SA have carried.
#[derive(Clone, Default)]
pub(crate) struct Carried {
    octets: u64,
    /// Those of each child SA when they were last counted.
    counted: BTreeMap<ChildSaId, u64>,
    /// Use of data that the entry in the store has.
    charged: u64,
}

impl Carried {
    /// Counts what each child SA has carried since it was installed. Child SAs that are left out
    /// are gone.
    fn count(&mut self, children: impl IntoIterator<Item = (ChildSaId, u64)>) {
        let before = std::mem::take(&mut self.counted);
        for (child, octets) in children {
            let known = before.get(&child).copied().unwrap_or_default();
            let more = octets.saturating_sub(known);
            self.octets = self.octets.saturating_add(more);
            self.counted.insert(child, octets);
        }
    }
}

impl Outstanding {
    /// Returns the entry in the store, if there is one.
    fn stored(&self) -> Option<Handle> {
        self.by_value.is_none().then_some(self.handle)
    }
}

impl Account {
    fn usage(&self, now: Instant) -> Usage {
        self.before.and(now - self.since, self.carried.octets)
    }

    /// Returns the use to write into the store, with what is charged in advance.
    fn charge(&mut self, strategy: &Strategy, now: Instant) -> Usage {
        let time = match strategy.counts_time() {
            true => CHECKPOINT,
            false => Duration::ZERO,
        };
        let usage = self.usage(now).and(time, advance(strategy));
        self.carried.charged = usage.data;
        usage
    }
}

/// Returns the data to charge in advance.
fn advance(strategy: &Strategy) -> u64 {
    strategy.data.map_or(0, |most| most.div_ceil(PART))
}

/// What a ticket resumes, and for how long.
pub(crate) struct Terms<'a> {
    pub(crate) keys: Keys,
    pub(crate) credential: Fingerprint,
    pub(crate) strategy: &'a Strategy,
}

/// Ticket of an IKE SA, with its lifetime.
pub(crate) struct Issued {
    pub(crate) ticket: Vec<u8>,
    pub(crate) lifetime: Duration,
}

impl Tickets {
    /// Derives the key of references from the seed of the engine.
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        let key = Prf::HmacSha256.mac(seed, &[b"references of tickets"]);
        Self {
            key: ReferenceKey::restored(key),
            value_keys: TicketKeys::default(),
            held: BTreeMap::new(),
            accounts: BTreeMap::new(),
            of_handles: BTreeMap::new(),
            repeats: Repeats::default(),
            checkpoint_at: None,
            operations: VecDeque::new(),
        }
    }

    /// Issues and reads references with another key, as the entries of an earlier process, or of a
    /// cluster, are in the store.
    pub(crate) fn refer_by(&mut self, key: ReferenceKey) {
        self.key = key;
    }

    /// Seals and opens tickets by value with the keys of an earlier process.
    pub(crate) fn seal_by(&mut self, keys: TicketKeys, now: Instant) {
        self.value_keys = keys;
        self.checkpoint_at = Some(now);
    }

    /// Returns the next request to the store.
    pub(crate) fn poll(&mut self) -> Option<Operation> {
        self.operations.pop_front()
    }

    pub(crate) fn submit(&mut self, operation: Operation) {
        self.operations.push_back(operation);
    }

    /// Returns what a presented ticket says, if it is one of ours.
    pub(crate) fn read(&self, presented: &[u8], strategy: &Strategy) -> Option<Ticket> {
        let (reference, behind) = presented.split_at_checked(size_of::<Reference>())?;
        let handle = self.key.read(reference)?;
        if behind.is_empty() {
            return Some(Ticket::Reference(handle));
        }
        let kept = self.value_keys.open(handle, behind);
        let kept = kept.filter(|_| strategy.is_by_value())?;
        Some(Ticket::Value(Box::new(kept)))
    }

    /// Counts a ticket that is presented. Returns true if its sender has to return a cookie.
    pub(crate) fn is_repeated(&mut self, ticket: &Ticket, now: Instant) -> bool {
        self.repeats.count(*ticket.handle(), now)
    }

    // Of a gateway.

    /// Opens the account of an IKE SA whose peer may resume it.
    pub(crate) fn open(&mut self, sa: IkeSaId, account: Account) {
        self.accounts.insert(sa, account);
    }

    /// Opens the account of a clone, with the use of its original so far.
    pub(crate) fn share(&mut self, from: IkeSaId, to: IkeSaId, now: Instant) {
        if let Some(original) = self.accounts.get(&from) {
            let account = Account {
                before: original.usage(now),
                since: now,
                carried: Carried::default(),
                issued: None,
                ..original.clone()
            };
            self.accounts.insert(to, account);
        }
    }

    /// Makes a ticket for an IKE SA. Whoever asks again gets the same one until the keys change, so
    /// that requests cost the store nothing. Returns `None` if the SA has no account, or the
    /// strategy leaves no time.
    pub(crate) fn issue(
        &mut self,
        sa: IkeSaId,
        terms: Terms<'_>,
        rng: &mut Rng,
        today: UnixTime,
        now: Instant,
    ) -> Option<Issued> {
        let Terms {
            keys,
            credential,
            strategy,
        } = terms;
        let account = self.accounts.get_mut(&sa)?;
        let usage = account.usage(now);
        strategy.admits(&usage, today).ok()?;
        let ends = strategy.end(&usage);
        let ends = account.ends.map_or(ends, |limit| limit.min(ends));
        if ends <= today {
            return None;
        }
        let lifetime = Duration::from_secs(ends.0.saturating_sub(today.0));
        let way = keys.way;
        let wanted_by_value = strategy.is_by_value();
        let before = account
            .issued
            .filter(|issued| issued.way == way && issued.wanted_by_value == wanted_by_value);
        let handle = before.map_or_else(|| Handle::draw(rng), |issued| issued.handle);
        let reference = self.key.issue(&handle);
        if before.is_some_and(|issued| issued.by_value.is_none()) {
            let ticket = reference.to_vec();
            return Some(Issued { ticket, lifetime });
        }
        let entry = Entry {
            identity: account.identity.clone(),
            proof: account.proof,
            chain: account.chain.clone(),
            group: account.group,
            credential,
            keys,
            usage: account.charge(strategy, now),
            ends,
        };
        let kept = Kept { handle, entry };
        self.turn(strategy, rng, today);
        let value = self.value_keys.seal(&reference, &kept, rng, today);
        if before.is_some() && value.is_none() {
            return None;
        }
        let issue = Outstanding {
            way,
            handle,
            wanted_by_value,
            by_value: value.is_some().then_some(ends),
        };
        let other = self.accounts.get_mut(&sa)?.issued.replace(issue);
        if let Some(other) = other.filter(|other| other.handle != handle) {
            self.remove(other);
        }
        self.of_handles.insert(handle, sa);
        if strategy.counts_time() || value.is_some() {
            self.checkpoint_at.get_or_insert(now + CHECKPOINT);
        }
        let ticket = value.unwrap_or_else(|| {
            self.submit(Operation::Add(Box::new(kept)));
            reference.to_vec()
        });
        Some(Issued { ticket, lifetime })
    }

    /// Has a key of tickets by value for this hour, and none whose tickets have ended. If there are
    /// to be no tickets by value, there is none at all.
    fn turn(&mut self, strategy: &Strategy, rng: &mut Rng, today: UnixTime) {
        let has_changed = match strategy.is_by_value() {
            true => self.value_keys.turn(strategy.clocked, rng, today),
            false => std::mem::take(&mut self.value_keys) != TicketKeys::default(),
        };
        if has_changed {
            self.submit(Operation::Keep(self.value_keys.clone()));
        }
    }

    /// Returns the use of an entry's last full proof so far, if its IKE SA is up.
    pub(crate) fn usage(&self, handle: &Handle, now: Instant) -> Option<Usage> {
        let sa = self.of_handles.get(handle)?;
        Some(self.accounts.get(sa)?.usage(now))
    }

    /// Returns the time of the next checkpoint.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let at = self.checkpoint_at?;
        Some(Deadline {
            at,
            reason: "charge the sessions that peers may resume",
        })
    }

    /// Charges all entries in advance and turns the keys of tickets, if that is due.
    pub(crate) fn checkpoint(
        &mut self,
        strategy: &Strategy,
        rng: &mut Rng,
        today: UnixTime,
        now: Instant,
    ) {
        if self.checkpoint_at.take_if(|at| *at <= now).is_none() {
            return;
        }
        let counts_time = strategy.counts_time();
        let charges = self.accounts.values_mut().filter_map(|account| {
            let issued = account.issued.filter(|_| counts_time)?;
            Some((issued.stored()?, account.charge(strategy, now)))
        });
        let charges: Vec<_> = charges.collect();
        let is_charged = !charges.is_empty();
        if is_charged {
            self.submit(Operation::Charge(charges));
        }
        self.turn(strategy, rng, today);
        if is_charged || strategy.is_by_value() {
            self.checkpoint_at = Some(now + CHECKPOINT);
        }
    }

    /// Returns the IKE SAs that have an account.
    pub(crate) fn accounted(&self) -> impl Iterator<Item = IkeSaId> {
        self.accounts.keys().copied()
    }

    /// Counts what the child SAs of an IKE SA have carried since they were installed, and charges
    /// its entry if that is due.
    pub(crate) fn meter(
        &mut self,
        sa: IkeSaId,
        children: impl IntoIterator<Item = (ChildSaId, u64)>,
        strategy: &Strategy,
        now: Instant,
    ) {
        let Some(account) = self.accounts.get_mut(&sa) else {
            return;
        };
        account.carried.count(children);
        let issued = account.issued.filter(|_| strategy.data.is_some());
        let Some(handle) = issued.and_then(|issued| issued.stored()) else {
            return;
        };
        let least = account
            .usage(now)
            .data
            .saturating_add(advance(strategy) / 2);
        if account.carried.charged < least {
            let charge = (handle, account.charge(strategy, now));
            self.submit(Operation::Charge(vec![charge]));
        }
    }

    /// Adopts another strategy: if time counts from now on, that of IKE SAs that are up is charged.
    pub(crate) fn adopt(&mut self, strategy: &Strategy, now: Instant) {
        let has_keys = self.value_keys != TicketKeys::default();
        match strategy.counts_time() || has_keys {
            true => drop(self.checkpoint_at.get_or_insert(now)),
            false => self.checkpoint_at = None,
        }
    }

    /// Forgets the ticket of a peer, or all.
    pub(crate) fn forget(&mut self, whose: Option<PeerId>) {
        self.held
            .retain(|peer, _| whose.is_some_and(|whose| whose != *peer));
    }

    /// Ends the sessions of an identity, or all. IKE SAs that are up get no further tickets.
    pub(crate) fn revoke(&mut self, whom: Option<&Identity>) {
        let is_meant = |account: &Account| whom.is_none_or(|whom| *whom == account.identity);
        let accounts = &mut self.accounts;
        accounts.retain(|_, account| !is_meant(account));
        self.of_handles.retain(|_, sa| accounts.contains_key(sa));
        self.submit(Operation::Revoke(whom.cloned()));
    }

    /// Has a ticket good for nothing from now on.
    fn remove(&mut self, ticket: Outstanding) {
        self.of_handles.remove(&ticket.handle);
        self.submit(match ticket.by_value {
            None => Operation::Remove(ticket.handle),
            Some(ends) => Operation::Void(ticket.handle, ends),
        });
    }

    // Of a client.

    /// Keeps a ticket, in place of an earlier one of the peer.
    pub(crate) fn hold(&mut self, peer: PeerId, held: Held) {
        self.held.insert(peer, held);
    }

    /// Removes and returns the ticket of a peer, unless it has ended: "a client MUST NOT reuse a
    /// ticket" (RFC 5723 section 4.3.1). `shown` is where it is seen from now on: one that was seen
    /// elsewhere is dropped, or kept if there is no route.
    pub(crate) fn present(&mut self, peer: PeerId, shown: Shown, now: Instant) -> Option<Held> {
        let before = self.held.get(&peer)?.shown;
        if before != Shown::Nowhere && shown == Shown::Nowhere {
            return None;
        }
        let held = self.held.remove(&peer)?;
        (now < held.ends && before.allows(shown)).then_some(held)
    }

    /// Keeps a ticket that was presented and not answered, unless there is another one: "a ticket
    /// is considered as used only when an IKE SA has been established successfully with it" (RFC
    /// 5723 section 4.3.1).
    pub(crate) fn put_back(&mut self, peer: PeerId, held: Held) {
        self.held.entry(peer).or_insert(held);
    }

    /// Forgets the tickets that `keeps` rejects.
    pub(crate) fn retain(&mut self, keeps: impl Fn(PeerId, &Held) -> bool) {
        self.held.retain(|peer, held| keeps(*peer, held));
    }

    // Of both.

    /// Voids the tickets of an IKE SA, which is rekeyed: "When the IKE SA is rekeyed, the ticket is
    /// invalidated" (section 6.2). Its account stays.
    pub(crate) fn void(&mut self, sa: IkeSaId) {
        let account = self.accounts.get_mut(&sa);
        if let Some(issued) = account.and_then(|account| account.issued.take()) {
            self.remove(issued);
        }
        self.held.retain(|_, held| held.of != sa);
    }

    /// Ends the tickets of an IKE SA that one end deletes: "when an IKE SA is deleted by the client
    /// or the gateway, the client MUST delete its stored ticket" (section 6.2).
    pub(crate) fn end(&mut self, sa: IkeSaId) {
        self.void(sa);
        self.accounts.remove(&sa);
    }

    /// Closes the account of an IKE SA that is down. Unless its tickets have ended, the session can
    /// be resumed.
    pub(crate) fn close(&mut self, sa: IkeSaId, now: Instant) {
        if let Some(account) = self.accounts.remove(&sa) {
            let usage = account.usage(now);
            if let Some(issued) = account.issued {
                self.of_handles.remove(&issued.handle);
                let charge = issued.stored().map(|handle| (handle, usage));
                let charge = charge.map(|charge| Operation::Charge(vec![charge]));
                self.operations.extend(charge);
            }
        }
    }
}

#[cfg(test)]
impl Tickets {
    /// Returns true if we hold a ticket of a peer.
    pub(crate) fn holds(&self, peer: PeerId) -> bool {
        self.held.contains_key(&peer)
    }

    /// Returns the keys of tickets by value, as a thief would have them.
    pub(crate) fn stolen_keys(&self) -> TicketKeys {
        self.value_keys.clone()
    }

    /// Returns a copy of the ticket of a peer, as a thief would make it.
    pub(crate) fn copy(&self, peer: PeerId) -> Option<Held> {
        self.held.get(&peer).cloned()
    }
}
