//! Unencrypted packets with addresses from inside a tunnel: the filter that drops them, the peers
//! that they claim to be, and the lines about them in the log.

use crate::assigned::AssignedAddresses;
use crate::faults::{self, Faults, Step};
use crate::naming::Outer;
use crate::plan;
use config::{Config, Peer};
use model::{Deadline, Instant, TrafficSelector};
use os::clear::{self, Guard, Source};
use os::{Error, LinkAddress, Netlink};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Interval between looks at the counters after one without news.
const PERIOD: Duration = Duration::from_secs(10);

/// Interval after one with news: at most one line for each source and minute.
const QUIET: Duration = Duration::from_secs(60);

/// Most lines at once: a sender may claim any number of addresses.
const MOST_LINES: usize = 8;

/// Most sources in a status.
const MOST_SHOWN: usize = 64;

/// The number of packets that the filter has dropped; `None` if the filter is missing.
pub type Dropped = Result<Option<u64>, Error>;

/// The filter, and the dropped packets that the log has reported.
#[derive(Default)]
pub struct Clear {
    guard: Option<Guard>,
    /// UDP ports of this host's role in Mobile IP.
    mobile: Vec<u16>,
    /// Fingerprint of the rules in nftables after the filter was set up; `None` if it is not set
    /// up.
    installed: Option<u64>,
    /// The reason that the filter could not be set up.
    fault: Option<String>,
    /// Reported packets of each source.
    told: BTreeMap<Origin, u64>,
    /// Time of the next look.
    next: Option<Instant>,
}

/// A source, without its packet count.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    claimed: IpAddr,
    interface: String,
    link: Option<LinkAddress>,
}

impl From<&Source> for Origin {
    fn from(source: &Source) -> Self {
        Self {
            claimed: source.claimed,
            interface: source.interface.clone(),
            link: source.link,
        }
    }
}

impl Clear {
    /// Sets the filter up at the start of the daemon. A kernel that lacks support does not prevent
    /// the start: the status reports the fault, and every look tries again. `mobile` are the UDP
    /// ports of this host's role in Mobile IP, which ends with the process.
    pub fn start(&mut self, config: &Config, mobile: Vec<u16>, faults: &mut Option<Faults>) {
        let inside = AssignedAddresses::default();
        self.guard = plan::guard(config, &inside, &Outer::default(), &mobile);
        self.mobile = mobile;
        self.install(Guard::start, faults);
    }

    /// Sets the filter up for another configuration, or for other inner addresses or hosts outside.
    pub fn set(
        &mut self,
        config: &Config,
        inside: &AssignedAddresses,
        outer: &Outer,
        faults: &mut Option<Faults>,
    ) {
        let guard = plan::guard(config, inside, outer, &self.mobile);
        let stays = guard == self.guard && self.fault.is_none();
        if stays && matches!(self.is_missing(), Ok(false)) {
            return;
        }
        self.guard = guard;
        self.restore(faults);
    }

    /// Returns true if another program has changed or removed the filter.
    pub fn is_missing(&self) -> Result<bool, Error> {
        if self.guard.is_none() || self.fault.is_some() {
            return Ok(false);
        }
        let now = clear::fingerprint()?;
        Ok(now.is_none() || now != self.installed)
    }

    /// Sets the filter up again.
    pub fn restore(&mut self, faults: &mut Option<Faults>) {
        self.install(Guard::set, faults);
    }

