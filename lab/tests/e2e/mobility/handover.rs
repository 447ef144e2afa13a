//! Hand-over (DESIGN section 5): the header keys follow a mobile node from one licensed node to the
//! next. The nodes that it left read nothing more.

use anyhow::{Context, Error, Result, anyhow, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, GATEWAY, MOBILE, Pair, Terms};
use lab::process::{DEADLINE, until};
use lab::spis::{held, held_in, holds, passed, sent_on, spi};
use lab::transfer::transfer;
use lab::volley::{Volleys, volleys};
use lab::walk::{AGENTS, CARE_OF, Ends, OFTEN, Walk, both_ways, bound, registered, tables};
use lab::wiretap::Wiretap;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MB: u64 = 1_000_000;

/// Time for which both ends keep using the old SA, plus the delay of a busy machine.
const MIGRATION: Duration = Duration::from_secs(2 + 1);

/// A mobile node's endpoints, and the licensed agents that it moves between.
struct Route {
    ends: Ends,
    agents: Vec<Daemon>,
}

/// Returns the licences of both ends' configurations: each agent has one for its own network.
fn licences(agents: &[usize], handover: &str) -> String {
    tables::licences(agents, &format!("handover = \"{handover}\""))
}

/// Returns an agent's table that names the other agent as a neighbour.
fn neighbours(number: usize) -> String {
    tables::neighbours(&[1 - number])
}

/// The same with an IKE SA between the agents, so that keys can go from one to the other.
fn neighbour(number: usize) -> String {
    tables::neighbour(number, 1 - number)
}

impl Route {
    /// Starts both ends with the licences of both agents; the mobile node is at the first agent,
    /// which holds its keys.
    fn start(walk: &Walk, handover: &str, more: &str) -> Result<Self> {
        let all = licences(&[0, 1], handover);
        Self::start_with(walk, &all, &all, more)
    }

    fn start_with(walk: &Walk, mobile: &str, home: &str, more: &str) -> Result<Self> {
        let home = walk.home_config(Terms::requiring(home));
        Self::start_as(walk, mobile, &home, more, neighbours)
    }

    /// Starts everything with these neighbour tables of the agents and this configuration of the
    /// gateway.
    fn start_as(
        walk: &Walk,
        mobile: &str,
        home: &str,
        more: &str,
        neighbours: impl Fn(usize) -> String,
    ) -> Result<Self> {
        let terms = Terms::requiring(mobile);
        let (ends, agents) = Ends::start_among(walk, home, (more, terms), neighbours)?;
        Ok(Self { ends, agents })
    }

    /// Starts DKM: the agents know each other, and the mobile node is at the first one.
    fn start_dkm(walk: &Walk) -> Result<Self> {
        let all = licences(&[0, 1], "dkm");
        let home = walk.home_config(Terms::requiring(&all));
        let route = Self::start_as(walk, &all, &home, "", neighbour)?;
        route.is_read_by(0)?;
        route.agents[1].wait_until("status", DEADLINE, knows_its_neighbour)?;
        Ok(route)
    }

    /// Waits until both ends seal in an agent's slot and the agent holds its keys; returns the
    /// SPIs.
    fn is_read_by(&self, number: usize) -> Result<[String; 2]> {
        let slot = format!("@{}", AGENTS[number]);
        let what = format!("{} to read", AGENTS[number]);
        until(&what, DEADLINE, || {
            let Some(spis) = self.ends.sealed_in(&slot)? else {
                return Ok(None);
            };
            Ok(holds(&self.agents[number], &spis)?.then_some(spis))
        })
    }

    /// Waits until an agent has read more than 100 segments beyond `before`.
    fn serves(&self, number: usize, before: u64) -> Result<()> {
        until("an agent to read", DEADLINE, || {
            let read = pair::segments(&self.agents[number])? - before;
            Ok((read > 100).then_some(()))
        })
    }

    /// Registers the mobile node with a second agent while it stays with the first.
    fn join(&self, walk: &Walk, number: usize) -> Result<()> {
        walk.set_link(number, true)?;
        let both = |status: &Value| registered(status) == CARE_OF[..2];
        self.ends.mobile.wait_until("status", DEADLINE, both)?;
        let both = |status: &Value| bound(status).len() == 2;
        self.ends.home.wait_until("status", DEADLINE, both)?;
        Ok(())
    }

