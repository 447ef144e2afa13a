//! A record of all events in their order: the place of the mobile node, the packets that each agent
//! could read and did read, and the datagrams that arrived.

use super::PLACES;
use super::copies::SETTLED;
use super::news::{News, Sight};
use std::collections::VecDeque;
use std::time::Duration;

/// Time before a move within which a sent datagram is still under way when the link goes down. Such
/// a datagram counts as lost by the move.
const UNDER_WAY: Duration = Duration::from_millis(150);

/// Time after which a datagram counts as lost.
const LOST: Duration = Duration::from_millis(500);

/// Interval over which the rate of the download is reported.
const SPAN: Duration = Duration::from_millis(500);

/// Interval over which an agent's rate is reported.
const RECENT: Duration = Duration::from_secs(1);

/// Returns the letter of an agent.
pub(super) fn letter(agent: usize) -> char {
    char::from(b'A' + agent as u8)
}

/// All events so far.
pub(super) struct Diary {
    /// Time after a move during which the agent that was left may still read.
    allowance: Duration,
    /// Time of the last event.
    pub now: Duration,
    /// Legs of the walk, each from one arrival of the mobile node to the next.
    pub legs: Vec<Leg>,
    /// Recent sights of each agent, the last one at the back.
    agents: [VecDeque<(Duration, Sight)>; PLACES],
    /// Agents that no longer answer.
    pub gone: [bool; PLACES],
    /// Time at which each datagram was sent, and time of its arrival.
    datagrams: Vec<(Duration, Option<Duration>)>,
    /// Times of all arrivals.
    arrivals: Vec<Duration>,
    /// Octets of the download.
    pub octets: u64,
    /// Octets of the download at the end of each [`SPAN`].
    spans: Vec<u64>,
    /// Time at which the walk ended.
    pub over: Option<Duration>,
    /// Failures.
    pub failures: Vec<String>,
}

/// The stay of the mobile node at one agent.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    /// The agent.
    pub to: usize,
    /// Time at which the link to the previous agent went down.
    pub at: Duration,
    /// Time at which the home agent had the binding.
    pub bound: Option<Duration>,
    /// Time at which the agent had keys.
    pub keys: Option<Duration>,
    /// Time at which the agent had read a packet.
    pub reads: Option<Duration>,
    /// Octets of the download before the leg.
    pub octets: u64,
    /// Sight of each agent before the leg.
    begin: [Sight; PLACES],
    /// Sight of each agent at the time when nothing was under way to it any more.
    settled: [Option<Sight>; PLACES],
    /// Last sight of each agent.
    end: [Sight; PLACES],
}

impl Diary {
    pub fn new(allowance: Duration) -> Self {
        Self {
            allowance,
            now: Duration::ZERO,
            legs: Vec::new(),
            agents: Default::default(),
            gone: [false; PLACES],
            datagrams: Vec::new(),
            arrivals: Vec::new(),
            octets: 0,
            spans: Vec::new(),
            over: None,
            failures: Vec::new(),
        }
    }

    /// Records a failure that no event reports.
    pub fn fail(&mut self, why: String) {
        self.failures.push(why);
    }

    /// Records an event. Returns a message if the event is worth one.
    pub fn note(&mut self, at: Duration, news: News) -> Option<String> {
        self.pass(at);
        match news {
            News::Left(to) => Some(self.left(to, at)),
            News::Bound(place) => {
                let leg = self.legs.last_mut()?;
                let arrives = place == Some(leg.to) && leg.bound.is_none();
                leg.bound = leg.bound.or(arrives.then_some(at));
                let after = millis(at.saturating_sub(leg.at));
                let is_move = arrives && self.legs.len() > 1;
                is_move.then(|| format!("home knows that it is at {}, {after}", self.place()))
            }
            News::Agent(agent, sight) => self.look(agent, sight, at),
            News::Gone(agent, why) => {
                self.gone[agent] = true;
                let why = format!("agent {} does not answer any more: {why}", letter(agent));
                self.failures.push(why.clone());
                Some(why)
            }
            News::Sent(_) => {
                self.datagrams.push((at, None));
                None
            }
            News::Came(number) => self.came(number, at),
            News::Octets(octets) => {
                self.octets = octets;
                None
            }
            News::Over => {
                self.over = Some(at);
                None
            }
            News::Failed(why) => {
                self.failures.push(why.clone());
                Some(why)
            }
        }
    }