    /// Returns the reason that the filter could not be set up.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Returns the time of the next look.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.guard.as_ref()?;
        Some(Deadline {
            at: self.next.unwrap_or(Instant::ZERO),
            reason: "check for dropped packets in clear",
        })
    }

    /// Reports news in the log, and tries again to set up a filter that could not be.
    pub fn handle_timeout(
        &mut self,
        claimants: &Claimants,
        faults: &mut Option<Faults>,
        now: Instant,
    ) {
        if self.guard.is_none() || self.next.is_some_and(|next| next > now) {
            return;
        }
        if self.fault.is_some() {
            self.restore(faults);
        }
        let told = matches!(clear::dropped(), Ok(Some(1..))) && self.tell(claimants);
        self.next = Some(now + if told { QUIET } else { PERIOD });
    }

    fn install(&mut self, how: impl Fn(&Guard) -> Result<(), Error>, faults: &mut Option<Faults>) {
        let installed = match &self.guard {
            Some(guard) => faults::step(faults, Step::Guard)
                .and_then(|()| how(guard))
                .and_then(|()| clear::fingerprint()),
            None => clear::remove().map(|()| None),
        };
        let before = self.fault.take();
        self.installed = match installed {
            Ok(installed) => {
                if before.is_some() {
                    tracing::info!(
                        "packets in clear with a source address inside a tunnel are dropped again"
                    );
                }
                installed
            }
            Err(error) => {
                let fault = error.to_string();
                if before.as_ref() != Some(&fault) {
                    tracing::error!("{}", unguarded(&fault));
                }
                self.fault = Some(fault);
                None
            }
        };
    }

    /// Logs one line for each source with unreported packets. Returns `false` if there is none.
    fn tell(&mut self, claimants: &Claimants) -> bool {
        let Ok(sources) = clear::sources() else {
            return false;
        };
        // After the table was set up again, its counters start from zero.
        let told = |source: &Source| self.told.get(&source.into()).copied().unwrap_or(0);
        let before = |source: &Source| match told(source) {
            told if told > source.packets => 0,
            told => told,
        };
        let news: Vec<_> = sources
            .iter()
            .filter(|source| source.packets > before(source))
            .map(|source| (source, source.packets - before(source)))
            .collect();
        for (source, packets) in news.iter().take(MOST_LINES) {
            let claim = claimants.claim(source, *packets);
            tracing::warn!("{claim}");
        }
        let others = news.len().saturating_sub(MOST_LINES);
        if others > 0 {
            tracing::warn!("and packets in clear from {others} other sources: see `strata status`");
        }
        let told = !news.is_empty();
        let known = sources.iter().map(|source| (source.into(), source.packets));
        self.told = known.collect();
        told
    }
}

/// Describes a missing filter to a person.
fn unguarded(why: &str) -> String {
    format!("packets in clear with a source address inside a tunnel are not dropped: {why}")
}

/// Removes the filter, ours or a predecessor's.
pub fn remove() -> Result<(), Error> {
    clear::remove()
}

/// Peers by the addresses that they may claim.
#[derive(Clone)]
pub struct Claimants(Arc<Config>);

impl Claimants {
    /// Returns the peers of a configuration.
    pub fn new(config: &Arc<Config>) -> Self {
        Self(Arc::clone(config))
    }

    /// Returns the sources of dropped packets, those with the most packets first; empty without a
    /// filter. `dropped` is the filter's counter.
    pub fn claims(&self, dropped: &Dropped) -> Vec<control::ClearClaim> {
        let sources = match dropped {
            Ok(Some(1..)) => clear::sources().unwrap_or_default(),
            _ => Vec::new(),
        };
        let shown = sources.iter().take(MOST_SHOWN);
        shown
            .map(|source| self.claim(source, source.packets))
            .collect()
    }

    /// Describes a filter that is missing or incomplete. `fault` is the reason that it could not be
    /// set up.
    pub fn fault(&self, fault: Option<&str>, dropped: &Dropped) -> Option<control::Trouble> {
        if self.0.peers.is_empty() {
            return None;
        }
        let why = match (fault, dropped) {
            (Some(fault), _) => fault.to_owned(),
            (None, Ok(Some(_))) => return None,
            (None, Ok(None)) => format!("the {} is missing in nftables", clear::NAME),
            (None, Err(error)) => error.to_string(),
        };
        Some(control::Trouble {
            task: "filter".to_owned(),
            remote: None,
            what: unguarded(&why),
            fix: "correct that; stratad tries again within 10 s".to_owned(),
            seconds: None,
        })
    }

    fn claim(&self, source: &Source, packets: u64) -> control::ClearClaim {
        control::ClearClaim {
            address: source.claimed,
            peer: self.peer(source.claimed).map(str::to_owned),
            interface: source.interface.clone(),
            link: source.link.map(|link| link.to_string()),
            from: neighbours(source),
            packets,
            seconds_ago: source.ago.as_secs(),
        }
    }

    /// Returns the peer whose matching prefix is the longest.
    fn peer(&self, address: IpAddr) -> Option<&str> {
        let fits = |peer: &Peer| {
            let prefixes = peer.all_remote().flat_map(TrafficSelector::prefixes);
            let prefixes = prefixes.map(os::Prefix::from);
            let fitting = prefixes.filter(|prefix| prefix.contains(address));
            fitting.map(|prefix| prefix.length).max()
        };
        let peers = self.0.peers.iter();
        let longest = peers
            .filter_map(|peer| Some((fits(peer)?, peer)))
            .max_by_key(|(length, _)| *length);
        longest.map(|(_, peer)| peer.party.name.as_str())
    }
}

/// Returns the outer addresses of the source, or of the last router before us, as far as the kernel
/// knows them.
fn neighbours(source: &Source) -> Vec<IpAddr> {
    let Some(link) = source.link else {
        return Vec::new();
    };
    let known = Netlink::open().and_then(|netlink| netlink.addresses_of(&source.interface, link));
    let mut known = known.unwrap_or_default();
    known.retain(|address| *address != source.claimed);
    known
}
