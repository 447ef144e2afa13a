//! `strata-lab demo move`: a call and a download on a host that walks out of its Wi-Fi into a
//! cellular network, and back.
//!
//! The Wi-Fi fades while its carrier stays: it loses more and more packets, then all of them, and
//! then its interface goes down. The daemon measures both paths and hands its tunnel over before
//! that, without being told ([`Way::Soft`]). With [`Way::Paths`], both networks carry packets at
//! the same time, and the Wi-Fi breaks off without a warning. [`Way::Hard`] has neither: the tunnel
//! stays in the Wi-Fi until that is gone, and the same verdict fails.
//!
//! All threads report events, with their time, to one `record`. The picture, the report, the plot
//! and the verdict are derived from the record alone. The times of the call are the kernel's.

mod call;
mod capture;
mod fetch;
mod frame;
mod journey;
mod network;
mod news;
mod plot;
mod record;
mod report;
mod text;
mod view;
mod watch;
mod wire;

pub use fetch::Fetched;
pub use journey::Step;
pub use report::{Both, Phase, Report, Sample, Stream};
pub use wire::{Dissected, Wire};

use super::{Audience, prepare, web};
use crate::canary::Marked;
use crate::obstacle::Obstacle;
use crate::pair::GATEWAY;
use crate::testbed::{find_binary, find_command};
use crate::vigil::Vigil;
use anyhow::Result;
use journey::Journey;
use network::{CELLULAR, Network, UPLINKS, WIFI};
use news::{News, Teller};
use record::Record;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use view::View;

/// Interval at which threads check for the end of the walk.
const LOOK: Duration = Duration::from_millis(20);

/// How the tunnel gets from one network to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The daemon measures the paths, and hands the tunnel over while the one in use still works.
    #[default]
    Soft,
    /// Both paths carry packets all the time.
    Paths,
    /// The tunnel moves when its path is gone.
    Hard,
}

impl Way {
    /// Returns the lines in the tables of both peers: the host's, and the gateway's.
    const fn keys(self) -> [&'static str; 2] {
        match self {
            Self::Soft => ["clone = true\nprobe_paths = \"200ms\"", "clone = true"],
            Self::Paths => ["paths = 2"; 2],
            Self::Hard => [""; 2],
        }
    }

    /// Returns true if the Wi-Fi fades, and false if it breaks off without a warning.
    const fn fades(self) -> bool {
        match self {
            Self::Soft | Self::Hard => true,
            Self::Paths => false,
        }
    }
}

/// Options of the demo.
#[derive(Clone, Debug)]
pub struct Options {
    /// How the tunnel moves.
    pub way: Way,
    /// Length of the stay in each network.
    pub stay: Duration,
    /// Seed of the losses and of the file's content.
    pub seed: u64,
    /// File for the packets on the wire, as Wireshark reads it.
    pub capture: Option<PathBuf>,
    /// Audience of the progress.
    pub audience: Audience,
    /// True to keep configurations and logs.
    pub keep: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            way: Way::default(),
            stay: Duration::from_secs(6),
            seed: 1,
            capture: None,
            audience: Audience::Nobody,
            keep: false,
        }
    }
}

impl Options {
    fn journey(&self) -> Journey {
        Journey {
            stay: self.stay,
            fades: self.way.fades(),
        }
    }

    /// Returns the size of the file: a little less than both networks carry during the walk.
    fn octets(&self) -> u64 {
        let journey = self.journey();
        let carries = |uplink: usize, time: Duration| {
            let rate = UPLINKS[uplink].hop.rate.map_or(0, |rate| rate.get());
            rate as f64 / 8.0 * time.as_secs_f64()
        };
        let octets = carries(WIFI, journey.near()) + carries(CELLULAR, journey.far());
        (octets * 0.9) as u64
    }
}