    /// Leaves an agent, so that only the other one remains.
    fn leave(&self, walk: &Walk, number: usize) -> Result<()> {
        walk.set_link(number, false)?;
        let one = |status: &Value| registered(status) == [CARE_OF[1 - number]];
        self.ends
            .mobile
            .wait_until("status", DEADLINE, one)
            .map(drop)
    }
}

fn knows_its_neighbour(status: &Value) -> bool {
    let peers = status["status"]["peers"].as_array();
    let mut peers = peers.into_iter().flatten();
    peers.any(|peer| peer["kind"] == "neighbour" && peer["state"] == "up")
}

/// Runs `happen` while TCP carries data, alternately in each direction.
fn meanwhile(walk: &Walk, happen: impl FnOnce() -> Result<()>) -> Result<()> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                both_ways(walk)?;
            }
            Ok::<_, Error>(())
        });
        let happened = happen();
        over.store(true, Ordering::Relaxed);
        let ran = running.join().map_err(|_| anyhow!("the transfer panicked"));
        happened.and(ran?)
    })
}

// Works: handover
// Answers: end-move
#[lab::test]
fn pushed_keys_come_after_the_mobile_node_and_nobody_reads_behind_it() -> Result<()> {
    let walk = Walk::new("handover")?;
    let route = Route::start(&walk, "push", "")?;
    route.is_read_by(0)?;
    ensure!(
        held(&route.agents[1])?.is_empty(),
        "the other has keys before it is visited"
    );
    both_ways(&walk)?;
    let read = pair::segments(&route.agents[0])?;
    ensure!(read > 100, "the first has read {read} segments");
    let left = held(&route.agents[0])?;
    route.ends.move_to(&walk, 1)?;
    let spis = route.is_read_by(1)?;
    ensure!(
        spis.iter().all(|spi| !left.contains(spi)),
        "{spis:?} are of before"
    );
    let tap = Wiretap::open(&walk.mobile)?;
    both_ways(&walk)?;
    let read = pair::segments(&route.agents[1])?;
    ensure!(read > 100, "the second has read {read} segments");
    let passed = passed(&tap)?;
    ensure!(
        spis.iter().all(|spi| passed.contains(spi)),
        "{passed:?} lacks {spis:?}"
    );
    let opened = passed.intersection(&left).count();
    ensure!(
        opened == 0,
        "the first has keys of {opened} SPIs of after the move"
    );
    Ok(())
}

// Works: handover
#[lab::test]
fn with_pkd_a_neighbour_has_keys_before_and_a_move_is_another_spi() -> Result<()> {
    let walk = Walk::new("handover")?;
    let route = Route::start(&walk, "pkd", "")?;
    route.is_read_by(0)?;
    let next = "@fb.example.net";
    let waits = |status: &Value| {
        let children = pair::children(status);
        children
            .iter()
            .any(|child| child["name"] == next && child["waiting"] == true)
    };
    route.agents[1].wait_until("zones", DEADLINE, pair::holds_a_grant)?;
    route.ends.home.wait_until("status", DEADLINE, waits)?;
    let status = route.ends.mobile.wait_until("status", DEADLINE, waits)?;
    let prepared = held(&route.agents[1])?;
    let children = pair::children(&status);
    let slot = children.iter().find(|child| child["name"] == next);
    let sent = slot.context("it waits")?["sent"]["packets"].clone();
    ensure!(sent == 0, "{sent} packets were sent before it was visited");
    route.ends.move_to(&walk, 1)?;
    let spis = route.is_read_by(1)?;
    ensure!(
        spis.iter().all(|spi| prepared.contains(spi)),
        "{spis:?} are not {prepared:?}"
    );
    both_ways(&walk)?;
    let read = pair::segments(&route.agents[1])?;
    ensure!(read > 100, "the second has read {read} segments");
    Ok(())
}

// Works: handover
#[lab::test]
fn a_slot_that_is_come_back_to_has_other_keys() -> Result<()> {
    let walk = Walk::new("handover")?;
    for handover in ["push", "pkd"] {
        let route = Route::start(&walk, handover, "")?;
        let mut all = BTreeSet::new();
        for number in [0, 1, 0, 1] {
            route.ends.move_to(&walk, number)?;
            let spis = route.is_read_by(number)?;
            ensure!(
                spis.iter().all(|spi| all.insert(spi.clone())),
                "{spis:?} came before"
            );
            let mut volleys = Volleys::new((&walk.mobile, MOBILE[0]), (&walk.home, GATEWAY[0]))?;
            volleys.fly()?;
        }
        walk.set_link(0, true)?;
    }
    Ok(())
}

