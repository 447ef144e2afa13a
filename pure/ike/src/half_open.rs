//! Initiators that have not proved who they are: counted, in all and by source address, so that
//! what they cost stays bounded whatever they send.

use crate::config::Limits;
use crate::sa::{Sa, State};
use model::IkeSaId;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Where each came from, with its SPI: what a repeated first message is recognised by.
#[derive(Default)]
pub(crate) struct HalfOpen {
    sas: BTreeMap<(SocketAddr, u64), IkeSaId>,
    origin: BTreeMap<IkeSaId, (SocketAddr, u64)>,
    by_address: BTreeMap<IpAddr, usize>,
}

impl HalfOpen {
    pub(crate) fn len(&self) -> usize {
        self.sas.len()
    }

    pub(crate) fn is_full(&self, address: IpAddr, limits: &Limits) -> bool {
        self.len() >= limits.half_open || self.from(address) >= limits.half_open_per_address
    }

    /// Whether one more has to bring a cookie.
    pub(crate) fn is_crowded(&self, address: IpAddr, limits: &Limits) -> bool {
        self.len() >= limits.half_open_without_cookie
            || self.from(address) >= limits.half_open_per_address_without_cookie
    }

    fn from(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or(0)
    }

    pub(crate) fn find(&self, remote: SocketAddr, spi_i: u64) -> Option<IkeSaId> {
        self.sas.get(&(remote, spi_i)).copied()
    }

    pub(crate) fn insert(&mut self, remote: SocketAddr, spi_i: u64, id: IkeSaId) {
        self.sas.insert((remote, spi_i), id);
        self.origin.insert(id, (remote, spi_i));
        *self.by_address.entry(remote.ip()).or_default() += 1;
    }

    /// Forgets an SA that proved who it is, or is gone. One that was refused still counts.
    pub(crate) fn settle(&mut self, sa: &Sa) {
        if matches!(sa.state, State::AwaitAuth(_) | State::Lingering(_)) {
            return;
        }
        let Some(origin) = self.origin.remove(&sa.core.id) else {
            return;
        };
        self.sas.remove(&origin);
        let address = origin.0.ip();
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}
