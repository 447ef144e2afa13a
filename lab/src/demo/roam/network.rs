//! Three foreign agents that are licensed nodes, both ends, and an established tunnel at the first
//! agent.

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

/// Bits per second between each agent and home.
pub(super) const RATE: u64 = 8_000_000;

/// Hop between each agent and home. Its queue holds a full receive window of the mobile node, so
/// that only moves lose packets.
const HOP: sim::Settings = sim::Settings {
    rate: NonZeroU64::new(RATE),
    delay: Duration::from_millis(20),
    queue: 100,
    bit_error_rate: 0.0,
};

/// Receive buffer of the mobile node's TCP in octets: minimum, default and maximum.
const ROOM: &str = "4096 131072 131072";

/// A running network.
pub(super) struct Network {
    pub walk: Walk,
    pub agents: Vec<Daemon>,
    pub home: Daemon,
    /// Kept alive with the network.
    _mobile: Daemon,
}

impl Network {
    /// Builds the network, and waits until the tunnel is up and the first agent has keys.
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

/// Returns the number of composite SAs that a licensed node has keys for, by its `strata zones`.
pub(super) fn keys(zones: &Value) -> usize {
    zones["zones"]["held"].as_array().map_or(0, Vec::len)
}

/// Returns the licences in both ends' tables, and their way of hand-over.
fn licences(options: &Options) -> String {
    let agents = 0..PLACES;
    if options.everywhere {
        let all: Vec<_> = agents.map(|agent| tables::licence(agent, None)).collect();
        return format!("[{}]\nshared = true", all.join(", "));
    }
    let handover = format!("handover = \"{}\"", options.handover.name());
    tables::licences(&agents.collect::<Vec<_>>(), &handover)
}

/// Returns an agent's tables of the agents that a mobile node may move to from it: those either get
/// keys beforehand or fetch them.
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