// Works: handover
#[lab::test]
fn with_simultaneous_bindings_a_hand_over_loses_nothing() -> Result<()> {
    let walk = Walk::new("handover")?;
    walk.check_reverse_paths("2")?;
    let route = Route::start(&walk, "pkd", "simultaneous = true")?;
    route.ends.move_to(&walk, 1)?;
    route.is_read_by(1)?;
    volleys((&walk.mobile, MOBILE[0]), (&walk.home, GATEWAY[0]), || {
        route.join(&walk, 0)?;
        // Of two bindings both ends use the preferred one, through which the mobile node sends.
        route.is_read_by(0)?;
        route.leave(&walk, 1)?;
        route.is_read_by(0)
    })?;
    Ok(())
}

/// SNOOP's state of a connection stays with its node. The next node learns the state from passing
/// packets. TCP's retransmission timer expires at most once per move; a stalled connection would
/// cause many expiries.
#[lab::test]
fn a_connection_that_snoop_serves_stands_still_for_no_move() -> Result<()> {
    const MOVES: [usize; 2] = [1, 0];
    let walk = Walk::new("handover")?;
    walk.check_reverse_paths("2")?;
    let route = Route::start(&walk, "push", "simultaneous = true")?;
    route.is_read_by(0)?;
    let time_outs = || {
        let of = |host: &Host| host.tcp_count("TCPTimeouts");
        Ok::<_, Error>(of(&walk.home)? + of(&walk.mobile)?)
    };
    let before = time_outs()?;
    meanwhile(&walk, || {
        MOVES.into_iter().try_for_each(|number| {
            let served = pair::segments(&route.agents[number])?;
            route.join(&walk, number)?;
            route.leave(&walk, 1 - number)?;
            route.is_read_by(number)?;
            route.serves(number, served)
        })
    })?;
    let most = MOVES.len() as u64;
    let count = time_outs()? - before;
    ensure!(count <= most, "{count} time-outs of TCP");
    // Control: a path that is cut for a while exceeds the limit.
    let before = time_outs()?;
    meanwhile(&walk, || {
        walk.set_way(0, false)?;
        until("time-outs of TCP", DEADLINE, || {
            Ok((time_outs()? - before > most).then_some(()))
        })?;
        walk.set_way(0, true)
    })
}

/// Security does not depend on a node's reaction to REVOKE: this node never receives it.
// Refuses: handover
// Weakness: S27
// Answers: end-move
#[lab::test]
fn an_agent_that_heard_of_no_revocation_has_keys_of_nothing() -> Result<()> {
    let walk = Walk::new("handover")?;
    let mut route = Route::start(&walk, "push", "")?;
    route.is_read_by(0)?;
    let kept = held(&route.agents[0])?;
    ensure!(kept.len() == 2, "it holds {kept:?}");
    route.agents[0].process().signal(Signal::SIGSTOP)?;
    route.ends.move_to(&walk, 1)?;
    let tap = Wiretap::open(&walk.mobile)?;
    route.is_read_by(1)?;
    both_ways(&walk)?;
    let passed = passed(&tap)?;
    ensure!(
        !passed.is_empty() && passed.is_disjoint(&kept),
        "{passed:?} and {kept:?}"
    );
    route.agents[0].process().signal(Signal::SIGCONT)
}

// Refuses: handover
#[lab::test]
fn a_node_that_the_mobile_node_does_not_license_gets_no_key() -> Result<()> {
    let walk = Walk::new("handover")?;
    let (mobile, home) = (licences(&[0], "pkd"), licences(&[0, 1], "pkd"));
    let route = Route::start_with(&walk, &mobile, &home, "")?;
    route.is_read_by(0)?;
    let told = |status: &Value| {
        let why = pair::refusal(status);
        why.contains("offers to let fb.example.net read") && why.contains("`at`")
    };
    route.ends.mobile.wait_until("status", DEADLINE, told)?;
    route.ends.move_to(&walk, 1)?;
    let tap = Wiretap::open(&walk.mobile)?;
    both_ways(&walk)?;
    ensure!(held(&route.agents[1])?.is_empty(), "it holds keys");
    let read = pair::segments(&route.agents[1])?;
    ensure!(read == 0, "it has read {read} segments");
    let passed = passed(&tap)?;
    ensure!(
        passed.is_disjoint(&held(&route.agents[0])?),
        "the first reads on"
    );
    Ok(())
}

