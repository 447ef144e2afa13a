//! `[listen]`: where IKE and ESP are expected.

use crate::reader::Value;
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
}

impl Listen {
    pub(crate) fn read(value: Option<Value<'_>>) -> Option<Self> {
        let mut listen = Self {
            addresses: Vec::new(),
            ike: 500,
            nat: 4500,
        };
        let Some(value) = value else {
            return Some(listen);
        };
        let mut table = value.table()?;
        let addresses = table.optional("addresses", |value| value.list(Value::address));
        listen.addresses = addresses.unwrap_or_default();
        listen.ike = table.optional("ike", Value::port).unwrap_or(listen.ike);
        listen.nat = table.optional("nat", Value::port).unwrap_or(listen.nat);
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
