//! A tunnel by satellite: with a round trip of 600 ms, no request is sent twice.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{self, Pair};
use lab::plain;
use lab::process::until;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Enough for a set-up, a rekey or several liveness checks.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of datagrams with liveness checks and their responses, by each end.
const CHECKS: u64 = 5;

/// IKE datagrams of a daemon.
struct Sent {
    all: u64,
    retransmitted: u64,
    answered_again: u64,
}

impl Sent {
    fn read(daemon: &Daemon) -> Result<Self> {
        let metrics = daemon.strata_text("metrics")?;
        let count = |kind: &str| {
            let name = format!("strata_ike_datagrams_total{{kind=\"{kind}\"}} ");
            let mut lines = metrics.lines();
            let value = lines.find_map(|line| line.strip_prefix(&name));
            let value = value.with_context(|| format!("{name}: {metrics}"))?;
            Ok::<u64, anyhow::Error>(value.parse()?)
        };
        Ok(Self {
            all: count("sent")?,
            retransmitted: count("retransmitted")?,
            answered_again: count("answered_again")?,
        })
    }
}

/// Both ends check the other one after each second of silence.
#[lab::test]
fn over_a_round_trip_of_600_milliseconds_nothing_is_sent_twice() -> Result<()> {
    let hop = sim::Settings {
        rate: NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(300),
        queue: 200,
        bit_error_rate: 0.0,
    };
    let pair = Pair::with_lossy_hop("round-trip", hop)?;
    let [mobile, gateway] = plain::configs("", "");
    // No licensed node runs, and the gateway would try to reach it.
    let (gateway, _) = gateway.split_once("[licensed.fa]").context("a table")?;
    let mut tunnel = plain::start_with(&pair, &[mobile, gateway.to_owned()])?;
    let began = Instant::now();
    tunnel.mobile.strata("up office --wait=60")?;
    tunnel.gateway.wait_until("status", PATIENCE, pair::is_up)?;
    let up = began.elapsed();
    (0..10).try_for_each(|round| tunnel.rekey(round))?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let before = Sent::read(daemon)?.all;
        until("liveness checks", PATIENCE, || {
            Ok((Sent::read(daemon)?.all >= before + CHECKS).then_some(()))
        })?;
    }
    for (name, daemon) in [("mobile", &tunnel.mobile), ("gateway", &tunnel.gateway)] {
        let Sent {
            all,
            retransmitted,
            answered_again,
        } = Sent::read(daemon)?;
        println!("{name}: {retransmitted} of {all} datagrams were sent again, up after {up:?}");
        ensure!((retransmitted, answered_again) == (0, 0), "{name}");
    }
    Ok(())
}
