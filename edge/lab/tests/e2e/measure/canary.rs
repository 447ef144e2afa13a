//! The canary: every octet of the demo's download is marked, and everything the licensed node is
//! made of (memory with SNOOP's cache, log, answers) is searched for any 8 of them in a row.
//!
//! All three tests look at one run: the download in zoned ESP, the same with a licence for the
//! payload, and in clear TCP, at the same time.

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
        // Looked into twice, and an allocator alone takes more than this.
        ensure!(node.payload.searched > 4 << 20, "{:?}", node.payload);
    }
    // It was at work on what it may read, with a cache full of what it may not.
    let flows = &node(report, Setup::ZonedSnoop)?.flows;
    ensure!(flows["total"]["cached"].as_u64() > Some(100), "{flows}");
    Ok(())
}

/// Were the search blind, this would find nothing either.
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

/// The runs, made for the test that asks first.
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
