//! Three foreign agents that are licensed nodes, both ends, and a tunnel that is up at the first agent.

use super::{Handover, Options, PLACES};
use crate::daemon::Daemon;
use crate::pair::{Terms, is_up};
use crate::process::DEADLINE;
use crate::testbed::Testbed;
use crate::walk::{HOME_KEY, Walk, tables};
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
        walk.leave_link(0)?;
        let agents = walk.start_licensed_agents(|number| neighbours(options, number))?;
        let licences = licences(options);
        let terms = Terms::requiring(&licences);
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
    let agents = 0..PLACES;
    if options.everywhere {
        let all: Vec<_> = agents.map(|agent| tables::licence(agent, None)).collect();
        return format!("[{}]\nshared = true", all.join(", "));
    }
    let handover = format!("handover = \"{}\"", options.handover.name());
    tables::licences(&agents.collect::<Vec<_>>(), &handover)
}

/// Where a mobile node may go from an agent: to each of the others, which either get keys beforehand or fetch them.
fn neighbours(options: &Options, number: usize) -> String {
    let others: Vec<_> = (0..PLACES).filter(|other| *other != number).collect();
    match options.handover {
        Handover::Pkd if !options.everywhere => tables::neighbours(&others),
        Handover::Dkm if !options.everywhere => {
            let others = others.into_iter();
            others
                .map(|other| tables::neighbour(number, other))
                .collect()
        }
        Handover::Push | Handover::Pkd | Handover::Dkm => String::new(),
    }
}
