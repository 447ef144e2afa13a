//! A pair whose gateway leases inner addresses from a pool to the other hosts.
//!
//! Tests that need two clients also connect the host between, over its own wire to the gateway.

use crate::daemon::Daemon;
use crate::duo::THEIRS;
use crate::host::Host;
use crate::pair::{PROTECTED, Pair, TUNNEL_KEY};
use crate::strongswan::Connection;
use anyhow::Result;
use os::netlink::Netlink;

/// Pool that the gateway leases from.
pub const POOL: &str = r#"["10.9.0.0/24", "2001:db8:9::/64"]"#;

/// Name server that the gateway announces.
pub const SERVER: &str = "10.8.0.53";

/// A client that requests addresses.
#[derive(Clone, Copy, Debug)]
pub struct Borrower {
    /// Its identity.
    pub id: &'static str,
    /// Inner addresses; `["dynamic"]` requests them from the gateway.
    pub local: &'static str,
    /// `auto` or `manual`.
    pub start: &'static str,
}

/// The mobile node.
pub const ALICE: Borrower = Borrower {
    id: "alice@example.net",
    local: r#"["dynamic"]"#,
    start: "manual",
};

/// The host between.
pub const BOB: Borrower = Borrower {
    id: "bob@example.net",
    ..ALICE
};

impl Pair {
    /// Starts the gateway's daemon, which leases addresses of these prefixes to both clients.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_lender(&self, pool: &str) -> Result<Daemon> {
        self.gateway.secret("tunnel.psk", TUNNEL_KEY)?;
        self.gateway.stratad(&lender_config(&self.gateway, pool))
    }

    /// Starts the daemon of the mobile node or of the host between, as a client.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_borrower(&self, host: &Host, borrower: &Borrower) -> Result<Daemon> {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
        host.stratad(&borrower_config(borrower))
    }
}

/// Returns the gateway's configuration without `[control]`. Its store is in the host's folder.
pub fn lender_config(host: &Host, pool: &str) -> String {
    let store = host.directory().join("strata.redb");
    let local = format!("{PROTECTED:?}");
    let peer = |name: &str, id: &str| {
        format!(
            "[peer.{name}]\nid = \"{id}\"\npsk = \"tunnel.psk\"\nlocal = {local}\npool = \"office\"\n\
             liveness = \"1s\"\n"
        )
    };
    format!(
        "[node]\nid = \"gw.example.net\"\n\
         [tunnel]\naddresses = [\"10.8.0.1/16\", \"fd00:8::1/64\"]\n\
         [store]\nfile = \"{}\"\n\
         [pool.office]\naddresses = {pool}\ndns = [\"{SERVER}\"]\nlease = \"1h\"\n{}{}",
        store.display(),
        peer("alice", ALICE.id),
        peer("bob", BOB.id)
    )
}

/// Returns the configuration of a client, without `[control]`.
pub fn borrower_config(borrower: &Borrower) -> String {
    let Borrower { id, local, start } = borrower;
    format!(
        "[node]\nid = \"{id}\"\n[tunnel]\n\
         [peer.office]\naddress = \"192.0.2.1\"\nid = \"gw.example.net\"\npsk = \"tunnel.psk\"\n\
         local = {local}\nremote = {PROTECTED:?}\nliveness = \"1s\"\nstart = \"{start}\"\n"
    )
}

/// charon of a [`crate::duo::Duo`] as a client that requests addresses of both families.
pub const CHARON: Connection<'_> = Connection {
    local: "dynamic",
    remote: "10.1.0.0/24, fd00:1::/64",
    vips: Some("0.0.0.0, ::"),
    ..THEIRS
};

/// Returns the configuration of our end in a tunnel in which we lease charon its addresses.
pub fn lender_of_charon(ours: &Host) -> String {
    let store = ours.directory().join("strata.redb");
    format!(
        r#"
[node]
id = "ours.example"
[tunnel]
addresses = ["10.1.0.1/24", "fd00:1::1/64"]
[store]
file = "{}"
[pool.lent]
addresses = {POOL}
dns = ["10.1.0.53"]
[peer.theirs]
id = "theirs.example"
psk = "theirs.psk"
local = ["10.1.0.0/24", "fd00:1::/64"]
pool = "lent"
"#,
        store.display()
    )
}

/// Returns the addresses of the tunnel's device, sorted.
///
/// # Errors
/// There is no such device.
pub fn on_device(host: &Host) -> Result<Vec<String>> {
    let addresses = host.inside(|| Ok(Netlink::open()?.addresses("strata0")?))?;
    let mut texts: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    texts.sort();
    Ok(texts)
}

/// Returns the prefixes that the kernel routes into the tunnel's device, sorted; `default` is all
/// of IPv4.
///
/// # Errors
/// Those of the kernel.
pub fn led_into_tunnel(host: &Host) -> Result<Vec<String>> {
    routes(host, "dev strata0 ")
}

/// Returns the prefixes that the kernel drops if they are not routed into the tunnel.
///
/// # Errors
/// Those of the kernel.
pub fn black_holes(host: &Host) -> Result<Vec<String>> {
    routes(host, "blackhole ")
}

fn routes(host: &Host, words: &str) -> Result<Vec<String>> {
    let table = host.run("ip -4 route show table all")?;
    let ours = table.lines().filter(|line| line.contains("table 7296 "));
    let ours = ours.filter(|line| line.contains(words));
    let prefixes = ours.filter_map(|line| line.trim_start_matches("blackhole ").split(' ').next());
    let mut prefixes: Vec<_> = prefixes.map(str::to_owned).collect();
    prefixes.sort();
    Ok(prefixes)
}
