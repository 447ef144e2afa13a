//! The demo's equipment without any of our protocols: what Reno makes of the lossy hop.

use anyhow::{Context, Result, ensure};
use lab::demo::{self, Options, Setup};
use lab::runner;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    runner::run(lab::tests![
        without_errors_reno_fills_the_lossy_hop,
        with_errors_reno_gets_what_padhye_says,
    ])
}

/// Bits per second of an unprotected download.
fn goodput(seconds: u64, ber: u64) -> Result<f64> {
    let options = Options {
        setups: vec![Setup::None],
        duration: Duration::from_secs(seconds),
        ber,
        ..Options::default()
    };
    let report = demo::measure(&options)?;
    println!("{report}");
    let reason = || report.reasons.join("; ");
    let run = report.run(Setup::None).with_context(reason)?;
    ensure!(!report.passed, "a verdict needs more than one setup");
    Ok(run.goodput)
}

fn without_errors_reno_fills_the_lossy_hop() -> Result<()> {
    // 1448 octets of 1500 are payload.
    let goodput = goodput(15, 0)?;
    ensure!((1.85e6..1.94e6).contains(&goodput), "{goodput} b/s");
    Ok(())
}

/// 2.3 % of the segments are lost; the round trip takes 0.21 s. Padhye's two formulas give 326 and
/// 470 kb/s; runs of this length scatter by a third.
fn with_errors_reno_gets_what_padhye_says() -> Result<()> {
    let goodput = goodput(30, 512 << 10)?;
    ensure!((2.0e5..6.0e5).contains(&goodput), "{goodput} b/s");
    Ok(())
}
