//! Configurations of both ends of a tunnel that moves.

use super::place::PEER;
use super::protection::Protection;
use crate::duo::THEIRS;
use crate::plain::accepting;
use crate::strongswan::Connection;
use anyhow::{Result, bail};
use model::Mode;

/// Seconds for which a tunnel without encryption is accepted: longer than any measurement.
const ACCEPTED: u64 = 6 * 3600;

/// Prefixes of the mobile node and of the gateway, as lists of TOML.
struct Ends {
    mobile: &'static str,
    gateway: &'static str,
}

/// Inner addresses.
const INNER: Ends = Ends {
    mobile: r#"["10.1.0.2/32"]"#,
    gateway: r#"["10.8.0.0/16"]"#,
};

/// The addresses of the hosts themselves: those of all places of the mobile node.
const OUTER: Ends = Ends {
    mobile: r#"["10.3.0.2/32", "10.4.0.2/32", "10.5.0.2/32"]"#,
    gateway: r#"["192.0.2.1/32"]"#,
};

/// Returns the configurations of Strata at the mobile node and at the gateway, with these lines in
/// the tables of both peers. Packets pass the devices one by one, so that each is seen there.
pub(super) fn strata(protection: Protection, more: &str) -> Result<[String; 2]> {
    let mode = protection.mode().unwrap_or_default();
    let (ends, devices) = match mode {
        Mode::Tunnel | Mode::Beet => (INNER, ["10.1.0.2/32", "10.8.0.1/16"]),
        Mode::Transport => (OUTER, [""; 2]),
    };
    let unencrypted = protection.unencrypted();
    let unencrypted = unencrypted.map(|suite| accepting(suite, ACCEPTED));
    let terms = format!(
        "mode = \"{mode}\"\nliveness = \"1s\"\n{}\n{more}",
        unencrypted.transpose()?.unwrap_or_default()
    );
    let [near, far] = devices.map(device);
    Ok([
        format!(
            r#"
[node]
id = "alice@example.net"
{near}
[peer.office]
address = "{PEER}"
id = "gw.example.net"
psk = "tunnel.psk"
local = {}
remote = {}
{terms}"#,
            ends.mobile, ends.gateway
        ),
        format!(
            r#"
[node]
id = "gw.example.net"
{far}
[peer.alice]
id = "alice@example.net"
psk = "tunnel.psk"
local = {}
remote = {}
{terms}"#,
            ends.gateway, ends.mobile
        ),
    ])
}

/// Returns the table of the tunnel's device, with an address unless it is empty.
fn device(address: &str) -> String {
    let addresses = match address {
        "" => String::new(),
        address => format!("addresses = [\"{address}\"]\n"),
    };
    format!("[tunnel]\n{addresses}offload = \"off\"")
}

/// Returns the connection of strongSwan at the mobile node.
///
/// # Errors
/// In user space it has tunnel mode only.
pub(super) fn strongswan(protection: Protection) -> Result<Connection<'static>> {
    let esp = match protection {
        Protection::EspTunnel => THEIRS.esp,
        Protection::NullTunnel => "null-sha256",
        Protection::None | Protection::EspTransport | Protection::NullTransport => {
            bail!(
                "strongSwan's ESP in user space has no {}",
                protection.name()
            )
        }
    };
    Ok(Connection {
        id: "alice@example.net",
        peer_id: "gw.example.net",
        address: "%any",
        peer_address: PEER,
        local: "10.1.0.2/32",
        remote: "10.8.0.0/16",
        esp,
        ..THEIRS
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_mode_lists_the_addresses_of_the_hosts_and_tunnel_mode_inner_ones() {
        let [near, far] = strata(Protection::EspTransport, "paths = 2\n").unwrap();
        assert!(near.contains("local = [\"10.3.0.2/32\", \"10.4.0.2/32\", \"10.5.0.2/32\"]"));
        assert!(far.contains("mode = \"transport\"") && far.ends_with("paths = 2\n"));
        assert!(!near.contains("addresses"));
        let [near, far] = strata(Protection::EspTunnel, "").unwrap();
        assert!(near.contains("addresses = [\"10.1.0.2/32\"]"));
        assert!(far.contains("mode = \"tunnel\"") && !far.contains("unencrypted"));
    }

    #[test]
    fn null_is_accepted_by_both_ends_of_strata_and_proposed_by_strongswan() {
        for config in strata(Protection::NullTransport, "").unwrap() {
            assert!(config.contains("unencrypted = { suite = \"null-sha256\""));
        }
        assert_eq!(
            strongswan(Protection::NullTunnel).unwrap().esp,
            "null-sha256"
        );
        assert!(strongswan(Protection::EspTransport).is_err());
    }
}
