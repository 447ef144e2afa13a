//! Licensed agents on two paths of one tunnel: each reads what passes it, and keys follow a mobile
//! node that moves by its own addresses, without Mobile IP.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::fork::{AGENTS, Fork, LOCALS, licences};
use lab::pair::{self, DEADLINE, Tunnel};
use lab::process::until;
use lab::spis::{held, held_in, holds, sealed_in};
use lab::walk::{Capture, tables};
use lab::wiretap::Wiretap;
use serde_json::Value;
use std::collections::BTreeSet;

/// Names of the child SAs that the agents may read while both paths are in use: the slot on the
/// path of the IKE SA, and the child SA of the other path.
const READABLE: [&str; 2] = ["@fa.example.net", "path 2"];

const TWO: &str = "paths = 2";

/// Number of connections: it is unlikely that one path has all of them.
const CONNECTIONS: usize = 12;

const OCTETS: u64 = 60_000;

/// Waits until both ends send on the child SA of this name, and an agent has its keys. Returns the
/// SPIs.
fn read_by(tunnel: &Tunnel, name: &str, agent: &Daemon) -> Result<[String; 2]> {
    until(
        &format!("an agent to have the keys of {name}"),
        DEADLINE,
        || {
            let [gateway, mobile] =
                [&tunnel.gateway, &tunnel.mobile].map(|end| end.strata("status"));
            let Some(spis) = sealed_in(&gateway?, &mobile?, name) else {
                return Ok(None);
            };
            Ok(holds(agent, &spis)?.then_some(spis))
        },
    )
}

/// Returns the SPIs of ESP packets in a capture, as tshark reads them.
fn spis_on_wire(capture: &Capture<'_>) -> Result<BTreeSet<String>> {
    let spis = capture.read("esp", "esp.spi")?.into_iter();
    Ok(spis
        .map(|spi| spi.trim_start_matches("0x").to_owned())
        .collect())
}

// Works: path-licences
#[lab::test]
fn each_agent_has_the_keys_of_its_path_and_reads_nothing_of_the_other() -> Result<()> {
    let fork = Fork::new("fork")?;
    let agents = fork.start_agents(|_| String::new())?;
    let all = licences(&[0, 1]);
    let tunnel = fork.start_up([&all, &all], TWO)?;
    tunnel.await_live(&LOCALS)?;
    let mut spis = Vec::new();
    for (name, agent) in READABLE.into_iter().zip(&agents) {
        spis.push(read_by(&tunnel, name, agent)?);
    }
    let taps = [
        Wiretap::open(&fork.agents[0])?,
        Wiretap::open(&fork.agents[1])?,
    ];
    fork.carry(CONNECTIONS, OCTETS)?;
    for (number, tap) in taps.iter().enumerate() {
        let read = pair::segments(&agents[number])?;
        ensure!(read > 50, "{} has read {read} segments", AGENTS[number]);
        let name = format!("wire{number}.pcap");
        let capture = Capture::write(&fork.agents[number], &name, tap.rest()?)?;
        let passed = spis_on_wire(&capture)?;
        let (own, other) = (&spis[number], &spis[1 - number]);
        ensure!(
            own.iter().all(|spi| passed.contains(spi)),
            "{passed:?} lacks {own:?}"
        );
        // Its keys open nothing that passes the other agent.
        let held = held(&agents[number])?;
        ensure!(
            held == own.iter().cloned().collect(),
            "{held:?}, not {own:?}"
        );
        ensure!(
            other
                .iter()
                .all(|spi| !passed.contains(spi) && !held.contains(spi)),
            "{passed:?} has {other:?}"
        );
    }
    Ok(())
}

/// The mobile node licenses the first agent only, so the second one reads nothing, although half of
/// the connections pass it.
// Refuses: path-licences
#[lab::test]
fn an_agent_that_one_end_does_not_license_on_its_path_reads_nothing() -> Result<()> {
    let fork = Fork::new("fork")?;
    let agents = fork.start_agents(|_| String::new())?;
    let tunnel = fork.start_up([&licences(&[0]), &licences(&[0, 1])], TWO)?;
    tunnel.await_live(&LOCALS)?;
    read_by(&tunnel, READABLE[0], &agents[0])?;
    let tap = Wiretap::open(&fork.agents[1])?;
    fork.carry(CONNECTIONS, OCTETS)?;
    let passed = lab::spis::passed(&tap)?;
    ensure!(!passed.is_empty(), "nothing passed the second agent");
    ensure!(held(&agents[1])?.is_empty(), "it holds keys");
    let read = pair::segments(&agents[1])?;
    ensure!(read == 0, "it has read {read} segments");
    ensure!(pair::segments(&agents[0])? > 50);
    let told = |status: &Value| pair::refusal(status).contains(AGENTS[1]);
    tunnel.gateway.wait_until("status", DEADLINE, told)?;
    Ok(())
}

