//! `strata status` of many peers, on a terminal and in a file, and the pages that `strata help`
//! shows.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{DEADLINE, Pair, Terms, gateway_config};
use lab::plain;
use lab::process::until;
use std::fmt::Write;
use std::time::Instant;

/// Peers of the gateway that are never up, beside the mobile node.
const MANY: usize = 10_000;

/// Returns the configuration of a gateway with this number of further peers.
fn with_peers(count: usize) -> String {
    let mut text = gateway_config(Terms::PLAIN);
    for number in 0..count {
        let (high, low) = (number / 250, number % 250);
        let _ = write!(
            text,
            "[peer.u{number}]\nid = \"u{number}@example.net\"\npsk = \"tunnel.psk\"\n\
             local = [\"10.8.0.0/16\"]\nremote = [\"10.77.{high}.{low}/32\"]\n"
        );
    }
    text
}

/// Returns the lines of the table of peers.
fn table(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| !line.starts_with("peer "));
    lines
        .skip(1)
        .take_while(|line| !line.contains(" peers: "))
        .collect()
}

/// The requests take turns with packets, so that both are served.
// Works: overview
#[lab::test]
fn ten_thousand_peers_are_listed_while_packets_pass() -> Result<()> {
    let pair = Pair::new("overview")?;
    let [mobile, _] = plain::configs("", "");
    let tunnel = plain::start_with(&pair, &[mobile, with_peers(MANY)])?;
    tunnel.up()?;
    let gateway = &tunnel.gateway;
    let text = std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let begun = Instant::now();
            let text = gateway.strata_text("status");
            // For the reader of the log: machines of tests differ.
            eprintln!("{MANY} peers took {:?}", begun.elapsed());
            text
        });
        let mut rounds = 0;
        while !asked.is_finished() || rounds == 0 {
            plain::carry(&pair)?;
            rounds += 1;
        }
        asked.join().expect("it does not panic")
    })?;
    let lines = table(&text);
    // The mobile node comes first, and the licensed node last.
    ensure!(lines.len() == MANY + 2, "{} lines", lines.len());
    for (place, begin) in [
        (0, "alice "),
        (1, "u0 "),
        (3, "u2 "),
        (11, "u10 "),
        (MANY, "u9999 "),
        (MANY + 1, "fa (licensed) "),
    ] {
        ensure!(lines[place].starts_with(begin), "{}", lines[place]);
    }
    ensure!(lines[0].contains("  up "), "{}", lines[0]);
    let summary = text
        .lines()
        .find(|line| line.starts_with("10,002 peers: 1 up, "));
    let summary = summary.context("no summary")?;
    // The licensed node is not there, and is tried.
    let counts = ["10,000 down", "10,001 down"];
    ensure!(
        counts.iter().any(|count| summary.ends_with(count)),
        "{summary}"
    );
    let all = gateway.strata("status")?;
    let peers = all["status"]["peers"].as_array().context("no peers")?;
    ensure!(peers.len() == MANY + 2 && all["status"]["next"].is_null());
    selects(gateway)
}

/// Names, patterns and states select peers, also in JSON.
fn selects(gateway: &Daemon) -> Result<()> {
    let some = gateway.strata("status u12* alice --state down")?;
    let some = some["status"]["peers"].as_array().context("no peers")?;
    ensure!(some.len() == 111, "{}", some.len());
    let text = gateway.strata_text("status u99? --state down")?;
    ensure!(
        table(&text).len() == 10 && text.contains("\n10 peers: 10 down\n"),
        "{text}"
    );
    let text = gateway.strata_text("status --state up")?;
    ensure!(
        text.contains("\n1 peer: 1 up\n") && text.contains("\nalice  up "),
        "{text}"
    );
    let text = gateway.strata_text("status alice u7")?;
    ensure!(text.contains("\npeer alice  up for ") && text.contains("\npeer u7  down\n"));
    ensure!(
        text.contains("  carries   10.8.0.0/16, fd00:8::/64 <-> 10.1.0.2/32, "),
        "{text}"
    );
    Ok(())
}

// Refuses: overview
#[lab::test]
fn an_unknown_peer_is_refused_with_those_that_are_like_it() -> Result<()> {
    let pair = Pair::new("overview")?;
    let [mobile, _] = plain::configs("", "");
    let tunnel = plain::start_with(&pair, &[mobile, with_peers(100)])?;
    let gateway = &tunnel.gateway;
    let Err(refusal) = gateway.strata_text("status alise u1") else {
        anyhow::bail!("it was not refused");
    };
    let refusal = format!("{refusal:#}");
    ensure!(refusal.contains("no peer named alise"), "{refusal}");
    ensure!(refusal.contains("name one of: alice, "), "{refusal}");
    ensure!(
        refusal.contains("`strata status`") && refusal.len() < 1000,
        "{refusal}"
    );
    gateway.refuses(
        "status --state gone",
        "possible values: up, connecting, down, silent",
    )?;
    // A pattern may fit nothing.
    let text = gateway.strata_text("status x*")?;
    ensure!(text.ends_with("\nno peers\n"), "{text}");
    Ok(())
}

