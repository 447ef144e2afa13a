//! Several threads for sealing and opening (`workers` in `[tunnel]`): their run time in the kernel,
//! and correct results for every packet.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{self, DEADLINE, GATEWAY, LICENSED, MOBILE, Pair, Terms, Tunnel, refusal};
use lab::plain;
use lab::process::until;
use lab::transfer::transfer;
use lab::volley::volleys;
use os::Family;
use serde_json::Value;
use std::fs;
use std::num::NonZeroU64;
use std::time::Duration;

const MB: u64 = 1_000_000;

/// Connections in each direction. The chance that all use one queue, or one tunnel, is 1 in 2^15.
const FLOWS: usize = 16;

const TWO: &str = "workers = 2";

/// A tunnel for the host between.
const OWN: &str = r#"
[peer.bob]
id = "bob@example.net"
psk = "tunnel.psk"
local = ["10.9.0.0/16"]
remote = ["10.77.0.0/16"]
"#;

/// Kernel name of the thread next to the main one.
const BESIDE: &str = "worker 1";

fn configs(terms: Terms<'_>, lines: [&str; 2]) -> [String; 2] {
    let ends = [
        pair::mobile_config(Family::V4, terms, "manual"),
        pair::gateway_config(terms),
    ];
    [0, 1].map(|end| plain::in_table(&ends[end], "[tunnel]", lines[end]))
}

fn start(pair: &Pair, terms: Terms<'_>, lines: [&str; 2]) -> Result<Tunnel> {
    let tunnel = plain::start_with(pair, &configs(terms, lines))?;
    tunnel.up()?;
    Ok(tunnel)
}

/// Waits until both ends have exactly the tunnels of these names.
fn await_names(tunnel: &Tunnel, names: &[&str]) -> Result<()> {
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let named = |status: &Value| {
            pair::names(status) == names && pair::children(status).len() == names.len()
        };
        daemon.wait_until("status", DEADLINE, named)?;
    }
    Ok(())
}

/// Starts two threads at both ends, with a tunnel for each.
fn two(pair: &Pair, terms: Terms<'_>) -> Result<Tunnel> {
    let tunnel = start(pair, terms, [TWO; 2])?;
    await_names(&tunnel, &["#2", "first"])?;
    Ok(tunnel)
}

fn carry(pair: &Pair) -> Result<()> {
    for _ in 0..FLOWS {
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
        transfer(&pair.gateway, &pair.mobile, MOBILE[0], MB)?;
    }
    Ok(())
}

/// Returns the run time of a daemon's thread of this name.
fn run_time(daemon: &Daemon, name: &str) -> Result<Option<Duration>> {
    for task in fs::read_dir(format!("/proc/{}/task", daemon.pid()))? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.trim_end() == name {
            let times = fs::read_to_string(task.join("schedstat"))?;
            let running = times.split(' ').next().unwrap_or_default().parse()?;
            return Ok(Some(Duration::from_nanos(running)));
        }
    }
    Ok(None)
}

/// Waits until a daemon has a second thread, or none. A new thread names itself.
fn await_second(daemon: &Daemon, expected: bool) -> Result<()> {
    until("a second thread, or its end", DEADLINE, || {
        let is_there = run_time(daemon, BESIDE)?.is_some();
        Ok((is_there == expected).then_some(()))
    })
}

/// Transfers flows, and fails unless the second thread runs at both ends. A megabyte takes longer
/// than this limit on any machine.
fn carry_by_both(pair: &Pair, tunnel: &Tunnel) -> Result<()> {
    carry_with(pair, tunnel, Duration::from_millis(1))
}

/// The same with a limit on the minimum run time.
fn carry_with(pair: &Pair, tunnel: &Tunnel, least: Duration) -> Result<()> {
    let ends = [&tunnel.mobile, &tunnel.gateway];
    let times = || -> Result<Vec<_>> { ends.iter().map(|end| run_time(end, BESIDE)).collect() };
    let before = times()?;
    carry(pair)?;
    let after = times()?;
    for (before, after) in before.into_iter().zip(after) {
        let ran = after
            .unwrap_or_default()
            .checked_sub(before.unwrap_or_default());
        let enough = ran.is_some_and(|ran| ran > least);
        ensure!(enough, "it ran for {ran:?}");
    }
    Ok(())
}

fn no_drops(tunnel: &Tunnel) -> Result<()> {
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        pair::no_drops(&daemon.strata("status")?)?;
    }
    Ok(())
}

// Works: threads
#[lab::test]
fn each_thread_carries_flows_on_a_tunnel_of_its_own() -> Result<()> {
    let pair = Pair::new("workers")?;
    let tunnel = two(&pair, Terms::PLAIN)?;
    carry_by_both(&pair, &tunnel)?;
    for children in tunnel.children()? {
        let carried = |child: &Value| child["sent"]["octets"].as_u64() > Some(MB / 2);
        ensure!(children.iter().all(carried), "{children:?}");
    }
    no_drops(&tunnel)
}