// Works: path-licences
#[lab::test]
fn flows_of_a_path_that_is_gone_are_read_on_the_other_one_and_its_keys_are_withdrawn() -> Result<()>
{
    let fork = Fork::new("fork")?;
    let agents = fork.start_agents(|_| String::new())?;
    let all = licences(&[0, 1]);
    let tunnel = fork.start_up([&all, &all], TWO)?;
    tunnel.await_live(&LOCALS)?;
    let first = read_by(&tunnel, READABLE[0], &agents[0])?;
    read_by(&tunnel, READABLE[1], &agents[1])?;
    let unread = |daemon: &Daemon| -> Result<u64> {
        let children = pair::children(&daemon.strata("status")?);
        let first = children.iter().find(|child| child["name"].is_null());
        let sent = first.map(|first| first["sent"]["packets"].as_u64());
        sent.flatten().context("the first child SA")
    };
    let before = [unread(&tunnel.mobile)?, unread(&tunnel.gateway)?];
    // The path of the IKE SA: it moves to the addresses of the other path.
    fork.set_link(0, false)?;
    let read = pair::segments(&agents[1])?;
    fork.carry(4, OCTETS)?;
    read_by(&tunnel, "@fb.example.net", &agents[1])?;
    tunnel.await_live(&LOCALS[1..])?;
    fork.carry(4, OCTETS)?;
    let more = pair::segments(&agents[1])? - read;
    ensure!(more > 100, "the second agent has read {more} segments");
    let after = [unread(&tunnel.mobile)?, unread(&tunnel.gateway)?];
    ensure!(
        before == after,
        "packets that no agent could read: {before:?} {after:?}"
    );
    // The first agent holds nothing any more.
    let none = |zones: &Value| held_in(zones).is_empty();
    agents[0].wait_until("zones", DEADLINE, none)?;
    agents[1].wait_until("zones", DEADLINE, pair::holds_a_grant)?;
    // It comes back with other keys.
    fork.set_link(0, true)?;
    tunnel.await_live(&LOCALS)?;
    let has_others = |zones: &Value| {
        let held = held_in(zones);
        !held.is_empty() && first.iter().all(|spi| !held.contains(spi))
    };
    agents[0].wait_until("zones", DEADLINE, has_others)?;
    Ok(())
}

/// Bits of one of two access links get lost: the agent there repairs it.
// Works: path-licences
// Recovers: path-licences
#[lab::test]
fn snoop_repairs_losses_of_its_path_and_leaves_the_other_one_alone() -> Result<()> {
    let fork = Fork::with_lossy_hop("fork", pair::hop(2e-5))?;
    let agents = fork.start_agents(|_| String::new())?;
    let all = licences(&[0, 1]);
    let tunnel = fork.start_up([&all, &all], TWO)?;
    tunnel.await_live(&LOCALS)?;
    for (name, agent) in READABLE.into_iter().zip(&agents) {
        read_by(&tunnel, name, agent)?;
    }
    fork.carry(CONNECTIONS, 5 * OCTETS)?;
    let repaired = [pair::repaired(&agents[0])?, pair::repaired(&agents[1])?];
    println!("segments retransmitted by the agents: {repaired:?}");
    ensure!(repaired[0] > 0 && repaired[1] == 0, "{repaired:?}");
    Ok(())
}

/// One path that moves with MOBIKE between two agents.
// Works: path-licences
#[lab::test]
fn keys_follow_a_move_by_mobike_and_pkd_sends_them_ahead() -> Result<()> {
    for handover in ["push", "pkd"] {
        let fork = Fork::new("fork")?;
        let agents = fork.start_agents(|number| tables_of(handover, number))?;
        let all = licences(&[0, 1]);
        let tunnel = fork.start_up([&all, &all], &format!("handover = \"{handover}\""))?;
        let slots = AGENTS.map(|agent| format!("@{agent}"));
        let first = read_by(&tunnel, &slots[0], &agents[0])?;
        let prepared = match handover {
            "pkd" => {
                agents[1].wait_until("zones", DEADLINE, pair::holds_a_grant)?;
                held(&agents[1])?
            }
            _ => BTreeSet::new(),
        };
        ensure!(
            handover == "pkd" || held(&agents[1])?.is_empty(),
            "keys before the move"
        );
        fork.set_link(0, false)?;
        let second = read_by(&tunnel, &slots[1], &agents[1])?;
        let is_prepared = second.iter().all(|spi| prepared.contains(spi));
        ensure!(
            is_prepared == (handover == "pkd"),
            "{handover}: {second:?} {prepared:?}"
        );
        ensure!(second.iter().all(|spi| !first.contains(spi)), "{first:?}");
        let read = pair::segments(&agents[1])?;
        let tap = Wiretap::open(&fork.agents[1])?;
        fork.carry(2, OCTETS)?;
        ensure!(pair::segments(&agents[1])? > read + 50);
        let passed = lab::spis::passed(&tap)?;
        ensure!(
            passed.is_disjoint(&first.into_iter().collect()),
            "{passed:?}"
        );
    }
    Ok(())
}

fn tables_of(handover: &str, number: usize) -> String {
    match handover {
        "pkd" => tables::neighbours(&[1 - number]),
        _ => String::new(),
    }
}
