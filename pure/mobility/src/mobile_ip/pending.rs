//! Requests that a foreign agent has passed on and that nobody has answered yet (RFC 5944 section 3.7.1).

use super::Station;
use model::Instant;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use wire::mobile_ip::Request;

/// "The foreign agent MAY delete any pending Registration Request after the request has been pending for
/// more than 7 seconds".
pub(super) const PATIENCE: Duration = Duration::from_secs(7);
/// Of one mobile node at one station, which repeats itself and is answered late; an older one makes room.
const MOST_OF_ONE: usize = 4;
/// The part of all that are from one station.
const SHARE_OF_STATION: usize = 8;

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) request: Request,
    /// Where it came from.
    pub(super) mobile: SocketAddrV4,
    /// From which station of our link, if that is known.
    pub(super) station: Option<Station>,
    /// Which of our addresses it came to, if that was one.
    pub(super) here: Ipv4Addr,
    pub(super) since: Instant,
}

/// All that wait, the oldest first.
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

    /// Whether another waits whose reply would be taken for the reply to this one. One that is the same in everything, for
    /// the mobile node repeats itself or the link does, is not another.
    pub(super) fn has_lookalike(&self, newcomer: &Waiting) -> bool {
        let same = |one: &&Waiting| is_same(one, &newcomer.request);
        let since = newcomer.since;
        let mut all = self.waiting.iter().filter(same);
        all.any(|one| Waiting { since, ..*one } != *newcomer)
    }

    /// Makes room for one more: in the place of the same request, of an older one of the same mobile node from the same
    /// station (any station can name any mobile node), or, for one that is served already, of a stranger's. `false` if there
    /// is none, in all or for this station.
    pub(super) fn make_room(
        &mut self,
        newcomer: &Waiting,
        is_served: impl Fn(Ipv4Addr) -> bool,
    ) -> bool {
        let request = &newcomer.request;
        self.waiting.retain(|one| !is_same(one, request));
        let of_station = |one: &Waiting| one.station == newcomer.station;
        let of_one = |one: &Waiting| of_station(one) && one.request.home == request.home;
        if self.count(of_one) >= MOST_OF_ONE {
            self.remove_first(of_one);
        }
        let replaces = |one: &Waiting| is_served(request.home) && !is_served(one.request.home);
        self.has_room(share_of_station(self.most), of_station, replaces)
            && self.has_room(self.most, |_| true, replaces)
    }

    /// Whether there are fewer than `most` that count, perhaps by removing one that can be replaced.
    fn has_room(
        &mut self,
        most: usize,
        counts: impl Fn(&Waiting) -> bool,
        replaces: impl Fn(&Waiting) -> bool,
    ) -> bool {
        if self.count(&counts) >= most {
            self.remove_first(|one| counts(one) && replaces(one));
        }
        self.count(counts) < most
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// The one that a reply with these belongs to.
    pub(super) fn find(&self, home: Ipv4Addr, identification: u64) -> Option<Waiting> {
        let lower = identification as u32;
        let fits =
            |one: &&Waiting| one.request.home == home && one.request.identification as u32 == lower;
        self.waiting.iter().find(fits).copied()
    }

    pub(super) fn remove(&mut self, request: &Request) {
        self.waiting.retain(|one| !is_same(one, request));
    }

    /// One that has waited too long.
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

/// How many of `most` of all stations are from one of them at most.
pub(super) fn share_of_station(most: usize) -> usize {
    most.div_ceil(SHARE_OF_STATION).max(MOST_OF_ONE)
}

fn is_same(one: &Waiting, request: &Request) -> bool {
    one.request.home == request.home
        && one.request.identification as u32 == request.identification as u32
}
