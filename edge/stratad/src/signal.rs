//! `strata signal`: an external source reports the signal of an interface's network.

use crate::interface;
use control::{Failure, Response, Signal, SignalTunnel, Strength};
use model::Instant;
use node::{Node, PathsStatus};
use std::net::IpAddr;

/// Most characters in the name of a source.
const LONGEST: usize = 32;

/// A report.
pub struct Report {
    pub interface: String,
    pub percent: u8,
    pub by: Option<String>,
}

/// Records a report.
pub fn report(report: Report, node: &mut Node, now: Instant) -> Response {
    match record(report, node, now) {
        Ok(signal) => Response::Signal(signal),
        Err(failure) => Response::Error(failure),
    }
}

fn record(report: Report, node: &mut Node, now: Instant) -> Result<Signal, Failure> {
    let Report {
        interface,
        percent,
        by,
    } = report;
    check(percent, by.as_deref())?;
    let mut addresses = interface::addresses(&interface)?;
    // Several interfaces may have the same one.
    addresses.retain(|local| !is_link_local(*local) || is_used(*local, node));
    node.handle_signal(&addresses, percent, by.as_deref(), now);
    let mut strengths = addresses.iter().filter_map(|local| node.signal(*local));
    let weak = strengths.any(|reported| reported.is_weak);
    Ok(Signal {
        interface,
        strength: Strength { percent, weak, by },
        tunnels: tunnels(&addresses, node),
    })
}

fn check(percent: u8, by: Option<&str>) -> Result<(), Failure> {
    if percent > 100 {
        let message = format!("a signal is 0 to 100 per cent, not {percent}");
        return Err(Failure::new(message, Strength::FIX));
    }
    let fits = |by: &str| {
        let mut all = by.chars();
        let is_fit = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
        (1..=LONGEST).contains(&by.len()) && all.all(is_fit)
    };
    match by.filter(|by| !fits(by)) {
        Some(_) => Err(Failure::new(
            "the name of the source is not 1 to 32 letters, digits, `.`, `_` or `-`",
            "name it like `--by modemmanager`",
        )),
        None => Ok(()),
    }
}

fn is_link_local(local: IpAddr) -> bool {
    match local {
        IpAddr::V4(local) => local.is_link_local(),
        IpAddr::V6(local) => local.is_unicast_link_local(),
    }
}

/// Returns true if a tunnel has a path from an address.
fn is_used(local: IpAddr, node: &Node) -> bool {
    let paths = node.paths();
    let mut ways = paths.iter().flat_map(|status| &status.candidates);
    ways.any(|candidate| candidate.way.local == local)
}

/// Returns the tunnels that have a path from one of these addresses and are ours to move.
fn tunnels(addresses: &[IpAddr], node: &Node) -> Vec<SignalTunnel> {
    let paths = node.paths();
    let uses = |status: &&PathsStatus| {
        let mut locals = status.candidates.iter().map(|way| way.way.local);
        locals.any(|local| addresses.contains(&local))
    };
    let tunnels = paths.iter().filter(uses).map(|status| SignalTunnel {
        name: node.name(status.peer).to_owned(),
        follows: status.hands_over && !status.path.is_stream() || !status.live.is_empty(),
    });
    let mut tunnels: Vec<_> = tunnels.collect();
    tunnels.sort_by(|a, b| a.name.cmp(&b.name));
    tunnels
}

/// Returns the signal of a local address, if a source reports it.
pub fn strength(local: IpAddr, node: &Node) -> Option<Strength> {
    let reported = node.signal(local)?;
    Some(Strength {
        percent: reported.percent,
        weak: reported.is_weak,
        by: reported.by.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_is_no_share_or_has_no_plain_source_is_refused_with_the_fix() {
        let failure = check(101, None).unwrap_err();
        assert!(failure.fix.contains("2 * (dBm + 100)"), "{failure:?}");
        for by in ["", "a b", "wlan0\n", "\u{1b}[31m", &"a".repeat(33)] {
            let failure = check(100, Some(by)).unwrap_err();
            assert!(failure.fix.contains("--by"), "{failure:?}");
        }
        for by in [None, Some("modemmanager"), Some("wpa_cli-2.10")] {
            assert!(check(0, by).is_ok());
        }
    }
}
