//! Polls the agents for their keys and counters, and the home agent for the place of the mobile
//! node.

use super::LOOK;
use super::network::{Network, keys};
use super::news::{News, Sight, Teller};
use crate::daemon::Daemon;
use crate::walk::{CARE_OF, bound};
use anyhow::{Context, Result};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Prefix of the counters of passing packets in `strata metrics`.
const PASSED: &str = "strata_transit_packets_total{outcome=\"";

/// Polls until `over` is set.
pub(super) fn watch(network: &Network, teller: &Teller, over: &AtomicBool) -> Result<()> {
    let mut agents: Vec<_> = network.agents.iter().enumerate().collect();
    let mut last = None;
    while !over.load(Ordering::Relaxed) {
        let status = serde_json::from_str(&network.home.ask("status", Value::Null)?)?;
        let place = bound(&status).first().copied();
        let place = place.and_then(|place| CARE_OF.iter().position(|care_of| *care_of == place));
        if last != Some(place) {
            teller.tell(News::Bound(place));
            last = Some(place);
        }
        agents.retain(|(number, agent)| match look(agent) {
            Ok(sight) => {
                teller.tell(News::Agent(*number, sight));
                true
            }
            Err(error) => {
                teller.tell(News::Gone(*number, format!("{error:#}")));
                false
            }
        });
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Queries an agent once.
fn look(agent: &Daemon) -> Result<Sight> {
    let zones = serde_json::from_str(&agent.ask("zones", Value::Null)?)?;
    let metrics: Value = serde_json::from_str(&agent.ask("metrics", Value::Null)?)?;
    let metrics = metrics["metrics"].as_str().context("no metrics")?;
    let (read, shown) = packets(metrics);
    Ok(Sight {
        keys: keys(&zones),
        read,
        shown,
    })
}

/// Returns the number of packets that a licensed node has opened, and the number of sealed packets
/// that passed it. The opened ones are TCP segments, other packets in tunnels (`opaque`), and
/// packets that it had seen before (`stale`).
fn packets(metrics: &str) -> (u64, u64) {
    let (mut read, mut shown) = (0, 0);
    for line in metrics.lines() {
        let outcome = line
            .strip_prefix(PASSED)
            .and_then(|rest| rest.split_once("\"} "));
        let Some((outcome, count)) = outcome else {
            continue;
        };
        let count = count.parse().unwrap_or(0);
        match outcome {
            "segment" | "opaque" | "stale" => read += count,
            "unlicensed" | "not_opened" => {}
            _ => continue,
        }
        shown += count;
    }
    (read, shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_a_part_of_what_was_shown() {
        let metrics = "# TYPE strata_transit_packets counter\n\
                       strata_transit_packets_total{outcome=\"foreign\"} 1000\n\
                       strata_transit_packets_total{outcome=\"unlicensed\"} 100\n\
                       strata_transit_packets_total{outcome=\"opaque\"} 20\n\
                       strata_transit_packets_total{outcome=\"segment\"} 3\n";
        assert_eq!(packets(metrics), (23, 123));
    }
}
