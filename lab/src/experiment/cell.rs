//! The unit of measurement: a condition with one seed.

use super::Plan;
use super::trial::Kind;
use crate::bystander::Moments;
use crate::emulator::Statistics;
use crate::scene::{Level, Others, Sender, Settings, Setup};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Largest number of repetitions of a late or failed cell.
pub(super) const REPEATS: u32 = 3;

/// Largest number of repetitions of a cell that was late only because the machine was.
pub(super) const REPEATS_WITH_THE_MACHINE: u32 = 1;

/// Parameters that vary from point to point of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Condition {
    /// Protection and repair of the download.
    pub setup: Setup,
    /// TCP of the server.
    pub sender: Sender,
    /// Bits per bit error on the lossy hop; 0 for no errors.
    pub one_error_in: u64,
    /// One-way delay of the wired hop, in milliseconds.
    pub wired_ms: u64,
    /// Packets that are in zones, if the setup has zones; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// True if TCP's windows and SNOOP's cache have today's sizes instead of the papers'.
    #[serde(default, skip_serializing_if = "is_no")]
    pub modern: bool,
}

/// A condition with a seed: one download on a network of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Condition of the cell.
    #[serde(flatten)]
    pub condition: Condition,
    /// Seed of the bit errors. Cells that differ only in the setup share it: they are pairs.
    pub seed: u64,
    /// Length of the download, in seconds.
    pub seconds: u64,
    /// True if SNOOP works in the setups that have it. Without SNOOP most claims must fail.
    pub snoop: bool,
    /// True if packets have zones in the setups that have them. Without zones there are no levels
    /// either.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub zones: bool,
}

/// Default of files that were written before the option existed.
const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_no(modern: &bool) -> bool {
    !*modern
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_yes(zones: &bool) -> bool {
    *zones
}

/// Result of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// Goodput at the receiver in bits of payload per second, without slow start.
    pub goodput: f64,
    /// Segments that the server's TCP retransmitted.
    pub resent: u64,
    /// Packets that SNOOP retransmitted.
    pub repaired: u64,
    /// Acknowledgements that SNOOP suppressed towards the server.
    pub suppressed: u64,
    /// Counters of the emulated hops.
    pub hops: Hops,
    /// Punctuality of the machine itself meanwhile.
    pub machine: Moments,
    /// Number of times that the cell was repeated because packets were late.
    pub repeats: u32,
    /// Samples of the server's TCP.
    pub trace: Vec<Sample>,
}

/// The emulated hops of a cell, all directions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hops {
    /// Packets offered.
    pub packets: u64,
    /// Packets hit by bit errors.
    pub hit: u64,
    /// Packets dropped because a queue was full.
    pub overflowed: u64,
    /// Packets delivered more than [`crate::emulator::LATE`] after they were due.
    pub late: u64,
    /// Lateness of the latest packet, in milliseconds.
    pub worst_ms: f64,
    /// True if the emulator had real-time priority.
    pub real_time: bool,
}

/// State of the sender at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Time since the connection was made, in milliseconds.
    pub ms: u64,
    /// Octets acknowledged, which is the sequence number counted from zero.
    pub acknowledged: u64,
    /// Congestion window, in segments.
    pub window: u32,
}

impl Condition {
    /// Creates a condition with the papers' wired hop.
    pub const fn new(setup: Setup, sender: Sender, one_error_in: u64) -> Self {
        Self {
            setup,
            sender,
            one_error_in,
            wired_ms: crate::scene::WIRED_DELAY.as_millis() as u64,
            level: None,
            modern: false,
        }
    }

    /// Returns the same condition with another setup.
    pub const fn with(self, setup: Setup) -> Self {
        Self { setup, ..self }
    }

    /// Returns the protection of the download, for readers.
    pub fn name(&self) -> String {
        let setup = self.setup.name();
        match self.level {
            None => setup.to_owned(),
            Some(Level { every: 0, others }) => format!("all {}", others.name()),
            Some(Level { every, others }) => {
                format!("one of {every} {setup}, others {}", others.name())
            }
        }
    }

