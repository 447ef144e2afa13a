//! Made-up results, for the tests of judgements.

use super::store::Store;
use super::{Cell, Condition, Figure, Hops, MEASURED, Measured, Options, Plan, SIMULATED, Sample};
use crate::bystander::Moments;
use crate::scene::{Level, Others, Sender, Setup};
use std::fs;
use std::path::{Path, PathBuf};

/// A plan with all conditions and the fewest runs that have an interval.
pub const PLAN: Plan = Plan {
    quick: false,
    seeds: 2,
    seconds: 20,
    clients: 200,
    snoop: true,
    zones: true,
    simultaneous: true,
    resumption: true,
    mobike: true,
    transport: true,
    clones: true,
    paths: true,
    tunnels: true,
};

/// A temporary folder, removed when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let name = format!("lab-experiment-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("the name is nobody else's");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system cleans it up if it cannot be removed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn cell(seed: u64) -> Cell {
    let condition = Condition::new(Setup::Zoned, Sender::Reno, 512 << 10);
    Cell::new(condition, seed, &PLAN)
}

/// Returns a cell with a sequence number and a window that fit its goodput.
pub fn measured(cell: &Cell, goodput: f64) -> Measured {
    let sample = |seconds: u64| Sample {
        ms: seconds * 1000,
        acknowledged: goodput as u64 / 8 * seconds,
        window: (goodput / 4e4) as u32,
    };
    Measured {
        cell: *cell,
        goodput,
        resent: 3,
        repaired: 0,
        suppressed: 0,
        hops: Hops {
            packets: 4000,
            real_time: true,
            ..Hops::default()
        },
        machine: Moments::default(),
        repeats: 0,
        trace: vec![sample(0), sample(19)],
    }
}

/// Returns a goodput with which every claim holds.
pub fn as_claimed(cell: &Cell) -> f64 {
    let Condition {
        setup,
        sender,
        one_error_in,
        level,
        ..
    } = cell.condition;
    let repaired = matches!(setup, Setup::Snoop | Setup::ZonedSnoop);
    let perfect = match setup {
        Setup::None | Setup::Snoop => 1.9e6,
        Setup::Ipsec => 1.82e6,
        Setup::Zoned | Setup::ZonedSnoop => 1.78e6,
    };
    let perfect = perfect * level.map_or(1.0, faster);
    match (one_error_in, sender) {
        (0, _) | (_, Sender::Bbr) => perfect,
        _ if repaired => perfect * 0.8,
        _ => perfect * 0.2,
    }
}

/// Returns the gain in goodput from packets that are not in zones.
fn faster(level: Level) -> f64 {
    let most = match level.others {
        Others::Integrity => 0.014,
        Others::Plaintext => 0.053,
    };
    let share = match level.every {
        0 => 0.0,
        every => 1.0 / f64::from(every),
    };
    1.0 + most * (1.0 - share)
}

/// Fills a folder with all cells of a figure, measured and simulated with the same goodputs.
pub fn fill(folder: &Path, figure: &Figure, goodput: impl Fn(&Cell) -> f64) {
    for name in [MEASURED, SIMULATED] {
        let store = Store::open(folder, name).expect("the folder can be written");
        for cell in figure.cells(&PLAN) {
            let measured = measured(&cell, goodput(&cell));
            store.save(&measured).expect("the folder can be written");
        }
    }
}

pub fn options(folder: &Path) -> Options {
    Options {
        plan: PLAN,
        out: folder.to_owned(),
        at_once: 1,
        bars: false,
    }
}
