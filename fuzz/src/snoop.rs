//! Fuzzes SNOOP: with any TCP headers a licensed node may see, SNOOP keeps its limits and forwards
//! every segment with a payload.

use model::{Flow, Instant};
use pep::{Config, Segment, Side, Snoop, Verdict};
use std::time::Duration;
use wire::tcp;

const STEP: usize = 28;

/// Runs steps of 28 octets: side and flags, delay, payload length, a TCP header.
pub fn run(octets: &[u8]) {
    let config = Config {
        flows: 4,
        packets_per_flow: 8,
        octets: 8192,
        ..Config::default()
    };
    let mut snoop = Snoop::new(config);
    let mut now = Instant::ZERO;
    for step in octets.chunks_exact(STEP).take(200) {
        now += Duration::from_millis(1 << (step[1] % 13));
        if snoop.poll_timeout().is_some_and(|due| due.at <= now) {
            snoop.handle_timeout(now);
            assert!(
                snoop.poll_timeout().is_none_or(|due| due.at > now),
                "due for ever"
            );
        }
        segment(&mut snoop, step, now);
        while snoop.poll_transmit().is_some() {}
        assert!(snoop.flows().count() <= 4);
        let cached: usize = snoop.flows().map(|flow| flow.octets).sum();
        assert!(cached <= 8192, "{cached} octets");
    }
}

fn segment(snoop: &mut Snoop, step: &[u8], now: Instant) {
    let from = [Side::Wired, Side::Wireless][usize::from(step[0] & 1)];
    let Some(header) = tcp::Header::parse(&step[4..]) else {
        return;
    };
    let (ours, theirs) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let port = u16::from(step[0] >> 5);
    let (source, destination, source_port, destination_port) = match from {
        Side::Wired => (ours, theirs, 80, port),
        Side::Wireless => (theirs, ours, port, 80),
    };
    let payload_len = usize::from(u16::from_be_bytes([step[2], step[3]]) % 2000);
    let sealed = vec![0; payload_len + 40];
    let segment = Segment {
        line: None,
        flow: Flow {
            source,
            destination,
            protocol: tcp::PROTOCOL,
            source_port,
            destination_port,
            ports_visible: true,
        },
        header,
        hides: step[0] & 4 != 0,
        payload_len,
        sealed: &sealed,
        fresh: step[0] & 2 == 0,
        position: None,
    };
    let verdict = snoop.handle_segment(from, &segment, now);
    assert!(verdict == Verdict::Forward || payload_len == 0);
}
