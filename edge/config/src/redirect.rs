//! `[redirect]`: another gateway, to which peers that initiate are redirected (RFC 5685).

use crate::Host;
use std::net::IpAddr;

/// The destination of a redirect, and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// `to`: address or name of the other gateway, which must prove the same `id`. Peers look the
    /// name up.
    pub to: Host,
    /// `when`: `init` redirects peers at their first message, `auth` (the default) once they have
    /// authenticated. Peers that do not follow the redirect are served here.
    pub when: When,
}

/// The point of the exchange at which a peer is redirected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At its first message.
    Init,
    /// After it has authenticated.
    Auth,
}

impl When {
    pub(crate) const WORDS: [(&str, Self); 2] = [("init", Self::Init), ("auth", Self::Auth)];
}

impl Default for Redirect {
    /// Returns a redirect without its destination, which is read first.
    fn default() -> Self {
        Self {
            to: Host::Ip(IpAddr::from([0; 4])),
            when: When::Auth,
        }
    }
}
