//! What configurations of hosts say of the foreign agents that are licensed nodes.

use super::{AGENTS, CARE_OF};

/// A licence of an agent's to read headers: where it holds, or everywhere.
pub fn licence(number: usize, at: Option<&str>) -> String {
    let node = AGENTS[number];
    let at = at.map_or(String::new(), |at| format!(", at = [\"{at}\"]"));
    format!("{{ node = \"{node}\", zones = [\"headers\"], right = \"read\"{at} }}")
}

/// What both ends say of licences: each of these agents has one where it is. `more` are lines of the peer's table.
pub fn licences(agents: &[usize], more: &str) -> String {
    let all = agents
        .iter()
        .map(|agent| licence(*agent, Some(CARE_OF[*agent])));
    let all: Vec<_> = all.collect();
    format!("[{}]\n{more}", all.join(", "))
}

/// What an agent says of those to which mobile nodes go from it.
pub fn neighbours(others: &[usize]) -> String {
    let others: Vec<_> = others.iter().map(|other| AGENTS[*other]).collect();
    format!("[handover]\nneighbours = {others:?}\n")
}

/// What an agent says of another one, from which it fetches keys and which fetches keys from it. The later one begins.
pub fn neighbour(number: usize, other: usize) -> String {
    let address = match number > other {
        true => format!("address = \"{}\"\n", CARE_OF[other]),
        false => String::new(),
    };
    let id = AGENTS[other];
    format!("[neighbour.n{other}]\nid = \"{id}\"\npsk = \"node.psk\"\n{address}")
}