    /// Advances the time.
    pub fn pass(&mut self, now: Duration) {
        self.now = self.now.max(now);
        while SPAN * (self.spans.len() as u32 + 1) <= self.now {
            self.spans.push(self.octets);
        }
    }

    fn left(&mut self, to: usize, now: Duration) -> String {
        let sights = self.sights();
        let from = self.legs.last().map(|leg| letter(leg.to));
        self.legs.push(Leg {
            to,
            at: now,
            bound: from.is_none().then_some(now),
            keys: None,
            reads: None,
            octets: self.octets,
            begin: sights,
            settled: [None; PLACES],
            end: sights,
        });
        let to = letter(to);
        match from {
            Some(from) => format!("the link to {from} goes as that to {to} comes"),
            None => format!("the mobile node is at {to}"),
        }
    }

    fn look(&mut self, agent: usize, sight: Sight, now: Duration) -> Option<String> {
        let before = self.sights()[agent];
        let recent = &mut self.agents[agent];
        recent.push_back((now, sight));
        while recent.len() > 2 && recent[1].0 + RECENT <= now {
            recent.pop_front();
        }
        let (allowance, count) = (self.allowance, self.legs.len());
        let leg = self.legs.last_mut()?;
        leg.end[agent] = sight;
        let name = letter(agent);
        let after = millis(now.saturating_sub(leg.at));
        if agent != leg.to {
            let settled = leg.bound.map(|bound| bound + SETTLED + allowance);
            if leg.settled[agent].is_none() && settled.is_some_and(|settled| settled <= now) {
                leg.settled[agent] = Some(sight);
            }
            let lost = before.keys > 0 && sight.keys == 0;
            return lost.then(|| format!("{name} has no keys any more, {after}"));
        }
        let mut told = None;
        if leg.keys.is_none() && sight.keys > 0 {
            let had = before.keys > 0;
            leg.keys = Some(if had { leg.at } else { now });
            told = (!had && count > 1).then(|| format!("{name} has keys, {after}"));
        }
        if leg.reads.is_none() && sight.read > leg.begin[agent].read {
            leg.reads = Some(now);
            told = (count > 1).then(|| format!("{name} reads, {after}"));
        }
        told
    }

    fn came(&mut self, number: u32, now: Duration) -> Option<String> {
        let datagram = self.datagrams.get_mut(number as usize)?;
        datagram.1.get_or_insert(now);
        let last = self.arrivals.last().copied();
        self.arrivals.push(now);
        let leg = self.legs.last()?;
        let first = last.is_some_and(|last| last <= leg.at) && self.legs.len() > 1;
        let silence = now.saturating_sub(last?).as_millis();
        first.then(|| format!("the stream goes on after {silence} ms"))
    }

    // Results derived from the events.

    /// Returns the last sight of each agent.
    pub fn sights(&self) -> [Sight; PLACES] {
        std::array::from_fn(|agent| {
            self.agents[agent]
                .back()
                .map_or(Sight::default(), |it| it.1)
        })
    }

    /// Returns the packets per second that an agent currently reads.
    pub fn rate(&self, agent: usize) -> u64 {
        let recent = &self.agents[agent];
        let (Some((from, first)), Some((to, last))) = (recent.front(), recent.back()) else {
            return 0;
        };
        let seconds = (*to - *from).as_secs_f64();
        match seconds > 0.0 {
            true => ((last.read - first.read) as f64 / seconds).round() as u64,
            false => 0,
        }
    }

    /// Returns the letter of the mobile node's agent.
    fn place(&self) -> char {
        self.legs.last().map_or('-', |leg| letter(leg.to))
    }

    /// Returns the end of a leg, which is the start of the next.
    fn end(&self, leg: usize) -> Duration {
        let next = self.legs.get(leg + 1).map(|next| next.at);
        next.or(self.over).unwrap_or(self.now)
    }

