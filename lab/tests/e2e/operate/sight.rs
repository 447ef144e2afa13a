//! What the log, the metrics and the status show of peers: each message, each drop, and when each
//! was heard last.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{
    DEADLINE, GATEWAY, LICENSED, MOBILE, Pair, Terms, Tunnel, children, gateway_config, is_up,
    licensed_config, mobile_config,
};
use lab::plain;
use lab::process::until;
use lab::transfer::transfer;
use lab::tshark;
use lab::wiretap::{Seen, Wiretap, write_capture};
use nix::sys::signal::Signal;
use os::Family;
use serde_json::Value;
use std::net::UdpSocket;
use std::time::{Duration, SystemTime};

/// Payload of the last packet of a capture.
const MARKER: &str = "the last packet";

/// Outer addresses of the mobile node and the gateway.
const OUTER: [&str; 2] = ["10.3.0.2", "192.0.2.1"];

/// Starts both daemons with this level of the log, and the tunnel.
fn start(pair: &Pair, level: &str) -> Result<Tunnel> {
    let configs = plain::configs("", "").map(|text| format!("{text}[log]\nlevel = \"{level}\"\n"));
    plain::start_with(pair, &configs)
}

/// Sends one datagram from an address of a host.
fn send(host: &Host, from: &str, payload: &[u8], to: &str) -> Result<()> {
    host.inside(|| {
        UdpSocket::bind((from, 0))?.send_to(payload, to)?;
        Ok(())
    })
}

/// Returns the lines of a log that have one of these words.
fn lines(daemon: &Daemon, words: &[&str]) -> Result<Vec<String>> {
    let log = std::fs::read_to_string(daemon.log_path())?;
    let wanted = |line: &&str| words.iter().any(|word| line.contains(word));
    Ok(log.lines().filter(wanted).map(str::to_owned).collect())
}

/// tshark counts the messages on the wire.
// Works: failures
#[lab::test]
fn at_debug_each_ike_message_is_one_line_at_both_ends() -> Result<()> {
    let pair = Pair::new("sight")?;
    let tap = Wiretap::open(&pair.between)?;
    let mut tunnel = start(&pair, "debug")?;
    tunnel.up()?;
    tunnel.rekey(1)?;
    tunnel.mobile.strata_text("down office")?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let has_none = |status: &Value| children(status).is_empty();
        daemon.wait_until("status", DEADLINE, has_none)?;
    }
    send(&pair.mobile, OUTER[0], MARKER.as_bytes(), "192.0.2.1:9")?;
    let seen = tap.read_until(DEADLINE, |seen| {
        seen.has_text(MARKER) && seen.source.to_string() == OUTER[0]
    })?;
    let folder = pair.mobile.directory();
    write_capture(&folder.join("wire.pcap"), &seen)?;
    let messages = |from: &str, to: &str| -> Result<usize> {
        let filter = format!("isakmp && ip.src == {from} && ip.dst == {to}");
        let messages = tshark::fields(
            &pair.mobile,
            folder,
            "wire.pcap",
            &[],
            &filter,
            "isakmp.messageid",
        )?;
        // The tap sees each packet on both wires.
        Ok(messages.len() / 2)
    };
    let count =
        |daemon: &Daemon, words: &str| Ok::<_, anyhow::Error>(lines(daemon, &[words])?.len());
    let (mobile, gateway) = (&tunnel.mobile, &tunnel.gateway);
    let (near, far) = ((mobile, "office", OUTER[0]), (gateway, "alice", OUTER[1]));
    for [(sender, whose, from), (receiver, name, to)] in [[near, far], [far, near]] {
        let on_the_wire = messages(from, to)?;
        // IKE_SA_INIT, IKE_AUTH, a rekey and a Delete.
        ensure!(on_the_wire >= 4, "{from}: {on_the_wire}");
        // A gateway learns who the peer is in IKE_AUTH.
        let all = |daemon: &Daemon, name: &str, what: &str| -> Result<usize> {
            let known = count(daemon, &format!("peer {name}: {what} "))?;
            Ok(known + count(daemon, &format!("unidentified host: {what} "))?)
        };
        let told = [
            all(sender, whose, "sent")?,
            all(receiver, name, "received")?,
        ];
        ensure!(told == [on_the_wire; 2], "{from}: {on_the_wire}, {told:?}");
    }
    // Negative control: without the level there is none.
    let quiet = plain::configs("", "");
    tunnel.mobile.change(&quiet[0])?;
    let before = count(&tunnel.mobile, "peer office: sent ")?;
    tunnel.up()?;
    let after = count(&tunnel.mobile, "peer office: sent ")?;
    ensure!(before == after, "{before} lines, then {after}");
    Ok(())
}

