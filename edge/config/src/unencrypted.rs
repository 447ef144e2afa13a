//! `unencrypted`: tunnels that are authenticated and not encrypted, until a certain time and for a
//! number of packets.

use crate::reader::{Table, Value};
use crate::tfc::Tfc;
use crate::zone::Stance;
use crate::{Peer, Warning, today};
use crypto::UnixTime;
use model::EspSuite;
use std::fmt;

/// Longest time for which the end may be ahead: more would be without limit in practice.
const LONGEST: u64 = 366 * 86_400;

/// Packets unless the file says otherwise: full ones at 100 Mbit/s for a day.
const PACKETS: u32 = 1_000_000_000;

/// `unencrypted = { suite = "null-sha256", until = 2026-12-24T18:00:00Z }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unencrypted {
    /// `suite`: one suite or a list, best first.
    pub suites: Vec<EspSuite>,
    /// `until`: the time from which the tunnel is encrypted.
    pub until: UnixTime,
    /// `packets`: how many are sent and received without encryption since the line was loaded.
    pub packets: u32,
}

/// Written as `aes128gmac, null-sha256 until 2026-12-24 18:00 UTC or 1000 packets`.
impl fmt::Display for Unencrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.suites.iter().map(|suite| suite.name()).collect();
        let names = names.join(", ");
        write!(
            f,
            "{names} until {} or {} packets",
            self.until, self.packets
        )
    }
}

/// Reads the table.
pub(crate) fn unencrypted(value: &Value<'_>) -> Option<Unencrypted> {
    let mut table = value.table()?;
    let suites = table.required("suite", "\"null-sha256\"", Value::unencrypted_suites);
    let until = table.required("until", "2026-12-24T18:00:00Z", until);
    let packets = table.optional("packets", |value| value.number(1..=u32::MAX));
    table.finish();
    Some(Unencrypted {
        suites: suites?,
        until: until?,
        packets: packets.unwrap_or(PACKETS),
    })
}

fn until(value: &Value<'_>) -> Option<UnixTime> {
    let until = value.time()?;
    if until.0 > today().0.saturating_add(LONGEST) {
        return value.fault(
            "this is more than a year ahead, which is no limit",
            "write the day on which the tunnel should be encrypted again",
        );
    }
    Some(until)
}

/// Refuses `unencrypted` with settings that hide what it shows, and in a table for many peers: it
/// is accepted for one named peer at a time.
pub(crate) fn check(peer: &Peer, table: &mut Table<'_>) {
    let Some(value) = table.value("unencrypted") else {
        return;
    };
    if peer.zones.stance != Stance::Refuse {
        value.fault::<()>(
            "with zones, `unencrypted` would show every zone to every router on the path",
            "remove `unencrypted`, or write `zones = \"refuse\"`; `level` sends some packets of zones unencrypted",
        );
    }
    if peer.party.wildcard().is_some() {
        value.fault::<()>(
            "this table stands for many peers, and `unencrypted` is accepted for one at a time",
            "remove it, and write a table for the peer that needs it",
        );
    }
    if peer.tfc != Tfc::default() {
        value.fault::<()>(
            "`tfc` hides the lengths of packets, which `unencrypted` shows",
            "remove one of the two",
        );
    }
}

/// Warns of a tunnel that is not encrypted, or of a line that has no effect any more.
pub(crate) fn warning(peer: &Peer) -> Option<Warning> {
    let Unencrypted {
        suites,
        until,
        packets,
    } = peer.unencrypted.as_ref()?;
    let (peer, until) = (peer.party.name.clone(), *until);
    if until <= today() {
        return Some(Warning::UnencryptedEnded { peer, until });
    }
    let names: Vec<_> = suites.iter().map(|suite| suite.name()).collect();
    let suites = names.join(", ");
    Some(Warning::TunnelInClear {
        peer,
        suites,
        until,
        packets: *packets,
    })
}
