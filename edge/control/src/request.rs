//! Requests to the daemon.

use crate::Selection;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;

/// A request. In JSON, `request` holds its name, next to its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Bring peers up and keep them up. Answered by [`crate::Response::Up`].
    Up {
        /// Name of the peer's table; `None` for all peers. The answer to `None` covers the peers
        /// that have an address.
        peer: Option<String>,
        /// Name of a child's table, to bring up this tunnel only; `None` for all tunnels of the
        /// peer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<String>,
        /// Seconds to wait until the peers are up or have failed; `None` answers at once.
        wait_seconds: Option<u64>,
    },
    /// Take peers down. Until `up` or a restart of the daemon, their own attempts are refused.
    /// Answered by [`crate::Response::Down`].
    Down {
        /// Name of the peer's table; `None` for all peers.
        peer: Option<String>,
        /// Name of a child's table, to take down this tunnel only; `None` for all tunnels of the
        /// peer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<String>,
    },
    /// Rekey a peer's SAs. Answered by [`crate::Response::Rekey`] at once. The new keys are in use
    /// when [`crate::Status`] shows new SPIs.
    Rekey {
        /// Name of the peer's table.
        peer: String,
        /// True to rekey the IKE SA, false to rekey the child SAs.
        ike: bool,
    },
    /// Re-authenticate a peer. Answered by [`crate::Response::Reauth`] at once. The peer is
    /// re-authenticated when [`crate::Status`] shows new SPIs.
    Reauth {
        /// Name of the peer's table.
        peer: String,
    },
    /// Redirect a peer, which was the initiator, to another gateway. Answered by
    /// [`crate::Response::Redirect`] at once. The peer has left when [`crate::Status`] shows no
    /// tunnel.
    Redirect {
        /// Name of the peer's table.
        peer: String,
        /// Address or name of the other gateway.
        to: String,
    },
    /// Move a tunnel that this host can move. Answered by [`crate::Response::Move`] at once. The
    /// peer has followed when [`crate::Paths`] shows the new path.
    Move {
        /// Name of the peer's table.
        peer: String,
        /// Local address of the new path; `None` for the best path.
        #[serde(default)]
        from: Option<IpAddr>,
        /// Interface of the new path, for a connection manager; then `from` is ignored. The tunnel
        /// moves without a pause if both ends allow it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// True to hand over without a pause: a clone of the IKE SA takes the new path, and
        /// replaces the old IKE SA once traffic has moved.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        soft: bool,
    },
    /// Report the signal of an interface's network, for a connection manager or another source.
    /// Tunnels leave a weak one without a pause if another path works. A report holds for 30
    /// seconds. Answered by [`crate::Signal`].
    Signal {
        /// Name of the interface.
        interface: String,
        /// The signal in per cent, 0 to 100.
        percent: u8,
        /// Name of the source: up to 32 letters, digits, `.`, `_` and `-`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Ping a peer through its tunnel. Answered by [`crate::Ping`] when all pings are over.
    Ping {
        /// Name of the peer's table.
        peer: String,
        /// Number of pings, 100 at most; `None` for 4.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<NonZeroU16>,
    },
    /// Change the protection of packets to a peer, among the levels that both ends agreed on.
    /// Answered by [`crate::Response::Level`].
    Level {
        /// Name of the peer's table.
        peer: String,
        /// `auto`, `zoned`, `opaque` or `integrity`.
        signal: String,
    },
    /// Answered by [`crate::Paths`].
    Paths,
    /// Answered by [`crate::Status`].
    Status(Selection),
    /// Answered by [`crate::Zones`].
    Zones,
    /// Answered by [`crate::Flows`].
    Flows,
    /// Answered by [`crate::Leases`].
    Leases,
    /// Answered by [`crate::Sessions`].
    Sessions {
        /// Name of the table of a peer whose sessions to end first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<String>,
        /// True to end all sessions first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        end_all: bool,
    },
    /// Start or stop writing keys for Wireshark. Answered by [`crate::Keylog`].
    Keylog {
        /// Absolute path of a folder; `None` to stop.
        directory: Option<PathBuf>,
    },
    /// Read the configuration file again. Answered by [`crate::Reload`].
    Reload {
        /// True to report the changes without applying them.
        dry_run: bool,
    },
    /// Answered by [`crate::Explain`].
    Explain {
        /// Name of the peer's table.
        peer: String,
    },
    /// Counters in the text format of Prometheus. Answered by [`crate::Response::Metrics`].
    Metrics,
    /// Answered by [`crate::Daemon`].
    Version,
}