// Refuses: handover
#[lab::test]
fn what_cannot_be_handed_over_is_told_with_the_fix() -> Result<()> {
    let walk = Walk::new("handover")?;
    let terms = Terms::requiring("[]\nhandover = \"pkd\"");
    let refused = walk
        .start_home(terms)
        .err()
        .context("it starts all the same")?;
    let refused = format!("{refused:#}");
    ensure!(refused.contains("no licence has `at`"), "{refused}");
    Ok(())
}

// Recovers: handover
#[lab::test]
fn an_agent_that_was_killed_gets_its_keys_again() -> Result<()> {
    let walk = Walk::new("handover")?;
    let mut route = Route::start(&walk, "push", "")?;
    route.ends.move_to(&walk, 1)?;
    route.is_read_by(1)?;
    route.agents[1].process().crash()?;
    route.agents[1].start_again()?;
    route.is_read_by(1)?;
    let before = pair::segments(&route.agents[1])?;
    both_ways(&walk)?;
    let read = pair::segments(&route.agents[1])? - before;
    ensure!(read > 100, "it has read {read} segments");
    Ok(())
}

/// The mobile node's daemon is killed, so it does not deregister. Its tunnel stays up for as long
/// as `liveness` says, which is much longer than its registration.
// Recovers: handover
#[lab::test]
fn a_registration_that_ends_takes_the_keys_back_while_the_tunnel_is_up() -> Result<()> {
    let walk = Walk::new("handover")?;
    let all = licences(&[0, 1], "push");
    let home = walk.home_config(Terms::requiring(&all));
    let patient = home.replacen("liveness = \"1s\"", "liveness = \"600s\"", 1);
    let (alice, _) = patient
        .split_once("[licensed.")
        .context("a licensed node")?;
    ensure!(alice.contains("liveness = \"600s\""), "{patient}");
    let file = walk.home.directory().join("audit.jsonl");
    let audited = format!("{patient}[audit]\nfile = \"{}\"\n", file.display());
    let mut route = Route::start_as(&walk, &all, &audited, OFTEN, neighbours)?;
    route.is_read_by(0)?;
    let killed = Instant::now();
    route.ends.mobile.process().crash()?;
    let home = &route.ends.home;
    ensure!(
        !bound(&home.strata("status")?).is_empty() && !held(&route.agents[0])?.is_empty(),
        "the registration was over at once"
    );
    let gone = |zones: &Value| held_in(zones).is_empty();
    route.agents[0].wait_until("zones", DEADLINE, gone)?;
    let after = killed.elapsed().as_secs_f64();
    println!("the agent had no keys {after:.1} s after the mobile node was killed");
    let status = home.strata("status")?;
    ensure!(
        pair::is_up(&status) && bound(&status).is_empty(),
        "{status}"
    );
    let audit = home.strata_text("audit strata.toml")?;
    ensure!(audit.contains("registration over"), "{audit}");
    // It comes back: another tunnel, and keys again.
    route.ends.mobile.start_again()?;
    route.is_read_by(0)?;
    both_ways(&walk)
}

// Recovers: handover
#[lab::test]
fn keys_come_over_a_way_that_loses_much() -> Result<()> {
    let walk = Walk::with_hop("handover", pair::hop(2e-5))?;
    let route = Route::start(&walk, "push", "")?;
    for number in [0, 1, 0] {
        route.ends.move_to(&walk, number)?;
        route.is_read_by(number)?;
    }
    ensure!(walk.lost() > 0, "nothing was lost");
    Ok(())
}

/// Without Mobile IP: a licensed node on one of two paths of a tunnel that moves with MOBIKE.
// Works: handover
#[lab::test]
fn a_fixed_accelerator_reads_what_passes_it_and_nothing_else() -> Result<()> {
    let pair = Pair::new("accelerator")?;
    pair.add_second_wire()?;
    let terms = Terms::requiring(
        "[{ node = \"fa.example.net\", zones = [\"headers\"], right = \"read\", at = [\"10.3.0.0/24\"] }]",
    );
    let licensed = pair.start_licensed("fa.example.net")?;
    let gateway = pair.start_gateway(terms)?;
    let mobile = pair.start_mobile(os::Family::V4, terms, "auto")?;
    let slot = "@fa.example.net";
    let read = |daemon: &Daemon, by: bool| {
        let is_so = |status: &Value| pair::is_up(status) && sent_on(status, slot).is_some() == by;
        daemon.wait_until("status", DEADLINE, is_so)
    };
    for end in [&mobile, &gateway] {
        read(end, true)?;
    }
    licensed.wait_until("zones", DEADLINE, pair::holds_a_grant)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], MB)?;
    let segments = pair::segments(&licensed)?;
    ensure!(segments > 100, "it has read {segments} segments");
    for (from, by) in [("10.4.0.2", false), ("10.3.0.2", true)] {
        mobile.strata_text(&format!("move office --from {from}"))?;
        for end in [&mobile, &gateway] {
            read(end, by)?;
        }
    }
    let spis = sent_on(&read(&gateway, true)?, slot).context("it is sent on")?;
    until("the keys of now", DEADLINE, || {
        Ok(holds(&licensed, &spis)?.then_some(()))
    })
}

