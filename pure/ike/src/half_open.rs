//! Initiators that have not proved who they are: counted by the network they come from, so that what they
//! cost stays bounded whatever they send, and whoever sends most gives way first.
//!
//! Every key pair that is made for one of them is charged here for as long as it may take to prove itself,
//! also if its public value turns out to be none or its proof is wrong (RFC 8019 section 4.2). Addresses of
//! configured peers have places of their own, which nobody from elsewhere can take.

use crate::config::{Limits, Timers};
use crate::sa::{Sa, State};
use model::{Entry, IkeSaId, Instant, Origin, Strangers};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Where each came from, with its SPI: what a repeated first message is recognised by.
#[derive(Default)]
pub(crate) struct HalfOpen {
    sas: BTreeMap<(SocketAddr, u64), IkeSaId>,
    origin: BTreeMap<IkeSaId, (SocketAddr, u64)>,
    counted: Strangers<IkeSaId>,
}

impl HalfOpen {
    pub(crate) fn len(&self) -> usize {
        self.counted.len()
    }

    /// Whether nobody has proved yet to be at the other end of an SA.
    pub(crate) fn contains(&self, id: IkeSaId) -> bool {
        self.counted.contains(id)
    }

    /// What there is for one more.
    pub(crate) fn entry(&self, from: Origin, limits: &Limits, now: Instant) -> Entry<IkeSaId> {
        self.counted.entry(from, &limits.half_open, now)
    }

    /// Whether one more has to bring a cookie.
    pub(crate) fn is_crowded(&self, from: Origin, limits: &Limits) -> bool {
        let (in_all, from_host) = self.counted.beside(from);
        in_all >= limits.half_open_without_cookie
            || from_host >= limits.half_open_per_host_without_cookie
    }

    /// How long one more may take until it has proved who it is. "When the system is under attack, as
    /// measured by the amount of half-open SAs, it makes sense to reduce this lifetime" (RFC 8019
    /// section 4.1).
    pub(crate) fn patience(&self, from: Origin, limits: &Limits, timers: &Timers) -> Duration {
        match self.is_crowded(from, limits) {
            true => timers.half_open.min(timers.half_open_crowded),
            false => timers.half_open,
        }
    }

    pub(crate) fn find(&self, remote: SocketAddr, spi_i: u64) -> Option<IkeSaId> {
        self.sas.get(&(remote, spi_i)).copied()
    }

    /// Counts an SA. One whose initiator was answered is found by its first message.
    pub(crate) fn insert(&mut self, sa: &Sa, from: Origin, now: Instant) {
        let id = sa.core.id;
        if matches!(sa.state, State::AwaitAuth(_)) {
            let origin = (sa.core.path.remote, sa.core.spi_i);
            self.sas.insert(origin, id);
            self.origin.insert(id, origin);
        }
        self.counted.insert(id, from, now);
    }

    /// Forgets an SA that proved who it is, or is gone. One that was refused still counts.
    pub(crate) fn settle(&mut self, sa: &Sa) {
        if matches!(sa.state, State::AwaitAuth(_) | State::Lingering(_)) {
            return;
        }
        if self.counted.remove(sa.core.id)
            && let Some(origin) = self.origin.remove(&sa.core.id)
        {
            self.sas.remove(&origin);
        }
    }
}
