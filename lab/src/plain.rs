//! Mobile node and gateway with a plain tunnel, each with an additional line in its peer's table.

use crate::pair::{
    GATEWAY, MOBILE, NODE_KEY, Pair, TUNNEL_KEY, Terms, Tunnel, gateway_config, mobile_config,
};
use crate::transfer::transfer;
use anyhow::Result;
use crypto::UnixTime;
use model::EspSuite;
use os::Family;
use std::time::SystemTime;

const OCTETS: u64 = 1_000_000;

/// Returns both configurations, the mobile node's and the gateway's, with these lines in the tables
/// of their peers.
pub fn configs(mobile: &str, gateway: &str) -> [String; 2] {
    [
        about_peer(&mobile_config(Family::V4, Terms::PLAIN, "manual"), mobile),
        about_peer(&gateway_config(Terms::PLAIN), gateway),
    ]
}

/// Starts both daemons, not yet connected.
///
/// # Errors
/// Those of [`crate::host::Host::stratad`].
pub fn start(pair: &Pair, mobile: &str, gateway: &str) -> Result<Tunnel> {
    start_with(pair, &configs(mobile, gateway))
}

/// Starts both daemons with these configurations.
///
/// # Errors
/// Those of [`crate::host::Host::stratad`].
pub fn start_with(pair: &Pair, configs: &[String; 2]) -> Result<Tunnel> {
    start_told(pair, configs, [&[], &[]])
}

/// Starts both daemons with these configurations and additional arguments.
///
/// # Errors
/// Those of [`crate::host::Host::stratad_with`].
pub fn start_told(pair: &Pair, configs: &[String; 2], arguments: [&[&str]; 2]) -> Result<Tunnel> {
    give_keys(pair)?;
    Ok(Tunnel {
        gateway: pair.gateway.stratad_with(&configs[1], arguments[1])?,
        mobile: pair.mobile.stratad_with(&configs[0], arguments[0])?,
    })
}

/// Writes the keys that the configurations name.
///
/// # Errors
/// Those of [`crate::host::Host::secret`].
pub fn give_keys(pair: &Pair) -> Result<()> {
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    pair.gateway.secret("node.psk", NODE_KEY)?;
    Ok(())
}

/// Carries 1,000,000 octets each way through the tunnel.
///
/// # Errors
/// An octet does not arrive.
pub fn carry(pair: &Pair) -> Result<()> {
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], OCTETS)
}

/// Returns the line that accepts a suite without encryption for this many seconds.
///
/// # Errors
/// The clock is before 1970.
pub fn accepting(suite: EspSuite, seconds: u64) -> Result<String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let until = UnixTime(now.as_secs() + seconds).rfc3339();
    Ok(format!(
        "unencrypted = {{ suite = \"{suite}\", until = {until} }}"
    ))
}

/// Returns a line of [`accepting`] that accepts this many packets.
pub fn for_packets(line: &str, packets: u32) -> String {
    line.replace(" }", &format!(", packets = {packets} }}"))
}

/// Returns a configuration with an additional line in this table, `[node]` for example.
pub fn in_table(config: &str, table: &str, line: &str) -> String {
    config.replacen(&format!("{table}\n"), &format!("{table}\n{line}\n"), 1)
}

/// Returns a configuration with an additional line in its first table that has a `psk`.
pub fn about_peer(config: &str, line: &str) -> String {
    let psk = "psk = \"tunnel.psk\"";
    config.replacen(psk, &format!("{psk}\n{line}"), 1)
}
