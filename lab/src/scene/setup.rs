//! The five ways to carry a download, and the configurations they take.

use super::Settings;
use serde::{Deserialize, Serialize};

/// A way to carry the download.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setup {
    /// The licensed node only forwards.
    None,
    /// Clear TCP, SNOOP at the node.
    Snoop,
    /// Plain ESP from the mobile node to the gateway.
    Ipsec,
    /// Zoned ESP; the node may read the headers but does nothing with them.
    Zoned,
    /// Zoned ESP, SNOOP at the node.
    ZonedSnoop,
}

/// Most connections of SNOOP in the papers.
pub const FLOWS: u32 = 64;

/// Most packets that SNOOP caches of a connection in the papers.
pub const PACKETS: u32 = 50;

impl Setup {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::Snoop,
        Self::Ipsec,
        Self::Zoned,
        Self::ZonedSnoop,
    ];

    /// Returns the name for readers.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Snoop => "SNOOP",
            Self::Ipsec => "IPsec",
            Self::Zoned => "zoned",
            Self::ZonedSnoop => "zoned + SNOOP",
        }
    }

    /// Returns the name for programs and folders.
    pub fn key(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Snoop => "snoop",
            Self::Ipsec => "ipsec",
            Self::Zoned => "zoned",
            Self::ZonedSnoop => "zoned_snoop",
        }
    }

    /// Returns true if there is a tunnel between the mobile node and the gateway.
    pub fn has_tunnel(self) -> bool {
        matches!(self, Self::Ipsec | Self::Zoned | Self::ZonedSnoop)
    }

    /// Returns true if the tunnel's packets are sealed in zones.
    pub fn is_zoned(self) -> bool {
        matches!(self, Self::Zoned | Self::ZonedSnoop)
    }

    /// Returns true if the licensed node runs `stratad`; otherwise it is an ordinary router.
    pub fn has_node(self) -> bool {
        matches!(self, Self::Snoop | Self::Zoned | Self::ZonedSnoop)
    }

    /// Returns true if any host runs `stratad`.
    pub fn has_daemons(self) -> bool {
        self.has_tunnel() || self.has_node()
    }

    /// Returns the mobile node's configuration.
    pub(super) fn mobile(self, settings: &Settings) -> String {
        let zones = self.zones(settings);
        let level = settings.level_of("gateway");
        format!(
            r#"
[node]
id = "mobile.demo"

[tunnel]
addresses = ["10.9.0.2/32"]

[peer.gateway]
id = "gateway.demo"
address = "10.2.0.2"
psk = "tunnel.psk"
local = ["10.9.0.2/32"]
remote = ["10.3.0.0/24"]
{zones}
{level}
"#
        )
    }

    /// Returns the gateway's configuration.
    pub(super) fn gateway(self, settings: &Settings) -> String {
        let zones = self.zones(settings);
        let level = settings.level_of("mobile");
        let licensed = match self.is_zoned() {
            true => {
                r#"
[licensed.node]
id = "node.demo"
address = "10.2.0.1"
psk = "node.psk"
"#
            }
            false => "",
        };
        format!(
            r#"
[node]
id = "gateway.demo"

[peer.mobile]
id = "mobile.demo"
psk = "tunnel.psk"
local = ["10.3.0.0/24"]
remote = ["10.9.0.2/32"]
{zones}
{level}
{licensed}
"#
        )
    }

    /// Returns the licensed node's configuration.
    pub(crate) fn node(self, settings: &Settings) -> String {
        let gateway = match self.is_zoned() {
            true => {
                r#"
[gateway.gateway]
id = "gateway.demo"
psk = "node.psk"
"#
            }
            false => "",
        };
        let clear_tcp = self == Self::Snoop;
        let snoop = self != Self::Zoned && settings.snoop;
        let sizes = match settings.modern {
            true => String::new(),
            false => format!("flows = {FLOWS}\npackets = {PACKETS}\n"),
        };
        format!(
            r#"
[node]
id = "node.demo"
{gateway}
[divert]
wired = "wired0"
wireless = "radio0"
clear_tcp = {clear_tcp}

[snoop]
enabled = {snoop}
{sizes}"#
        )
    }

    fn zones(self, settings: &Settings) -> String {
        if !self.is_zoned() {
            return "zones = \"refuse\"".to_owned();
        }
        let zones = match (settings.licence, settings.license_payload) {
            (false, _) => return "zones = \"require\"".to_owned(),
            (true, false) => r#"["headers"]"#,
            (true, true) => r#"["headers", "payload"]"#,
        };
        format!(
            r#"zones = "require"
licences = [{{ node = "node.demo", zones = {zones}, right = "read" }}]"#
        )
    }
}
