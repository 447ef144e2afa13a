//! `nat`: traversal of NATs by Mobile IP tunnels (RFC 3519).

use crate::reader::{Table, Value};
use std::time::Duration;

/// The condition under which tunnels are in UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nat {
    /// `never`.
    #[default]
    Never,
    /// `detect`: if the home agent detects that a registration traversed a NAT.
    Detect,
    /// `always`: with or without a NAT. A foreign agent demands UDP, a home agent permits that.
    Always,
}

impl Nat {
    const ALL: [Self; 3] = [Self::Never, Self::Detect, Self::Always];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Detect => "detect",
            Self::Always => "always",
        }
    }
}

/// Reads the keepalive interval of a tunnel: at least 10 seconds (RFC 3519 section 4.10).
pub(crate) fn keepalive(value: &Value<'_>) -> Option<Duration> {
    value.duration(Duration::from_secs(10)..=Duration::from_secs(3600))
}

/// Reads `nat`. Records a fault for each key that concerns tunnels in UDP if `nat` rules them out.
pub(super) fn read(table: &mut Table<'_>, keys: &[&'static str]) -> Nat {
    let nat = table.optional("nat", |value| {
        value.choice(&Nat::ALL.map(|nat| (nat.word(), nat)))
    });
    let is_faulty = nat.is_none() && table.value("nat").is_some();
    let nat = nat.unwrap_or_default();
    if is_faulty || nat != Nat::Never {
        return nat;
    }
    for &key in keys {
        if let Some(value) = table.value(key) {
            value.fault::<()>(
                "this key applies to tunnels in UDP, which `nat` does not enable",
                "add `nat = \"detect\"`, or remove this key",
            );
        }
    }
    nat
}