/// Control of all tests that look at threads.
// Refuses: threads
#[lab::test]
fn where_nobody_wants_several_there_is_one_thread() -> Result<()> {
    let pair = Pair::new("workers")?;
    let tunnel = start(&pair, Terms::PLAIN, ["", ""])?;
    await_names(&tunnel, &["first"])?;
    ensure!(run_time(&tunnel.mobile, BESIDE)?.is_none());
    ensure!(carry_by_both(&pair, &tunnel).is_err());
    Ok(())
}

/// The peer sets up one tunnel, like a peer without RFC 9611. Sequence numbers are still unique,
/// and the replay window is shared: no packet is dropped.
// Works: threads
#[lab::test]
fn with_one_tunnel_all_threads_carry_it() -> Result<()> {
    let pair = Pair::new("workers")?;
    let tunnel = start(&pair, Terms::PLAIN, [TWO, ""])?;
    let told = |status: &Value| refusal(status).contains("RFC 9611");
    tunnel.mobile.wait_until("status", DEADLINE, told)?;
    await_names(&tunnel, &["first"])?;
    let before = run_time(&tunnel.mobile, BESIDE)?;
    carry(&pair)?;
    ensure!(run_time(&tunnel.mobile, BESIDE)? > before, "{before:?}");
    no_drops(&tunnel)
}

// Recovers: threads
#[lab::test]
fn no_datagram_is_lost_while_all_of_them_get_new_keys() -> Result<()> {
    let pair = Pair::new("workers")?;
    let tunnel = two(&pair, Terms::PLAIN)?;
    let (near, far) = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    let flown = volleys(near, far, || {
        volleys(near, far, || {
            for _ in 0..2 {
                renew(&tunnel, "rekey office")?;
                renew(&tunnel, "reauth office")?;
            }
            Ok(())
        })
    });
    no_drops(&tunnel)?;
    flown
}

/// Rekeys, and returns when all SPIs are new and the old SAs are gone.
fn renew(tunnel: &Tunnel, words: &str) -> Result<()> {
    let old = tunnel.spis()?;
    tunnel.mobile.strata(words)?;
    until("other keys", DEADLINE, || {
        let new = tunnel.spis()?;
        let ends = old.iter().zip(&new);
        let mut renewed =
            ends.map(|(old, new)| new.len() == 2 && new.iter().all(|spis| !old.contains(spis)));
        Ok(renewed.all(|renewed| renewed).then_some(()))
    })
}

/// The node has the keys of both tunnels, and caches packets to the mobile node from either. The
/// sender uses a tunnel only after the node has had time to get its keys.
// Works: threads
#[lab::test]
fn a_licensed_node_reads_what_every_thread_has_sealed() -> Result<()> {
    let pair = Pair::new("workers")?;
    let licensed = pair.start_licensed(LICENSED)?;
    let tunnel = two(&pair, Terms::LICENSED)?;
    let holds = |zones: &Value| zones["zones"]["held"].as_array().map(Vec::len) == Some(2);
    licensed.wait_until("zones", DEADLINE, holds)?;
    let mut segments = 0;
    until("both tunnels to carry", DEADLINE, || {
        carry(&pair)?;
        segments += FLOWS as u64 * MB / 1400;
        let carried = |child: &Value| child["sent"]["octets"].as_u64() > Some(MB / 2);
        let children = tunnel.children()?.concat();
        Ok(children.iter().all(carried).then_some(()))
    })?;
    let flows = licensed.strata("flows")?;
    let cached = flows["flows"]["total"]["cached"].as_u64();
    ensure!(cached > Some(segments), "{segments} {flows}");
    // A flow that changes to the new tunnel may be reordered, and SNOOP then retransmits packets
    // that are not lost.
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        let drops = status["status"]["drops"].as_object();
        let others = drops.is_some_and(|drops| {
            drops
                .keys()
                .any(|why| why != "esp_replayed" && !why.starts_with("ike_"))
        });
        ensure!(!others, "{status}");
    }
    Ok(())
}

#[lab::test]
fn threads_leave_a_stream_to_the_one_that_has_it() -> Result<()> {
    let pair = Pair::new("workers")?;
    let [mobile, gateway] = configs(Terms::PLAIN, [TWO; 2]);
    let configs = [
        plain::about_peer(&mobile, "tcp = \"always\""),
        format!("{gateway}\n[listen]\ntcp = 4500\n"),
    ];
    let tunnel = plain::start_with(&pair, &configs)?;
    tunnel.up()?;
    await_names(&tunnel, &["#2", "first"])?;
    // The thread that opens a flow's packets also seals its answers, and the main thread owns the
    // streams. Another thread gets only the first packets of a flow.
    carry_with(&pair, &tunnel, Duration::ZERO)?;
    no_drops(&tunnel)
}

