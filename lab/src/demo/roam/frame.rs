//! The picture of a walk on a terminal of 80 columns: the place of the mobile node, the readers,
//! and the traffic.

use super::diary::{Diary, Leg, letter};
use super::network::RATE;
use super::{Options, PLACES};
use crate::demo::paint::{Paint, bar, count, spark};
use crate::walk::CARE_OF;
use std::time::Duration;

/// Length of the longest bar, in characters.
const BAR: usize = 10;

/// Number of half seconds of the download and of the stream that are shown.
const SPANS: usize = 34;

/// Packets per second at which an agent's bar has its full length.
const BUSY: u64 = 1200;

/// Line to the agent of the mobile node, and line to another agent.
const WAYS: [&str; 2] = ["═", "─"];

/// Draws the whole picture.
pub(super) fn frame(options: &Options, diary: &Diary, paint: Paint) -> String {
    let parts = [
        head(options, diary, paint),
        map(diary, paint),
        agents(diary, paint),
        traffic(diary, paint),
        moves(diary, paint),
    ];
    parts.join("\n")
}

fn head(options: &Options, diary: &Diary, paint: Paint) -> String {
    let moves = diary.legs.len().saturating_sub(1);
    let left = format!("keys by {}", options.handover.name());
    let left = match options.everywhere {
        true => "keys for everybody, always".to_owned(),
        false => left,
    };
    let seconds = diary.now.min(options.total()).as_secs();
    let right = format!(
        "move {moves} of {}, {seconds} s of {}",
        options.moves,
        options.total().as_secs()
    );
    let space = 79 - "A walk: ".len() - left.chars().count();
    format!("{}{left}{right:>space$}\n", paint.bold("A walk: "))
}

/// Draws the paths to the agents, with the one in use highlighted.
fn map(diary: &Diary, paint: Paint) -> String {
    let here = diary.legs.last().map(|leg| leg.to);
    let mut map = String::new();
    for (agent, care_of) in CARE_OF.iter().take(PLACES).enumerate() {
        let is_here = here == Some(agent);
        let way = WAYS[usize::from(!is_here)];
        let (begin, end, left, right) = match agent {
            0 => ("╭", "╮", "", ""),
            1 => ("┼", "┼", "mobile node ──", "── home agent ── server"),
            _ => ("╰", "╯", "10.66.0.7", "   192.0.2.1"),
        };
        let way = format!(
            "{} {}  {care_of:12} {}",
            way.repeat(6),
            letter(agent),
            way.repeat(6)
        );
        let way = match is_here {
            true => paint.good(&way),
            false => paint.dim(&way),
        };
        map += &format!("  {left:14}{begin}{way}{end}{right}\n");
    }
    map
}

fn agents(diary: &Diary, paint: Paint) -> String {
    let head = "     mobile node      keys for  reads per second    read in all   since it left";
    let mut table = paint.dim(head);
    table.push('\n');
    for (agent, sight) in diary.sights().iter().enumerate() {
        let is_here = diary.legs.last().is_some_and(|leg| leg.to == agent);
        let place = match diary.gone[agent] {
            true => "DOES NOT ANSWER".to_owned(),
            false => place(diary, agent),
        };
        let place = format!("{place:17}");
        let place = match (is_here, diary.gone[agent]) {
            (_, true) => paint.bad(&place),
            (true, _) => paint.good(&place),
            (false, _) => place,
        };
        let keys = match sight.keys {
            0 => "-".to_owned(),
            1 => "headers".to_owned(),
            slots => format!("{slots} slots"),
        };
        let keys = paint.doubtful(&format!("{keys:9}"));
        let rate = match diary.gone[agent] {
            true => 0,
            false => diary.rate(agent),
        };
        let bar = bar(rate as f64 / BUSY as f64, BAR);
        let bar = format!("{rate:>5} {bar:BAR$}");
        let bar = match (is_here, rate) {
            (_, 0) => paint.dim(&bar),
            (true, _) => paint.good(&bar),
            (false, _) => paint.bad(&bar),
        };
        let (name, all) = (paint.bold(&letter(agent).to_string()), count(sight.read));
        let later = later(diary, agent, paint);
        table += &format!("  {name}  {place}{keys}{bar} {all:>13} {later}\n");
    }
    table
}

