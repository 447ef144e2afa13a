//! Named sets of suites and groups.
//!
//! | name | suites | groups |
//! |---|---|---|
//! | `modern` | the AEADs | X25519, P-256, P-384 |
//! | `strict` | AES-256-GCM | P-384 |
//! | `legacy` | the AEADs, then AES-CBC with HMAC-SHA2 | as `modern`, then MODP-3072, MODP-2048 |
//!
//! `strict` has the algorithms of RFC 9206 for encryption and key exchange, and goes with
//! certificates of P-384. The PRF stays HMAC-SHA-256, whose keys have 256 bits. `legacy` is for
//! peers without AEADs or curves. No set changes which peers are trusted. A man in the middle
//! cannot downgrade two ends to a worse suite than the best that they share (RFC 7296 section
//! 2.15).
//!
//! No set has an additional key exchange (`kem`). It costs every handshake a round trip and, for
//! ML-KEM-768, 2.4 KB in fragments, which not every network forwards. Implementations that do not
//! know its type of transform should skip the proposal (RFC 7296 section 3.3.6), but some refuse
//! the message.

use model::{Group, Suite};

/// The suites and groups of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) suites: &'static [Suite],
    pub(crate) groups: &'static [Group],
}

/// The default set.
pub(crate) const MODERN: Set = Set {
    suites: &[
        Suite::Aes128Gcm16,
        Suite::Aes256Gcm16,
        Suite::ChaCha20Poly1305,
    ],
    groups: &[Group::X25519, Group::P256, Group::P384],
};

const STRICT: Set = Set {
    suites: &[Suite::Aes256Gcm16],
    groups: &[Group::P384],
};

const LEGACY: Set = Set {
    suites: &Suite::ALL,
    groups: &Group::ALL,
};

/// All sets by name.
pub(crate) const SETS: [(&str, Set); 3] =
    [("modern", MODERN), ("strict", STRICT), ("legacy", LEGACY)];
