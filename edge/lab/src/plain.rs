//! Mobile node and gateway with a plain tunnel, and a line more about each other.

use crate::pair::{
    GATEWAY, MOBILE, NODE_KEY, Pair, TUNNEL_KEY, Terms, Tunnel, gateway_config, mobile_config,
};
use crate::transfer::transfer;
use anyhow::Result;
use os::Family;

const OCTETS: u64 = 1_000_000;

/// Both configurations with these lines about the other end: the mobile node's and the gateway's.
pub fn configs(mobile: &str, gateway: &str) -> [String; 2] {
    [
        with(&mobile_config(Family::V4, Terms::PLAIN, "manual"), mobile),
        with(&gateway_config(Terms::PLAIN), gateway),
    ]
}

/// Both daemons, not yet connected.
///
/// # Errors
/// Those of [`crate::host::Host::stratad`].
pub fn start(pair: &Pair, mobile: &str, gateway: &str) -> Result<Tunnel> {
    start_with(pair, &configs(mobile, gateway))
}

/// The same with configurations of their own.
///
/// # Errors
/// Those of [`crate::host::Host::stratad`].
pub fn start_with(pair: &Pair, configs: &[String; 2]) -> Result<Tunnel> {
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    pair.gateway.secret("node.psk", NODE_KEY)?;
    Ok(Tunnel {
        gateway: pair.gateway.stratad(&configs[1])?,
        mobile: pair.mobile.stratad(&configs[0])?,
    })
}

/// Carries octets each way.
///
/// # Errors
/// They do not all arrive.
pub fn carry(pair: &Pair) -> Result<()> {
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], OCTETS)
}

/// A line more in the first table that has a `psk`.
fn with(config: &str, line: &str) -> String {
    let psk = "psk = \"tunnel.psk\"";
    config.replacen(psk, &format!("{psk}\n{line}"), 1)
}