// Works: failures
#[lab::test]
fn at_trace_the_drops_of_a_peer_are_found_by_its_name() -> Result<()> {
    let pair = Pair::new("sight")?;
    let tunnel = start(&pair, "trace")?;
    // No SA yet: the table covers the packet.
    send(
        &pair.mobile,
        MOBILE[0],
        b"early",
        &format!("{}:9", GATEWAY[0]),
    )?;
    tunnel.up()?;
    let status = tunnel.mobile.strata("status")?;
    let children = children(&status);
    let spi = children[0]["spi_out"].as_str().context("an SPI")?;
    let spi = u32::from_str_radix(spi, 16)?;
    // Forgeries, one on the SA and one on none.
    let forged = |spi: u32| [&spi.to_be_bytes()[..], &[0, 0, 0, 99], &[7; 40]].concat();
    for spi in [spi, spi ^ 1] {
        send(&pair.between, "192.0.2.2", &forged(spi), "192.0.2.1:4500")?;
    }
    let drops = |daemon: &Daemon, about: &str, count: usize| {
        until("lines about drops", DEADLINE, || {
            let told = lines(daemon, &["dropped a"])?;
            let told = told.into_iter().filter(|line| line.contains(about));
            let told: Vec<_> = told.collect();
            Ok((told.len() >= count).then_some(told))
        })
    };
    let early = drops(&tunnel.mobile, "10.8.0.1 port 9", 1)?;
    ensure!(
        early[0].contains("peer office: dropped a datagram of"),
        "{early:?}"
    );
    let forged = drops(&tunnel.gateway, "an ESP packet", 2)?;
    let [on_the_sa, on_none] = [spi, spi ^ 1].map(|spi| format!("SPI {spi:08x}"));
    let line = |spi: &str| forged.iter().find(|line| line.contains(spi));
    let line = |spi: &str| line(spi).with_context(|| format!("no {spi}: {forged:?}"));
    ensure!(
        line(&on_the_sa)?.contains("peer alice: dropped an ESP packet"),
        "{forged:?}"
    );
    ensure!(!line(&on_none)?.contains("peer alice"), "{forged:?}");
    Ok(())
}

/// The gateway has lines about alice, about other peers, or about all, in each direction. A packet
/// on no SA is about none of them.
// Works: failures
#[lab::test]
fn messages_and_drops_are_logged_for_one_peer_where_that_is_wanted() -> Result<()> {
    let pair = Pair::new("sight")?;
    let [mobile, plain] = plain::configs("", "");
    let config = |peers: &str| format!("{plain}[log]\nlevel = \"trace\"\n{peers}\n");
    let tunnel = plain::start_with(&pair, &[mobile, config("peers = [\"fa\"]")])?;
    let gateway = &tunnel.gateway;
    let messages = || lines(gateway, &[": sent ", ": received "]);
    let drops = || lines(gateway, &["dropped an ESP packet"]);
    let forge = |spi: u32| {
        let forged = [&spi.to_be_bytes()[..], &[0, 0, 0, 99], &[7; 40]].concat();
        send(&pair.between, "192.0.2.2", &forged, "192.0.2.1:4500")
    };
    let up_and_attacked = || -> Result<()> {
        tunnel.up()?;
        let status = tunnel.mobile.strata("status")?;
        let children = children(&status);
        let spi = children[0]["spi_out"].as_str().context("an SPI")?;
        let spi = u32::from_str_radix(spi, 16)?;
        let before = dropped(gateway)?;
        forge(spi)?;
        forge(spi ^ 1)?;
        until("the drops", DEADLINE, || {
            Ok((dropped(gateway)? >= before + 2).then_some(()))
        })?;
        tunnel.mobile.strata_text("down office").map(drop)
    };
    up_and_attacked()?;
    let change = gateway.change(&config("peers = [\"al*\"]"))?;
    let line = "~ log.peers [fa] -> [al*] (applied)";
    ensure!(change.contains(line), "{change}");
    let about_others = [messages()?, drops()?].concat();
    let is_about_alice = |line: &String| line.contains("peer alice: ");
    ensure!(!about_others.iter().any(is_about_alice), "{about_others:?}");
    up_and_attacked()?;
    for mut lines in [messages()?, drops()?] {
        lines.retain(|line| !about_others.contains(line));
        ensure!(
            !lines.is_empty() && lines.iter().all(is_about_alice),
            "{lines:?}"
        );
    }
    // Control: without the key, lines are about all.
    gateway.change(&config(""))?;
    up_and_attacked()?;
    for lines in [messages()?, drops()?] {
        ensure!(!lines.iter().all(is_about_alice), "{lines:?}");
    }
    gateway.configure(&config("peers = [\"alise\"]"))?;
    gateway.refuses("reload", "did you mean `alice`?")
}

