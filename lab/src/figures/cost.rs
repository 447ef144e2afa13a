//! Parts that the tables of processing time share.

use crate::bare::segment::{HEADERS, acknowledgement};
use crate::bare::{CSA, Shape, WINDOW, each};
use crate::experiment::{Estimate, Finding, Plan};
use anyhow::{Result, ensure};
use model::Instant;
use pep::{Line, Owner, Position, Segment, Side, Snoop};
use std::time::Duration;
use wire::{ip, tcp};

/// SNOOP with one connection to the mobile node.
pub(super) struct Proxy {
    snoop: Snoop,
    sent: u32,
}

impl Proxy {
    pub fn new() -> Self {
        Self {
            snoop: Snoop::new(pep::Config::default()),
            sent: 0,
        }
    }

    /// Passes these segments through SNOOP on their way to the mobile node, then an acknowledgement
    /// of each. Returns the time per segment and per acknowledgement.
    pub fn snoop(&mut self, datagrams: &[Vec<u8>]) -> Result<[Duration; 2]> {
        let numbers = self.sent + 1..;
        self.sent += datagrams.len() as u32;
        let data = each(|| {
            for (datagram, seq) in datagrams.iter().zip(numbers.clone()) {
                let _ = self.show(Side::Wired, datagram, seq);
            }
        })?;
        let acks: Vec<_> = datagrams.iter().map(|data| acknowledgement(data)).collect();
        let acked = each(|| {
            for (ack, seq) in acks.iter().zip(numbers) {
                let _ = self.show(Side::Wireless, ack, seq);
            }
        })?;
        ensure!(self.snoop.poll_transmit().is_none(), "nothing was lost");
        let cached: usize = self.snoop.flows().map(|flow| flow.packets).sum();
        ensure!(
            cached == 0,
            "{cached} packets are cached that were acknowledged"
        );
        Ok([data, acked])
    }

    fn show(&mut self, from: Side, datagram: &[u8], seq: u32) -> Option<pep::Verdict> {
        let header = ip::Header::parse(datagram).ok()?;
        let segment = Segment {
            line: Some(Line {
                owner: Owner(1),
                csa: CSA,
            }),
            flow: header.flow(),
            header: tcp::Header::parse(header.payload())?,
            hides: false,
            payload_len: datagram.len() - HEADERS,
            sealed: datagram,
            fresh: true,
            position: Some(Position {
                csa: CSA,
                seq: seq.into(),
                highest: seq.into(),
                window: WINDOW,
            }),
        };
        Some(self.snoop.handle_segment(from, &segment, Instant::ZERO))
    }
}

/// Claims that the packets were in zones, without which the times mean nothing: a licensed node
/// could read the headers of `read` packets out of `all`.
pub(super) fn readable(read: usize, all: usize) -> Finding {
    let share = Estimate {
        value: read as f64 / all.max(1) as f64,
        interval: None,
        runs: all,
    };
    let share = (all > 0).then_some(share);
    let what = "packets in two zones whose headers a licensed node reads, over all";
    Finding::at_least(what, 1.0, share).detail(format!("{read} of {all}"))
}

/// Returns the shape of packets that should be in two zones.
pub(super) const fn shape(plan: &Plan) -> Shape {
    if plan.zones { Shape::Two } else { Shape::Plain }
}

/// Converts a share into percent.
pub(super) fn in_percent(share: Estimate) -> Estimate {
    Estimate {
        value: share.value * 100.0,
        interval: share.interval.map(|ends| ends.map(|end| end * 100.0)),
        ..share
    }
}

/// Converts a time into the unit of the tables.
pub(super) fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}
