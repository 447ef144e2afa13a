//! `strata-lab bench soak`: an endurance test of hosts near their full throughput with frequent
//! rekeys. It detects lost datagrams and growing memory.
//!
//! A mobile node and a gateway with a licensed node between, as in [`crate::pair`]. Numbered
//! datagrams go both ways, and each must arrive: first as fast as they come and go, then at a share
//! of that rate. Each end rekeys by its configuration, and the licensed node gets the new keys.

mod picture;
mod report;
mod text;

pub use report::{Grown, Report, Sample};

use super::memory::memory;
use crate::daemon::Daemon;
use crate::obstacle::Obstacle;
use crate::pair::{self, DEADLINE, GATEWAY, LICENSED, MOBILE, Pair, Terms, Tunnel, holds_a_grant};
use crate::plain;
use crate::volley::Volleys;
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use os::Family;
use std::thread;
use std::time::{Duration, Instant};

/// Time after which a tunnel is rekeyed.
const REKEY: Duration = Duration::from_secs(10);

/// Duration of the first part, at full rate.
const FULL: Duration = Duration::from_secs(2);

/// Share of the full rate in the second part.
const SHARE: f64 = 0.8;

/// Fault option of a daemon that drops one packet in a hundred.
const LOSSY: &str = "seed=1,only=esp,in.drop=1";

/// Options of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Duration, in seconds.
    pub seconds: u32,
    /// True to make the gateway drop packets, which must be detected.
    pub lossy: bool,
}

/// Runs the benchmark. The report includes losses and growing daemons.
///
/// # Errors
/// This machine cannot run the benchmark.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    run(options).map_err(|error| {
        Obstacle::new(
            format!("{error:#}"),
            "end what else keeps this machine busy",
        )
    })
}

fn run(options: &Options) -> Result<Report> {
    let scene = Scene::new(options.lossy)?;
    let mut volleys = Volleys::new(
        (&scene.pair.mobile, MOBILE[0]),
        (&scene.pair.gateway, GATEWAY[0]),
    )?;
    let mut report = Report::new(options.seconds);
    report.failure = scene
        .soak(&mut volleys, &mut report)
        .err()
        .map(|error| format!("{error:#}"));
    Ok(report.finished())
}

/// The three hosts and their daemons.
struct Scene {
    // Dropped before their hosts.
    node: Daemon,
    tunnel: Tunnel,
    pair: Pair,
}

impl Scene {
    fn new(lossy: bool) -> Result<Self> {
        let pair = Pair::new("soak")?;
        let node = pair.start_licensed(LICENSED)?;
        let rekey = format!("rekey = \"{}s\"", REKEY.as_secs());
        let configs = [
            pair::mobile_config(Family::V4, Terms::LICENSED, "manual"),
            pair::gateway_config(Terms::LICENSED),
        ];
        let configs = configs.map(|config| plain::about_peer(&config, &rekey));
        let faults: &[&str] = if lossy { &["--faults", LOSSY] } else { &[] };
        let tunnel = plain::start_told(&pair, &configs, [&[], faults])?;
        tunnel.up()?;
        node.wait_until("zones", DEADLINE, holds_a_grant)?;
        Ok(Self { node, tunnel, pair })
    }

    /// Runs the test and fills the report. A loss is an error.
    fn soak(&self, volleys: &mut Volleys, report: &mut Report) -> Result<()> {
        let begun = Instant::now();
        let mut flown = 0;
        while begun.elapsed() < FULL {
            volleys.fly()?;
            flown += 1;
        }
        let full = f64::from(flown) / begun.elapsed().as_secs_f64();
        report.full_per_s = full * f64::from(Volleys::DATAGRAMS);
        let every = Duration::from_secs_f64((full * SHARE).recip());
        let bar = bar(report.seconds);
        let begun = Instant::now();
        let mut flown = 0;
        let mut next = Duration::from_secs(1);
        while begun.elapsed() < Duration::from_secs(report.seconds.into()) {
            volleys.fly()?;
            flown += 1;
            report.datagrams += u64::from(Volleys::DATAGRAMS);
            if begun.elapsed() >= next {
                next += Duration::from_secs(1);
                report.samples.push(self.sample(begun, report.datagrams)?);
                bar.inc(1);
            }
            thread::sleep((every * flown).saturating_sub(begun.elapsed()));
        }
        bar.finish_and_clear();
        report.new_keys = self.new_keys();
        self.lost_nothing()
    }

    fn sample(&self, begun: Instant, datagrams: u64) -> Result<Sample> {
        let memory = |daemon: &Daemon| memory(daemon.pid());
        Ok(Sample {
            s: begun.elapsed().as_secs_f64(),
            datagrams,
            mobile: memory(&self.tunnel.mobile)?,
            node: memory(&self.node)?,
            gateway: memory(&self.tunnel.gateway)?,
        })
    }

    /// Returns the number of rekeys of the tunnel.
    fn new_keys(&self) -> usize {
        let log = std::fs::read_to_string(self.tunnel.mobile.log_path()).unwrap_or_default();
        log.matches("tunnel rekeyed").count()
    }

    /// Checks that no daemon dropped a packet and that the system refused no request of a daemon.
    fn lost_nothing(&self) -> Result<()> {
        let Tunnel { mobile, gateway } = &self.tunnel;
        for (name, daemon) in [("mobile node", mobile), ("gateway", gateway)] {
            pair::no_drops(&daemon.strata("status")?).with_context(|| format!("the {name}"))?;
        }
        for daemon in [mobile, &self.node, gateway] {
            let metrics = daemon.strata_text("metrics")?;
            let refused = |line: &&str| {
                line.starts_with("strata_system_refused_total") && !line.ends_with(" 0")
            };
            if let Some(line) = metrics.lines().find(refused) {
                bail!("the system refused a daemon something: {line}");
            }
        }
        Ok(())
    }
}

fn bar(seconds: u32) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30.green/dim} {pos} of {len} s")
        .expect("the template is well-formed");
    ProgressBar::new(seconds.into()).with_style(style)
}
