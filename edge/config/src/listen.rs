//! `[listen]`: where IKE and ESP are expected.

use crate::reader::Value;
use model::Encapsulation;
use std::net::IpAddr;

/// Addresses and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// `addresses`: only these local addresses. Default empty: all of them, both families.
    pub addresses: Vec<IpAddr>,
    /// `ike`: UDP port of IKE. Default 500.
    pub ike: u16,
    /// `nat`: UDP port of IKE and ESP behind NATs, where all ESP goes (RFC 3948). Default 4500.
    pub nat: u16,
    /// `encapsulation`: whether ESP is in UDP (RFC 3948) `always`, or only where one of both ends sees a
    /// `nat`, and protocol 50 of IP elsewhere. Default `always`.
    pub encapsulation: Encapsulation,
    /// `tcp`: TCP port at which peers are heard whose networks let no UDP through (RFC 9329), best
    /// 4500. Default none.
    pub tcp: Option<u16>,
    /// `fragment`: the longest IP datagram of an IKE message that is sent in fragments otherwise
    /// (RFC 7383), 576 or more. Default 1280; 0: whole, however long it is.
    pub fragment: u16,
}

/// Less is not needed anywhere (RFC 7383 section 2.5.1).
const SMALLEST: u32 = 576;

impl Listen {
    pub(crate) fn read(value: Option<Value<'_>>) -> Option<Self> {
        let mut listen = Self {
            addresses: Vec::new(),
            ike: 500,
            nat: 4500,
            encapsulation: Encapsulation::Always,
            tcp: None,
            fragment: 1280,
        };
        let Some(value) = value else {
            return Some(listen);
        };
        let mut table = value.table()?;
        let addresses = table.optional("addresses", |value| value.list(Value::address));
        listen.addresses = addresses.unwrap_or_default();
        listen.ike = table.optional("ike", Value::port).unwrap_or(listen.ike);
        listen.nat = table.optional("nat", Value::port).unwrap_or(listen.nat);
        let encapsulation = table.optional("encapsulation", encapsulation);
        listen.encapsulation = encapsulation.unwrap_or_default();
        listen.tcp = table.optional("tcp", Value::port);
        let fragment = table.optional("fragment", fragment);
        listen.fragment = fragment.unwrap_or(listen.fragment);
        table.finish();
        if listen.ike == listen.nat {
            return value.fault(
                "`ike` and `nat` are the same port",
                "leave both out for 500 and 4500, or choose two different ports",
            );
        }
        Some(listen)
    }
}

fn encapsulation(value: &Value<'_>) -> Option<Encapsulation> {
    value.choice(&Encapsulation::ALL.map(|kind| (kind.name(), kind)))
}

fn fragment(value: &Value<'_>) -> Option<u16> {
    let number = value.number(0..=u32::from(u16::MAX))?;
    if (1..SMALLEST).contains(&number) {
        return value.fault(
            format!("{number} octets are too few for an IKE message"),
            format!("write {SMALLEST} or more, or 0 for no fragments"),
        );
    }
    u16::try_from(number).ok()
}
