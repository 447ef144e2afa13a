//! Mobile node and gateway without pre-shared keys: each proves itself by a certificate of one CA.

use crate::daemon::Daemon;
use crate::host::Host;
use crate::openssl::{self, GOOD, Order, authority};
use crate::pair::{DEADLINE, Pair, Tunnel};
use crate::testbed::find_binary;
use anyhow::Result;

/// What the CA is called.
pub const CA: &str = "Lab CA";

/// The mobile node's name in its certificate, in openssl's words.
pub const ALICE: &str = "email:alice@example.net";

/// The gateway's.
pub const GW: &str = "DNS:gw.example.net";

/// Both daemons, not yet connected; the mobile node's certificate is made as ordered.
///
/// # Errors
/// openssl failed, or a daemon does not start.
pub fn both(order: Order<'_>) -> Result<(Pair, Tunnel)> {
    over(Pair::new("certified")?, order)
}

/// The same, on a testbed that exists.
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

/// A daemon with a certificate for a name, issued as ordered by the CA in its folder.
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
/// It failed; the message has what it said.
pub fn strata(host: &Host, words: &str) -> Result<String> {
    let mut command = host.command(find_binary("strata")?);
    command.args(words.split_whitespace());
    host.run_command(command, DEADLINE)
}

/// Gives a host what `strata pki` made for it in another one's folder: under `made`, by the CA in `root`.
///
/// # Errors
/// It did not make that.
pub fn hand_out(maker: &Host, host: &Host, id: &str) -> Result<()> {
    let read = |file: &str| std::fs::read_to_string(maker.directory().join(file));
    host.secret("end.key", &read(&format!("made/{id}.key"))?)?;
    host.file("chain.pem", &read(&format!("made/{id}.pem"))?)?;
    host.file("ca.pem", &read("root/ca.pem")?).map(drop)
}

/// The mobile node's configuration; it waits for `strata up`.
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

/// The gateway's.
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
