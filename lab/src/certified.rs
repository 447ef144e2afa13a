//! Mobile node and gateway without pre-shared keys: each authenticates with a certificate of one
//! CA.

use crate::daemon::Daemon;
use crate::host::Host;
use crate::openssl::{self, GOOD, Order, authority};
use crate::pair::{DEADLINE, Pair, Tunnel};
use crate::testbed::find_binary;
use anyhow::Result;

/// Name of the CA.
pub const CA: &str = "Lab CA";

/// Name of the mobile node in its certificate, in openssl's syntax.
pub const ALICE: &str = "email:alice@example.net";

/// Name of the gateway in its certificate, in openssl's syntax.
pub const GW: &str = "DNS:gw.example.net";

/// Starts both daemons, not yet connected. The mobile node's certificate is issued as ordered.
///
/// # Errors
/// openssl failed, or a daemon does not start.
pub fn both(order: Order<'_>) -> Result<(Pair, Tunnel)> {
    over(Pair::new("certified")?, order)
}

/// Starts both daemons as [`both`] does, on an existing pair.
///
/// # Errors
/// openssl failed, or a daemon does not start.
pub fn over(pair: Pair, order: Order<'_>) -> Result<(Pair, Tunnel)> {
    authority(&pair.mobile, order.key, CA)?;
    for file in ["ca.pem", "ca.key"] {
        let text = std::fs::read_to_string(pair.mobile.directory().join(file))?;
        pair.gateway.secret(file, &text)?;
    }
    let good = Order {
        validity: GOOD.validity,
        extensions: GOOD.extensions,
        ..order
    };
    let gateway = start(&pair.gateway, GW, good, GATEWAY_CONFIG)?;
    let mobile = start(&pair.mobile, ALICE, order, MOBILE_CONFIG)?;
    Ok((pair, Tunnel { mobile, gateway }))
}

/// Starts a daemon with a certificate for a name, issued as ordered by the CA in its folder.
///
/// # Errors
/// openssl failed, or the daemon does not start.
pub fn start(host: &Host, name: &str, order: Order<'_>, config: &str) -> Result<Daemon> {
    openssl::order(host, name, order)?;
    host.stratad(config)
}

/// Runs `strata` without a daemon, in a host's folder.
///
/// # Errors
/// `strata` failed; the message has its output.
pub fn strata(host: &Host, words: &str) -> Result<String> {
    let mut command = host.command(find_binary("strata")?);
    command.args(words.split_whitespace());
    host.run_command(command, DEADLINE)
}

/// Copies to a host the files that `strata pki` made for it in another host's folder: the key and
/// chain from `made`, the CA from `root`.
///
/// # Errors
/// A file is missing or cannot be written.
pub fn hand_out(maker: &Host, host: &Host, id: &str) -> Result<()> {
    let read = |file: &str| std::fs::read_to_string(maker.directory().join(file));
    host.secret("end.key", &read(&format!("made/{id}.key"))?)?;
    host.file("chain.pem", &read(&format!("made/{id}.pem"))?)?;
    host.file("ca.pem", &read("root/ca.pem")?).map(drop)
}

/// Configuration of the mobile node, which waits for `strata up`.
pub const MOBILE_CONFIG: &str = r#"
[node]
id = "alice@example.net"
cert = "chain.pem"
key = "end.key"
ca = ["ca.pem"]
[tunnel]
addresses = ["10.1.0.2/32"]
[peer.office]
address = "192.0.2.1"
id = "gw.example.net"
local = ["10.1.0.2/32"]
remote = ["10.8.0.0/16"]
start = "manual"
"#;

/// Configuration of the gateway.
pub const GATEWAY_CONFIG: &str = r#"
[node]
id = "gw.example.net"
cert = "chain.pem"
key = "end.key"
ca = ["ca.pem"]
[tunnel]
addresses = ["10.8.0.1/16"]
[peer.alice]
id = "alice@example.net"
local = ["10.8.0.0/16"]
remote = ["10.1.0.2/32"]
"#;
