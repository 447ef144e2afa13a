//! `[redirect]`: another gateway, to which peers that initiate are redirected (RFC 5685).

use crate::reader::Value;
use std::net::IpAddr;

/// The destination of a redirect, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// `to`: address of the other gateway, which must prove the same `id`.
    pub to: IpAddr,
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

impl Redirect {
    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        let mut table = value.table()?;
        let to = table.required("to", "\"192.0.2.7\"", Value::address);
        let when = [("init", When::Init), ("auth", When::Auth)];
        let when = table.optional("when", |value| value.choice(&when));
        table.finish();
        Some(Self {
            to: to?,
            when: when.unwrap_or(When::Auth),
        })
    }
}