// Works: handover
#[lab::test]
fn a_licence_that_comes_by_reload_is_one_in_its_place() -> Result<()> {
    let walk = Walk::new("handover")?;
    let one = licences(&[0], "push");
    let route = Route::start_with(&walk, &one, &licences(&[0, 1], "push"), "")?;
    route.ends.move_to(&walk, 1)?;
    ensure!(held(&route.agents[1])?.is_empty(), "it holds keys");
    let both = licences(&[0, 1], "push");
    let terms = Terms::requiring(&both);
    route.ends.mobile.change(&walk.mobile_config("", terms))?;
    route.is_read_by(1)?;
    Ok(())
}

/// The gateway does not know the second agent and sends it no keys. The agent can read only with
/// its neighbour's keys, for two seconds.
// Works: handover-dkm
// Weakness: S34
#[lab::test]
fn with_dkm_the_next_agent_reads_what_runs_by_the_keys_of_the_one_before() -> Result<()> {
    let walk = Walk::new("handover")?;
    borrows(&walk, "")
}

/// The token is recorded on disk first, and still leaves together with its registration.
#[lab::test]
fn with_dkm_keys_come_as_soon_where_a_record_is_required() -> Result<()> {
    let walk = Walk::new("handover")?;
    let file = walk.mobile.directory().join("audit.jsonl");
    let log = format!("[audit]\nfile = \"{}\"\nrequired = true\n", file.display());
    borrows(&walk, &log)?;
    let log = std::fs::read_to_string(&file)?;
    let given = |line: &&str| line.contains("\"given\"") && line.contains(AGENTS[1]);
    ensure!(log.lines().filter(given).count() == 1, "{log}");
    Ok(())
}

/// Moves with DKM to an agent unknown to the gateway. `more` extends the mobile node's
/// configuration.
fn borrows(walk: &Walk, more: &str) -> Result<()> {
    let all = licences(&[0, 1], "dkm");
    let home = walk.home_config(Terms::requiring(&all));
    let (home, _) = home.split_once("[licensed.fb]").context("a table")?;
    let route = Route::start_as(walk, &all, home, more, neighbour)?;
    let spis = route.is_read_by(0)?;
    route.agents[1].wait_until("status", DEADLINE, knows_its_neighbour)?;
    meanwhile(walk, || {
        route.ends.move_to(walk, 1)?;
        route.serves(1, 0)
    })?;
    route.agents[1].wait_until("zones", DEADLINE, |zones| !pair::holds_a_grant(zones))?;
    let before = pair::segments(&route.agents[1])?;
    let tap = Wiretap::open(&walk.mobile)?;
    both_ways(walk)?;
    let read = pair::segments(&route.agents[1])? - before;
    ensure!(read == 0, "it has read {read} segments more");
    let passed = passed(&tap)?;
    let left: BTreeSet<_> = spis.into_iter().collect();
    ensure!(passed.is_disjoint(&left), "{passed:?} and {left:?}");
    Ok(())
}

// Works: handover-dkm
// Answers: end-move
#[lab::test]
fn with_dkm_nobody_reads_behind_the_mobile_node() -> Result<()> {
    let walk = Walk::new("handover")?;
    let route = Route::start_dkm(&walk)?;
    let mut all = BTreeSet::new();
    for number in [0, 1, 0] {
        route.ends.move_to(&walk, number)?;
        let spis = route.is_read_by(number)?;
        ensure!(
            spis.iter().all(|spi| all.insert(spi.clone())),
            "{spis:?} came before"
        );
        let other = &route.agents[1 - number];
        other.wait_until("zones", DEADLINE, |zones| !pair::holds_a_grant(zones))?;
        let before = pair::segments(other)?;
        both_ways(&walk)?;
        let read = pair::segments(other)? - before;
        ensure!(read == 0, "the other has read {read} segments");
    }
    Ok(())
}

