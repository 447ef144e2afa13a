//! Fuzzes the readers of foreign logs. Any octets are sessions or counted faults in each format, no
//! session ends before it begins, and each can be counted and simulated.

use crypto::UnixTime;
use logs::{Clock, Format, Logs, Order, Simulation, Span, Summary, Zone};
use resumption::Strategy;
use std::time::Duration;

const STRATEGY: Strategy = Strategy {
    clocked: Duration::from_secs(8 * 3600),
    established: Some(Duration::from_secs(2 * 3600)),
    data: Some(20_000_000),
    by_value: false,
};

/// Takes octets for a log of each format.
pub fn run(octets: &[u8]) {
    if let Ok(text) = std::str::from_utf8(octets) {
        let _ = Format::detect(text);
    }
    for format in Format::ALL {
        read(format, octets);
    }
}

fn read(format: Format, octets: &[u8]) {
    let clock = Clock::new(Zone::UTC, UnixTime(1_796_029_200));
    let mut logs = Logs::new(format.reader(), clock, 4);
    let mut sessions = Vec::new();
    let mut out = |session| sessions.push(session);
    // The same file again, as after a rotation that copied it.
    for file in ["log.1", "log"] {
        let read = logs.read(file, octets, &mut out);
        read.expect("octets in memory can be read");
    }
    logs.finish(&mut out);
    assert!(logs.faults().count() <= logs.lines() + 2);
    let mut summary = Summary::new(Zone::UTC, 4);
    let mut simulation = Simulation::new(STRATEGY, 4);
    let mut order = Order::new(4);
    for session in sessions {
        if let Span::Whole { begin, end } = session.span {
            assert!(begin <= end, "{session:?}");
        }
        summary.add(&session);
        order.add(session, &mut |session| simulation.visit(&session));
    }
    order.finish(&mut |session| simulation.visit(&session));
    let outcome = simulation.finish();
    assert!(outcome.exchanges <= outcome.connections);
    assert!(outcome.connections <= summary.connections());
}
