//! Path MTU discovery with a peer that echoes no probes, strongSwan: the path carries less than the
//! links at both ends, its router reports nothing, and the peer drops fragments.

use super::pmtu::{NARROW, OFF};
use super::probes::{arrives_nothing, drop_fragments, silence};
use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, Side, THEIRS};
use lab::pair::{self, children};
use lab::strongswan::Charon;

const OCTETS: u64 = 1_000_000;

fn start(tunnel: &str) -> Result<(Duo, Daemon, Charon)> {
    let duo = Duo::behind_nat("mute", Side::Ours)?;
    let router = duo.nat.as_ref().context("no router")?;
    for (host, device) in [(router, "outside"), (&duo.theirs, "eth0")] {
        host.netns().netlink()?.set_mtu(device, NARROW)?;
    }
    silence(router)?;
    drop_fragments(&duo.theirs)?;
    let ours = OURS.replace("[tunnel]\n", &format!("[tunnel]\n{tunnel}\n"));
    let (strata, charon) = duo.start(&ours, &THEIRS)?;
    strata.strata("up theirs --wait")?;
    Ok((duo, strata, charon))
}

// Works: path-mtu
#[lab::test]
fn a_peer_that_echoes_no_probes_gets_segments_of_a_safe_length() -> Result<()> {
    let (duo, strata, _charon) = start("")?;
    duo.carry(OCTETS)?;
    strata.wait_until("status", DEADLINE, |status| {
        let mut children = children(status).into_iter();
        children.any(|child| child["path_mtu_origin"] == "safe")
    })?;
    let text = pair::details(&strata)?;
    ensure!(text.contains("of 1280 outside (safe default)"), "{text}");
    duo.carry(OCTETS)
}

/// The control.
// Refuses: path-mtu
#[lab::test]
fn without_path_mtu_discovery_such_a_peer_gets_nothing() -> Result<()> {
    let (duo, _strata, _charon) = start(OFF)?;
    arrives_nothing(&duo.ours, &duo.theirs, "10.2.0.1")
}
