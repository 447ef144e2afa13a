//! The picture of a walk on a terminal of 80 columns: the networks and the path in use, and the
//! traffic over time.

use super::call::Direction;
use super::network::{CELLULAR, UPLINKS, WIFI};
use super::news::Quality;
use super::record::{Record, Span};
use super::{Options, Step, Way};
use crate::demo::paint::{Paint, count, spark};
use std::time::Duration;

/// Number of characters along time.
const COLUMNS: u32 = 42;

/// Number of messages below the traffic.
const MESSAGES: usize = 7;

/// Silences of the call from which on they are doubtful, and bad.
const DOUBTFUL: Duration = Duration::from_millis(100);
const BAD: Duration = Duration::from_millis(300);

/// Draws the whole picture.
pub(super) fn frame(options: &Options, record: &Record, paint: Paint) -> String {
    let columns = columns(options, record);
    let parts = [
        head(options, record, paint),
        map(record, paint),
        traffic(record, &columns, paint),
        messages(record, paint),
    ];
    parts.join("\n")
}

fn head(options: &Options, record: &Record, paint: Paint) -> String {
    let left = match options.way {
        Way::Soft => "the daemon hands the tunnel over (clone, probe_paths)",
        Way::Paths => "two live paths (paths = 2)",
        Way::Hard => "MOBIKE alone: the tunnel moves when its path is gone",
    };
    let total = options.journey().total().as_secs();
    let right = format!("{} s of about {total}", record.now.as_secs());
    let space = 79_usize.saturating_sub("A move: ".len() + left.chars().count());
    format!("{}{left}{right:>space$}\n", paint.bold("A move: "))
}

/// Draws both networks between the host and the gateway, with those in use highlighted.
fn map(record: &Record, paint: Paint) -> String {
    let sight = record.sight();
    let way = |uplink: usize| {
        let is_used = sight.used[uplink];
        let line = if is_used { "═" } else { "─" };
        let is_gone = uplink == WIFI && record.step().is_some_and(|(_, step)| step == Step::Away);
        let quality = match is_gone {
            true => format!("{:21}", "  gone"),
            false => quality(sight.paths[uplink]),
        };
        let text = format!(
            "{} {:8} {:9} {quality} {}",
            line.repeat(4),
            UPLINKS[uplink].name,
            UPLINKS[uplink].address,
            line.repeat(3)
        );
        match is_used {
            true => paint.good(&text),
            false => paint.dim(&text),
        }
    };
    let radio = match record.loss(record.now) {
        0 => String::new(),
        lost => paint.bad(&format!("the Wi-Fi loses {lost} % of all packets")),
    };
    format!(
        "            ╭{}╮\n  host ─────┤{:49}├─ gateway\n  10.1.0.2  ╰{}╯\n            {radio}\n",
        way(WIFI),
        "",
        way(CELLULAR)
    )
}

/// Formats the measured quality of a path in 21 characters.
pub(super) fn quality(quality: Quality) -> String {
    let round_trip = quality.round_trip.map(|time| time.as_millis());
    let round_trip = round_trip.map_or("-".to_owned(), |millis| millis.to_string());
    match (quality.exists, quality.lost) {
        (true, Some(lost)) => format!("{round_trip:>5} ms {lost:>3} % lost"),
        _ => format!("{:>18}", "not measured"),
    }
    .chars()
    .chain(std::iter::repeat(' '))
    .take(21)
    .collect()
}

/// Returns the spans of time that are drawn, one for each character. The last ones are shown if the
/// walk takes longer than planned.
fn columns(options: &Options, record: &Record) -> Vec<Span> {
    let planned = options.journey().total() + Duration::from_secs(2);
    let width = planned / COLUMNS;
    let all = (record.now.as_millis() / width.as_millis().max(1)) as u32;
    let span = |number: u32| width * number..width * (number + 1);
    (all.saturating_sub(COLUMNS)..all).map(span).collect()
}

fn traffic(record: &Record, columns: &[Span], paint: Paint) -> String {
    let mut lines = vec![tunnel(record, columns, paint), wifi(record, columns, paint)];
    lines.push(download(record, columns, paint));
    let calls = Direction::ALL.map(|direction| call(record, direction, columns, paint));
    lines.extend(calls);
    lines.concat()
}

/// Returns a line of the traffic: a label, characters along time, and numbers.
fn row(label: &str, cells: &[String], numbers: &str) -> String {
    let space = " ".repeat(COLUMNS as usize - cells.len().min(COLUMNS as usize));
    format!("  {label:11}{}{space}  {numbers}\n", cells.concat())
}

