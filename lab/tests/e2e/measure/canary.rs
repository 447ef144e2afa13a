//! The canary test: every octet of the demo's download is marked. The test searches all of the
//! licensed node's state (memory with SNOOP's cache, log, answers) for any 8 of these octets in a
//! row.
//!
//! All three tests share one set of concurrent runs: the download in zoned ESP, the same with a
//! licence for the payload, and in clear TCP.

use anyhow::{Context, Result, ensure};
use lab::demo::{self, Node, Options, Report, Setup};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

#[lab::test(quiet, together)]
fn the_licensed_node_never_holds_payload() -> Result<()> {
    let report = &runs()?.headers;
    for setup in [Setup::Zoned, Setup::ZonedSnoop] {
        let node = node(report, setup)?;
        ensure!(node.opens() == [1], "{setup:?}: {}", node.zones);
        ensure!(node.payload.found == 0, "{setup:?}: {:?}", node.payload);
        // Memory is searched twice, and an allocator alone uses more than this.
        ensure!(node.payload.searched > 4 << 20, "{:?}", node.payload);
    }
    // The node was processing headers, with a cache full of payload that it must not read.
    let flows = &node(report, Setup::ZonedSnoop)?.flows;
    ensure!(flows["total"]["cached"].as_u64() > Some(100), "{flows}");
    Ok(())
}

/// Control: a blind search would find nothing here either.
#[lab::test(quiet, together)]
fn a_payload_licensed_by_name_is_found_in_the_node() -> Result<()> {
    for setup in [Setup::Zoned, Setup::ZonedSnoop] {
        let node = node(&runs()?.payload, setup)?;
        ensure!(node.opens() == [1, 2], "{setup:?}: {}", node.zones);
        ensure!(node.payload.found > 0, "{setup:?}: {:?}", node.payload);
    }
    Ok(())
}

#[lab::test(quiet, together)]
fn a_payload_in_clear_is_found_in_the_node() -> Result<()> {
    let node = node(&runs()?.headers, Setup::Snoop)?;
    ensure!(node.payload.found > 0, "{:?}", node.payload);
    Ok(())
}

struct Runs {
    headers: Report,
    payload: Report,
}

/// Returns the runs; the first test that needs them makes them.
fn runs() -> Result<&'static Runs> {
    static RUNS: OnceLock<Runs> = OnceLock::new();
    if let Some(runs) = RUNS.get() {
        return Ok(runs);
    }
    let headers = Options {
        setups: vec![Setup::Snoop, Setup::Zoned, Setup::ZonedSnoop],
        duration: Duration::from_secs(10),
        ..Options::default()
    };
    let payload = Options {
        setups: vec![Setup::Zoned, Setup::ZonedSnoop],
        license_payload: true,
        ..headers.clone()
    };
    let measure = |options| {
        let report = demo::measure(options);
        report.inspect(|report| println!("{report}"))
    };
    let (headers, payload) = thread::scope(|scope| {
        let headers = scope.spawn(|| measure(&headers));
        (headers.join().expect("no panic"), measure(&payload))
    });
    let (headers, payload) = (headers?, payload?);
    Ok(RUNS.get_or_init(|| Runs { headers, payload }))
}

fn node(report: &Report, setup: Setup) -> Result<&Node> {
    let run = report.run(setup);
    let run = run.with_context(|| report.reasons.join("; "))?;
    run.node.as_ref().context("this setup has a licensed node")
}
