//! What can be asked.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;

/// One request; on the wire its name is in `request`, its fields beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Bring peers up and keep them up. Answered by [`crate::Response::Up`].
    Up {
        /// Name of the peer's table; `None` is every peer that has an address.
        peer: Option<String>,
        /// Only the tunnel of this name of that peer; `None` is all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<String>,
        /// Answer when they are up or when this many seconds have passed; `None` is at once.
        wait_seconds: Option<u64>,
    },
    /// Take peers down and leave them down: until `up`, or a restart, they are refused if they begin.
    /// Answered by [`crate::Response::Down`].
    Down {
        /// Name of the peer's table; `None` is every peer.
        peer: Option<String>,
        /// Only the tunnel of this name of that peer; `None` is all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<String>,
    },
    /// Make new keys with a peer. Answered by [`crate::Response::Rekey`] at once: the new keys are
    /// in use when [`crate::Status`] shows new SPIs.
    Rekey {
        /// Name of its table.
        peer: String,
        /// For the IKE SA, not for the tunnel.
        ike: bool,
    },
    /// Have both ends prove anew who they are. Answered by [`crate::Response::Reauth`] at once: it is
    /// done when [`crate::Status`] shows new SPIs.
    Reauth {
        /// Name of its table.
        peer: String,
    },
    /// Send a peer that connected to another gateway. Answered by [`crate::Response::Redirect`] at once:
    /// it has gone when [`crate::Status`] shows no tunnel any more.
    Redirect {
        /// Name of its table.
        peer: String,
        /// The other gateway.
        to: IpAddr,
    },
    /// Move a tunnel that is ours to move. Answered by [`crate::Response::Move`] at once: the peer has
    /// followed when [`crate::Paths`] shows it.
    Move {
        /// Name of the peer's table.
        peer: String,
        /// The address of ours that it is to leave from; `None` is by the best way there is.
        #[serde(default)]
        from: Option<IpAddr>,
        /// Without a pause: by another IKE SA, which takes the place of this one when all works there.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        soft: bool,
    },
    /// Protect the packets to a peer in another way from now on, among those that were agreed on. Answered by
    /// [`crate::Response::Level`].
    Level {
        /// Name of its table.
        peer: String,
        /// `auto`, `zoned`, `opaque` or `integrity`.
        signal: String,
    },
    /// [`crate::Paths`].
    Paths,
    /// [`crate::Status`].
    Status,
    /// [`crate::Zones`].
    Zones,
    /// [`crate::Flows`].
    Flows,
    /// [`crate::Leases`].
    Leases,
    /// Write keys for Wireshark from now on, or stop it. Answered by [`crate::Keylog`].
    Keylog {
        /// An absolute path; `None` stops it.
        directory: Option<PathBuf>,
    },
    /// Read the configuration again. Answered by [`crate::Reload`].
    Reload {
        /// Only say what would change.
        dry_run: bool,
    },
    /// [`crate::Explain`].
    Explain {
        /// Name of the peer's table.
        peer: String,
    },
    /// Counters as OpenMetrics text.
    Metrics,
    /// [`crate::Daemon`].
    Version,
}
