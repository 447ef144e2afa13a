//! Several licensed nodes on one path, and licences that change while traffic flows.

use anyhow::{Context, Result, bail, ensure};
use lab::account;
use lab::certified::strata;
use lab::daemon::Daemon;
use lab::emulator::{Emulator, Settings};
use lab::host::Host;
use lab::pair::{
    DEADLINE, GATEWAY, LICENSED, MOBILE, NODE_KEY, TUNNEL_KEY, Terms, Tunnel, gateway_config,
    is_up, licensed_config, mobile_config, names, no_drops, segments,
};
use lab::process::until;
use lab::testbed::Testbed;
use lab::transfer::{connect, transfer};
use lab::volley::volleys;
use lab::wire;
use nix::sys::signal::Signal;
use os::Family;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::time::Duration;

const OCTETS: u64 = 300_000;

/// Identity of the second node, and of a node that is configured but has no licence.
const FB: &str = "fb.example.net";
const FC: &str = "fc.example.net";

const NOBODY: &[(&str, &str)] = &[];
const IP: &str = r#"["ip"]"#;
const BOTH: &str = r#"["ip", "transport"]"#;

/// Three hosts between mobile node and gateway.
struct Chain {
    _bed: Testbed,
    _hop: Option<Emulator>,
    mobile: Host,
    /// The nodes, starting at the mobile node.
    nodes: [Host; 3],
    gateway: Host,
    /// True if nodes may share a key.
    shared: bool,
}

impl Chain {
    fn new(hop: Option<sim::Settings>) -> Result<Self> {
        let bed = Testbed::new("grant")?;
        let (mobile, gateway) = (bed.host("mobile")?, bed.host("gateway")?);
        let nodes = [bed.host("fa")?, bed.host("fb")?, bed.host("fc")?];
        for node in &nodes {
            node.sysctl("net.ipv4.ip_forward", "1")?;
        }
        let [fa, fb, fc] = &nodes;
        let near = mobile.end("eth0", &["10.3.0.2/24"]);
        let far = fa.end("wireless", &["10.3.0.1/24"]);
        let hop = match hop {
            None => wire::veth(near, far).map(|()| None)?,
            Some(hop) => Some(wire::emulated(near, far, Settings::symmetric(hop), 1)?),
        };
        wire::veth(
            fa.end("wired", &["10.4.0.1/24"]),
            fb.end("wireless", &["10.4.0.2/24"]),
        )?;
        wire::veth(
            fb.end("wired", &["10.5.0.1/24"]),
            fc.end("wireless", &["10.5.0.2/24"]),
        )?;
        wire::veth(
            fc.end("wired", &["192.0.2.2/24"]),
            gateway.end("eth0", &["192.0.2.1/24"]),
        )?;
        for (host, prefix, via) in [
            (&mobile, "default", "10.3.0.1"),
            (fa, "default", "10.4.0.2"),
            (fb, "default", "10.5.0.2"),
            (fb, "10.3.0.0/24", "10.4.0.1"),
            (fc, "10.3.0.0/24", "10.5.0.1"),
            (fc, "10.4.0.0/24", "10.5.0.1"),
            (&gateway, "default", "192.0.2.2"),
        ] {
            host.route(prefix, via)?;
        }
        Ok(Self {
            _bed: bed,
            _hop: hop,
            mobile,
            nodes,
            gateway,
            shared: false,
        })
    }

    fn shared(self) -> Self {
        Self {
            shared: true,
            ..self
        }
    }

    /// Returns a configuration with three zones, licences and an audit log.
    fn with(&self, config: String, licences: &[(&str, &str)], host: &Host) -> String {
        let licences = licences.iter().map(|(node, zones)| {
            format!("{{ node = \"{node}\", zones = {zones}, right = \"read\" }}")
        });
        let licences = licences.collect::<Vec<_>>().join(", ");
        let zones = "zones = \"require\"";
        let layout = r#"layout = ["ip", "transport", "payload"]"#;
        let shared = self.shared;
        let terms = format!("{zones}\n{layout}\nlicences = [{licences}]\nshared = {shared}");
        let log = host.directory().join("audit.jsonl");
        format!(
            "{}[audit]\nfile = \"{}\"\nrequired = true\n",
            config.replace(zones, &terms),
            log.display()
        )
    }