/// Returns the number of packets that a daemon dropped as forged or on no SA.
fn dropped(daemon: &Daemon) -> Result<u64> {
    let status = daemon.strata("status")?;
    let drops = status["status"]["drops"].as_object().context("drops")?;
    Ok(drops.values().filter_map(Value::as_u64).sum())
}

/// Type of a notify payload, and of the notify that contains a cookie (RFC 7296 section 2.6).
const NOTIFY: u8 = 41;
const COOKIE: [u8; 2] = 16_390_u16.to_be_bytes();

/// A host repeats the mobile node's first message as that of other initiators, and counts the
/// answers that ask for a cookie.
// Works: failures
// Weakness: 176
#[lab::test]
fn at_debug_a_first_message_that_has_to_return_with_a_cookie_is_one_line_too() -> Result<()> {
    const MESSAGES: u8 = 20;
    let pair = Pair::new("sight")?;
    let tap = Wiretap::open(&pair.between)?;
    let tunnel = start(&pair, "debug")?;
    tunnel.up()?;
    let is_first = |seen: &Seen| {
        let message = seen
            .ike()
            .is_some_and(|message| message.get(18) == Some(&34));
        message && seen.source.to_string() == OUTER[0]
    };
    let seen = tap.read_until(DEADLINE, is_first)?;
    let first = seen.last().and_then(Seen::ike).context("a message")?;
    let mut first = first.to_vec();
    let received = |daemon: &Daemon| {
        let words = "unidentified host: received IKE_SA_INIT request 0";
        Ok::<_, anyhow::Error>(lines(daemon, &[words])?.len())
    };
    let before = received(&tunnel.gateway)?;
    ensure!(before == 1, "{before} lines about one message");
    let cookies = pair.between.inside(|| {
        let socket = UdpSocket::bind(("192.0.2.2", 0))?;
        socket.set_read_timeout(Some(DEADLINE))?;
        let mut cookies = 0;
        for number in 1..=MESSAGES {
            first[..2].copy_from_slice(&[number, 0xff]);
            socket.send_to(&first, "192.0.2.1:500")?;
            let mut answer = [0; 1500];
            let length = socket.recv(&mut answer)?;
            let answer = &answer[..length];
            cookies += u8::from(answer[16] == NOTIFY && answer[34..36] == COOKIE);
        }
        Ok(cookies)
    })?;
    // The first ones need no cookie.
    ensure!((1..MESSAGES).contains(&cookies), "{cookies} cookies");
    let told = received(&tunnel.gateway)? - before;
    ensure!(
        told == usize::from(MESSAGES),
        "{told} lines, {cookies} cookies"
    );
    Ok(())
}