#[lab::test]
fn without_udp_one_thread_opens_what_comes_and_nothing_is_lost() -> Result<()> {
    let pair = Pair::new("workers")?;
    let honest = configs(Terms::PLAIN, [TWO; 2])
        .map(|config| format!("{config}\n[listen]\nencapsulation = \"nat\"\n"));
    let tunnel = plain::start_with(&pair, &honest)?;
    tunnel.up()?;
    await_names(&tunnel, &["#2", "first"])?;
    carry_with(&pair, &tunnel, Duration::ZERO)?;
    no_drops(&tunnel)
}

// Works: threads
#[lab::test]
fn packets_that_come_and_go_one_by_one_are_shared_out_as_well() -> Result<()> {
    let pair = Pair::new("workers")?;
    let lines = "workers = 2\noffload = \"off\"";
    let tunnel = start(&pair, Terms::ZONED, [lines; 2])?;
    await_names(&tunnel, &["#2", "first"])?;
    carry_by_both(&pair, &tunnel)?;
    no_drops(&tunnel)
}

/// The path MTU applies to both tunnels, regardless of the thread whose packet was too long.
#[lab::test]
fn a_path_that_is_too_short_is_learnt_from_every_thread() -> Result<()> {
    let pair = Pair::new("workers")?;
    let lines = "workers = 2\npath_mtu = \"icmp\"\nclamp = false";
    let tunnel = start(&pair, Terms::PLAIN, [lines; 2])?;
    await_names(&tunnel, &["#2", "first"])?;
    pair.set_mtu(1300)?;
    carry(&pair)?;
    let learnt = |status: &Value| {
        let children = pair::children(status);
        children
            .iter()
            .all(|child| child["path_mtu"].as_u64() == Some(1300))
    };
    tunnel.mobile.wait_until("status", DEADLINE, learnt)?;
    Ok(())
}

// Recovers: threads
#[lab::test]
fn a_killed_end_comes_back_with_its_threads() -> Result<()> {
    let pair = Pair::new("workers")?;
    let mut tunnel = two(&pair, Terms::PLAIN)?;
    carry(&pair)?;
    tunnel.mobile.process().crash()?;
    tunnel.mobile.start_again()?;
    tunnel.up()?;
    await_names(&tunnel, &["#2", "first"])?;
    carry_by_both(&pair, &tunnel)
}

/// The test uses a licensed node, which needs no tunnel of its own.
#[lab::test]
fn they_come_and_go_with_the_tunnels_device() -> Result<()> {
    let pair = Pair::new("workers")?;
    pair.between
        .secret("tunnel.psk", "a key for a tunnel of its own")?;
    let node = format!("{}\n[tunnel]\n{TWO}\n", pair::licensed_config(LICENSED));
    let between = pair.start_licensed_as(&node)?;
    ensure!(run_time(&between, BESIDE)?.is_none());
    for _ in 0..2 {
        between.configure(&format!("{node}{OWN}"))?;
        between.strata("reload")?;
        await_second(&between, true)?;
        between.configure(&node)?;
        between.strata("reload")?;
        await_second(&between, false)?;
    }
    Ok(())
}

// Recovers: threads
#[lab::test]
fn they_carry_over_a_lossy_hop() -> Result<()> {
    let hop = sim::Settings {
        rate: NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(5),
        queue: 100,
        // One in sixteen full packets is lost.
        bit_error_rate: 1.0 / 200_000.0,
    };
    let pair = Pair::with_lossy_hop("workers", hop)?;
    let tunnel = two(&pair, Terms::PLAIN)?;
    renew(&tunnel, "rekey office")?;
    for _ in 0..4 {
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB / 4)?;
    }
    Ok(())
}

// Refuses: threads
#[lab::test]
fn how_many_there_are_is_a_number_and_takes_a_restart() -> Result<()> {
    let pair = Pair::new("workers")?;
    let tunnel = two(&pair, Terms::PLAIN)?;
    let [mobile, _] = configs(Terms::PLAIN, ["workers = 0", ""]);
    tunnel.mobile.configure(&mobile)?;
    tunnel.mobile.refuses("reload", "1 to 32")?;
    let [mobile, _] = configs(Terms::PLAIN, ["workers = 3", ""]);
    tunnel.mobile.configure(&mobile)?;
    let report = tunnel.mobile.strata("reload")?.to_string();
    ensure!(
        report.contains("tunnel.workers") || report.contains("\"workers\""),
        "{report}"
    );
    ensure!(report.contains("restart"), "{report}");
    ensure!(run_time(&tunnel.mobile, BESIDE)?.is_some());
    ensure!(run_time(&tunnel.mobile, "worker 2")?.is_none());
    carry_by_both(&pair, &tunnel)
}

// Refuses: threads
#[lab::test]
fn faults_are_refused_beside_them() -> Result<()> {
    let pair = Pair::new("workers")?;
    let configs = configs(Terms::PLAIN, [TWO, ""]);
    let started = plain::start_told(&pair, &configs, [&["--faults", "drop=1"], &[]]);
    let why = started
        .err()
        .map(|error| format!("{error:#}"))
        .unwrap_or_default();
    ensure!(why.contains("remove `workers` from [tunnel]"), "{why}");
    Ok(())
}
