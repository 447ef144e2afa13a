//! Hand-over where the kernels check reverse paths. The gateway asks for new keys as soon as it has
//! granted a registration. Its request may arrive before the mobile node has read the reply, and
//! so before there is a route through the new agent.

use anyhow::{Error, Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, Terms};
use lab::process::{DEADLINE, until};
use lab::spis::{held_in, sealed_in};
use lab::walk::{AGENTS, CARE_OF, Ends, HOME_ADDRESS, HOME_AGENT, HOME_KEY, UPLINKS, Walk, tables};
use lab::wiretap::{Seen, Wiretap};
use nix::sys::signal::Signal;
use os::mobile::ARRIVALS;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::hint::spin_loop;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Settings of `rp_filter`: no check, a strict and a loose one.
const SETTINGS: [&str; 3] = ["0", "1", "2"];

/// Time from home to an agent. A mobile node can be stopped between its request and the reply.
const FAR: Duration = Duration::from_millis(60);

/// Type of a registration request, and its port.
const REQUEST: u8 = 1;
const REGISTRATION: u16 = 434;

/// A change of the mobile node's links that moves it to an agent.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// The link to the other agent is lost.
    Cut,
    /// The link to the agent comes up, and is preferred to the other one.
    Beside,
}

/// A mobile node that moves between two agents, without traffic.
struct Travel<'a> {
    walk: &'a Walk,
    ends: Ends,
    agents: Vec<Daemon>,
    sent: Sent,
}

impl<'a> Travel<'a> {
    /// Starts all daemons, with the mobile node at the first agent, which reads its tunnel. No end
    /// asks whether a silent peer is there: such a request may be lost with a link.
    fn start(walk: &'a Walk, handover: &str) -> Result<Self> {
        let licences = tables::licences(&[0, 1], &format!("handover = \"{handover}\""));
        let terms = Terms::requiring(&licences);
        let agents = walk.start_licensed_agents(|number| match handover {
            "dkm" => tables::neighbour(number, 1 - number),
            _ => String::new(),
        })?;
        let rarely = |config: String| {
            let rare = "liveness = \"600s\"";
            let config = config.replace("liveness = \"1s\"", rare);
            config.replace("liveness = \"5s\"", rare)
        };
        let home = walk.start_home_as(&rarely(walk.home_config(terms)))?;
        walk.leave_link(0)?;
        let mobile = walk.start_mobile_as(HOME_KEY, &rarely(walk.mobile_config("", terms)))?;
        let is_known = |status: &Value| {
            let peers = status["status"]["peers"].as_array();
            peers.is_some_and(|peers| peers.iter().all(|peer| peer["state"] == "up"))
        };
        for agent in &agents {
            agent.wait_until("status", DEADLINE, is_known)?;
        }
        let mut travel = Self {
            walk,
            ends: Ends { home, mobile },
            agents,
            sent: Sent::open(walk)?,
        };
        travel.is_read_by(0)?;
        travel.sent.repeated()?;
        Ok(travel)
    }

    /// Waits until both ends seal for an agent, which holds the keys, and until no other child SA
    /// of a slot is left. Then no exchange is under way.
    fn is_read_by(&self, number: usize) -> Result<()> {
        let slot = format!("@{}", AGENTS[number]);
        until(&format!("{} to read", AGENTS[number]), DEADLINE, || {
            let [home, mobile] = [&self.ends.home, &self.ends.mobile].map(status);
            let (home, mobile) = (home?, mobile?);
            let Some(spis) = sealed_in(&home, &mobile, &slot) else {
                return Ok(None);
            };
            let is_alone = [home, mobile].iter().all(|status| {
                let names = pair::children(status)
                    .into_iter()
                    .map(|child| child["name"].clone());
                names.collect::<Vec<_>>() == [Value::Null, json!(slot)]
            });
            let held = self.agents[number].ask("zones", json!({}))?;
            let held = held_in(&serde_json::from_str(&held)?);
            let is_read = is_alone && spis.iter().all(|spi| held.contains(spi));
            Ok(is_read.then_some(()))
        })
    }

