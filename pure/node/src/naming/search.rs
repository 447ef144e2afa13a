//! The search for one peer: what its name means, and the addresses that are tried.
//!
//! A round begins with an attempt and ends when the peer is up, or when the attempt has failed. The
//! addresses of the first answer are tried one after the other, with a pause of [`PAUSE`] as long
//! as none of them answers. Then the name is looked up again from time to time, since it may have
//! got other addresses in the meantime, which are tried as well.

use super::lookup::{Found, Lookup, NotFound};
use super::order;
use super::status::{NameStatus, Tried};
use model::{IkeSaId, Instant, PeerId};
use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// Pause before the next address ("Connection Attempt Delay", RFC 8305 section 5).
const PAUSE: Duration = Duration::from_millis(250);

/// Time for a lookup, after which the address at which the peer was last up is tried.
const SILENCE: Duration = Duration::from_secs(2);

/// Time that an attempt waits for the routes to the addresses.
const WAYS: Duration = Duration::from_secs(1);

/// Pauses between lookups while no address answers: the first doubles up to the longest.
const FIRST_AGAIN: Duration = Duration::from_secs(5);
const LONGEST_AGAIN: Duration = Duration::from_secs(60);

/// Shortest pause between lookups if the network changes often.
const LEAST_AGAIN: Duration = Duration::from_secs(1);

/// Most addresses to remember of those that failed, and of those tried.
const MOST_FAILED: usize = 16;
const MOST_TRIED: usize = 16;

/// An initiation to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub peer: PeerId,
    pub address: IpAddr,
    /// True if it begins beside others of the same round.
    pub beside: bool,
}

/// The search for one peer.
pub(super) struct Search {
    name: Box<str>,
    /// True if the name is not looked up again while no address answers.
    once: bool,
    /// Address at which the peer was last up.
    good: Option<IpAddr>,
    /// Addresses at which attempts have failed since the peer was last up.
    failed: BTreeSet<IpAddr>,
    tried: Vec<Tried>,
    lookup: Stage,
    /// Time at which the last lookup began.
    looked_at: Option<Instant>,
    last: Option<(Instant, Result<Found, NotFound>)>,
    round: Option<Round>,
}

/// The stage of a lookup.
enum Stage {
    Idle,
    /// It has to begin, as soon as there is room.
    Wanted,
    /// The driver has been asked for the sources.
    Asked(Instant),
    UnderWay(Box<Lookup>),
}

/// The attempts since the peer was last up or down.
struct Round {
    /// Addresses to try.
    queue: VecDeque<IpAddr>,
    /// Time of the next attempt.
    next_at: Option<Instant>,
    /// True while the routes to the first addresses are not known.
    waits: bool,
    /// Time at which the address that worked last is tried without a lookup.
    good_at: Option<Instant>,
    /// Time of the next lookup.
    again_at: Option<Instant>,
    /// Number of lookups.
    lookups: u32,
    /// Number of addresses that were tried.
    begun: usize,
}

impl Search {
    pub(super) const fn new(name: Box<str>) -> Self {
        Self {
            name,
            once: false,
            good: None,
            failed: BTreeSet::new(),
            tried: Vec::new(),
            lookup: Stage::Idle,
            looked_at: None,
            last: None,
            round: None,
        }
    }