    /// Returns the longest gap of the stream that ended in a leg; `None` if nothing arrived.
    pub fn gap(&self, leg: usize) -> Option<Duration> {
        let (begin, end) = (self.legs[leg].at, self.end(leg));
        let first = self.arrivals.partition_point(|&arrival| arrival <= begin);
        let behind = self.arrivals.partition_point(|&arrival| arrival <= end);
        // The first gap starts with the last arrival before the leg.
        let arrivals = self.arrivals.get(first.saturating_sub(1)..behind)?;
        arrivals.windows(2).map(|pair| pair[1] - pair[0]).max()
    }

    /// Returns the number of datagrams lost by the move at the start of a leg, or during the leg.
    pub fn lost(&self, leg: usize) -> u64 {
        let begin = match leg {
            0 => Duration::ZERO,
            _ => self.legs[leg].at.saturating_sub(UNDER_WAY),
        };
        let end = match self.legs.get(leg + 1) {
            Some(next) => next.at.saturating_sub(UNDER_WAY),
            None => Duration::MAX,
        };
        self.count_lost(begin..end)
    }

    /// Returns the number of lost datagrams among those sent in this time.
    fn count_lost(&self, time: std::ops::Range<Duration>) -> u64 {
        let until = |time: Duration| self.datagrams.partition_point(|(sent, _)| *sent < time);
        let sent = self.datagrams.get(until(time.start)..until(time.end));
        let lost = sent.unwrap_or_default().iter();
        let lost = lost.filter(|(sent, came)| came.is_none() && *sent + LOST <= self.now);
        lost.count() as u64
    }

    /// Returns the numbers of sent and of lost datagrams.
    pub fn stream(&self) -> (u64, u64) {
        let lost = self.count_lost(Duration::ZERO..Duration::MAX);
        (self.datagrams.len() as u64, lost)
    }

    /// Returns the last `count` [`SPAN`]s: bits per second of the download, and true if a datagram
    /// sent within the span was lost.
    pub fn recent(&self, count: usize) -> Vec<(u64, bool)> {
        let first = self.spans.len().saturating_sub(count);
        let span = |number: usize| {
            let before = number.checked_sub(1).map_or(0, |before| self.spans[before]);
            let bits = (self.spans[number] - before) * 8;
            let begin = SPAN * number as u32;
            let rate = (bits as f64 / SPAN.as_secs_f64()) as u64;
            (rate, self.count_lost(begin..begin + SPAN) > 0)
        };
        (first..self.spans.len()).map(span).collect()
    }

    /// Returns the packets that an agent read in a leg, and those that it was shown. For an agent
    /// that was left, only packets sealed after the move count; `None` if their number is unknown.
    pub fn read(&self, leg: usize, agent: usize) -> Option<(u64, u64)> {
        let leg = &self.legs[leg];
        let begin = match agent == leg.to {
            true => Some(leg.begin[agent]),
            false => leg.settled[agent],
        };
        let (begin, end) = (begin?, leg.end[agent]);
        let read = end.read.saturating_sub(begin.read);
        Some((read, end.shown.saturating_sub(begin.shown)))
    }