    fn set_out(&self, number: usize, way: Way) -> Result<()> {
        match way {
            Way::Cut => self.walk.leave_link(number),
            Way::Beside => self.walk.set_link(number, true),
        }
    }

    /// Moves the mobile node to an agent, and returns the number of messages that any host sent
    /// more than once.
    fn go(&mut self, number: usize, way: Way) -> Result<usize> {
        self.set_out(number, way)?;
        self.is_read_by(number)?;
        self.sent.repeated()
    }

    /// Moves the mobile node, whose daemon does not run from its registration request until the
    /// gateway's request for keys has arrived. `before` happens meanwhile.
    fn go_asleep(
        &mut self,
        number: usize,
        way: Way,
        before: impl FnOnce(&Walk) -> Result<()>,
    ) -> Result<()> {
        let tap = Wiretap::open(&self.walk.mobile)?;
        let (agent, home): (IpAddr, IpAddr) = (CARE_OF[number].parse()?, HOME_ADDRESS.parse()?);
        self.set_out(number, way)?;
        let is_request =
            |seen: &Seen| seen.destination == agent && seen.is_udp_of(REGISTRATION, REQUEST);
        tap.read_until(DEADLINE, is_request)?;
        self.ends.mobile.process().signal(Signal::SIGSTOP)?;
        let asked = before(self.walk).and_then(|()| {
            let is_for_keys = |seen: &Seen| seen.destination == home && seen.ike().is_some();
            tap.read_until(DEADLINE, is_for_keys)
        });
        self.ends.mobile.process().signal(Signal::SIGCONT)?;
        asked.map(drop)
    }
}

fn status(daemon: &Daemon) -> Result<Value> {
    Ok(serde_json::from_str(&daemon.ask("status", json!({}))?)?)
}

/// IKE messages that hosts send.
struct Sent {
    taps: Vec<(Wiretap, Vec<IpAddr>)>,
    /// Messages by the host that sent them.
    known: BTreeSet<(usize, Vec<u8>)>,
}

impl Sent {
    fn open(walk: &Walk) -> Result<Self> {
        let of = |host: &Host, addresses: &[&str]| {
            let addresses = addresses.iter().map(|address| address.parse());
            Ok::<_, Error>((Wiretap::open(host)?, addresses.collect::<Result<_, _>>()?))
        };
        let agents = walk.agents.iter().zip(CARE_OF).zip(UPLINKS);
        let agents = agents.map(|((host, care_of), [uplink, _])| of(host, &[care_of, uplink]));
        let ends = [
            of(&walk.home, &[HOME_AGENT]),
            of(&walk.mobile, &[HOME_ADDRESS]),
        ];
        let taps = ends.into_iter().chain(agents);
        Ok(Self {
            taps: taps.collect::<Result<_>>()?,
            known: BTreeSet::new(),
        })
    }

    /// Returns the number of messages since the last call that were sent before.
    fn repeated(&mut self) -> Result<usize> {
        let mut repeated = 0;
        for (host, (tap, addresses)) in self.taps.iter().enumerate() {
            let own = tap.rest()?.into_iter();
            let own = own.filter(|seen| addresses.contains(&seen.source));
            for seen in own {
                if let Some(message) = seen.ike() {
                    repeated += usize::from(!self.known.insert((host, message.to_vec())));
                }
            }
        }
        Ok(repeated)
    }
}

/// Runs while two threads keep two processors busy.
fn beside_busy_loops<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        let ran = run();
        over.store(true, Ordering::Relaxed);
        ran
    })
}

// Weakness: 148
#[lab::test(limit(400))]
fn pushed_keys_come_with_the_move_whatever_the_reverse_path_check() -> Result<()> {
    keys_come_with_the_move("push")
}

// Weakness: 148
#[lab::test(limit(400))]
fn with_dkm_the_own_keys_come_with_the_move_whatever_the_reverse_path_check() -> Result<()> {
    keys_come_with_the_move("dkm")
}