    /// Starts all daemons and brings the tunnel up, with these licences at both ends.
    fn start(self, licences: &[(&str, &str)]) -> Result<Scene> {
        for host in [&self.mobile, &self.gateway] {
            host.secret("tunnel.psk", TUNNEL_KEY)?;
        }
        for host in self.nodes.iter().chain([&self.gateway]) {
            host.secret("node.psk", NODE_KEY)?;
        }
        let nodes: Result<Vec<_>> = self
            .nodes
            .iter()
            .zip([LICENSED, FB, FC])
            .map(|(host, identity)| host.stratad(&licensed_config(identity)))
            .collect();
        let gateway = self.gateway.stratad(&self.gateway_config(licences))?;
        let mobile = self.mobile.stratad(&self.mobile_config(licences))?;
        let tunnel = Tunnel { mobile, gateway };
        tunnel.up()?;
        Ok(Scene {
            chain: self,
            nodes: nodes?,
            tunnel,
        })
    }

    fn mobile_config(&self, licences: &[(&str, &str)]) -> String {
        let config = mobile_config(Family::V4, Terms::ZONED, "manual");
        self.with(config, licences, &self.mobile)
    }

    fn gateway_config(&self, licences: &[(&str, &str)]) -> String {
        let config = gateway_config(Terms::ZONED).replace("192.0.2.2", "10.4.0.1");
        let others = [("fb", FB, "10.5.0.1"), ("fc", FC, "192.0.2.2")];
        let others = others.map(|(name, id, address)| {
            format!(
                "[licensed.{name}]\naddress = \"{address}\"\nid = \"{id}\"\npsk = \"node.psk\"\n"
            )
        });
        self.with(config, licences, &self.gateway) + &others.concat()
    }
}

struct Scene {
    chain: Chain,
    nodes: Vec<Daemon>,
    tunnel: Tunnel,
}

impl Scene {
    /// Waits until each node can open exactly these zones; an empty list means that it has no keys.
    /// A node that keeps a licence keeps its old keys for a while.
    fn await_opens(&self, zones: [&[u8]; 3]) -> Result<()> {
        for (node, zones) in self.nodes.iter().zip(zones) {
            node.wait_until("zones", DEADLINE, |answer| {
                let grants = opens(answer);
                let within = |grant: &Vec<u8>| grant.iter().all(|zone| zones.contains(zone));
                let has_all = zones.is_empty() || grants.iter().any(|grant| grant == zones);
                has_all && grants.iter().all(within) && grants.is_empty() == zones.is_empty()
            })?;
        }
        Ok(())
    }

    fn each_way(&self) -> Result<()> {
        let Chain {
            mobile, gateway, ..
        } = &self.chain;
        transfer(mobile, gateway, GATEWAY[0], OCTETS)?;
        transfer(gateway, mobile, MOBILE[0], OCTETS)
    }

    /// Sends datagrams in both directions meanwhile, and fails if one is lost.
    fn flying<T>(&self, meanwhile: impl FnOnce() -> Result<T>) -> Result<T> {
        let ends = (&self.chain.mobile, &self.chain.gateway);
        volleys((ends.0, MOBILE[0]), (ends.1, GATEWAY[0]), meanwhile)
    }

    /// Reloads the gateway's configuration with these licences; returns the output of `strata`.
    fn license_gateway(&self, licences: &[(&str, &str)]) -> Result<String> {
        let config = self.chain.gateway_config(licences);
        self.tunnel.gateway.change(&config)
    }

    fn license_mobile(&self, licences: &[(&str, &str)]) -> Result<String> {
        let config = self.chain.mobile_config(licences);
        self.tunnel.mobile.change(&config)
    }

    /// Returns the events of a daemon's audit log, each with the identity or licences concerned.
    fn story(daemon: &Daemon) -> Result<Vec<(String, String)>> {
        let answer = daemon.strata("audit strata.toml")?;
        let records = answer["audit"].as_array().context("no records")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let story = records.iter().map(|record| {
            let about = match record["event"].as_str() {
                Some("agreed") => &record["licences"],
                _ => &record["identity"],
            };
            let nodes = about.as_array().cloned().unwrap_or_default();
            let nodes = nodes.iter().map(|permit| text(&permit["node"]));
            let nodes = nodes.chain([text(about)]).collect::<Vec<_>>();
            (text(&record["event"]), nodes.join(" ").trim().to_owned())
        });
        Ok(story.collect())
    }
}

/// Returns the serials that each grant of a licensed node opens.
fn opens(zones: &Value) -> Vec<Vec<u8>> {
    let held = zones["zones"]["held"].as_array();
    let opens = held.into_iter().flatten().map(|grant| &grant["opens"]);
    let serials = |opens: &Value| {
        let serials = opens.as_array().into_iter().flatten();
        let serials = serials.filter_map(|zone| u8::try_from(zone.as_u64()?).ok());
        serials.collect()
    };
    opens.map(serials).collect()
}