    /// Creates a search whose name is looked up once.
    pub(super) fn once(name: Box<str>) -> Self {
        Self {
            once: true,
            ..Self::new(name)
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn restore(&mut self, address: IpAddr) {
        self.good.get_or_insert(address);
    }

    // A round.

    /// Begins a round, with a lookup.
    pub(super) fn begin(&mut self, now: Instant) {
        self.tried.clear();
        self.round = Some(Round {
            queue: VecDeque::new(),
            next_at: None,
            waits: false,
            good_at: self.good.map(|_| now + SILENCE),
            again_at: None,
            lookups: 0,
            begun: 0,
        });
        self.want_lookup();
    }

    /// Ends the round, and the lookup.
    pub(super) fn end(&mut self) {
        self.round = None;
        self.lookup = Stage::Idle;
    }

    /// Records that the peer is up at an address. Returns true if the address is the name's, and
    /// was not known to be good.
    pub(super) fn prove(&mut self, address: IpAddr) -> bool {
        self.failed.clear();
        let mut tried = self.tried.iter();
        let is_ours = tried.any(|tried| tried.address == address);
        is_ours && self.good.replace(address) != Some(address)
    }

    /// Records that an attempt failed.
    pub(super) fn failed(&mut self, sa: IkeSaId) {
        let mut tried = self.tried.iter();
        if let Some(tried) = tried.find(|tried| tried.sa == sa) {
            if self.failed.len() >= MOST_FAILED {
                self.failed.clear();
            }
            self.failed.insert(tried.address);
        }
    }

    /// Records that an attempt continues on another IKE SA: elsewhere, or over TCP.
    pub(super) fn replaced(&mut self, old: IkeSaId, new: IkeSaId) {
        for tried in self.tried.iter_mut().filter(|tried| tried.sa == old) {
            tried.sa = new;
        }
    }

    /// Returns the address to initiate to now, unless one of those before has answered.
    pub(super) fn take_start(
        &mut self,
        peer: PeerId,
        waits: impl Fn(IkeSaId) -> bool,
        answered: impl Fn(IkeSaId) -> bool,
        now: Instant,
    ) -> Option<Start> {
        let round = self.round.as_mut()?;
        round.next_at.filter(|at| *at <= now)?;
        round.next_at = None;
        if self.tried.iter().any(|tried| answered(tried.sa)) {
            round.queue.clear();
            round.again_at = None;
            return None;
        }
        let address = round.queue.pop_front()?;
        round.waits = false;
        round.next_at = (!round.queue.is_empty()).then(|| now + PAUSE);
        round.begun += 1;
        let pause = FIRST_AGAIN.saturating_mul(1 << round.lookups.min(4));
        round.again_at = (!self.once).then(|| now + pause.min(LONGEST_AGAIN));
        Some(Start {
            peer,
            address,
            beside: self.tried.iter().any(|tried| waits(tried.sa)),
        })
    }

    pub(super) fn started(&mut self, address: IpAddr, sa: IkeSaId, now: Instant) {
        if self.tried.len() >= MOST_TRIED {
            self.tried.remove(0);
        }
        self.tried.push(Tried {
            address,
            at: now,
            sa,
        });
    }

    /// Continues, as the routes to the addresses are known. Those without a route come last
    /// ("Avoid unusable destinations", RFC 6724 section 6).
    pub(super) fn release(&mut self, is_reachable: impl Fn(&IpAddr) -> bool) {
        if let Some(round) = self.round.as_mut().filter(|round| round.waits) {
            let queue = round.queue.make_contiguous();
            queue.sort_by_key(|address| !is_reachable(address));
            round.waits = false;
            round.next_at = Some(Instant::ZERO);
        }
    }

    pub(super) const fn is_searching(&self) -> bool {
        self.round.is_some()
    }

    /// Returns true if the routes to the first addresses are not known.
    pub(super) fn waits_for_ways(&self) -> bool {
        self.round.as_ref().is_some_and(|round| round.waits)
    }

    // The lookup.

    /// Looks the name up again, as the network has changed.
    pub(super) fn look_again(&mut self, now: Instant) {
        let recent = self.looked_at.is_some_and(|at| now < at + LEAST_AGAIN);
        if self.round.is_some() && !recent {
            self.want_lookup();
        }
    }

    /// Returns true if the last lookup failed, and no attempt is in progress.
    pub(super) const fn is_without_answer(&self) -> bool {
        self.round.is_none() && matches!(self.last, Some((_, Err(_))))
    }

    /// Returns true if a lookup has to begin, and marks it as begun.
    pub(super) fn take_wanted(&mut self, now: Instant) -> bool {
        let wanted = matches!(self.lookup, Stage::Wanted);
        if wanted {
            self.lookup = Stage::Asked(now);
            self.looked_at = Some(now);
        }
        wanted
    }

    /// Returns true if the sources of a lookup are awaited.
    pub(super) const fn is_wanted(&self) -> bool {
        matches!(self.lookup, Stage::Asked(_))
    }

    pub(super) const fn is_asking(&self) -> bool {
        matches!(self.lookup, Stage::Asked(_) | Stage::UnderWay(_))
    }

    pub(super) fn set_lookup(&mut self, lookup: Lookup) {
        self.lookup = Stage::UnderWay(lookup.into());
    }

    pub(super) fn lookup_mut(&mut self) -> Option<&mut Lookup> {
        match &mut self.lookup {
            Stage::UnderWay(lookup) => Some(lookup),
            Stage::Idle | Stage::Wanted | Stage::Asked(_) => None,
        }
    }

    pub(super) fn drop_lookup(&mut self) {
        self.lookup = Stage::Idle;
    }

    /// Records addresses. Returns true if they are others than before.
    pub(super) fn found(&mut self, found: Found, now: Instant) -> bool {
        let ordered = order::ordered(&found.addresses, self.good, &self.failed);
        self.add(&ordered, now);
        let before = self.last.replace((now, Ok(found)));
        let set = |found: &Found| found.addresses.iter().copied().collect::<BTreeSet<_>>();
        let after = self.last.as_ref().and_then(|(_, last)| last.as_ref().ok());
        let before = before.and_then(|(_, last)| last.ok());
        after.map(set) != before.as_ref().map(set)
    }

    /// Records that nothing was found. Returns true if that is new.
    pub(super) fn not_found(&mut self, why: NotFound, now: Instant) -> bool {
        let before = self.last.replace((now, Err(why)));
        self.try_good(now);
        let is_same = |(_, before): (_, Result<Found, NotFound>)| {
            let after = self.last.as_ref().and_then(|(_, last)| last.as_ref().err());
            before.err().as_ref() == after
        };
        !before.is_some_and(is_same)
    }

    /// Returns the address that is tried without an answer of a name server.
    pub(super) fn instead(&self) -> Option<IpAddr> {
        self.good.filter(|_| self.round.is_some())
    }

    /// Returns true if there is no address to try in this round.
    pub(super) fn is_lost(&self) -> bool {
        let mut round = self.round.iter();
        round.any(|round| round.begun == 0 && round.queue.is_empty())
    }

    // Time.

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.lookup, Stage::Asked(at) if at + SILENCE <= now) {
            self.lookup = Stage::Wanted;
        }
        let Some(round) = &mut self.round else {
            return;
        };
        if round.good_at.is_some_and(|at| at <= now) {
            self.try_good(now);
        }
        let Some(round) = &mut self.round else {
            return;
        };
        if round.again_at.take_if(|at| *at <= now).is_some() {
            round.lookups += 1;
            let pause = FIRST_AGAIN.saturating_mul(1 << round.lookups.min(4));
            round.again_at = Some(now + pause.min(LONGEST_AGAIN));
            self.want_lookup();
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let stage = match &self.lookup {
            Stage::Idle | Stage::Wanted => None,
            Stage::Asked(at) => Some(*at + SILENCE),
            Stage::UnderWay(lookup) => Some(lookup.deadline()),
        };
        let round = self.round.iter();
        let round = round.flat_map(|round| [round.next_at, round.good_at, round.again_at]);
        round.flatten().chain(stage).min()
    }

    // Status.

    /// Returns the addresses at which the peer may be.
    pub(super) fn candidates(&self) -> impl Iterator<Item = IpAddr> {
        let queue = self.round.iter().flat_map(|round| &round.queue);
        let tried = self.tried.iter().map(|tried| tried.address);
        let is_open = self.round.is_some();
        let tried = tried.filter(move |_| is_open);
        queue.copied().chain(tried)
    }

    /// Returns the addresses that the peer has, had or is tried at.
    pub(super) fn known(&self) -> BTreeSet<IpAddr> {
        let last = self.last.iter().flat_map(|(_, last)| last.as_ref().ok());
        let found = last.flat_map(|found| found.addresses.iter().copied());
        let tried = self.tried.iter().map(|tried| tried.address);
        found.chain(tried).chain(self.good).collect()
    }

    pub(super) fn status(&self) -> NameStatus {
        NameStatus {
            name: self.name.clone().into(),
            asking: self.is_asking(),
            last: self.last.clone(),
            tried: self.tried.clone(),
            good: self.good,
        }
    }

    fn want_lookup(&mut self) {
        if matches!(self.lookup, Stage::Idle) {
            self.lookup = Stage::Wanted;
        }
    }

    /// Tries the address at which the peer was last up, if no address is known.
    fn try_good(&mut self, now: Instant) {
        if let Some(round) = &mut self.round {
            round.good_at = None;
        }
        if let Some(good) = self.good.filter(|_| self.is_lost()) {
            self.add(&[good], now);
        }
    }

    /// Adds addresses to try in this round, except those that are tried already.
    fn add(&mut self, addresses: &[IpAddr], now: Instant) {
        let Some(round) = &mut self.round else {
            return;
        };
        for address in addresses {
            let is_tried = self.tried.iter().any(|tried| tried.address == *address);
            if !is_tried && !round.queue.contains(address) && round.queue.len() < order::MOST {
                round.queue.push_back(*address);
            }
        }
        round.good_at = None;
        if round.next_at.is_none() && !round.queue.is_empty() {
            round.waits = true;
            round.next_at = Some(now + WAYS);
        }
    }
}
