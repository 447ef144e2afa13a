//! Hosts that reach each other by link-local addresses alone, as two machines on a cable do. A peer
//! has the interface of its link in `address`.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, DEADLINE, children};
use lab::testbed::Testbed;
use lab::transfer::transfer;
use lab::wire;
use lab::wiretap::{Wiretap, exchanges};
use serde_json::Value;

/// The hosts' only outer addresses.
const NEAR: &str = "fe80::2";
const FAR: &str = "fe80::1";

/// Inner addresses.
const NEAR_INSIDE: &str = "10.1.0.2";
const FAR_INSIDE: &str = "10.8.0.1";

const OCTETS: u64 = 200_000;

struct Bed {
    bed: Testbed,
    near: Host,
    far: Host,
}

impl Bed {
    /// Creates two hosts without a wire.
    fn new() -> Result<Self> {
        let bed = Testbed::new("links")?;
        let (near, far) = (host(&bed, "near")?, host(&bed, "far")?);
        Ok(Self { bed, near, far })
    }

    fn joined() -> Result<Self> {
        let bed = Self::new()?;
        bed.join()?;
        Ok(bed)
    }

    /// Adds the wire between the hosts.
    fn join(&self) -> Result<()> {
        let (near, far) = (format!("{NEAR}/64"), format!("{FAR}/64"));
        let (near, far) = ([near.as_str()], [far.as_str()]);
        wire::veth(self.near.end("eth0", &near), self.far.end("eth0", &far))
    }

    fn carry(&self) -> Result<()> {
        transfer(&self.near, &self.far, FAR_INSIDE, OCTETS)?;
        transfer(&self.far, &self.near, NEAR_INSIDE, OCTETS)
    }
}

/// Creates a host whose devices have no other link-local addresses than those of the test.
fn host(bed: &Testbed, name: &str) -> Result<Host> {
    let host = bed.host(name)?;
    host.sysctl("net.ipv6.conf.default.addr_gen_mode", "1")?;
    host.secret("link.psk", pair::TUNNEL_KEY)?;
    Ok(host)
}

/// The lines of one end that differ between tests.
#[derive(Clone, Copy, Default)]
struct Lines<'a> {
    /// In the table of the peer.
    peer: &'a str,
    /// In `[tunnel]`.
    tunnel: &'a str,
    /// Tables in front of it.
    tables: &'a str,
}

/// Returns the configuration of the host that connects.
fn near(address: &str, lines: Lines<'_>) -> String {
    let Lines {
        peer,
        tunnel,
        tables,
    } = lines;
    format!(
        "[node]\nid = \"near.example.net\"\n{tables}\n[tunnel]\n{tunnel}\naddresses = [\"{NEAR_INSIDE}/32\"]\n\
         [peer.far]\nid = \"far.example.net\"\naddress = \"{address}\"\npsk = \"link.psk\"\n\
         local = [\"{NEAR_INSIDE}/32\"]\nremote = [\"{FAR_INSIDE}/32\"]\n{peer}\n"
    )
}

/// Returns the configuration of the other host.
fn far(lines: Lines<'_>) -> String {
    let Lines {
        peer,
        tunnel,
        tables,
    } = lines;
    format!(
        "[node]\nid = \"far.example.net\"\n{tables}\n[tunnel]\n{tunnel}\naddresses = [\"{FAR_INSIDE}/32\"]\n\
         [peer.near]\nid = \"near.example.net\"\npsk = \"link.psk\"\n\
         local = [\"{FAR_INSIDE}/32\"]\nremote = [\"{NEAR_INSIDE}/32\"]\n{peer}\n"
    )
}

const AT_FAR: &str = "fe80::1%eth0";

/// Lines of the far end with the near end's address, to which it does not connect.
const AT_NEAR: &str = "address = \"fe80::2%eth0\"\nstart = \"manual\"";

/// Fails unless a peer is up at an address of the link.
fn is_at(daemon: &Daemon, address: &str) -> Result<()> {
    let status = daemon.wait_until("status", DEADLINE, |status| {
        let remote = pair::peer(status)["remote"].as_str().unwrap_or_default();
        pair::is_up(status) && remote.starts_with(&format!("[{address}]:"))
    })?;
    ensure!(pair::peer(&status)["interface"] == "eth0", "{status}");
    for verb in ["status", "paths"] {
        let shown = daemon.strata_text(verb)?;
        ensure!(shown.contains(&format!("[{address}%eth0]:")), "{shown}");
    }
    Ok(())
}

/// The witness on the wire is a packet socket of the kernel.
// Works: link-local
#[lab::test]
fn a_tunnel_between_link_local_addresses_carries_traffic_by_each_carrier() -> Result<()> {
    let none = Lines::default();
    let listed = Lines {
        peer: AT_NEAR,
        ..none
    };
    let threads = "workers = 2";
    let bare = "[listen]\nencapsulation = \"nat\"";
    let stream = Lines {
        tables: "[listen]\ntcp = 4500",
        ..none
    };
    let connects = "tcp = \"always\"";
    let with_threads = |lines| Lines {
        tunnel: threads,
        ..lines
    };
    let without_udp = |lines| Lines {
        tables: bare,
        ..lines
    };
    let by_stream = Lines {
        peer: connects,
        ..none
    };
    for (ours, theirs) in [
        (none, none),
        (with_threads(none), with_threads(listed)),
        (without_udp(none), without_udp(listed)),
        (by_stream, stream),
    ] {
        let bed = Bed::joined()?;
        let tap = Wiretap::open(&bed.far)?;
        let far = bed.far.stratad(&far(theirs))?;
        let near = bed.near.stratad(&near(AT_FAR, ours))?;
        is_at(&near, FAR)?;
        is_at(&far, NEAR)?;
        near.strata_text("ping far -c 2")?;
        bed.carry()?;
        let ends = [NEAR, FAR].map(|end| end.parse().ok());
        let seen = tap.rest()?;
        let outside = seen.iter().filter(|seen| {
            [Some(seen.source), Some(seen.destination)]
                .iter()
                .all(|end| ends.contains(end))
        });
        ensure!(outside.count() > 100, "the packets are not on the link");
    }
    Ok(())
}

