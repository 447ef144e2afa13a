//! Dynamic levels: every n-th packet is in zones, and the others have a weaker protection.

use crate::daemon::Daemon;
use crate::host::Host;
use crate::process::DEADLINE;
use crate::testbed::find_command;
use anyhow::Result;
use os::routes::MARK;
use serde::{Deserialize, Serialize};

/// The packets that are in zones, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Level {
    /// Every n-th packet is in zones; with 0, none is.
    pub every: u32,
    /// Protection of all other packets.
    pub others: Others,
}

/// Protection of a packet that is not in zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Others {
    /// Authenticated in the tunnel, and not encrypted.
    Integrity,
    /// Sent in clear outside the tunnel, as in the paper. No program of Strata sends such packets:
    /// the kernels of the lab route them around the tunnel.
    Plaintext,
}

impl Others {
    /// Both protections, ours first.
    pub const ALL: [Self; 2] = [Self::Integrity, Self::Plaintext];

    /// Returns the name for readers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integrity => "integrity-only",
            Self::Plaintext => "plaintext",
        }
    }

    /// Returns the name for programs and files.
    pub fn key(self) -> &'static str {
        match self {
            Self::Integrity => "integrity",
            Self::Plaintext => "plaintext",
        }
    }
}

impl Level {
    /// Returns the configuration of an end for its peer of this name.
    pub(super) fn table(self, peer: &str) -> String {
        match self.others {
            Others::Integrity => format!(
                r#"
[peer.{peer}.level]
integrity = {{ ports = "0-65535", packets = 100000000, seconds = 86400 }}
every = {}
"#,
                self.every
            ),
            Others::Plaintext => String::new(),
        }
    }

    /// Routes packets that are sent in plaintext around the tunnel between the mobile node and the
    /// gateway, whose server is behind `lan0`.
    pub(super) fn lead_around(self, [mobile, node, gateway]: [&Host; 3]) -> Result<()> {
        if self.others != Others::Plaintext {
            return Ok(());
        }
        let made_here = "type route hook output";
        let from_server = "type filter hook prerouting";
        self.mark(mobile, made_here, "ip saddr 10.9.0.2 ip daddr 10.3.0.0/24")?;
        self.mark(gateway, from_server, "iifname lan0 ip daddr 10.9.0.2")?;
        gateway.route("10.9.0.2/32", "10.2.0.1")?;
        node.route("10.9.0.2/32", "10.1.0.2")?;
        // These packets arrive on interfaces that the answers do not leave by.
        for (host, device) in [(mobile, "radio0"), (gateway, "wired0")] {
            for name in ["all", device] {
                host.sysctl(&format!("net.ipv4.conf.{name}.rp_filter"), "0")?;
            }
        }
        Ok(())
    }

    /// Makes both ends, whose daemons are up, accept packets outside the tunnel.
    pub(super) fn believe_plaintext(self, ends: &[Daemon]) -> Result<()> {
        if self.others != Others::Plaintext {
            return Ok(());
        }
        ends.iter().try_for_each(Daemon::unguard)
    }

    /// Marks all packets but every n-th as packets that must not enter the tunnel.
    fn mark(self, host: &Host, hook: &str, which: &str) -> Result<()> {
        let others = match self.every {
            0 => String::new(),
            every => format!("numgen inc mod {every} != 0"),
        };
        let rules = format!(
            "table ip level {{
  chain others {{
    {hook} priority mangle
    {which} {others} meta mark set {MARK}
  }}
}}
"
        );
        host.file("level.nft", &rules)?;
        let mut nft = host.command(find_command("nft", "nftables")?);
        nft.args(["-f", "level.nft"]);
        host.run_command(nft, DEADLINE).map(drop)
    }
}