    /// Returns the packets that an agent that was left has read, and was shown, of those sealed
    /// since.
    pub fn read_since(&self, agent: usize) -> (u64, u64) {
        let visit = self.legs.iter().rposition(|leg| leg.to == agent);
        let left = visit.map_or(self.legs.len(), |visit| visit + 1);
        let each = (left..self.legs.len()).filter_map(|leg| self.read(leg, agent));
        each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

/// Formats a time after the move.
fn millis(after: Duration) -> String {
    format!("{} ms after the move", after.as_millis())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    pub fn sight(keys: usize, read: u64, shown: u64) -> News {
        News::Agent(0, Sight { keys, read, shown })
    }

    fn of(agent: usize, news: News) -> News {
        match news {
            News::Agent(_, sight) => News::Agent(agent, sight),
            other => other,
        }
    }

    /// Returns a walk from A to B. The first sight of B comes after the move, so B's count at the
    /// start of the move is zero.
    pub fn walked(read_by_a_after: u64) -> Diary {
        let mut diary = Diary::new(Duration::ZERO);
        let mut note = |millis, news| diary.note(at(millis), news);
        note(0, News::Left(0));
        note(10, sight(1, 5, 5));
        for number in 0..50 {
            note(20 * u64::from(number) + 20, News::Sent(number));
            note(20 * u64::from(number) + 25, News::Came(number));
        }
        note(1030, News::Octets(500_000));
        note(1040, News::Left(1));
        for number in 50..100 {
            note(20 * u64::from(number) + 41, News::Sent(number));
            if number >= 55 {
                note(20 * u64::from(number) + 46, News::Came(number));
            }
        }
        note(1100, News::Bound(Some(1)));
        note(3100, of(1, sight(1, 0, 0)));
        note(3110, of(1, sight(1, 40, 40)));
        note(3120, sight(0, 6, 6));
        note(4000, News::Octets(1_000_000));
        note(4010, sight(0, 6 + read_by_a_after, 6 + 100));
        note(4020, News::Over);
        diary
    }

    #[test]
    fn a_gap_begins_with_the_last_datagram_before_the_move_and_ends_with_the_first_after_it() {
        let diary = walked(0);
        // The last arrival before the move is at 1005 ms, the first after it at 20 * 55 + 46 ms.
        assert_eq!(diary.gap(1), Some(at(1146 - 1005)));
        assert_eq!(diary.gap(0), Some(at(20)));
    }

    #[test]
    fn what_was_under_way_when_the_link_went_is_lost_by_the_move() {
        let diary = walked(0);
        assert_eq!((diary.lost(0), diary.lost(1)), (0, 5));
        assert_eq!(diary.stream(), (100, 5));
    }

    #[test]
    fn an_agent_that_was_left_is_counted_from_when_nothing_is_under_way_to_it() {
        let diary = walked(3);
        assert_eq!(diary.read(0, 0), Some((5, 5)));
        assert_eq!(diary.read(1, 0), Some((3, 100)));
        assert_eq!(diary.read(1, 1), Some((40, 40)));
        assert_eq!(diary.read(1, 2), None);
        assert_eq!(diary.read_since(0), (3, 100));
        assert_eq!((diary.read_since(1), diary.read_since(2)), ((0, 0), (0, 0)));
    }

    #[test]
    fn where_old_keys_may_be_used_for_a_while_it_is_counted_from_later_on() {
        let mut diary = Diary::new(at(2000));
        for (millis, news) in [
            (0, News::Left(0)),
            (100, News::Left(1)),
            (150, News::Bound(Some(1))),
            (1000, sight(1, 10, 10)),
            (2400, sight(1, 20, 20)),
            (3000, sight(0, 20, 50)),
        ] {
            diary.note(at(millis), news);
        }
        assert_eq!(diary.read(1, 0), Some((0, 30)));
    }

    #[test]
    fn keys_that_were_there_before_arrived_with_the_move() {
        let mut diary = Diary::new(Duration::ZERO);
        for (millis, news) in [
            (0, News::Left(0)),
            (50, of(1, sight(1, 0, 0))),
            (100, News::Left(1)),
            (150, of(1, sight(1, 0, 0))),
            (170, of(1, sight(1, 1, 1))),
        ] {
            diary.note(at(millis), news);
        }
        let leg = &diary.legs[1];
        assert_eq!((leg.keys, leg.reads), (Some(at(100)), Some(at(170))));
    }

    #[test]
    fn a_person_hears_of_what_a_move_brings_and_takes() {
        let mut diary = Diary::new(Duration::ZERO);
        let mut told = Vec::new();
        for (millis, news) in [
            (0, News::Left(0)),
            (10, sight(1, 1, 1)),
            (20, News::Sent(0)),
            (30, News::Came(0)),
            (100, News::Left(1)),
            (140, sight(0, 1, 1)),
            (150, News::Bound(Some(1))),
            (160, of(1, sight(1, 0, 0))),
            (170, of(1, sight(1, 1, 1))),
            (180, News::Sent(1)),
            (190, News::Came(1)),
        ] {
            told.extend(diary.note(at(millis), news));
        }
        let expected = [
            "the mobile node is at A",
            "the link to A goes as that to B comes",
            "A has no keys any more, 40 ms after the move",
            "home knows that it is at B, 50 ms after the move",
            "B has keys, 60 ms after the move",
            "B reads, 70 ms after the move",
            "the stream goes on after 160 ms",
        ];
        assert_eq!(told, expected);
    }
}
