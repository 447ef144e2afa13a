//! The two hosts, and the path between them.

use super::Entrant;
use super::roofline::Roofline;
use super::wireguard::{self, Program};
use crate::daemon::Daemon;
use crate::duo::{OURS, PSK, THEIRS, add_inner_address};
use crate::host::Host;
use crate::pair::{
    DEADLINE, LICENSED, MOBILE, Pair, Terms, gateway_config, holds_a_grant, licensed_config,
    mobile_config,
};
use crate::plain;
use crate::testbed::Testbed;
use crate::wire;
use anyhow::{Result, anyhow};
use os::Family;
use std::any::Any;
use std::net::Ipv4Addr;

/// The two hosts and the program that carries between them, until dropped.
pub(super) struct Line {
    _carriers: Held,
    /// The sending host.
    pub near: Host,
    /// The receiving host.
    pub far: Host,
    /// Address of the receiver, on the side of the tunnel if there is one.
    pub address: &'static str,
    _network: Held,
}

/// A value that only needs to be kept alive.
type Held = Box<dyn Any>;

/// Addresses of the receiver on the wire and in the tunnel.
const OUTSIDE: &str = "192.0.2.2";
const INSIDE: &str = "10.2.0.1";

/// No limit on segments per packet: these wires are not tapped, and real devices segment by
/// themselves.
const SEGMENTS: u32 = u16::MAX as u32;

/// Configuration of the other end of [`OURS`].
const FAR: &str = r#"
[node]
id = "theirs.example"
[tunnel]
addresses = ["10.2.0.1/32"]
[peer.ours]
id = "ours.example"
psk = "ours.psk"
local = ["10.2.0.0/24"]
remote = ["10.1.0.1/32"]
"#;

impl Line {
    pub fn new(entrant: Entrant) -> Result<Self> {
        let strata = |zones, line| Self::strata([PSK; 2], zones, line);
        match entrant {
            Entrant::Wire => Self::wire(|_| Ok(None)),
            Entrant::Roofline => Self::wire(roofline),
            Entrant::Plain => strata("refuse", ""),
            Entrant::Zones => strata("require", ""),
            Entrant::Licensed => Self::licensed(),
            Entrant::Workers => strata("refuse", "workers = 2"),
            Entrant::OneByOne => strata("refuse", "offload = \"off\""),
            Entrant::Unguarded => Self::unguarded(),
            Entrant::Strongswan => Self::wire(strongswan),
            Entrant::WireguardGo => Self::wireguard(&wireguard::GO),
            Entrant::Boringtun => Self::wireguard(&wireguard::BORINGTUN),
        }
    }

    /// Creates two ends of Strata without a common key.
    pub fn strangers() -> Result<Self> {
        let keys = [PSK, "another key of more than sixteen octets"];
        Self::strata(keys, "refuse", "")
    }

    fn strata(keys: [&str; 2], zones: &str, line: &str) -> Result<Self> {
        Self::wire(|hosts| Ok(Some(Box::new(strata(hosts, keys, zones, line)?))))
    }

    fn unguarded() -> Result<Self> {
        Self::wire(|hosts| {
            let ends = strata(hosts, [PSK; 2], "refuse", "")?;
            ends.iter().try_for_each(Daemon::unguard)?;
            Ok(Some(Box::new(ends)))
        })
    }

    fn wireguard(program: &Program) -> Result<Self> {
        Self::wire(|hosts| Ok(Some(Box::new(program.start(hosts)?))))
    }

    /// Creates the two hosts with a wire. Without carriers, traffic goes over the wire alone.
    fn wire(carriers: impl FnOnce([&Host; 2]) -> Result<Option<Held>>) -> Result<Self> {
        let bed = Testbed::new("peers")?;
        let (near, far) = (bed.host("near")?, bed.host("far")?);
        let addresses = [["192.0.2.1/24"], ["192.0.2.2/24"]];
        wire::veth(
            near.end("eth0", &addresses[0]),
            far.end("eth0", &addresses[1]),
        )?;
        for host in [&near, &far] {
            let netlink = host.netns().netlink()?;
            netlink.set_most_segments("eth0", SEGMENTS)?;
        }
        let carriers = carriers([&near, &far])?;
        Ok(Self {
            address: if carriers.is_some() { INSIDE } else { OUTSIDE },
            _carriers: Box::new(carriers),
            near,
            far,
            _network: Box::new(bed),
        })
    }

    /// Creates a pair with a licensed node. The gateway sends, because a licensed node caches
    /// packets to the mobile node for repair.
    fn licensed() -> Result<Self> {
        let pair = Pair::new("peers")?;
        pair.set_most_segments(SEGMENTS)?;
        let node = pair.start_licensed_as(&same_aead(&licensed_config(LICENSED)))?;
        let ends = [
            mobile_config(Family::V4, Terms::LICENSED, "manual"),
            gateway_config(Terms::LICENSED),
        ];
        let ends = plain::start_with(&pair, &ends.map(|config| same_aead(&config)))?;
        ends.up()?;
        node.wait_until("zones", DEADLINE, holds_a_grant)?;
        Ok(Self {
            _carriers: Box::new((ends, node)),
            near: pair.gateway.clone(),
            far: pair.mobile.clone(),
            address: MOBILE[0],
            _network: Box::new(pair),
        })
    }
}

/// Starts a roofline at both hosts. The prefix of its inner address routes all inner addresses to
/// its device.
fn roofline([near, far]: [&Host; 2]) -> Result<Option<Held>> {
    let [here, there] = [1, 2].map(|last| Ipv4Addr::new(192, 0, 2, last));
    Ok(Some(Box::new([
        Roofline::start(near, [here, there], "10.1.0.1/8")?,
        Roofline::start(far, [there, here], "10.2.0.1/8")?,
    ])))
}

/// Starts both ends with an additional line in `[tunnel]`.
fn strata(hosts: [&Host; 2], keys: [&str; 2], zones: &str, line: &str) -> Result<[Daemon; 2]> {
    let psks = ["theirs.psk", "ours.psk"];
    let mut ends = Vec::new();
    for (index, config) in [OURS, FAR].into_iter().enumerate() {
        hosts[index].secret(psks[index], keys[index])?;
        let psk = format!("psk = \"{}\"", psks[index]);
        let config = config.replace(&psk, &format!("{psk}\nzones = \"{zones}\""));
        let config = plain::in_table(&config, "[tunnel]", line);
        ends.push(hosts[index].stratad(&same_aead(&config))?);
    }
    let ends = <[Daemon; 2]>::try_from(ends).map_err(|_| anyhow!("two ends"))?;
    ends[0].strata_text("up theirs --wait")?;
    Ok(ends)
}

/// Returns a configuration with the AES-GCM implementation of this process, which the roofline
/// uses.
fn same_aead(config: &str) -> String {
    match crypto::provider() {
        Some(_) => plain::in_table(config, "[node]", "aead = \"ipsec-mb\""),
        None => config.to_owned(),
    }
}

fn strongswan([near, far]: [&Host; 2]) -> Result<Option<Held>> {
    add_inner_address(near, "10.1.0.1/32")?;
    add_inner_address(far, "10.2.0.1/32")?;
    let ends = [near.charon(&THEIRS.reversed())?, far.charon(&THEIRS)?];
    ends[0].initiate()?;
    Ok(Some(Box::new(ends)))
}
