//! Three foreign agents that are licensed nodes, both ends, and a tunnel that is up at the first agent.

use super::{Handover, Options, PLACES};
use crate::daemon::Daemon;
use crate::pair::{Terms, is_up};
use crate::process::DEADLINE;
use crate::testbed::Testbed;
use crate::walk::{AGENTS, CARE_OF, HOME_KEY, Walk};
use anyhow::Result;
use serde_json::Value;
use std::num::NonZeroU64;
use std::time::Duration;

/// Bits per second of each agent's way home.
pub(super) const RATE: u64 = 8_000_000;

/// The same, one way. Its queue takes all that the mobile node has room for, so that moves alone lose packets.
const HOP: sim::Settings = sim::Settings {
    rate: NonZeroU64::new(RATE),
    delay: Duration::from_millis(20),
    queue: 100,
    bit_error_rate: 0.0,
};

/// What the mobile node has room for: at the least, by default, and at the most.
const ROOM: &str = "4096 131072 131072";

/// A network that stands.
pub(super) struct Network {
    pub walk: Walk,
    pub agents: Vec<Daemon>,
    pub home: Daemon,
    /// Held, for it lives as long as this does.
    _mobile: Daemon,
}

impl Network {
    /// Waits until the tunnel is up and the first agent has keys.
    pub fn build(bed: Testbed, options: &Options) -> Result<Self> {
        let walk = Walk::in_bed(bed, &[Some(HOP); PLACES])?;
        walk.mobile.sysctl("net.ipv4.tcp_rmem", ROOM)?;
        for number in 1..PLACES {
            walk.set_link(number, false)?;
        }
        let agent = |number| {
            let more = neighbours(options, number);
            walk.start_licensed_agent_with(number, &more)
        };
        let agents: Vec<_> = (0..PLACES).map(agent).collect::<Result<_>>()?;
        let licences = licences(options);
        let terms = Terms {
            zones: "require",
            licences: &licences,
        };
        let home = walk.start_home(terms)?;
        let mobile = walk.start_mobile(HOME_KEY, "", terms)?;
        mobile.wait_until("status", DEADLINE, is_up)?;
        agents[0].wait_until("zones", DEADLINE, |zones| keys(zones) > 0)?;
        Ok(Self {
            walk,
            agents,
            home,
            _mobile: mobile,
        })
    }
}

/// How many composite SAs a licensed node has keys of, by what its `strata zones` says.
pub(super) fn keys(zones: &Value) -> usize {
    zones["zones"]["held"].as_array().map_or(0, Vec::len)
}

/// The licences in both ends' tables, and how they are handed over.
fn licences(options: &Options) -> String {
    let licence = |number: usize| {
        let (node, at) = (AGENTS[number], CARE_OF[number]);
        let at = match options.everywhere {
            true => String::new(),
            false => format!(", at = [\"{at}\"]"),
        };
        format!("{{ node = \"{node}\", zones = [\"headers\"], right = \"read\"{at} }}")
    };
    let all: Vec<_> = (0..PLACES).map(licence).collect();
    let rest = match options.everywhere {
        true => "shared = true".to_owned(),
        false => format!("handover = \"{}\"", options.handover.name()),
    };
    format!("[{}]\n{rest}", all.join(", "))
}

/// Where a mobile node may go from an agent: to each of the others, which either get keys beforehand or fetch them.
fn neighbours(options: &Options, number: usize) -> String {
    let others = (0..PLACES).filter(|other| *other != number);
    match options.handover {
        Handover::Pkd if !options.everywhere => {
            let others: Vec<_> = others.map(|other| AGENTS[other]).collect();
            format!("[handover]\nneighbours = {others:?}\n")
        }
        Handover::Dkm if !options.everywhere => {
            others.map(|other| neighbour(number, other)).collect()
        }
        Handover::Push | Handover::Pkd | Handover::Dkm => String::new(),
    }
}

/// What one agent says of another, from which it fetches keys and which fetches keys from it. The later one begins.
fn neighbour(number: usize, other: usize) -> String {
    let address = match number > other {
        true => format!("address = \"{}\"\n", CARE_OF[other]),
        false => String::new(),
    };
    let id = AGENTS[other];
    format!("[neighbour.n{other}]\nid = \"{id}\"\npsk = \"node.psk\"\n{address}")
}