fn tunnel(record: &Record, columns: &[Span], paint: Paint) -> String {
    let cell = |span: &Span| match record.used(span.end) {
        [true, true] => paint.good("B"),
        [true, false] => paint.good("W"),
        [false, true] => paint.doubtful("C"),
        [false, false] => paint.bad("×"),
    };
    let cells: Vec<_> = columns.iter().map(cell).collect();
    row("tunnel", &cells, "W Wi-Fi, C cellular")
}

fn wifi(record: &Record, columns: &[Span], paint: Paint) -> String {
    let cell = |span: &Span| {
        let loss = record.loss(span.end);
        // A small loss is visible.
        let part = (f64::from(loss) / 100.0).sqrt();
        paint.bad(&spark(part).to_string())
    };
    let cells: Vec<_> = columns.iter().map(cell).collect();
    let numbers = format!("{} % radio loss", record.loss(record.now));
    row("Wi-Fi", &cells, &numbers)
}

fn download(record: &Record, columns: &[Span], paint: Paint) -> String {
    let full = UPLINKS[WIFI].hop.rate.map_or(1, |rate| rate.get()) as f64;
    let cell = |span: &Span| paint.good(&spark(record.goodput(span) / full).to_string());
    let cells: Vec<_> = columns.iter().map(cell).collect();
    let rate = columns.last().map_or(0.0, |span| record.goodput(span)) / 1e6;
    let octets = record.octets(record.now) as f64 / 1e6;
    let numbers = format!("{rate:.1} Mb/s, {octets:.1} MB");
    row("download", &cells, &numbers)
}

/// Draws the longest silence of the call in each column. A full bar is 2.5 s.
fn call(record: &Record, direction: Direction, columns: &[Span], paint: Paint) -> String {
    let cell = |span: &Span| match record.gap(direction, span) {
        None => " ".to_owned(),
        Some(gap) => {
            let steps = (gap.as_secs_f64() / 0.02).max(1.0).log2() + 1.0;
            let bar = spark(steps / 8.0).to_string();
            match gap {
                gap if gap > BAD => paint.bad(&bar),
                gap if gap > DOUBTFUL => paint.doubtful(&bar),
                _ => paint.good(&bar),
            }
        }
    };
    let cells: Vec<_> = columns.iter().map(cell).collect();
    let all = record.whole();
    let gap = record.gap(direction, &all).unwrap_or_default();
    let (_, lost) = record.lost(direction, &all);
    let gap = gap.as_millis();
    let numbers = format!("{} lost, gap {gap} ms", count(lost));
    let numbers = match gap > BAD.as_millis() {
        true => paint.bad(&numbers),
        false => numbers,
    };
    let label = match direction {
        Direction::ToHost => "call in",
        Direction::ToServer => "call out",
    };
    row(label, &cells, &numbers)
}

/// Returns the last messages.
fn messages(record: &Record, paint: Paint) -> String {
    let first = record.told.len().saturating_sub(MESSAGES);
    let line = |(at, told): &(Duration, String)| {
        let at = paint.dim(&format!("{:6.1} s", at.as_secs_f64()));
        let told: String = told.chars().take(66).collect();
        format!("  {at}  {told}\n")
    };
    record.told[first..].iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::walked;
    use super::*;
    use crate::text::WIDTH;

    const PLAIN: Paint = Paint { colour: false };

    #[test]
    fn it_says_where_the_tunnel_is_and_what_the_call_has_lost() {
        let text = frame(&Options::default(), &walked(400), PLAIN);
        let way = text.lines().find(|line| line.contains("10.3.0.2"));
        assert!(
            way.is_some_and(|line| line.contains("════ Wi-Fi")),
            "{text}"
        );
        for words in [
            "20 lost, gap 420 ms",
            "0 lost, gap 20 ms",
            "the tunnel is on cellular, because of 15 % loss",
            "10.0 MB",
        ] {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
    }

    #[test]
    fn a_long_silence_is_shouted() {
        let text = frame(&Options::default(), &walked(400), Paint { colour: true });
        assert!(text.contains("\x1b[1;31m20 lost, gap 420 ms"), "{text}");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        for way in [Way::Soft, Way::Paths, Way::Hard] {
            let options = Options {
                way,
                stay: Duration::from_secs(60),
                ..Options::default()
            };
            let text = frame(&options, &walked(4000), PLAIN);
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest < Some(WIDTH), "{text}");
        }
    }

    #[test]
    fn a_quality_has_the_same_width_measured_or_not() {
        let measured = Quality {
            exists: true,
            round_trip: Some(Duration::from_millis(12)),
            lost: Some(5),
        };
        assert_eq!(quality(measured), "   12 ms   5 % lost  ");
        assert_eq!(quality(Quality::default()).chars().count(), 21);
    }
}