/// Returns a counter of the packets that passed a node.
fn passed(node: &Daemon, outcome: &str) -> Result<u64> {
    let metrics = node.strata_text("metrics")?;
    let line = metrics.lines().find(|line| {
        line.starts_with("strata_transit_packets_total") && line.contains(&format!("\"{outcome}\""))
    });
    let number = line.and_then(|line| line.rsplit(' ').next());
    Ok(number.context("no such counter")?.parse()?)
}

fn zoned_flows(node: &Daemon) -> Result<usize> {
    let flows = node.strata("flows")?;
    let flows = flows["flows"]["flows"].as_array().cloned();
    let flows = flows.unwrap_or_default();
    Ok(flows.iter().filter(|flow| flow["zoned"] == true).count())
}

// Works: several-licensed-nodes
// Answers: consent-several
#[lab::test]
fn each_of_several_nodes_on_one_path_opens_what_it_may_and_no_more() -> Result<()> {
    let scene = Chain::new(None)?.start(&[(LICENSED, IP), (FB, BOTH)])?;
    scene.await_opens([&[1], &[1, 2], &[]])?;
    let (mut near, mut far) = connect(&scene.chain.mobile, &scene.chain.gateway, GATEWAY[0])?;
    far.write_all(&[7; 10_000])?;
    near.read_exact(&mut [0; 10_000])?;
    scene.each_way()?;
    let [fa, fb, fc] = &scene.nodes[..] else {
        bail!("three nodes");
    };
    ensure!(passed(fa, "opaque")? > 100 && passed(fa, "segment")? == 0);
    ensure!(segments(fb)? > 100 && passed(fb, "unlicensed")? < 10);
    ensure!(passed(fc, "unlicensed")? > 100);
    ensure!(passed(fc, "opaque")? + passed(fc, "segment")? == 0);
    let flows = [zoned_flows(fa)?, zoned_flows(fb)?, zoned_flows(fc)?];
    ensure!(flows[0] == 0 && flows[1] > 0 && flows[2] == 0, "{flows:?}");
    let text = scene.tunnel.gateway.strata_text("zones")?;
    let has = |line: &str| text.lines().any(|shown| shown.contains(line));
    ensure!(
        has("the two ends and fa.example.net (read: has the keys") && has("the two ends and fb"),
        "{text}"
    );
    ensure!(!text.contains(FC), "{text}");
    no_drops(&scene.tunnel.gateway.strata("status")?)
}

// Works: several-licensed-nodes
#[lab::test]
fn the_second_of_two_nodes_repairs_losses_and_the_first_forwards_them() -> Result<()> {
    let hop = sim::Settings {
        rate: std::num::NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(5),
        queue: 100,
        // One in sixteen full packets is lost.
        bit_error_rate: 1.0 / 200_000.0,
    };
    let scene = Chain::new(Some(hop))?.start(&[(LICENSED, IP), (FB, BOTH)])?;
    scene.await_opens([&[1], &[1, 2], &[]])?;
    let Chain {
        mobile, gateway, ..
    } = &scene.chain;
    transfer(gateway, mobile, MOBILE[0], 10 * OCTETS)?;
    let resent = |node: &Daemon| {
        let flows = node.strata("flows")?;
        let count = flows["flows"]["total"]["retransmitted"].as_u64();
        count.context("no count")
    };
    ensure!(resent(&scene.nodes[1])? > 10, "nothing was repaired");
    ensure!(resent(&scene.nodes[0])? == 0 && resent(&scene.nodes[2])? == 0);
    Ok(())
}