/// The mobile node's daemon loses packets, as a wireless link would.
// Works: failures
// Weakness: 176
#[lab::test]
fn at_trace_a_licensed_node_tells_of_acknowledgements_that_it_suppresses() -> Result<()> {
    let pair = Pair::new("sight")?;
    let config = |level: &str| format!("{}[log]\nlevel = \"{level}\"\n", licensed_config(LICENSED));
    let licensed = pair.start_licensed_as(&config("debug"))?;
    let configs = [
        mobile_config(Family::V4, Terms::LICENSED, "manual"),
        gateway_config(Terms::LICENSED),
    ];
    let faults: &[&str] = &["--faults", "seed=1,only=esp,in.drop=5"];
    let tunnel = plain::start_told(&pair, &configs, [faults, &[]])?;
    tunnel.up()?;
    licensed.wait_until("zones", DEADLINE, |zones| {
        zones["zones"]["held"]
            .as_array()
            .is_some_and(|held| held.len() == 1)
    })?;
    // Held acknowledgements are sent later, if a later one does not take their place.
    let suppressed = || -> Result<usize> {
        transfer(&pair.gateway, &pair.mobile, MOBILE[0], 2_000_000)?;
        let metrics = licensed.strata_text("metrics")?;
        let count = |action: &str| {
            let begin = format!("strata_snoop_segments_total{{action=\"{action}\"}} ");
            let value = metrics.lines().find_map(|line| line.strip_prefix(&begin));
            value
                .with_context(|| begin.clone())?
                .parse::<usize>()
                .context(begin)
        };
        Ok(count("suppressed")? + count("held")?)
    };
    let told = || Ok::<_, anyhow::Error>(lines(&licensed, &["dropped a packet in transit"])?.len());
    // Negative control: there are acknowledgements to tell of, but not at this level.
    let before = suppressed()?;
    ensure!(before > 0 && told()? == 0, "{before} were suppressed");
    licensed.change(&config("trace"))?;
    let more = suppressed()? - before;
    let told = told()?;
    ensure!((1..=more).contains(&told), "{told} lines about {more}");
    // A quota limits the lines.
    ensure!(told == more || told >= 64, "{told} lines about {more}");
    Ok(())
}

/// Returns the value of a metric of a peer.
fn metric(daemon: &Daemon, name: &str, peer: &str) -> Result<Option<i64>> {
    let text = daemon.strata_text("metrics")?;
    let begin = format!("strata_{name}{{peer=\"{peer}\"}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&begin));
    Ok(value.map(str::parse).transpose()?)
}

fn seconds() -> Result<i64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(i64::try_from(now.as_secs())?)
}

/// A monitor sees a peer that is gone before the tunnel is given up.
// Works: failures
#[lab::test]
fn metrics_and_status_tell_when_a_peer_was_heard_and_that_it_is_silent() -> Result<()> {
    let pair = Pair::new("sight")?;
    let mut tunnel = start(&pair, "info")?;
    let gateway = &tunnel.gateway;
    let [up, silent, heard] = [
        "peer_up",
        "peer_silent",
        "peer_last_heard_timestamp_seconds",
    ];
    ensure!(metric(gateway, up, "alice")? == Some(0));
    ensure!(
        metric(gateway, heard, "alice")?.is_none(),
        "heard before it came"
    );
    let begun = seconds()?;
    tunnel.up()?;
    ensure!(metric(gateway, up, "alice")? == Some(1));
    ensure!(metric(gateway, silent, "alice")? == Some(0));
    let at = metric(gateway, heard, "alice")?.context("no time")?;
    ensure!(
        (begun - 1..=seconds()?).contains(&at),
        "{at}, begun {begun}"
    );
    let status =
        |of: &Daemon| Ok::<_, anyhow::Error>(of.strata("status")?["status"]["peers"][0].clone());
    let shown = status(gateway)?;
    ensure!(
        shown["silent"] == false && shown["heard_seconds"].is_u64(),
        "{shown}"
    );
    // It goes on to be heard, by liveness checks.
    let later = || Ok(metric(gateway, heard, "alice")?.filter(|later| *later > at));
    until("the peer to be heard again", DEADLINE, later)?;
    tunnel.mobile.process().signal(Signal::SIGSTOP)?;
    let gateway = &tunnel.gateway;
    let is_silent = || Ok((metric(gateway, silent, "alice")? == Some(1)).then_some(()));
    until("the peer to be silent", DEADLINE, is_silent)?;
    let last = metric(gateway, heard, "alice")?.context("no time")?;
    ensure!(seconds()? - last >= 1, "silent, but heard {last}");
    let shown = status(gateway)?;
    ensure!(shown["silent"] == true, "{shown}");
    ensure!(gateway.strata_text("status")?.contains("silent"));
    tunnel.mobile.process().signal(Signal::SIGCONT)?;
    let gateway = &tunnel.gateway;
    let is_heard = || {
        let silent = metric(gateway, silent, "alice")?;
        let later = metric(gateway, heard, "alice")?;
        Ok((silent == Some(0) && later > Some(last)).then_some(()))
    };
    until("the peer to be heard", Duration::from_secs(60), is_heard)?;
    let peers: Value = tunnel.gateway.strata("status")?;
    ensure!(is_up(&peers), "{peers}");
    Ok(())
}
