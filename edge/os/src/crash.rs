//! Places at which a debug build can be told to die, so that a test sees what a crash there leaves
//! behind and what the next start makes of it. A release build passes them without looking.

use nix::sys::signal::{Signal, raise};
use std::sync::OnceLock;

/// All of them. Those that begin with `lock-` need something to be locked, those that begin with
/// `divert-` a licensed node, with `leased-` a peer that lends an address, with `pool-` one to lend to, all others a tunnel, of which those that begin with `rekey-` need new
/// keys to be asked for.
pub const POINTS: [&str; 26] = [
    "lock-set",
    "sockets-bound",
    "tun-made",
    "address-given",
    "route-added",
    "rule-added",
    "routes-set",
    "first-message-sent",
    "tunnel-up",
    "resolver-written",
    "resolver-swapped",
    "rekey-child-asked",
    "rekey-child-done",
    "rekey-ike-asked",
    "rekey-ike-done",
    "deletes-sent",
    "leased-address-given",
    "leased-address-taken",
    "pool-lease-kept",
    "resolver-restored",
    "rule-removed",
    "rules-and-routes-removed",
    "lock-kept",
    "divert-device-made",
    "divert-rule-added",
    "divert-rules-removed",
];

static CHOSEN: OnceLock<&'static str> = OnceLock::new();

/// Chooses where to die. `false` if there is no such place, or this is a release build.
pub fn choose(point: &str) -> bool {
    let known = POINTS.into_iter().find(|known| *known == point);
    cfg!(debug_assertions) && known.is_some_and(|point| CHOSEN.set(point).is_ok())
}

/// Passes a place, or dies there as if killed by somebody else.
pub fn point(name: &'static str) {
    if cfg!(debug_assertions) && CHOSEN.get() == Some(&name) {
        // Nothing follows: this signal cannot be caught.
        let _ = raise(Signal::SIGKILL);
    }
}