// Works: licence-changes
// Answers: end-revocation
#[lab::test]
fn licences_are_given_changed_and_taken_back_and_no_datagram_is_lost() -> Result<()> {
    let scene = Chain::new(None)?.start(NOBODY)?;
    let ike = scene.tunnel.gateway.strata("status")?;
    scene.await_opens([&[], &[], &[]])?;
    scene.flying(|| {
        let all = [(LICENSED, IP), (FB, BOTH)];
        let text = scene.license_mobile(&all)?;
        let line = "~ peer.office.licences [] -> [fa.example.net read ip, fb.example.net read ip, \
                    fb.example.net read transport] (rekeys)";
        ensure!(text.lines().any(|shown| shown == line), "{text}");
        scene.license_gateway(&all)?;
        scene.await_opens([&[1], &[1, 2], &[]])
    })?;
    // The endpoints use the old SA until it is certain that all have the new keys.
    until("the second node reads", DEADLINE, || {
        scene.each_way()?;
        Ok((segments(&scene.nodes[1])? > 100).then_some(()))
    })?;
    // The nodes swap roles: the first one gets the zones that the second one had.
    scene.flying(|| {
        let swapped = [(LICENSED, BOTH)];
        scene.license_gateway(&swapped)?;
        scene.license_mobile(&swapped)?;
        scene.await_opens([&[1, 2], &[], &[]])
    })?;
    let opened = segments(&scene.nodes[1])?;
    scene.each_way()?;
    ensure!(segments(&scene.nodes[1])? == opened, "it still reads");
    until("the first node reads", DEADLINE, || {
        scene.each_way()?;
        Ok((segments(&scene.nodes[0])? > 100).then_some(()))
    })?;
    scene.flying(|| {
        scene.license_gateway(NOBODY)?;
        scene.await_opens([&[], &[], &[]])
    })?;
    for daemon in [&scene.tunnel.gateway, &scene.tunnel.mobile] {
        let status = daemon.strata("status")?;
        ensure!(names(&status) == ["first"] && is_up(&status), "{status}");
        no_drops(&status)?;
    }
    let since = |status: &Value| status["status"]["peers"][0]["since_seconds"].as_u64();
    let now = scene.tunnel.gateway.strata("status")?;
    ensure!(
        since(&now) >= since(&ike),
        "the IKE SA was made anew: {now}"
    );
    let story = Scene::story(&scene.tunnel.gateway)?;
    let place = |event: &str, node: &str| {
        let found = story
            .iter()
            .position(|(what, who)| what == event && who == node);
        found.with_context(|| format!("no {event} of {node}: {story:?}"))
    };
    let both = format!("{LICENSED} {FB}");
    let order = [
        place("agreed", &both)?,
        place("given", FB)?,
        place("accepted", FB)?,
        place("revoked", FB)?,
        place("agreed", LICENSED)?,
    ];
    ensure!(order.is_sorted(), "{order:?}: {story:?}");
    let last = story.iter().rev().find(|(_, who)| who == LICENSED);
    ensure!(last.is_some_and(|(what, _)| what == "revoked"), "{story:?}");
    Ok(())
}

// Refuses: licence-changes
// Answers: end-revocation
#[lab::test]
fn a_licence_that_one_end_takes_back_is_gone_and_both_say_so() -> Result<()> {
    let mut scene = Chain::new(None)?.start(&[(LICENSED, IP), (FB, BOTH)])?;
    scene.await_opens([&[1], &[1, 2], &[]])?;
    scene.flying(|| {
        let text = scene.license_gateway(&[(LICENSED, IP)])?;
        ensure!(text.contains("(rekeys)"), "{text}");
        scene.await_opens([&[1], &[], &[]])?;
        let missed = |zones: &Value| {
            let missed = &zones["zones"]["composites"];
            let composites = missed.as_array().cloned().unwrap_or_default();
            composites
                .iter()
                .any(|csa| csa["not_agreed"][0]["node"] == FB)
        };
        scene.tunnel.mobile.wait_until("zones", DEADLINE, missed)
    })?;
    let text = scene.tunnel.mobile.strata_text("zones")?;
    let line = "not given  fb.example.net (read ip, transport): the peer has no such licence";
    ensure!(text.contains(line), "{text}");
    let explained = scene.tunnel.mobile.strata("explain office")?;
    let row = account::row(&explained["explain"]["attempt"], "licences");
    let theirs = row["theirs"].as_str().unwrap_or_default();
    ensure!(row["verdict"] == "differs" && !theirs.contains(FB), "{row}");
    let story = Scene::story(&scene.tunnel.mobile)?;
    let told = |what: &str| story.contains(&(what.to_owned(), FB.to_owned()));
    ensure!(told("ended") && told("not_agreed"), "{story:?}");
    let Tunnel { mobile, gateway } = &mut scene.tunnel;
    for (daemon, words) in [
        (mobile, "zone 2 to fb.example.net"),
        (
            gateway,
            "fb.example.net lost its licence for the tunnel of alice",
        ),
    ] {
        daemon.process().wait_for_log(words, DEADLINE)?;
    }
    let opened = segments(&scene.nodes[1])?;
    scene.each_way()?;
    ensure!(segments(&scene.nodes[1])? == opened, "it opened packets");
    ensure!(
        passed(&scene.nodes[0], "opaque")? > 100,
        "the other one reads nothing"
    );
    Ok(())
}

