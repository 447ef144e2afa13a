//! `[listen]`: the local addresses and ports of IKE and ESP.

use crate::keys::LISTEN;
use crate::reader::{Table, Value};
use model::Encapsulation;
use std::net::IpAddr;

/// Local addresses and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// `addresses`: the local addresses to listen at. Default empty: all addresses of both
    /// families.
    pub addresses: Vec<IpAddr>,
    /// `ike`: UDP port of IKE. Default 500.
    pub ike: u16,
    /// `nat`: UDP port of IKE behind NATs and of ESP in UDP (RFC 3948). Default 4500.
    pub nat: u16,
    /// `encapsulation`: `always` sends ESP in UDP (RFC 3948); `nat` does so only if one of the ends
    /// detects a NAT, and uses IP protocol 50 otherwise. Default `always`.
    pub encapsulation: Encapsulation,
    /// `tcp`: TCP port for peers whose networks block UDP (RFC 9329), usually 4500. Default none.
    pub tcp: Option<u16>,
    /// `fragment`: longest IP datagram of an IKE message in octets; longer messages are sent in
    /// fragments (RFC 7383). 576 or more; 0 disables fragmentation. Default 1280.
    pub fragment: u16,
}

/// Smallest value of `fragment`; no network needs less (RFC 7383 section 2.5.1).
const SMALLEST: u32 = 576;

impl Default for Listen {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            ike: 500,
            nat: 4500,
            encapsulation: Encapsulation::Always,
            tcp: None,
            fragment: 1280,
        }
    }
}

impl Listen {
    /// Reads the table. Returns false after a fault of the whole.
    pub(crate) fn read(&mut self, file: &mut Table<'_>) -> bool {
        let is_whole = file.section("listen", LISTEN, self);
        let ports_differ = self.ike != self.nat;
        if let (false, Some(value)) = (ports_differ, file.value("listen")) {
            value.fault::<()>(
                "`ike` and `nat` are the same port",
                "leave both out for 500 and 4500, or choose two different ports",
            );
        }
        is_whole && ports_differ
    }
}

pub(crate) fn encapsulation(value: &Value<'_>) -> Option<Encapsulation> {
    value.choice(&Encapsulation::ALL.map(|kind| (kind.name(), kind)))
}

pub(crate) fn fragment(value: &Value<'_>) -> Option<u16> {
    let number = value.number(0..=u32::from(u16::MAX))?;
    if (1..SMALLEST).contains(&number) {
        return value.fault(
            format!("{number} octets are too few for an IKE message"),
            format!("write {SMALLEST} or more, or 0 to disable fragmentation"),
        );
    }
    u16::try_from(number).ok()
}
