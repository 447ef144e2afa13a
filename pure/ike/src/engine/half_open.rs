//! Initiators that are not yet authenticated. They are counted by the network they come from, so
//! that their cost stays bounded, and the most crowded networks are evicted first.
//!
//! Every key pair generated for such an initiator is charged here for as long as its authentication
//! may take, even if its public value turns out to be invalid or its proof to be wrong (RFC 8019
//! section 4.2). Addresses of configured peers have places of their own, which other addresses
//! cannot take.

use crate::config::{Limits, Timers};
use crate::sa::closing::Ending;
use crate::sa::{Sa, State};
use model::{Entry, IkeSaId, Instant, Origin, UnknownPeers};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// The half-open SAs. Source address and SPI identify a retransmitted first message.
#[derive(Default)]
pub(crate) struct HalfOpen {
    sas: BTreeMap<(SocketAddr, u64), IkeSaId>,
    origin: BTreeMap<IkeSaId, (SocketAddr, u64)>,
    counted: UnknownPeers<IkeSaId>,
}

impl HalfOpen {
    pub(crate) fn len(&self) -> usize {
        self.counted.len()
    }

    /// Returns true if the remote end of an SA is not yet authenticated.
    pub(crate) fn contains(&self, id: IkeSaId) -> bool {
        self.counted.contains(id)
    }

    /// Returns the place that one more initiator would get.
    pub(crate) fn entry(&self, from: Origin, limits: &Limits, now: Instant) -> Entry<IkeSaId> {
        self.counted.entry(from, &limits.half_open, now)
    }

    /// Returns true if one more initiator has to return a cookie.
    pub(crate) fn is_crowded(&self, from: Origin, limits: &Limits) -> bool {
        let (in_all, from_host) = self.counted.beside(from);
        in_all >= limits.half_open_without_cookie
            || from_host >= limits.half_open_per_host_without_cookie
    }

    /// Returns true if the network of one more initiator has no place for it.
    pub(crate) fn is_full(&self, from: Origin, limits: &Limits, now: Instant) -> bool {
        self.entry(from, limits, now) == Entry::Refused
    }

    /// Returns the time that one more initiator may take to authenticate. "When the system is under
    /// attack, as measured by the amount of half-open SAs, it makes sense to reduce this lifetime"
    /// (RFC 8019 section 4.1).
    pub(crate) fn patience(&self, from: Origin, limits: &Limits, timers: &Timers) -> Duration {
        match self.is_crowded(from, limits) {
            true => timers.half_open.min(timers.half_open_crowded),
            false => timers.half_open,
        }
    }

    pub(crate) fn find(&self, remote: SocketAddr, spi_i: u64) -> Option<IkeSaId> {
        self.sas.get(&(remote, spi_i)).copied()
    }

    /// Counts an SA. If its initiator was answered, retransmissions of the first message find the
    /// SA.
    pub(crate) fn insert(&mut self, sa: &Sa, from: Origin, now: Instant) {
        let id = sa.core.id;
        if is_answered(&sa.state) {
            let origin = (sa.core.path.remote, sa.core.spi_i);
            self.sas.insert(origin, id);
            self.origin.insert(id, origin);
        }
        self.counted.insert(id, from, now);
    }

    /// Removes an SA that is authenticated or gone. A refused one still counts.
    pub(crate) fn update(&mut self, sa: &Sa) {
        let is_refused = matches!(sa.state, State::Ending(Ending::Lingering(_)));
        if is_answered(&sa.state) || is_refused {
            return;
        }
        if self.counted.remove(sa.core.id)
            && let Some(origin) = self.origin.remove(&sa.core.id)
        {
            self.sas.remove(&origin);
        }
    }
}

/// Returns true if an initiator was answered, or is once the store has answered, and is not
/// authenticated.
const fn is_answered(state: &State) -> bool {
    matches!(
        state,
        State::AwaitEntry(_) | State::AwaitAuth(_) | State::AwaitProof(_)
    )
}