/// Moves back and forth with each setting, on an idle machine and beside two busy loops.
fn keys_come_with_the_move(handover: &str) -> Result<()> {
    let moves = effort::count("moves", 2, 200);
    let walk = Walk::new("reverse-paths")?;
    let mut travel = Travel::start(&walk, handover)?;
    for setting in SETTINGS {
        walk.check_reverse_paths(setting)?;
        for is_busy in [false, true] {
            let mut back_and_forth = || travel_for(&mut travel, moves);
            let (repeated, longest) = match is_busy {
                true => beside_busy_loops(back_and_forth)?,
                false => back_and_forth()?,
            };
            println!(
                "{handover}, rp_filter {setting}, busy {is_busy}: {moves} moves, {repeated} \
                 messages sent again, longest until it is over {} ms",
                longest.as_millis()
            );
            ensure!(
                repeated == 0,
                "rp_filter {setting}: {repeated} were sent again"
            );
        }
    }
    Ok(())
}

/// Returns the number of messages that were sent again, and the longest time of a move.
fn travel_for(travel: &mut Travel<'_>, moves: u64) -> Result<(usize, Duration)> {
    let (mut repeated, mut longest) = (0, Duration::ZERO);
    let ways = [(1, Way::Cut), (0, Way::Beside)].into_iter().cycle();
    for ((number, way), _) in ways.zip(0..moves) {
        let begun = Instant::now();
        repeated += travel.go(number, way)?;
        longest = longest.max(begun.elapsed());
    }
    Ok((repeated, longest))
}

/// The first visitor of an agent has no route there until its registration is granted, and the
/// gateway's request follows the reply at once.
// Weakness: 148
#[lab::test(limit(200))]
fn keys_come_with_the_first_visit_to_an_agent_too() -> Result<()> {
    for setting in SETTINGS {
        let walk = Walk::new("reverse-paths")?;
        let mut travel = Travel::start(&walk, "push")?;
        walk.check_reverse_paths(setting)?;
        let repeated = travel.go(1, Way::Cut)?;
        ensure!(
            repeated == 0,
            "rp_filter {setting}: {repeated} were sent again"
        );
    }
    Ok(())
}

/// The kernel has to keep the request until the daemon has worked on the reply.
// Weakness: 148
#[lab::test]
fn a_request_that_comes_before_the_reply_is_read_is_answered() -> Result<()> {
    let walk = Walk::far_from_home("reverse-paths", far())?;
    let mut travel = Travel::start(&walk, "push")?;
    for setting in SETTINGS {
        walk.check_reverse_paths(setting)?;
        for (number, way) in [(1, Way::Cut), (0, Way::Beside)] {
            travel.go_asleep(number, way, |_| Ok(()))?;
            travel.is_read_by(number)?;
            let repeated = travel.sent.repeated()?;
            ensure!(
                repeated == 0,
                "rp_filter {setting}, {way:?}: {repeated} messages were sent again"
            );
        }
    }
    // Control: without the route of reverse paths the kernel drops the request.
    for setting in ["1", "2"] {
        walk.check_reverse_paths(setting)?;
        travel.go_asleep(1, Way::Cut, lose_arrivals)?;
        travel.is_read_by(1)?;
        ensure!(
            travel.sent.repeated()? > 0,
            "rp_filter {setting}: the control"
        );
        travel.go(0, Way::Beside)?;
    }
    Ok(())
}

/// Removes the mobile node's route of reverse paths. The daemon restores it when it runs.
fn lose_arrivals(walk: &Walk) -> Result<()> {
    let netlink = walk.mobile.netns().netlink()?;
    let mut routes = netlink.routes(ARRIVALS)?.into_iter();
    Ok(routes.try_for_each(|route| netlink.delete_route(&route))?)
}

fn far() -> sim::Settings {
    sim::Settings {
        rate: NonZeroU64::new(100_000_000),
        delay: FAR,
        queue: 1000,
        bit_error_rate: 0.0,
    }
}
