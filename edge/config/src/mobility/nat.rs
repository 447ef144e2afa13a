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

    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|nat| (nat.word(), nat)))
    }
}

/// Reads the keepalive interval of a tunnel: at least 10 seconds (RFC 3519 section 4.10).
pub(super) fn keepalive(value: &Value<'_>) -> Option<Duration> {
    value.duration(Duration::from_secs(10)..=Duration::from_secs(3600))
}

/// Records a fault for each key that concerns tunnels in UDP while `nat` rules them out.
pub(super) fn needed(table: &mut Table<'_>, nat: Option<Nat>, keys: &[&'static str]) {
    let is_faulty = nat.is_none() && table.value("nat").is_some();
    if is_faulty || nat.unwrap_or_default() != Nat::Never {
        return;
    }
    for &key in keys {
        if let Some(value) = table.value(key) {
            value.fault::<()>(
                "this key applies to tunnels in UDP, which `nat` does not enable",
                "add `nat = \"detect\"`, or remove this key",
            );
        }
    }
}
