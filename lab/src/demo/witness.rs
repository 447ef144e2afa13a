//! The licensed node's view: its own answers, and a search of it for the payload.

use crate::canary::{Canary, Sightings};
use crate::daemon::Daemon;
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

/// State of the licensed node, with the result of a search.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Node {
    /// Keys that it holds, as in `strata zones --json`.
    pub zones: Value,
    /// Activity of SNOOP, as in `strata flows --json`.
    pub flows: Value,
    /// Result of the search in its memory, its log and its answers.
    pub payload: Sightings,
}

impl Node {
    /// Queries the node and searches everything once.
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

    /// Adds the sightings of an earlier look.
    pub(super) fn after(mut self, earlier: Self) -> Self {
        self.payload.add(earlier.payload);
        self
    }

    /// Returns the number of segments that SNOOP retransmitted.
    pub fn retransmitted(&self) -> u64 {
        self.flows["total"]["retransmitted"].as_u64().unwrap_or(0)
    }

    /// Returns the number of duplicate acknowledgements that SNOOP suppressed.
    pub fn suppressed(&self) -> u64 {
        self.flows["total"]["suppressed"].as_u64().unwrap_or(0)
    }

    /// Returns the serials of the zones that it has keys for.
    pub fn opens(&self) -> Vec<u64> {
        let held = self.zones["held"].as_array().into_iter().flatten();
        let serials = held.filter_map(|held| held["opens"].as_array()).flatten();
        serials.filter_map(Value::as_u64).collect()
    }
}
