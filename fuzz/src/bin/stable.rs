//! Fuzzing without a nightly compiler: runs each target for some seconds on randomly mutated seeds.
//!
//! It sees no coverage, so it finds less than `./x fuzz`, but it runs everywhere.
//!
//! `cargo run -p fuzz --bin stable -- SECONDS [TARGET]`

use fuzz::{ENGINES, READERS, Target};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|text| text.parse().ok());
    let seconds = Duration::from_secs(seconds.expect("usage: stable SECONDS [TARGET]"));
    let wanted = arguments.next();
    let targets = READERS.iter().chain(ENGINES);
    let targets = targets.filter(|(name, _)| wanted.as_deref().is_none_or(|only| only == *name));
    let targets: Vec<_> = targets.collect();
    assert!(!targets.is_empty(), "there is no target {wanted:?}");
    for target in targets {
        fuzz_for(*target, seconds);
    }
}

fn fuzz_for((name, run): Target, time: Duration) {
    let seeds = seeds(name);
    let mut dice = Dice(0x5eed_0000_0000_0001);
    let begun = Instant::now();
    let mut executions = 0_u64;
    while executions < LEAST || begun.elapsed() < time {
        let octets = changed(&seeds, &mut dice);
        run_or_tell(name, run, &octets);
        executions += 1;
    }
    println!("{name}: {executions} executions");
}

/// Minimum executions of a target, whatever the time.
const LEAST: u64 = 1000;

/// Runs a target; if it panics, keeps the octets in a file.
fn run_or_tell(name: &str, run: fn(&[u8]), octets: &[u8]) {
    if let Err(panic) = std::panic::catch_unwind(|| run(octets)) {
        let file = std::env::temp_dir().join(format!("strata-fuzz-{name}.crash"));
        fs::write(&file, octets).expect("a temporary file can be written");
        eprintln!("{name} failed on what is now in {}", file.display());
        std::panic::resume_unwind(panic);
    }
}

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(name);
    let files = fs::read_dir(folder).expect("each target has a folder of seeds");
    let mut files: Vec<_> = files
        .map(|file| file.expect("it can be listed").path())
        .collect();
    files.sort();
    let read = |file| fs::read(file).expect("a seed can be read");
    files.into_iter().map(read).collect()
}

/// Returns a seed with up to eight mutations.
fn changed(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut octets = seeds[dice.roll(seeds.len())].clone();
    for _ in 0..dice.roll(9) {
        let at = dice.roll(octets.len() + 1);
        let other = &seeds[dice.roll(seeds.len())];
        match dice.roll(7) {
            0 if at < octets.len() => octets[at] = dice.roll(256) as u8,
            1 if at < octets.len() => octets[at] ^= 1 << dice.roll(8),
            2 if at < octets.len() => octets[at] = [0, 1, 0x7f, 0x80, 0xff][dice.roll(5)],
            3 => octets.insert(at, dice.roll(256) as u8),
            4 => drop(octets.drain(at..(at + dice.roll(16)).min(octets.len()))),
            5 => octets.truncate(at),
            _ => {
                let from = dice.roll(other.len() + 1);
                let to = (from + dice.roll(64)).min(other.len());
                octets.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
    octets
}

/// A generator of numbers that are random enough and repeatable.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) as usize % below.max(1)
    }
}
