//! The end of a process that cannot go on, and crash points: a debug build can be made to die at
//! one, so that a test sees the remains of a crash and the next start's treatment of them. A
//! release build ignores them.

use nix::sys::signal::{Signal, raise};
use std::sync::OnceLock;

/// All crash points. Those with the prefix `lock-` need a lock, `divert-` a licensed node,
/// `leased-` a peer that assigns an address, `pool-` a peer that leases one, and all others a
/// tunnel; of these, `rekey-` needs a request to rekey.
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

/// Selects a crash point. Returns `false` if there is no such point, or in a release build.
pub fn choose(point: &str) -> bool {
    let known = POINTS.into_iter().find(|known| *known == point);
    cfg!(debug_assertions) && known.is_some_and(|point| CHOSEN.set(point).is_ok())
}

/// Passes a crash point, or dies there as if killed from outside.
pub fn point(name: &'static str) {
    if cfg!(debug_assertions) && CHOSEN.get() == Some(&name) {
        die();
    }
}

/// Ends the process as `kill -9` does: at once, and with no core that has its keys.
pub fn die() {
    // Nothing follows: this signal cannot be caught.
    let _ = raise(Signal::SIGKILL);
}