/// Message type of a registration reply.
const REPLY: u8 = 3;

/// The gateway's keys never reach the second agent. A tap on the mobile node's link sees the SPIs
/// that both ends use.
#[lab::test]
fn a_blocked_rekey_after_dkm_turns_packets_opaque_after_2_s() -> Result<()> {
    let walk = Walk::new("handover")?;
    let route = Route::start_dkm(&walk)?;
    let left: BTreeSet<_> = route.is_read_by(0)?.into();
    let rule = format!("ip daddr {} udp dport {{ 500, 4500 }} drop", CARE_OF[1]);
    let hook = "type filter hook output priority 0;";
    let table = format!("table ip blocked {{ chain output {{ {hook} {rule}; }}\n}}\n");
    let rules = walk.home.file("blocked.nft", &table)?;
    walk.home.run(&format!("nft -f {}", rules.display()))?;
    let tap = Wiretap::open(&walk.mobile)?;
    route.ends.move_to(&walk, 1)?;
    let mut volleys = Volleys::new((&walk.mobile, MOBILE[0]), (&walk.home, GATEWAY[0]))?;
    let (mut moved, mut sealed) = (None, Vec::new());
    let later = until("packets of some seconds", DEADLINE, || {
        volleys.fly()?;
        while let Some(seen) = tap.next()? {
            moved = moved.or(seen.is_udp_of(434, REPLY).then_some(seen.at));
            sealed.extend(spi(&seen).map(|spi| (seen.at, spi)));
        }
        let over = moved.context("no reply to its registration has passed")? + MIGRATION;
        let later: Vec<_> = sealed
            .iter()
            .filter(|(at, _)| *at > over)
            .cloned()
            .collect();
        Ok((later.len() > 500).then_some(later))
    })?;
    let in_left = |sealed: &[(Duration, String)]| {
        let mut spis = sealed.iter();
        spis.any(|(_, spi)| left.contains(spi))
    };
    ensure!(!in_left(&later), "packets are in what was left");
    ensure!(
        in_left(&sealed),
        "both ends did not go on in what was left at all"
    );
    for agent in &route.agents {
        agent.wait_until("zones", DEADLINE, |zones| !pair::holds_a_grant(zones))?;
        let before = pair::segments(agent)?;
        both_ways(&walk)?;
        let read = pair::segments(agent)? - before;
        ensure!(read == 0, "an agent has read {read} segments");
    }
    Ok(())
}

/// The asking agent learns the reason, and the gateway's keys arrive anyway.
// Refuses: handover-dkm
#[lab::test]
fn an_agent_that_does_not_know_its_neighbour_gives_it_nothing() -> Result<()> {
    let walk = Walk::new("handover")?;
    let all = licences(&[0, 1], "dkm");
    let home = walk.home_config(Terms::requiring(&all));
    let one = |number| match number {
        0 => String::new(),
        _ => neighbour(1),
    };
    let route = Route::start_as(&walk, &all, &home, "", one)?;
    route.is_read_by(0)?;
    route.ends.move_to(&walk, 1)?;
    route.is_read_by(1)?;
    let told = |status: &Value| {
        let text = status.to_string();
        text.contains("comes from fa.example.net, which is not configured as a neighbour")
    };
    route.agents[1].wait_until("status", DEADLINE, told)?;
    Ok(())
}

// Recovers: handover-dkm
#[lab::test]
fn an_agent_that_is_gone_hands_on_nothing_and_delays_nothing() -> Result<()> {
    let walk = Walk::new("handover")?;
    let mut route = Route::start_dkm(&walk)?;
    route.agents[0].process().signal(Signal::SIGSTOP)?;
    let moved = route
        .ends
        .move_to(&walk, 1)
        .and_then(|()| route.is_read_by(1));
    route.agents[0].process().signal(Signal::SIGCONT)?;
    moved.map(drop)
}

// Recovers: handover-dkm
#[lab::test]
fn with_dkm_keys_come_over_a_way_that_loses_much() -> Result<()> {
    let walk = Walk::with_hop("handover", pair::hop(2e-5))?;
    let route = Route::start_dkm(&walk)?;
    for number in [1, 0, 1] {
        route.ends.move_to(&walk, number)?;
        route.is_read_by(number)?;
    }
    ensure!(walk.lost() > 0, "nothing was lost");
    Ok(())
}
