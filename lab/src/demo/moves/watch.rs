//! Polls the host's daemon for its paths.

use super::network::{Network, UPLINKS};
use super::news::{News, Quality, Sight, Teller};
use anyhow::Result;
use control::{Paths, TunnelPaths};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Polls until `over` is set.
pub(super) fn watch(network: &Network, teller: &Teller, over: &AtomicBool) -> Result<()> {
    while !over.load(Ordering::Relaxed) {
        let mut answer: Value = serde_json::from_str(&network.daemon.ask("paths", Value::Null)?)?;
        let paths: Paths = serde_json::from_value(answer["paths"].take())?;
        let sight = paths.tunnels.first().map(seen).unwrap_or_default();
        teller.tell(News::Paths(sight));
        thread::sleep(super::LOOK);
    }
    Ok(())
}

fn seen(tunnel: &TunnelPaths) -> Sight {
    let works = tunnel.live.iter().filter(|path| path.works);
    let mut locals: Vec<_> = works.map(|path| path.local.ip()).collect();
    if tunnel.live.is_empty() {
        locals.push(tunnel.local.ip());
    }
    let is = |local: IpAddr, uplink: usize| local.to_string() == UPLINKS[uplink].address;
    let quality = |uplink: usize| {
        let mut candidates = tunnel.candidates.iter();
        let path = candidates.find(|path| is(path.local, uplink));
        path.map_or(Quality::default(), |path| Quality {
            exists: true,
            round_trip: path.round_trip_micros.map(Duration::from_micros),
            lost: path.lost_percent,
        })
    };
    Sight {
        used: [0, 1].map(|uplink| locals.iter().any(|local| is(*local, uplink))),
        why: tunnel.why,
        faded: tunnel.faded_percent,
        paths: [quality(0), quality(1)],
    }
}

#[cfg(test)]
mod tests {
    use super::super::network::CELLULAR;
    use super::*;
    use control::{Candidate, Carrier, Chosen, LivePath, Standing, Who};

    #[test]
    fn the_networks_in_use_and_their_quality_are_read_from_the_daemons_answer() {
        let end = |address: &str| format!("{address}:4500").parse().unwrap();
        let live = |address, works| LivePath {
            local: end(address),
            remote: end("192.0.2.1"),
            works,
            avoided: false,
            traffic: Vec::new(),
            shared: true,
        };
        let mut tunnel = TunnelPaths {
            name: "office".to_owned(),
            local: end(UPLINKS[CELLULAR].address),
            remote: end("192.0.2.1"),
            interface: None,
            carrier: Carrier::Udp,
            moved_by: Who::Us,
            why: Some(Chosen::Faded),
            faded_percent: Some(15),
            candidates: vec![Candidate {
                local: UPLINKS[CELLULAR].address.parse().unwrap(),
                remote: "192.0.2.1".parse().unwrap(),
                interface: None,
                carrier: Carrier::Udp,
                standing: Standing::Used,
                round_trip_micros: Some(60_000),
                lost_percent: Some(0),
                signal: None,
            }],
            live: Vec::new(),
        };
        let sight = seen(&tunnel);
        assert_eq!((sight.used, sight.faded), ([false, true], Some(15)));
        assert!(!sight.paths[0].exists && sight.paths[1].exists);
        let round_trip = sight.paths[1].round_trip;
        assert_eq!(round_trip, Some(Duration::from_millis(60)));
        tunnel.live = vec![live("10.3.0.2", true), live("10.4.0.2", false)];
        assert_eq!(seen(&tunnel).used, [true, false]);
    }
}