    /// Returns the protection of the download, for programs and files.
    pub fn configuration(&self) -> String {
        let setup = self.setup.key();
        match self.level {
            None => setup.to_owned(),
            Some(Level { every, others }) => format!("{setup}_every{every}_{}", others.key()),
        }
    }
}

impl Cell {
    /// Creates a cell of a plan.
    pub const fn new(condition: Condition, seed: u64, plan: &Plan) -> Self {
        Self {
            condition,
            seed,
            seconds: plan.seconds,
            snoop: plan.snoop,
            zones: plan.zones,
        }
    }

    /// Returns a name for readers and files, unique for each cell.
    pub fn key(&self) -> String {
        let Condition {
            sender,
            one_error_in,
            wired_ms,
            ..
        } = self.condition;
        format!(
            "{}-{}-{}-{wired_ms}ms-{}s-seed{}{}{}{}",
            self.condition.configuration(),
            sender.key(),
            bits(one_error_in),
            self.seconds,
            self.seed,
            if self.condition.modern { "-modern" } else { "" },
            if self.snoop { "" } else { "-nosnoop" },
            if self.zones { "" } else { "-nozones" }
        )
    }

    /// Returns the part of the download that counts as slow start.
    pub fn skipped(&self) -> Duration {
        Duration::from_secs(self.seconds.min(20)) / 4
    }

    /// Returns the sort key of its turn: seed by seed, with the cells that are compared next to
    /// each other.
    pub(super) const fn turn(&self) -> impl Ord + use<> {
        let Condition {
            setup,
            sender,
            one_error_in,
            wired_ms,
            level,
            modern,
        } = self.condition;
        let hop = (one_error_in, wired_ms, modern);
        (self.seed, sender, hop, setup, level)
    }

    /// Returns the protection that the download really has: plain ESP instead of zones if zones are
    /// disabled.
    pub(super) fn carried(&self) -> (Setup, Option<Level>) {
        let Condition { setup, level, .. } = self.condition;
        match self.zones || !setup.is_zoned() {
            true => (setup, level),
            false => (Setup::Ipsec, None),
        }
    }

    /// Returns true if some of its packets are sent in clear outside a tunnel.
    pub(super) fn has_plaintext(&self) -> bool {
        let (_, level) = self.carried();
        level.is_some_and(|level| level.others == Others::Plaintext)
    }

    /// Returns the kind of network that the cell needs.
    pub(super) fn kind(&self) -> Kind {
        (self.carried(), self.snoop, self.condition.modern)
    }

    /// Returns the parameters of its network.
    pub(crate) fn scene(&self) -> Settings {
        let Condition {
            sender,
            one_error_in,
            wired_ms,
            modern,
            ..
        } = self.condition;
        let (setup, level) = self.carried();
        Settings {
            level,
            modern,
            wired_delay: Duration::from_millis(wired_ms),
            snoop: self.snoop,
            ..Settings::new(setup, sender, one_error_in, self.seed)
        }
    }
}

impl Measured {
    /// Returns true if too many cells ran at once: more than one packet in a thousand was late,
    /// beyond the number that the machine explains. The machine explains twice the fraction of time
    /// in which an idle thread was late.
    pub(super) fn is_overloaded(&self) -> bool {
        let explained = 2.0 * self.machine.share() * self.hops.packets as f64;
        let unexplained = self.hops.late.saturating_sub(explained as u64);
        let hops = Hops {
            late: unexplained,
            ..self.hops
        };
        hops.is_late()
    }

    /// Returns the reason to repeat the cell, unless it was repeated often enough.
    pub fn reason_to_repeat(&self) -> Option<&'static str> {
        if self.is_overloaded() && self.repeats < REPEATS {
            Some("packets were late")
        } else if self.hops.is_late() && self.repeats < REPEATS_WITH_THE_MACHINE {
            Some("packets were late, as the machine was")
        } else {
            None
        }
    }
}

