//! Tables about the foreign agents that are licensed nodes, for the configurations of hosts.

use super::{AGENTS, CARE_OF};

/// Returns an agent's licence to read headers: at one care-of address, or everywhere.
pub fn licence(number: usize, at: Option<&str>) -> String {
    let node = AGENTS[number];
    let at = at.map_or(String::new(), |at| format!(", at = [\"{at}\"]"));
    format!("{{ node = \"{node}\", zones = [\"headers\"], right = \"read\"{at} }}")
}

/// Returns the licences of both ends: each of these agents has one at its own address. `more` are
/// lines of the peer's table.
pub fn licences(agents: &[usize], more: &str) -> String {
    let all = agents
        .iter()
        .map(|agent| licence(*agent, Some(CARE_OF[*agent])));
    let all: Vec<_> = all.collect();
    format!("[{}]\n{more}", all.join(", "))
}

/// Returns an agent's table of the agents that mobile nodes move to from it.
pub fn neighbours(others: &[usize]) -> String {
    let others: Vec<_> = others.iter().map(|other| AGENTS[*other]).collect();
    format!("[handover]\nneighbours = {others:?}\n")
}

/// Returns an agent's table of another agent, with which it exchanges keys in both directions. The
/// agent with the higher number initiates.
pub fn neighbour(number: usize, other: usize) -> String {
    let address = match number > other {
        true => format!("address = \"{}\"\n", CARE_OF[other]),
        false => String::new(),
    };
    let id = AGENTS[other];
    format!("[neighbour.n{other}]\nid = \"{id}\"\npsk = \"node.psk\"\n{address}")
}