#[lab::test]
fn rates_are_those_of_the_last_seconds() -> Result<()> {
    let pair = Pair::new("overview")?;
    let tunnel = plain::start(&pair, "", "")?;
    tunnel.up()?;
    let rates = |daemon: &Daemon| -> Result<[u64; 2]> {
        let status = daemon.strata("status")?;
        let child = &status["status"]["peers"][0]["children"][0];
        let rate = |key: &str| child[key].as_u64().with_context(|| format!("{status}"));
        Ok([rate("received_per_second")?, rate("sent_per_second")?])
    };
    ensure!(rates(&tunnel.mobile)? == [0, 0], "nothing was carried");
    plain::carry(&pair)?;
    // A megabyte each way within the last eight seconds, unless the machine is very slow.
    let [received, sent] = rates(&tunnel.mobile)?;
    ensure!(received > 50_000 && sent > 50_000, "{received}, {sent}");
    ensure!(
        received < 20_000_000 && sent < 20_000_000,
        "{received}, {sent}"
    );
    let text = tunnel.mobile.strata_text("status")?;
    ensure!(
        text.contains("bit/s  0 s ago") || text.contains("bit/s  1 s ago"),
        "{text}"
    );
    until("the end of the traffic", DEADLINE, || {
        Ok((rates(&tunnel.mobile)? == [0, 0]).then_some(()))
    })
}

/// Returns true if a screen shows the mobile node in a state.
fn is(screen: &str, state: &str) -> bool {
    let mut lines = screen.lines();
    lines.any(|line| line.split_whitespace().take(2).eq(["alice", state]))
}

/// A terminal of 40 columns and 8 lines. tmux interprets what is written to it.
// Recovers: overview
#[lab::test]
fn what_is_watched_fits_the_terminal_and_follows_the_daemon() -> Result<()> {
    let pair = Pair::new("overview")?;
    let [mobile, _] = plain::configs("", "");
    let mut tunnel = plain::start_with(&pair, &[mobile, with_peers(20)])?;
    tunnel.up()?;
    let host = &pair.gateway;
    let tmux = format!(
        "tmux -f /dev/null -S {}",
        host.directory().join("tmux").display()
    );
    let status = tunnel.gateway.command("status --watch")?;
    let words = std::iter::once(status.get_program()).chain(status.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    host.run(&format!(
        "{tmux} new-session -d -x 40 -y 8 {}",
        words.join(" ")
    ))?;
    let screen = |what: &str, has: &dyn Fn(&str) -> bool| {
        until(what, DEADLINE, || {
            let screen = host.run(&format!("{tmux} capture-pane -p"))?;
            Ok(has(&screen).then_some(screen))
        })
    };
    let first = screen("the peers", &|screen| screen.contains("alice "))?;
    let lines: Vec<_> = first.lines().collect();
    ensure!(lines[0].starts_with("gw.example.net"), "{first}");
    ensure!(
        lines.iter().all(|line| line.chars().count() <= 40),
        "{first}"
    );
    ensure!(is(&first, "up") && first.contains("…"), "{first}");
    ensure!(first.contains("more lines; name peers"), "{first}");
    tunnel.mobile.strata_text("down office")?;
    screen("the end of the tunnel", &|screen| is(screen, "down"))?;
    tunnel.gateway.stop()?;
    screen("the end of the daemon", &|screen| {
        screen.contains("error: no stratad listens")
    })?;
    tunnel.gateway.start_again()?;
    screen("the daemon again", &|screen| is(screen, "down"))?;
    host.run(&format!("{tmux} kill-server")).map(drop)
}

// Works: manual
// Refuses: manual
#[lab::test]
fn pages_for_operators_are_shown_in_the_terminal() -> Result<()> {
    let pair = Pair::new("overview")?;
    let strata = lab::testbed::find_binary("strata")?;
    let run = |words: &str| pair.mobile.run(&format!("{} {words}", strata.display()));
    let list = run("help")?;
    ensure!(
        list.contains("  no-traffic  ") && list.contains("  reference/metrics  "),
        "{list}"
    );
    ensure!(list.contains("\n  status   "), "{list}");
    let page = run("help no-traffic")?;
    ensure!(
        page.starts_with("No traffic\n\nFind out why a tunnel is down"),
        "{page}"
    );
    ensure!(!page.contains("<!--") && !page.contains("|---|"), "{page}");
    let help = run("help status")?;
    ensure!(
        help.contains("Usage: strata status [OPTIONS] [PEER]..."),
        "{help}"
    );
    let json: serde_json::Value = serde_json::from_str(&run("help mtu --json")?)?;
    ensure!(json["topic"] == "mtu" && json["text"].is_string(), "{json}");
    let Err(refusal) = run("help no-trafic") else {
        anyhow::bail!("it was not refused");
    };
    ensure!(
        format!("{refusal:?}").contains("did you mean `no-traffic`?"),
        "{refusal:?}"
    );
    Ok(())
}
