//! Requests that a foreign agent has relayed and that are still unanswered (RFC 5944 section
//! 3.7.1).

use super::Station;
use model::{Instant, most_crowded};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use wire::mobile_ip::Request;

/// "The foreign agent MAY delete any pending Registration Request after the request has been
/// pending for more than 7 seconds".
pub(super) const PATIENCE: Duration = Duration::from_secs(7);
/// Limit per mobile node and station. Retransmissions and late replies can leave several pending;
/// at the limit a new one replaces the oldest.
const MOST_OF_ONE: usize = 4;
/// Divisor that gives one station's share of all pending requests.
const SHARE_OF_STATION: usize = 8;

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) request: Request,
    /// Source address and port of the request.
    pub(super) mobile: SocketAddrV4,
    /// The station on our link that sent the request, if known.
    pub(super) station: Option<Station>,
    /// The address of ours that the request was sent to; the configured address for a broadcast.
    pub(super) here: Ipv4Addr,
    pub(super) since: Instant,
}

/// All pending requests, oldest first.
#[derive(Debug)]
pub(super) struct Pending {
    waiting: Vec<Waiting>,
    most: usize,
}

impl Pending {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            waiting: Vec::new(),
            most,
        }
    }

    /// Returns true if a different pending request would match this request's reply. An identical
    /// copy, repeated by the mobile node or by the link, does not count.
    pub(super) fn has_lookalike(&self, newcomer: &Waiting) -> bool {
        let same = |one: &&Waiting| is_same(one, &newcomer.request);
        let since = newcomer.since;
        let mut all = self.waiting.iter().filter(same);
        all.any(|one| Waiting { since, ..*one } != *newcomer)
    }

    /// Makes room for one more request, as far as another may give way, and returns true if one of
    /// another mobile node or station does. A request replaces a copy of itself, and the oldest of
    /// the same mobile node from the same station if that pair is at its limit (any station can
    /// name any mobile node).
    pub(super) fn make_room(
        &mut self,
        newcomer: &Waiting,
        is_visitors: impl Fn(&Waiting) -> bool,
    ) -> bool {
        let request = &newcomer.request;
        self.waiting.retain(|one| !is_same(one, request));
        let of_station = |one: &Waiting| one.station == newcomer.station;
        let of_one = |one: &Waiting| of_station(one) && one.request.home == request.home;
        if self.count(of_one) >= MOST_OF_ONE {
            self.remove_first(of_one);
        }
        let gives_way = if self.count(of_station) >= share_of_station(self.most) {
            let is_replaced = |one: &Waiting| of_station(one) && !is_visitors(one);
            let place = self.waiting.iter().position(is_replaced);
            place.filter(|_| is_visitors(newcomer))
        } else if self.waiting.len() >= self.most {
            self.gives_way(newcomer, is_visitors)
        } else {
            None
        };
        gives_way.map(|place| self.waiting.remove(place)).is_some()
    }

    /// Returns the place of the request that gives way if there is no room in total: the oldest of
    /// the station with the most, if it has more than the newcomer's. A station can forge its
    /// address, so those of visitors give way last, and each visitor's station keeps one. A
    /// visitor's own request replaces any that is not.
    fn gives_way(
        &self,
        newcomer: &Waiting,
        is_visitors: impl Fn(&Waiting) -> bool,
    ) -> Option<usize> {
        let own = self.count(|one| one.station == newcomer.station);
        let of_most = |counts: &dyn Fn(&Waiting) -> bool| {
            let all = self.waiting.iter().enumerate();
            let all = all.filter(|(_, one)| counts(one));
            most_crowded(all.map(|(place, one)| (one.station, place)))
        };
        let stranger = of_most(&|one| !is_visitors(one));
        let stranger = stranger.filter(|(_, most)| is_visitors(newcomer) || *most > own);
        let visitor = || of_most(&|_| true).filter(|(_, most)| *most > own + 1);
        stranger.or_else(visitor).map(|(place, _)| place)
    }

    /// Returns true if there is room for one more request, in total and of this station.
    pub(super) fn has_room(&self, newcomer: &Waiting) -> bool {
        let of_station = self.count(|one| one.station == newcomer.station);
        of_station < share_of_station(self.most) && self.waiting.len() < self.most
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// Returns the request that a reply with this home address and identification answers.
    pub(super) fn find(&self, home: Ipv4Addr, identification: u64) -> Option<Waiting> {
        let lower = identification as u32;
        let fits =
            |one: &&Waiting| one.request.home == home && one.request.identification as u32 == lower;
        self.waiting.iter().find(fits).copied()
    }

    pub(super) fn remove(&mut self, request: &Request) {
        self.waiting.retain(|one| !is_same(one, request));
    }

    /// Removes and returns a request that has waited too long.
    pub(super) fn pop_late(&mut self, now: Instant) -> Option<Waiting> {
        let oldest = self.waiting.first()?;
        (oldest.since + PATIENCE <= now).then(|| self.waiting.remove(0))
    }

    pub(super) fn next(&self) -> Option<Instant> {
        Some(self.waiting.first()?.since + PATIENCE)
    }

    fn count(&self, fits: impl Fn(&Waiting) -> bool) -> usize {
        self.waiting.iter().filter(|one| fits(one)).count()
    }

    fn remove_first(&mut self, fits: impl Fn(&Waiting) -> bool) {
        if let Some(place) = self.waiting.iter().position(fits) {
            self.waiting.remove(place);
        }
    }
}

/// Returns the limit of pending requests per station, given the limit for all stations.
pub(super) fn share_of_station(most: usize) -> usize {
    most.div_ceil(SHARE_OF_STATION).max(MOST_OF_ONE)
}

fn is_same(one: &Waiting, request: &Request) -> bool {
    one.request.home == request.home
        && one.request.identification as u32 == request.identification as u32
}
