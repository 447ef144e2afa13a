//! `nat`: networks that have other addresses outside (RFC 3519).

use crate::reader::{Table, Value};
use std::time::Duration;

/// When tunnels are in UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nat {
    /// `never`.
    #[default]
    Never,
    /// `detect`: where the home agent sees that a registration has come through a NAT.
    Detect,
    /// `always`: whether there is one or not. A foreign agent demands it, a home agent allows that.
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

/// After how long a tunnel is kept alive: not less than 10 seconds (RFC 3519 section 4.10).
pub(super) fn keepalive(value: &Value<'_>) -> Option<Duration> {
    value.duration(Duration::from_secs(10)..=Duration::from_secs(3600))
}

/// Records a fault for each key that says something of tunnels which nobody gets.
pub(super) fn needed(table: &mut Table<'_>, nat: Option<Nat>, keys: &[&'static str]) {
    let is_faulty = nat.is_none() && table.value("nat").is_some();
    if is_faulty || nat.unwrap_or_default() != Nat::Never {
        return;
    }
    for &key in keys {
        if let Some(value) = table.value(key) {
            value.fault::<()>(
                "there are no tunnels in UDP",
                "add `nat = \"detect\"`, or remove this",
            );
        }
    }
}
