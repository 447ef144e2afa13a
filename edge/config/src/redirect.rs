//! `[redirect]`: another gateway, to which peers that begin are sent (RFC 5685).

use crate::reader::Value;
use std::net::IpAddr;

/// Where to, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// `to`: the other gateway's address. It proves the same `id`.
    pub to: IpAddr,
    /// `when`: `init` sends them at their first message, `auth` (the default) once they have proved
    /// who they are. Those that do not go elsewhere are served here.
    pub when: When,
}

/// When a peer is sent elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At its first message.
    Init,
    /// When it has proved who it is.
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
