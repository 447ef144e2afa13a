//! A gateway by its name. dnsmasq on the host between is the name server of the mobile node's
//! network, and its log says what it was asked.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::name_server::NameServer;
use lab::pair::{self, DEADLINE, Pair, Terms};
use lab::plain;
use lab::process::{Process, until};
use lab::testbed::find_command;
use lab::transfer::transfer;
use os::Family;
use serde_json::Value;
use std::time::{Duration, Instant};

const NAME: &str = "gw.example.net";

/// The name server, and the gateway's addresses before and after it is renumbered.
const SERVER: &str = "10.3.0.1";
const BEFORE: &str = "192.0.2.1";
const AFTER: &str = "192.0.2.200";

/// An address that no host has.
const DEAD: &str = "2001:db8:dead::1";

const OCTETS: u64 = 1_000_000;

struct Bed {
    pair: Pair,
    gateway: Daemon,
    dns: Option<NameServer>,
}

impl Bed {
    /// Creates a network in which the name has these addresses.
    fn new(addresses: &[&str]) -> Result<Self> {
        Self::with_gateway(addresses, &pair::gateway_config(Terms::PLAIN))
    }

    fn with_gateway(addresses: &[&str], gateway: &str) -> Result<Self> {
        let pair = Pair::new("names")?;
        pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
        pair.gateway.secret("tunnel.psk", pair::TUNNEL_KEY)?;
        pair.gateway.secret("node.psk", pair::NODE_KEY)?;
        pair.mobile
            .file("resolv.conf", &format!("nameserver {SERVER}\n"))?;
        let gateway = pair.gateway.stratad(gateway)?;
        let dns = Some(NameServer::start(&pair.between, SERVER, &lines(addresses))?);
        Ok(Self { pair, gateway, dns })
    }

    /// Sets the addresses of the name.
    fn tell(&mut self, addresses: &[&str]) -> Result<()> {
        self.dns()?.set(&lines(addresses))
    }

    fn dns(&mut self) -> Result<&mut NameServer> {
        self.dns.as_mut().context("no name server")
    }

    /// Replaces the name server by one that reads questions and never answers.
    fn silence(&mut self) -> Result<Process> {
        const SCRIPT: &str = "import socket\n\
             server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             server.bind((\"10.3.0.1\", 53))\n\
             print(\"ready\", flush=True)\n\
             while True:\n    print(\"asked\", len(server.recv(4096)), flush=True)\n";
        self.dns = None;
        let script = self.pair.between.file("silent.py", SCRIPT)?;
        let python = find_command("python3", "python3")?;
        let line = format!("{} {}", python.display(), script.display());
        let mut silent = self.pair.between.spawn(&line)?;
        silent.wait_for_log("ready", DEADLINE)?;
        Ok(silent)
    }

    fn renumber(&self) -> Result<()> {
        for line in [
            format!("address del {BEFORE}/24 dev eth0"),
            format!("address add {AFTER}/24 dev eth0"),
            "route replace default via 192.0.2.2".to_owned(),
        ] {
            self.pair.gateway.run(&format!("ip {line}"))?;
        }
        Ok(())
    }

    /// Returns the mobile node's configuration, with the name, or with what stands in its place.
    fn config(&self, address: &str) -> String {
        let config = pair::mobile_config(Family::V4, Terms::PLAIN, "auto");
        let config = config.replace(
            &format!("address = \"{BEFORE}\""),
            &format!("address = \"{address}\""),
        );
        let folder = self.pair.mobile.directory().display();
        let resolver = format!("resolver = \"{folder}/resolv.conf\"");
        let config = plain::in_table(&config, "[tunnel]", &resolver);
        format!("{config}[store]\nfile = \"{folder}/strata.redb\"\n")
    }

    fn start(&self) -> Result<Daemon> {
        self.pair.mobile.stratad(&self.config(NAME))
    }
}

/// Returns the lines of the name server that give the name these addresses.
fn lines(addresses: &[&str]) -> String {
    let lines = addresses.iter();
    lines.map(|address| format!("{address} {NAME}\n")).collect()
}

