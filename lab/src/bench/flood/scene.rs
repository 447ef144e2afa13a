//! The hosts, the established tunnel, and the rule for a control.

use super::throttle::Flood;
use super::{Kind, member, streams, unknown_peer};
use crate::bench::crowd::{Crowd, Pace};
use crate::bench::forge::{Forged, Way};
use crate::bench::responder::{self, Place, Responder};
use crate::daemon::Daemon;
use crate::host::Host;
use crate::openssl::{self, EC, GOOD};
use crate::pair::children;
use crate::process::DEADLINE;
use crate::testbed::Testbed;
use crate::wire;
use anyhow::{Result, ensure};
use std::net::Ipv4Addr;

/// Sources of the flooder, and the gateway's address towards it.
pub(super) const WAY: Way = Way {
    network: Ipv4Addr::new(198, 19, 0, 0),
    prefix: 16,
    to: Ipv4Addr::new(198, 18, 0, 1),
    port: ike::PORT,
};

/// Inner address of the gateway.
pub(super) const INSIDE: &str = "10.8.0.1";

/// Additional configuration of the gateway: a peer that carries TCP, a peer with legacy groups, a
/// peer with certificates, and TCP encapsulation.
const MORE: &str = r#"
[peer.near]
id = "near.bench"
psk = "bench.psk"
local = ["10.8.0.0/16"]
remote = ["10.9.0.2/32"]
[peer.old]
id = "old.bench"
psk = "bench.psk"
suite = "legacy"
local = ["10.8.0.0/16"]
remote = ["10.9.0.3/32"]
[peer.certified]
id = "certified.bench"
local = ["10.8.0.0/16"]
remote = ["10.9.0.4/32"]
[listen]
tcp = 4500
"#;

const NODE: &str = "cert = \"chain.pem\"\nkey = \"end.key\"\nca = [\"ca.pem\"]\n";

const NEAR: &str = r#"
[node]
id = "near.bench"
[tunnel]
addresses = ["10.9.0.2/32"]
[peer.gateway]
address = "192.0.2.2"
id = "responder.bench"
psk = "bench.psk"
local = ["10.9.0.2/32"]
remote = ["10.8.0.0/16"]
start = "manual"
"#;

/// A rule that drops the flooder's packets before the gateway's sockets see them.
const RULE: &str = "table inet control {\n  chain dropped {\n    type filter hook prerouting priority raw\n    \
                    iifname \"flood\" drop\n  }\n}\n";

/// All hosts and daemons for one kind of flood.
pub(super) struct Scene {
    kind: Kind,
    /// Number of the malicious member, which no initiator of the crowd has.
    member: u32,
    pub crowd: Crowd,
    _carrier: Daemon,
    _responder: Responder,
    pub near: Host,
    pub gateway: Host,
    pub flooder: Host,
    _bed: Testbed,
}

/// Makes the gateway drop floods, until dropped.
pub(super) struct Rule(Host);

impl Scene {
    /// Creates the scene with a crowd for this many set-ups.
    pub fn new(kind: Kind, setups: usize) -> Result<Self> {
        let bed = Testbed::new("flood")?;
        let [near, gateway, flooder] = ["near", "gateway", "flooder"].map(|name| bed.host(name));
        let (near, gateway, flooder) = (near?, gateway?, flooder?);
        connect(&near, &gateway, &flooder)?;
        gateway.file("control.nft", RULE)?;
        openssl::authority(&gateway, EC, "bench")?;
        openssl::order(&gateway, "DNS:responder.bench", GOOD)?;
        let responder = Responder::start_with(&gateway, setups + 2, NODE, MORE)?;
        responder::secret(&near)?;
        let carrier = near.stratad(NEAR)?;
        carrier.strata_text("up gateway --wait")?;
        carrier.wait_until("status", DEADLINE, |status| !children(status).is_empty())?;
        let mut crowd = Crowd::new(&near, Place::TWO_HOSTS)?;
        let first = crowd.run(1, Pace::Queue(1))?;
        let why = first.failure.unwrap_or_default();
        ensure!(
            first.up == 1,
            "the first of the crowd does not come up: {why}"
        );
        Ok(Self {
            kind,
            member: u32::try_from(setups)? + 1,
            crowd,
            _carrier: carrier,
            _responder: responder,
            near,
            gateway,
            flooder,
            _bed: bed,
        })
    }

    /// Prepares a flood.
    pub fn flood(&self) -> Result<Box<dyn Flood>> {
        let host = &self.flooder;
        Ok(match self.kind {
            Kind::PublicValues => Box::new(Forged::public_values(host, WAY)?),
            Kind::Spoofed => Box::new(Forged::good(host, WAY)?),
            Kind::Malformed => Box::new(Forged::malformed(host, WAY)?),
            Kind::HalfOpen => Box::new(unknown_peer::HalfOpen::new(host)?),
            Kind::Chains => Box::new(unknown_peer::Chains::new(host)?),
            Kind::Streams => Box::new(streams::Streams::new()),
            Kind::Member => Box::new(member::Member::new(host, self.member)?),
        })
    }

    /// Makes the gateway drop floods before its sockets.
    pub fn drop_floods(&self) -> Result<Rule> {
        self.gateway.run("nft -f control.nft")?;
        Ok(Rule(self.gateway.clone()))
    }
}

impl Drop for Rule {
    fn drop(&mut self) {
        // If the rule stays, the next flood gets no answers, and the report shows it.
        let _ = self.0.run("nft delete table inet control");
    }
}

fn connect(near: &Host, gateway: &Host, flooder: &Host) -> Result<()> {
    wire::veth(
        near.end("eth0", &["192.0.2.1/24"]),
        gateway.end("eth0", &["192.0.2.2/24"]),
    )?;
    wire::veth(
        flooder.end("eth0", &["198.18.0.2/24", "2001:db8:e::2/64"]),
        gateway.end("flood", &["198.18.0.1/24", "2001:db8:e::1/64"]),
    )?;
    Place::address(near, gateway)?;
    // The whole network of an IPv4 address on a loopback device is local to the host.
    let sources = flooder.netns().netlink()?;
    sources.add_address("lo", "198.19.0.1/16".parse()?)?;
    // IPv6 allows a source that is not an address of a device only with this setting.
    flooder.sysctl("net.ipv6.ip_nonlocal_bind", "1")?;
    flooder.run("ip -6 route add local 2001:db8:f::/64 dev lo")?;
    gateway.route("198.19.0.0/16", "198.18.0.2")?;
    gateway.route("2001:db8:f::/64", "2001:db8:e::2")
}