impl Hops {
    /// Adds the counters of a direction.
    pub(super) fn add(&mut self, direction: &Statistics) {
        self.packets += direction.offered;
        self.hit += direction.lost_bit_error;
        self.overflowed += direction.lost_queue;
        self.late += direction.late;
        self.worst_ms = self.worst_ms.max(direction.lateness.max_us / 1000.0);
        self.real_time |= direction.real_time;
    }

    /// Returns true if more than one packet in a thousand was late. The scene's delays then did not
    /// hold, and the cell measured the machine.
    pub fn is_late(&self) -> bool {
        self.late * 1000 > self.packets
    }
}

/// Formats a number of bits as the papers do: `512k`, or `none` for 0.
pub fn bits(number: u64) -> String {
    match number {
        0 => "none".to_owned(),
        _ if number.is_multiple_of(1 << 20) => format!("{}M", number >> 20),
        _ if number.is_multiple_of(1 << 10) => format!("{}k", number >> 10),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{self, PLAN};
    use super::*;

    #[test]
    fn the_key_tells_everything_that_varies() {
        let condition = Condition::new(Setup::ZonedSnoop, Sender::Cubic, 512 << 10);
        let cell = Cell::new(condition, 3, &PLAN);
        assert_eq!(cell.key(), "zoned_snoop-cubic-512k-100ms-20s-seed3");
        let off = Cell {
            snoop: false,
            ..cell
        };
        assert_eq!(off.key(), "zoned_snoop-cubic-512k-100ms-20s-seed3-nosnoop");
        let mut modern = cell;
        modern.condition.modern = true;
        assert_eq!(modern.key(), cell.key() + "-modern");
        let level = Level {
            every: 10,
            others: Others::Plaintext,
        };
        let condition = Condition {
            level: Some(level),
            ..Condition::new(Setup::Zoned, Sender::Reno, 0)
        };
        let some = Cell {
            zones: false,
            ..Cell::new(condition, 3, &PLAN)
        };
        let key = "zoned_every10_plaintext-reno-none-100ms-20s-seed3-nozones";
        assert_eq!(some.key(), key);
        assert!(!some.has_plaintext());
        assert_eq!(some.carried(), (Setup::Ipsec, None));
    }

    #[test]
    fn a_cell_that_was_kept_before_there_were_levels_is_read() {
        let cell = synthetic::cell(1);
        let kept = r#"{"setup":"zoned","sender":"reno","one_error_in":524288,"wired_ms":100,"seed":1,"seconds":20,"snoop":true}"#;
        assert_eq!(serde_json::to_string(&cell).unwrap(), kept);
        assert_eq!(serde_json::from_str::<Cell>(kept).unwrap(), cell);
    }

    #[test]
    fn bits_are_written_as_in_the_papers() {
        let written = [0, 8 << 20, 64 << 10, 1000].map(bits);
        assert_eq!(written, ["none", "8M", "64k", "1000"]);
    }

    #[test]
    fn a_machine_that_stands_still_is_no_overload() {
        let measured = |late, missed| {
            let mut measured = synthetic::measured(&synthetic::cell(1), 1e6);
            measured.hops.packets = 1000;
            measured.hops.late = late;
            measured.machine = Moments {
                waited_for: 10_000,
                missed,
            };
            measured.is_overloaded()
        };
        assert!(measured(2, 0));
        assert!(measured(12, 50));
        assert!(!measured(11, 50));
        assert!(!measured(1, 0));
    }

    #[test]
    fn one_late_packet_in_a_thousand_is_still_punctual() {
        let hops = |late| Hops {
            packets: 4000,
            late,
            ..Hops::default()
        };
        assert!(!hops(4).is_late());
        assert!(hops(5).is_late());
    }
}
