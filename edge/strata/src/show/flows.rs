//! `strata flows`: a table with one line per direction of data.

use crate::text::{Paint, clean, count, millis, octets};
use control::{Flow, Flows};
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

const HEADINGS: [&str; 9] = [
    "from",
    "to",
    "kind",
    "state",
    "rtt",
    "cached",
    "size",
    "sent again",
    "acks held",
];
/// Columns from this one on are numbers, aligned to the right.
const FIRST_NUMBER: usize = 4;

/// Formats the answer.
pub fn show(flows: &Flows, paint: Paint) -> String {
    if !flows.snoop {
        return "SNOOP is off: this host repairs no flows\n".to_owned();
    }
    let total = flows.total;
    let mut text = format!(
        "since the start: {} segments cached, {} retransmitted, {} acknowledgements held\n",
        count(total.cached),
        count(total.retransmitted),
        count(total.suppressed)
    );
    if flows.flows.is_empty() {
        text.push_str("no flows now\n");
        return text;
    }
    let rows: Vec<_> = flows.flows.iter().map(row).collect();
    let widths: Vec<_> = (0..HEADINGS.len())
        .map(|i| {
            rows.iter()
                .map(|row| row[i].len())
                .fold(HEADINGS[i].len(), usize::max)
        })
        .collect();
    let _ = writeln!(
        text,
        "\n{}",
        paint.bold(&line(&HEADINGS.map(str::to_owned), &widths))
    );
    for row in &rows {
        let _ = writeln!(text, "{}", line(row, &widths));
    }
    text
}

fn row(flow: &Flow) -> [String; HEADINGS.len()] {
    let round_trip = flow.round_trip_micros.map(Duration::from_micros);
    [
        end(flow.source),
        end(flow.destination),
        if flow.zoned { "zoned" } else { "clear" }.to_owned(),
        clean(&flow.state).into_owned(),
        round_trip.map_or_else(|| "-".to_owned(), millis),
        count(flow.cached_packets),
        octets(flow.cached_octets),
        count(flow.retransmitted),
        count(flow.suppressed),
    ]
}

/// Formats one end of a connection. In transport and BEET mode a licensed node sees ports but no
/// addresses.
fn end(address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("*:{}", address.port()),
        false => address.to_string(),
    }
}

fn line(cells: &[String; HEADINGS.len()], widths: &[usize]) -> String {
    let pad = |(i, (cell, width)): (usize, (&String, &usize))| {
        if i < FIRST_NUMBER {
            format!("{cell:<width$}")
        } else {
            format!("{cell:>width$}")
        }
    };
    let padded: Vec<_> = cells.iter().zip(widths).enumerate().map(pad).collect();
    padded.join("  ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::PLAIN;
    use super::*;
    use control::SnoopCounters;

    #[test]
    fn flows_are_a_table() {
        let counters = SnoopCounters {
            cached: 2000,
            retransmitted: 12,
            suppressed: 34,
        };
        let flow = Flow {
            source: "10.8.0.2:80".parse().unwrap(),
            destination: "10.1.0.2:40112".parse().unwrap(),
            zoned: true,
            cached_packets: 12,
            cached_octets: 16_384,
            round_trip_micros: Some(12_340),
            state: "repairing".to_owned(),
            retransmitted: 12,
            suppressed: 34,
        };
        let clear = Flow {
            source: "[fd00:8::2]:443".parse().unwrap(),
            zoned: false,
            state: "acks-elsewhere".to_owned(),
            round_trip_micros: None,
            ..flow.clone()
        };
        let flows = Flows {
            snoop: true,
            total: counters,
            flows: vec![flow, clear],
        };
        let expected = "\
since the start: 2,000 segments cached, 12 retransmitted, 34 acknowledgements held

from             to              kind   state               rtt  cached      size  sent again  acks held
10.8.0.2:80      10.1.0.2:40112  zoned  repairing       12.3 ms      12  16.0 KiB          12         34
[fd00:8::2]:443  10.1.0.2:40112  clear  acks-elsewhere        -      12  16.0 KiB          12         34
";
        assert_eq!(show(&flows, PLAIN), expected);
    }

    #[test]
    fn without_snoop_or_flows_it_says_so() {
        assert_eq!(
            show(&Flows::default(), PLAIN),
            "SNOOP is off: this host repairs no flows\n"
        );
        let idle = Flows {
            snoop: true,
            ..Flows::default()
        };
        assert!(show(&idle, PLAIN).ends_with("no flows now\n"));
    }
}