/// Describes the mobile node's place, as seen from an agent.
fn place(diary: &Diary, agent: usize) -> String {
    let visit = diary.legs.iter().rposition(|leg| leg.to == agent);
    let since = |from: Duration| diary.now.saturating_sub(from).as_secs();
    match visit {
        None => "not yet here".to_owned(),
        Some(leg) => match diary.legs.get(leg + 1) {
            None => "is here".to_owned(),
            Some(next) => format!("left {} s ago", since(next.at)),
        },
    }
}

/// Formats the number of packets that an agent that was left has read of those sealed since.
fn later(diary: &Diary, agent: usize, paint: Paint) -> String {
    let (read, shown) = diary.read_since(agent);
    if shown == 0 {
        return String::new();
    }
    let later = format!("{:>15}", format!("{} of {}", count(read), count(shown)));
    match read {
        0 => later,
        _ => paint.bad(&later),
    }
}

fn traffic(diary: &Diary, paint: Paint) -> String {
    let spans = diary.recent(SPANS);
    let (mut download, mut stream) = (String::new(), String::new());
    for &(rate, lost) in &spans {
        download.push(spark(rate as f64 / RATE as f64));
        stream.push(if lost { '×' } else { '·' });
    }
    let rate = spans.last().map_or(0, |(rate, _)| *rate) as f64 / 1e6;
    let megabytes = diary.octets as f64 / 1e6;
    let (sent, lost) = diary.stream();
    let stream = format!("{stream:SPANS$}").replace('×', &paint.bad("×"));
    format!(
        "  download  {}  {rate:.1} Mb/s, {megabytes:.1} MB\n  \
         stream    {stream}  {} sent, {lost} lost\n",
        paint.good(&format!("{download:SPANS$}")),
        count(sent),
    )
}

/// Returns a line for each of the last moves. Earlier moves were shown before.
fn moves(diary: &Diary, paint: Paint) -> String {
    const LINES: usize = 6;
    let mut moves: Vec<_> = (1..diary.legs.len()).collect();
    moves.drain(..moves.len().saturating_sub(LINES));
    let line = |number: usize| {
        let leg = &diary.legs[number];
        let from = letter(diary.legs[number - 1].to);
        let gap = match diary.gap(number) {
            Some(gap) => format!("{:>5} ms", gap.as_millis()),
            None => format!("{:>8}", "..."),
        };
        let lost = diary.lost(number);
        let keys = after(leg, leg.keys);
        let reads = after(leg, leg.reads);
        let name = paint.bold(&format!("{from} → {}", letter(leg.to)));
        format!("  {number:>2}  {name}   gap {gap}, {lost:>3} lost   keys {keys}   reads {reads}\n")
    };
    moves.into_iter().map(line).collect()
}

/// Formats the time of an event after the move.
fn after(leg: &Leg, at: Option<Duration>) -> String {
    match at.map(|at| at.saturating_sub(leg.at)) {
        None => format!("{:>7}", "..."),
        Some(Duration::ZERO) => format!("{:>7}", "before"),
        Some(after) => format!("{:>4} ms", after.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::diary::tests::walked;
    use super::*;
    use crate::text::WIDTH;

    const PLAIN: Paint = Paint { colour: false };

    fn shown(read_by_a_after: u64) -> String {
        frame(&Options::default(), &walked(read_by_a_after), PLAIN)
    }

    #[test]
    fn it_says_where_the_mobile_node_is_and_what_was_lost() {
        let text = shown(0);
        let way = text.lines().find(|line| line.contains("203.0.113.2"));
        assert!(way.is_some_and(|line| line.contains("══ B")), "{text}");
        for words in [
            "B  is here",
            "A  left 2 s ago",
            "0 of 100",
            "100 sent, 5 lost",
            "A → B",
        ] {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
    }

    #[test]
    fn an_agent_that_reads_on_is_shouted() {
        let text = frame(&Options::default(), &walked(7), Paint { colour: true });
        assert!(text.contains("\x1b[1;31m       7 of 100"), "{text}");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        let options = Options {
            moves: 1000,
            stay: Duration::from_secs(60),
            everywhere: true,
            ..Options::default()
        };
        for read in [0, 99] {
            let text = frame(&options, &walked(read), PLAIN);
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest < Some(WIDTH), "{text}");
        }
    }
}