/// The gateway sends opaque packets at once, although the SA has not been rekeyed yet.
// Recovers: licence-changes
// Answers: end-silence
#[lab::test]
fn a_node_opens_nothing_while_the_other_end_does_not_answer() -> Result<()> {
    let mut scene = Chain::new(None)?.start(&[(FB, BOTH)])?;
    scene.await_opens([&[], &[1, 2], &[]])?;
    scene.each_way()?;
    let spis = scene.tunnel.spis()?;
    scene.tunnel.mobile.process().signal(Signal::SIGSTOP)?;
    // The node is unreachable for the revocation too, so it keeps its keys.
    let told = scene.chain.nodes[2].clone();
    told.run("ip route add blackhole 10.5.0.1/32")?;
    let before = passed(&scene.nodes[1], "opaque")?;
    scene.license_gateway(NOBODY)?;
    let tap = lab::wiretap::Wiretap::open(&scene.chain.nodes[2])?;
    let socket = scene
        .chain
        .gateway
        .inside(|| Ok(UdpSocket::bind((GATEWAY[0], 0))?))?;
    for _ in 0..50 {
        socket.send_to(b"nobody else reads this", (MOBILE[0], 9))?;
    }
    let node = &scene.nodes[1];
    until("the datagrams", DEADLINE, || {
        Ok((passed(node, "opaque")? >= before + 50).then_some(()))
    })?;
    ensure!(opens(&node.strata("zones")?) == [[1, 2]], "it was told");
    let mut sealed = 0;
    while let Some(seen) = tap.next()? {
        if let Some(runs) = runs(&seen.octets) {
            ensure!(runs == 1, "a packet shows {runs} zones");
            sealed += 1;
        }
    }
    ensure!(sealed >= 50, "only {sealed} sealed packets passed");
    told.run("ip route del blackhole 10.5.0.1/32")?;
    scene.tunnel.mobile.process().signal(Signal::SIGCONT)?;
    until("new keys at both ends", DEADLINE, || {
        let now = scene.tunnel.spis()?;
        let new = now
            .iter()
            .zip(&spis)
            .all(|(now, old)| now.iter().any(|spi| !old.contains(spi)));
        Ok(new.then_some(()))
    })?;
    scene.await_opens([&[], &[], &[]])?;
    scene.each_way()
}

/// Returns the number of runs in the map of a sealed packet in UDP. IKE messages start with four
/// zero octets.
fn runs(octets: &[u8]) -> Option<u8> {
    const TO_ESP: usize = 20 + 8;
    let [17, ..] = octets.get(9..)? else {
        return None;
    };
    let spi: [u8; 4] = *octets.get(TO_ESP..)?.first_chunk()?;
    let count = octets.get(TO_ESP + 8)? & 0x0f;
    (spi != [0; 4]).then_some(count)
}

// Refuses: several-licensed-nodes
// Refuses: shared-licences
// Answers: consent-several
#[lab::test]
fn two_nodes_that_would_share_a_key_are_refused_with_what_to_do() -> Result<()> {
    let scene = Chain::new(None)?.start(NOBODY)?;
    let before = scene.tunnel.spis()?;
    for (licences, zone) in [
        ([(LICENSED, BOTH), (FB, BOTH)], "transport"),
        ([(LICENSED, IP), (FB, IP)], "ip"),
    ] {
        let Err(refused) = scene.license_gateway(&licences) else {
            bail!("it was taken");
        };
        let refused = format!("{refused:?}");
        for words in [
            format!(
                "peer.alice.licences: fa.example.net and fb.example.net would share the key of `{zone}`"
            ),
            "license one of them, or split `layout`".to_owned(),
        ] {
            ensure!(refused.contains(&words), "{refused}");
        }
    }
    ensure!(scene.tunnel.spis()? == before, "something changed");
    Ok(())
}

/// A rekey gives no new keys to a node that has lost its licence.
// Works: shared-licences
// Recovers: shared-licences
// Answers: consent-several
#[lab::test]
fn two_nodes_share_a_key_where_both_ends_say_so() -> Result<()> {
    let both = [(LICENSED, BOTH), (FB, BOTH)];
    let scene = Chain::new(None)?.shared().start(&both)?;
    scene.await_opens([&[1, 2], &[1, 2], &[]])?;
    scene.each_way()?;
    for node in &scene.nodes[..2] {
        ensure!(segments(node)? > 100, "a node reads nothing");
    }
    let said = strata(&scene.chain.gateway, "check strata.toml")?;
    let words = "fa.example.net and fb.example.net share the key of `transport` of alice";
    ensure!(said.contains(words), "{said}");
    scene.flying(|| {
        scene.license_mobile(&both[..1])?;
        scene.await_opens([&[1, 2], &[], &[]])
    })?;
    let opened = segments(&scene.nodes[1])?;
    scene.each_way()?;
    ensure!(segments(&scene.nodes[1])? == opened, "it opened packets");
    Ok(())
}