fn remote(status: &Value) -> String {
    pair::peer(status)["remote"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn is_up_at(status: &Value, address: &str) -> bool {
    pair::is_up(status) && remote(status).starts_with(&format!("{address}:"))
}

// Works: names
#[lab::test]
fn a_name_is_found_and_explained() -> Result<()> {
    let mut bed = Bed::new(&[DEAD, BEFORE])?;
    let begun = Instant::now();
    let mobile = bed.start()?;
    mobile.wait_until("status", DEADLINE, |status| is_up_at(status, BEFORE))?;
    println!(
        "up with a dead IPv6 address after {} ms",
        begun.elapsed().as_millis()
    );
    transfer(
        &bed.pair.mobile,
        &bed.pair.gateway,
        pair::GATEWAY[0],
        OCTETS,
    )?;
    for kind in ["A", "AAAA"] {
        bed.dns()?.wait_for_query(kind, NAME)?;
    }
    let found = format!("{DEAD}, {BEFORE} (says {SERVER}); tried {DEAD}, {BEFORE}");
    let explained = mobile.strata_text("explain office")?;
    ensure!(
        explained.contains(&format!("lookup of {NAME}: {found}")),
        "{explained}"
    );
    let status = mobile.strata_text("status office")?;
    ensure!(
        status.contains(&format!("name      {NAME}: {found}")),
        "{status}"
    );
    let lookup = pair::peer(&mobile.strata("status")?)["lookup"].clone();
    ensure!(
        lookup["server"] == SERVER && lookup["last_up"] == BEFORE,
        "{lookup}"
    );
    Ok(())
}

/// Sends packets into the tunnel all the time.
const SEND: &str = "import socket, time\n\
     sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
     while True:\n    \
     try:\n        sender.sendto(b\"x\", (\"10.8.0.1\", 9))\n    \
     except OSError:\n        pass\n    \
     time.sleep(0.2)\n";

/// The control has the address of before in its file, and never comes back.
// Works: names
// Recovers: names
// Weakness: 194
#[lab::test]
fn a_gateway_that_is_renumbered_is_found_again() -> Result<()> {
    let mut bed = Bed::new(&[BEFORE])?;
    let mobile = bed.start()?;
    mobile.wait_until("status", DEADLINE, |status| is_up_at(status, BEFORE))?;
    // A tunnel that is up stays where it is, whatever the name means.
    bed.tell(&[AFTER])?;
    bed.pair
        .mobile
        .run("ip address add 10.3.0.77/24 dev eth0")?;
    transfer(
        &bed.pair.mobile,
        &bed.pair.gateway,
        pair::GATEWAY[0],
        OCTETS,
    )?;
    let status = mobile.strata("status")?;
    ensure!(is_up_at(&status, BEFORE), "{status}");
    // Packets make the silence noticed.
    bed.renumber()?;
    let script = bed.pair.mobile.file("send.py", SEND)?;
    let python = find_command("python3", "python3")?;
    let line = format!("{} {}", python.display(), script.display());
    let mut sender = bed.pair.mobile.spawn(&line)?;
    mobile.wait_until("status", DEADLINE, |status| is_up_at(status, AFTER))?;
    sender.terminate(DEADLINE)?;
    transfer(
        &bed.pair.mobile,
        &bed.pair.gateway,
        pair::GATEWAY[0],
        OCTETS,
    )?;
    mobile.change(&bed.config(BEFORE))?;
    until("the address of before is tried", DEADLINE, || {
        let status = mobile.strata("status")?;
        let tries = pair::peer(&status)["silent"] == true;
        Ok(tries.then_some(()))
    })?;
    let status = mobile.strata("status")?;
    ensure!(!pair::is_up(&status), "{status}");
    Ok(())
}

// Works: names
// Recovers: names
#[lab::test]
fn a_gateway_that_was_renumbered_while_the_tunnel_was_down_is_found() -> Result<()> {
    let mut bed = Bed::new(&[BEFORE])?;
    bed.renumber()?;
    let mobile = bed.start()?;
    mobile.wait_until("status", DEADLINE, |status| {
        pair::peer(status)["silent"] == true
    })?;
    bed.tell(&[AFTER])?;
    mobile
        .wait_until("status", DEADLINE, |status| is_up_at(status, AFTER))
        .map(drop)
}

/// The second peer's name is asked for all the time.
// Recovers: names
#[lab::test]
fn a_name_server_that_never_answers_stops_no_packets() -> Result<()> {
    let mut bed = Bed::new(&[BEFORE])?;
    let mut silent = bed.silence()?;
    let config = bed.config(BEFORE)
        + "[peer.other]\naddress = \"other.example.net\"\npsk = \"tunnel.psk\"\n\
           local = [\"10.1.0.2/32\"]\nremote = [\"10.99.0.0/16\"]\n";
    let mobile = bed.pair.mobile.stratad(&config)?;
    let peer = |status: &Value, name: &str| -> Value {
        let peers = status["status"]["peers"].as_array();
        let found = peers.and_then(|peers| peers.iter().find(|peer| peer["name"] == name));
        found.cloned().unwrap_or_default()
    };
    mobile.wait_until("status", DEADLINE, |status| {
        peer(status, "office")["state"] == "up" && peer(status, "other")["lookup"]["asking"] == true
    })?;
    let begun = Instant::now();
    transfer(
        &bed.pair.mobile,
        &bed.pair.gateway,
        pair::GATEWAY[0],
        3 * OCTETS,
    )?;
    let status = mobile.strata("status")?;
    ensure!(
        begun.elapsed() < Duration::from_secs(9),
        "{:?}",
        begun.elapsed()
    );
    ensure!(peer(&status, "office")["state"] == "up", "{status}");
    silent.wait_for_log("asked", DEADLINE)?;
    mobile.wait_until("status", DEADLINE, |status| {
        let failure = peer(status, "other")["lookup"]["failure"].clone();
        failure
            .as_str()
            .is_some_and(|why| why.contains("no answer from name server 10.3.0.1"))
    })?;
    let explained = mobile.strata_text("explain other")?;
    ensure!(explained.contains("`resolve_via`"), "{explained}");
    Ok(())
}

/// Everything goes through the tunnel or nowhere, and programs have no name server but the one
/// behind it. The control is a program, which cannot ask the server of the network.
// Works: names
// Recovers: names
// Weakness: 195
#[lab::test]
fn no_lock_and_no_server_behind_the_tunnel_keep_the_name_from_being_found() -> Result<()> {
    const ASK: &str = "import socket\n\
         client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         client.settimeout(1)\n\
         try:\n    client.sendto(bytes.fromhex(\"1234010000010000000000000267770765\
         78616d706c65036e65740000010001\"), (\"10.3.0.1\", 53))\n    \
         print(\"answer\", len(client.recv(512)))\n\
         except OSError as error:\n    print(\"none:\", error)\n";
    let mut bed = Bed::new(&[BEFORE])?;
    let script = bed.pair.mobile.file("ask.py", ASK)?;
    let ask = format!("python3 {}", script.display());
    let answered = bed.pair.mobile.run(&ask)?;
    ensure!(answered.contains("answer"), "without a lock: {answered}");
    let config = bed.config(NAME).replace(
        "remote = [\"10.8.0.0/16\", \"fd00:8::/64\"]",
        "remote = [\"0.0.0.0/0\"]\nleak = \"never\"",
    );
    let config = plain::in_table(&config, "[tunnel]", "dns = [\"10.8.0.53\"]");
    let config = config.replace(
        "local = [\"10.1.0.2/32\", \"fd00:1::2/128\"]",
        "local = [\"10.1.0.2/32\"]",
    );
    let mut mobile = bed.pair.mobile.stratad(&config)?;
    mobile.wait_until("status", DEADLINE, |status| is_up_at(status, BEFORE))?;
    let list = std::fs::read_to_string(bed.pair.mobile.directory().join("resolv.conf"))?;
    ensure!(
        list.contains("10.8.0.53") && !list.contains(SERVER),
        "{list}"
    );
    // The lock and the list of servers outlive the daemon.
    mobile.process().crash()?;
    bed.tell(&[AFTER])?;
    bed.renumber()?;
    let locked = bed.pair.mobile.run(&ask)?;
    ensure!(locked.contains("none:"), "a program can ask: {locked}");
    mobile.start_again()?;
    mobile.wait_until("status", DEADLINE, |status| is_up_at(status, AFTER))?;
    mobile.strata("down office")?;
    let locked = bed.pair.mobile.run(&ask)?;
    ensure!(locked.contains("none:"), "a program can ask: {locked}");
    mobile.strata_text("up office --wait").map(drop)
}

/// The control has no address of before.
// Recovers: names
#[lab::test]
fn without_a_name_server_the_last_good_address_is_used() -> Result<()> {
    let mut bed = Bed::new(&[BEFORE])?;
    let mut mobile = bed.start()?;
    mobile.wait_until("status", DEADLINE, |status| is_up_at(status, BEFORE))?;
    mobile.stop()?;
    bed.dns = None;
    mobile.start_again()?;
    mobile.wait_until("status", DEADLINE, |status| is_up_at(status, BEFORE))?;
    mobile.stop()?;
    let kept = bed.pair.mobile.directory().join("strata.redb.addresses");
    std::fs::remove_file(kept)?;
    mobile.start_again()?;
    mobile.wait_until("status", DEADLINE, |status| {
        !pair::peer(status)["lookup"]["failure"].is_null()
    })?;
    let status = mobile.strata("status")?;
    ensure!(!pair::is_up(&status), "{status}");
    let told = mobile.strata_text("explain office")?;
    ensure!(told.contains("name server 10.3.0.1"), "{told}");
    Ok(())
}

/// The server of the network is none; without the key, the name is not found there.
// Works: names
#[lab::test]
fn another_name_server_can_be_chosen() -> Result<()> {
    let bed = Bed::new(&[BEFORE])?;
    bed.pair
        .mobile
        .file("resolv.conf", "nameserver 10.3.0.99\n")?;
    let mobile = bed.start()?;
    mobile.wait_until("status", DEADLINE, |status| {
        let failure = &pair::peer(status)["lookup"]["failure"];
        failure
            .as_str()
            .is_some_and(|why| why.contains("10.3.0.99"))
    })?;
    let chosen = format!("resolve_via = [\"{SERVER}\"]");
    mobile.change(&plain::in_table(&bed.config(NAME), "[tunnel]", &chosen))?;
    mobile.wait_until("status", DEADLINE, |status| is_up_at(status, BEFORE))?;
    Ok(())
}

/// The gateway finds its licensed node. Before, the name server knows no such name.
// Works: names
// Refuses: names
#[lab::test]
fn a_licensed_node_is_found_by_its_name() -> Result<()> {
    const NODE: &str = "fa.example.net";
    let mut bed = Bed::new(&[BEFORE])?;
    let config = pair::gateway_config(Terms::PLAIN);
    let named = format!("address = \"{NODE}:4500\"");
    let config = config.replace("address = \"192.0.2.2\"", &named);
    let chosen = format!("resolve_via = [\"{SERVER}\"]");
    let config = plain::in_table(&config, "[tunnel]", &chosen);
    let folder = bed.pair.gateway.directory().display();
    let config = format!("{config}[store]\nfile = \"{folder}/strata.redb\"\n");
    bed.gateway.stop()?;
    bed.gateway = bed.pair.gateway.stratad(&config)?;
    let licensed = |status: &Value| -> Value {
        let peers = status["status"]["peers"].as_array();
        let found = peers.and_then(|peers| peers.iter().find(|peer| peer["name"] == "fa"));
        found.cloned().unwrap_or_default()
    };
    bed.gateway.wait_until("status", DEADLINE, |status| {
        let failure = licensed(status)["lookup"]["failure"].clone();
        failure
            .as_str()
            .is_some_and(|why| why.contains("no such name"))
    })?;
    let mut node = bed.pair.start_licensed(pair::LICENSED)?;
    bed.dns()?.set(&format!("192.0.2.2 {NODE}\n"))?;
    bed.gateway.wait_until("status", DEADLINE, |status| {
        licensed(status)["state"] == "up" && licensed(status)["remote"] == "192.0.2.2:4500"
    })?;
    let explained = bed.gateway.strata_text("explain fa")?;
    ensure!(
        explained.contains(&format!("lookup of {NODE}: 192.0.2.2 (says {SERVER})")),
        "{explained}"
    );
    node.process().wait_for_log("peer gw: up", DEADLINE)
}

/// The host between passes no other port, so the control has no answer.
// Works: names
#[lab::test]
fn a_gateway_is_reached_at_its_own_port() -> Result<()> {
    let gateway = pair::gateway_config(Terms::PLAIN) + "[listen]\nnat = 4501\n";
    let bed = Bed::with_gateway(&[BEFORE], &gateway)?;
    for line in [
        "add table inet wall",
        "add chain inet wall forward { type filter hook forward priority 0 ; }",
        "add rule inet wall forward ip daddr 192.0.2.1 udp dport { 500, 4500 } drop",
    ] {
        let mut command = bed.pair.between.command("nft");
        command.arg(line);
        bed.pair.between.run_command(command, DEADLINE)?;
    }
    let mobile = bed
        .pair
        .mobile
        .stratad(&bed.config(&format!("{NAME}:4501")))?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    let status = mobile.strata("status")?;
    ensure!(remote(&status) == format!("{BEFORE}:4501"), "{status}");
    transfer(
        &bed.pair.mobile,
        &bed.pair.gateway,
        pair::GATEWAY[0],
        OCTETS,
    )?;
    mobile.change(&bed.config(NAME))?;
    mobile.wait_until("status", DEADLINE, |status| {
        pair::peer(status)["silent"] == true
    })?;
    bed.gateway.strata("status").map(drop)
}
