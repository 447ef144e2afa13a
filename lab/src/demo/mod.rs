//! `strata-lab demo`: the whole of Strata at work, measured.
//!
//! A mobile node downloads a file from a server behind its gateway. Its first hop is slow and
//! loses packets to bit errors; TCP takes each loss for congestion and slows down. A licensed node
//! behind that hop can repair the losses before TCP notices, if it can read TCP headers: in clear,
//! or in zoned ESP with a licence for the headers, but not in plain ESP.
//!
//! Five setups run at the same time, each on its own network: no protection, SNOOP on clear TCP,
//! plain ESP, zoned ESP without SNOOP, and zoned ESP with SNOOP. The file is a marked stream
//! ([`crate::canary`]), and the licensed node's memory, log and answers are searched for it.

mod download;
pub mod moves;
mod paint;
mod progress;
mod report;
pub mod roam;
mod run;
mod screen;
mod text;
pub(crate) mod web;
mod witness;

pub use crate::scene::Setup;
pub use report::{GAIN_NEEDED, Outcome, Report};
pub use run::Run;
pub use screen::Audience;
pub use witness::Node;

use crate::canary::{Canary, Marked};
use crate::obstacle::Obstacle;
use crate::scene::{LOSSY_RATE, Sender, Settings};
use crate::testbed::{Testbed, find_binary, find_command};
use crate::vigil::Vigil;
use anyhow::{Context, Result};
use progress::{Progress, Teller};
use run::Shared;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Options of the demo.
#[derive(Clone, Debug)]
pub struct Options {
    /// Setups to run; the verdict needs all of them.
    pub setups: Vec<Setup>,
    /// Length of each download.
    pub duration: Duration,
    /// Seed of the bit errors and of the file's content.
    pub seed: u64,
    /// Bits per bit error on the lossy hop, in both directions; 0 for no errors.
    pub ber: u64,
    /// True if SNOOP works in the setups that have it. Without SNOOP there is no gain.
    pub snoop: bool,
    /// True if the licensed node gets the licence for the headers. Without the licence there is no
    /// gain.
    pub licence: bool,
    /// True if the node also gets a licence for the payload, which the search must then find.
    pub license_payload: bool,
    /// True to draw progress bars if standard error is a terminal; otherwise a line is written now
    /// and then.
    pub bars: bool,
    /// True to keep configurations and logs.
    pub keep: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            setups: Setup::ALL.into(),
            duration: Duration::from_secs(45),
            seed: 1,
            ber: 512 << 10,
            snoop: true,
            licence: true,
            license_payload: false,
            bars: true,
            keep: false,
        }
    }
}

impl Options {
    /// Returns the part of a download that counts as slow start.
    fn skipped(&self) -> Duration {
        (self.duration / 4).min(Duration::from_secs(5))
    }

    /// Returns the scene of a setup. Each setup has its own errors, all derived from the one seed.
    fn scene(&self, setup: Setup) -> Settings {
        let seed = self.seed.wrapping_mul(16).wrapping_add(2 * setup as u64);
        Settings {
            snoop: self.snoop,
            licence: self.licence,
            license_payload: self.license_payload,
            ..Settings::new(setup, Sender::Reno, self.ber, seed)
        }
    }
}

/// Runs the demo in namespaces that were already entered ([`crate::testbed::enter`]). The report
/// includes setups that fail.
///
/// # Errors
/// The demo cannot run on this machine.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    find_command("nginx", "nginx-light")?;
    find_command("curl", "curl")?;
    if options.setups.iter().any(|setup| setup.has_daemons()) {
        find_binary("stratad")?;
        find_binary("strata")?;
    }
    let stream = Marked::new(options.seed);
    let octets = LOSSY_RATE / 8 * (options.duration.as_secs() + 60);
    let (bed, folder) = prepare(&stream, octets, options.keep)?;
    let shared = Shared {
        bed: &bed,
        options,
        stream: &stream,
        canary: &Canary::new(&stream),
        folder: &folder,
    };
    let _vigil = Vigil::start();
    Ok(Report::new(options, run_all(&shared)))
}

/// Creates a testbed with the folder to serve. Its file has `octets` octets, which must be more
/// than a perfect link could carry in the time.
fn prepare(stream: &Marked, octets: u64, keep: bool) -> Result<(Testbed, PathBuf), Obstacle> {
    let prepared = Testbed::new("demo").and_then(|bed| {
        if keep {
            bed.keep();
        }
        let folder = publish(&bed, stream, octets)?;
        Ok((bed, folder))
    });
    prepared.map_err(|error| {
        let fix = "make room there, or set TMPDIR to a folder with more";
        Obstacle::new(format!("{error:#}"), fix)
    })
}

/// Writes the file to download. Returns its folder.
fn publish(bed: &Testbed, stream: &Marked, octets: u64) -> Result<PathBuf> {
    let folder = bed.directory().join("www");
    let write = || {
        fs::create_dir(&folder)?;
        let mut file = BufWriter::new(File::create(folder.join("stream"))?);
        stream.write_to(&mut file, octets)?;
        file.flush()
    };
    write().with_context(|| format!("cannot write {octets} octets to {}", folder.display()))?;
    Ok(folder)
}

/// Runs all setups at once, each on a thread that lives as long as its processes.
fn run_all(shared: &Shared<'_>) -> Vec<Outcome> {
    let (progress, tellers) = Progress::new(shared.options);
    thread::scope(|scope| {
        let start = |(&setup, teller): (&Setup, Teller)| {
            scope.spawn(move || match run::run(setup, shared, &teller) {
                Ok(run) => Outcome::Measured(Box::new(run)),
                Err(error) => Outcome::Failed(format!("{error:#}")),
            })
        };
        let threads: Vec<_> = shared
            .options
            .setups
            .iter()
            .zip(tellers)
            .map(start)
            .collect();
        progress.show();
        let threads = threads.into_iter();
        threads
            .map(|thread| thread.join().expect("a run returns its errors"))
            .collect()
    })
}
