//! Tables for other programs. No field ever holds a comma.

use super::cell::Condition;
use super::results::Results;
use super::table::{Column, Grid};
use std::fmt::Write;

/// Returns a line for each cell.
pub(super) fn cells(results: &Results) -> String {
    let mut text = "configuration,sender,one_error_in,wired_ms,seed,seconds,snoop,goodput_bps,\
                    resent,repaired,suppressed,packets,hit,overflowed,late,worst_ms,real_time,\
                    machine_late,repeats,modern\n"
        .to_owned();
    for measured in results.iter() {
        let condition = measured.cell.condition;
        let Condition {
            sender,
            one_error_in,
            wired_ms,
            ..
        } = condition;
        let hops = &measured.hops;
        let line = [
            condition.configuration(),
            sender.key().to_owned(),
            one_error_in.to_string(),
            wired_ms.to_string(),
            measured.cell.seed.to_string(),
            measured.cell.seconds.to_string(),
            measured.cell.snoop.to_string(),
            format!("{:.0}", measured.goodput),
            measured.resent.to_string(),
            measured.repaired.to_string(),
            measured.suppressed.to_string(),
            hops.packets.to_string(),
            hops.hit.to_string(),
            hops.overflowed.to_string(),
            hops.late.to_string(),
            format!("{:.3}", hops.worst_ms),
            hops.real_time.to_string(),
            format!("{:.5}", measured.machine.share()),
            measured.repeats.to_string(),
            condition.modern.to_string(),
        ];
        text += &line.join(",");
        text.push('\n');
    }
    text
}

/// Returns a line for each sample of each cell.
pub(super) fn traces(results: &Results) -> String {
    let mut text = "configuration,sender,seed,ms,acknowledged,window\n".to_owned();
    for measured in results.iter() {
        let condition = measured.cell.condition;
        for sample in &measured.trace {
            // Writing into a string cannot fail.
            let _ = writeln!(
                text,
                "{},{},{},{},{},{}",
                condition.configuration(),
                condition.sender.key(),
                measured.cell.seed,
                sample.ms,
                sample.acknowledged,
                sample.window
            );
        }
    }
    text
}

/// Returns a line for each row of a table.
pub(super) fn grid(grid: &Grid) -> String {
    let names = grid.columns.iter().map(Column::key);
    let heading = ["subject", "name"]
        .map(str::to_owned)
        .into_iter()
        .chain(names);
    let mut text = heading.collect::<Vec<_>>().join(",") + "\n";
    for row in &grid.rows {
        let numbers = row.numbers.iter();
        let numbers = numbers.map(|number| number.map_or_else(String::new, |n| n.to_string()));
        let fields = [row.subject.clone(), row.name.clone()];
        text += &fields
            .into_iter()
            .chain(numbers)
            .collect::<Vec<_>>()
            .join(",");
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{cell, measured};
    use super::super::table::Row;
    use super::*;

    #[test]
    fn a_number_that_a_table_lacks_is_an_empty_field() {
        let row = |name: &str, numbers: [Option<i64>; 2]| Row {
            subject: "a suite".to_owned(),
            name: name.to_owned(),
            numbers: numbers.into(),
        };
        let grid = Grid {
            columns: vec![Column::new("", "octets"), Column::new("measured", "added")],
            rows: vec![
                row("IPv4", [Some(40), Some(-1)]),
                row("IPv6", [Some(60), None]),
            ],
        };
        let text = "subject,name,octets,measured_added\na suite,IPv4,40,-1\na suite,IPv6,60,\n";
        assert_eq!(super::grid(&grid), text);
    }

    #[test]
    fn every_line_has_a_value_for_each_column() {
        let results: Results = [measured(&cell(1), 1e6), measured(&cell(2), 2e6)]
            .into_iter()
            .collect();
        for (text, lines) in [(cells(&results), 3), (traces(&results), 5)] {
            let columns: Vec<_> = text.lines().map(|line| line.split(',').count()).collect();
            assert_eq!(columns.len(), lines, "{text}");
            assert!(columns.iter().all(|&count| count == columns[0]), "{text}");
        }
        assert!(cells(&results).contains("zoned,reno,524288,100,1,20,true,1000000,"));
    }
}
