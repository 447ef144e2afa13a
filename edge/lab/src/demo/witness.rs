//! What the licensed node could and could not read: what it says, and what is found in it.

use crate::canary::{Canary, Sightings};
use crate::daemon::Daemon;
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

/// A look into the licensed node.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Node {
    /// Keys it holds, as `strata zones --json` tells it.
    pub zones: Value,
    /// What SNOOP does, as `strata flows --json` tells it.
    pub flows: Value,
    /// Octets of the download found in its memory, its log and its answers.
    pub payload: Sightings,
}

impl Node {
    /// Searches everything once.
    pub(super) fn look(daemon: &Daemon, canary: &Canary) -> Result<Self> {
        let mut payload = canary.search_process(daemon.pid())?;
        payload.add(canary.search_file(daemon.log_path())?);
        let mut ask = |request: &str| -> Result<Value> {
            let answer = daemon.ask(request, Value::Null)?;
            payload.add(canary.search_text(&format!("answer to {request}"), answer.as_bytes()));
            let mut answer: Value = serde_json::from_str(&answer)?;
            let body = answer.get_mut(request).map(Value::take);
            body.with_context(|| format!("no {request} in the answer to {request}"))
        };
        ask("status")?;
        ask("metrics")?;
        let (zones, flows) = (ask("zones")?, ask("flows")?);
        Ok(Self {
            zones,
            flows,
            payload,
        })
    }

    /// Adds what an earlier look found to a later one.
    pub(super) fn after(mut self, earlier: Self) -> Self {
        self.payload.add(earlier.payload);
        self
    }

    /// Segments SNOOP sent again.
    pub fn retransmitted(&self) -> u64 {
        self.flows["total"]["retransmitted"].as_u64().unwrap_or(0)
    }

    /// Duplicate acknowledgements SNOOP kept from the server.
    pub fn suppressed(&self) -> u64 {
        self.flows["total"]["suppressed"].as_u64().unwrap_or(0)
    }

    /// Serials of the zones it has keys for.
    pub fn opens(&self) -> Vec<u64> {
        let held = self.zones["held"].as_array().into_iter().flatten();
        let serials = held.filter_map(|held| held["opens"].as_array()).flatten();
        serials.filter_map(Value::as_u64).collect()
    }
}