/// Another link has a host with the same address, and the kernel's first route to it.
// Works: link-local
// Refuses: link-local
#[lab::test]
fn the_interface_of_an_address_decides_its_link() -> Result<()> {
    let bed = Bed::new()?;
    let other = host(&bed.bed, "other")?;
    wire::veth(
        bed.near.end("eth1", &["fe80::2/64"]),
        other.end("eth0", &["fe80::1/64"]),
    )?;
    bed.join()?;
    let tap = Wiretap::open(&other)?;
    let _far = bed.far.stratad(&far(Lines::default()))?;
    let config = near(AT_FAR, Lines::default());
    let near = bed.near.stratad(&config)?;
    is_at(&near, FAR)?;
    bed.carry()?;
    ensure!(exchanges(&tap.rest()?).is_empty(), "IKE on the other link");
    // Negative control. The SAs stay, and only the link is another one.
    near.change(&config.replace("%eth0", "%eth1"))?;
    near.strata_text("rekey far")?;
    tap.read_until(DEADLINE, |seen| seen.ike().is_some())?;
    // One address stands for one host.
    let (_, second) = config.split_once("[peer.far]").context("no peer")?;
    let second = second.replace("%eth0", "%eth1").replace("far.", "other.");
    near.configure(&format!("{config}[peer.other]{second}"))?;
    near.refuses(
        "reload",
        "give one of the two hosts another link-local address",
    )
}

/// Returns the index of the interface, as the kernel shows it.
fn index(host: &Host) -> Result<String> {
    let shown = host.run("ip -oneline link show eth0")?;
    let index = shown.split(':').next().context("no index")?;
    Ok(index.to_owned())
}

/// The SPIs of the tunnel, which show that it is still the same.
fn spis(daemon: &Daemon) -> Result<Vec<Value>> {
    let children = children(&daemon.strata("status")?);
    Ok(children
        .iter()
        .map(|child| child["spi_in"].clone())
        .collect())
}

fn waits(daemon: &Daemon, is_there: bool) -> Result<()> {
    const AWAITED: &str = "waiting for the interface eth0 (`peer.far.address`)";
    let told = |status: &Value| status["status"]["errors"].to_string().contains(AWAITED);
    daemon.wait_until("status", DEADLINE, |status| told(status) != is_there)?;
    Ok(())
}

/// The interface comes after the daemon, goes, and comes again under another index. The SAs stay.
// Recovers: link-local
#[lab::test]
fn an_interface_may_come_late_and_be_created_again() -> Result<()> {
    for peer in [AT_NEAR, ""] {
        let bed = Bed::new()?;
        let lines = Lines {
            peer,
            ..Lines::default()
        };
        let far = bed.far.stratad(&far(lines))?;
        let near = bed.near.stratad(&near(AT_FAR, Lines::default()))?;
        waits(&near, false)?;
        let told = near.strata_text("explain far")?;
        ensure!(told.contains("waiting for the interface eth0"), "{told}");
        bed.join()?;
        waits(&near, true)?;
        is_at(&near, FAR)?;
        bed.carry()?;
        let before = (index(&bed.near)?, index(&bed.far)?, spis(&near)?);
        bed.near.run("ip link delete eth0")?;
        waits(&near, false)?;
        // The indices of the hosts are used up one after the other.
        for host in [&bed.near, &bed.far] {
            host.run("ip link add spare0 type veth peer name spare1")?;
        }
        bed.join()?;
        waits(&near, true)?;
        bed.carry()?;
        let after = (index(&bed.near)?, index(&bed.far)?, spis(&near)?);
        ensure!(
            before.0 != after.0 && before.1 != after.1,
            "the same index: {after:?}"
        );
        ensure!(before.2 == after.2, "another tunnel: {before:?} {after:?}");
        is_at(&far, NEAR)?;
    }
    Ok(())
}

/// MOBIKE moves the tunnel between two addresses of the link, and the interface stays with it.
// Works: link-local
#[lab::test]
fn a_tunnel_moves_between_addresses_of_its_link() -> Result<()> {
    let bed = Bed::joined()?;
    let far = bed.far.stratad(&far(Lines::default()))?;
    let near = bed.near.stratad(&near(AT_FAR, Lines::default()))?;
    is_at(&far, NEAR)?;
    bed.near.run("ip address add fe80::22/64 dev eth0")?;
    near.wait_until("paths", DEADLINE, |paths| {
        paths["paths"]["tunnels"][0]["candidates"]
            .to_string()
            .contains("fe80::22")
    })?;
    let told = near.strata_text("move far --from fe80::22")?;
    ensure!(
        told.contains("[fe80::22%eth0]:4500 to [fe80::1%eth0]:4500"),
        "{told}"
    );
    is_at(&far, "fe80::22")?;
    bed.carry()?;
    let shown = near.strata_text("paths")?;
    ensure!(
        shown.contains("  fe80::22%eth0 - fe80::1%eth0  used"),
        "{shown}"
    );
    bed.near.run("ip address del fe80::22/64 dev eth0")?;
    is_at(&far, NEAR)?;
    bed.carry()
}