/// Runs the walk in namespaces that were already entered ([`crate::testbed::enter`]). The report
/// includes failures on the way.
///
/// # Errors
/// The demo cannot run on this machine.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    find_programs()?;
    let content = Marked::new(options.seed);
    let (bed, folder) = prepare(&content, options.octets(), options.keep)?;
    let file = bed.directory().join("wire.pcap");
    let file = options.capture.clone().unwrap_or(file);
    let capture = capture::create(&file).map_err(|error| {
        let message = format!("cannot write {}: {error:#}", file.display());
        Obstacle::new(message, "name a writable file")
    })?;
    let _vigil = Vigil::start();
    let view = View::new(options);
    view.phase("building two networks, and bringing the tunnel up");
    let mut record = Record::default();
    let walked = Network::build(bed, options).and_then(|network| {
        let walk = Walk {
            network: &network,
            journey: options.journey(),
            content: &content,
            folder: &folder,
        };
        walk.run(&mut record, &view, capture)?;
        view.phase("reading the packets on the wire");
        record.wire.tshark = wire::dissect(&network.host, &file)?;
        Ok(())
    });
    view.close();
    if let Err(error) = walked {
        record.fail(format!("{error:#}"));
    }
    Ok(Report::new(options, &record))
}

fn find_programs() -> Result<(), Obstacle> {
    for (command, package) in [
        ("nginx", "nginx-light"),
        ("curl", "curl"),
        ("sha256sum", "coreutils"),
    ] {
        find_command(command, package)?;
    }
    find_binary("stratad")?;
    find_binary("strata").map(drop)
}

/// A walk with everything that it needs.
struct Walk<'a> {
    network: &'a Network,
    journey: Journey,
    content: &'a Marked,
    /// The served folder.
    folder: &'a Path,
}

/// The work of one thread.
type Work<'a> = Box<dyn FnOnce(&Teller) -> Result<()> + Send + 'a>;

impl Walk<'_> {
    /// Runs all parts of the walk at once, each on a thread, until the walk is over.
    fn run(&self, record: &mut Record, view: &View, capture: capture::Capture) -> Result<()> {
        let _web = web::serve(&self.network.gateway, GATEWAY[0], self.folder)?;
        let ends = call::Ends::open(self.network)?;
        let (over, fetched) = (AtomicBool::new(false), AtomicBool::new(false));
        let (teller, news) = news::channel();
        thread::scope(|scope| {
            for (what, work) in self.works(&ends, capture, &over, &fetched) {
                let teller = teller.clone();
                scope.spawn(move || {
                    if let Err(error) = work(&teller) {
                        teller.tell(News::Failed(format!("{what}: {error:#}")));
                    }
                });
            }
            drop(teller);
            view.show(&news, record);
        });
        Ok(())
    }

    fn works<'a>(
        &'a self,
        ends: &'a call::Ends,
        capture: capture::Capture,
        over: &'a AtomicBool,
        fetched: &'a AtomicBool,
    ) -> Vec<(&'static str, Work<'a>)> {
        let network = self.network;
        let walk = move |teller: &Teller| {
            let walked = self.journey.walk(network, teller, fetched);
            over.store(true, Ordering::Relaxed);
            walked
        };
        let fetch = move |teller: &Teller| {
            let done = fetch::fetch(network, &web::url(GATEWAY[0]), self.folder, teller);
            fetched.store(true, Ordering::Relaxed);
            done
        };
        let paths = move |teller: &Teller| watch::watch(network, teller, over);
        let wire = move |teller: &Teller| wire::watch(network, self.content, capture, teller, over);
        let works: [(&'static str, Work<'a>); 4] = [
            ("the walk", Box::new(walk)),
            ("the download", Box::new(fetch)),
            ("the paths", Box::new(paths)),
            ("the wire", Box::new(wire)),
        ];
        let mut works = Vec::from(works);
        for direction in call::Direction::ALL {
            let send = move |teller: &Teller| ends.send(direction, teller, over);
            let receive = move |teller: &Teller| ends.receive(direction, teller, over);
            works.push(("the call", Box::new(send)));
            works.push(("the call", Box::new(receive)));
        }
        works
    }
}
