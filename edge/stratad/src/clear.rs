//! Packets in clear that claim to come out of a tunnel: what drops them, who they claim to be, and what the log says.

use crate::faults::{self, Faults, Step};
use crate::inside::Inside;
use crate::plan;
use config::Config;
use model::{Deadline, Instant, TrafficSelector};
use os::clear::{self, Guard, Source};
use os::{Error, LinkAddress, Netlink};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// How often the log is brought up to date while it has nothing to say.
const PERIOD: Duration = Duration::from_secs(10);

/// How long it says nothing after that: one line for each source and minute.
const QUIET: Duration = Duration::from_secs(60);

/// Most lines at once: a sender may claim any number of addresses.
const MOST_LINES: usize = 8;

/// Most sources in a status.
const MOST_SHOWN: usize = 64;

/// How many packets the guard says that it has dropped; `None` if it is not there.
pub type Dropped = Result<Option<u64>, Error>;

/// The guard, and what the log has said of the packets it dropped.
#[derive(Default)]
pub struct Clear {
    guard: Option<Guard>,
    /// What nftables had of it when it was set up; `None` while it is not.
    installed: Option<u64>,
    /// Why it is not set up as it ought to be.
    fault: Option<String>,
    /// Packets of each source that the log knows.
    told: BTreeMap<Origin, u64>,
    /// When to look again.
    next: Option<Instant>,
}

/// A source, whatever it has sent.
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
    /// Guards what a configuration protects, from the start of the daemon. A kernel that cannot is no reason not to
    /// start; the status says so, and every look tries again.
    pub fn start(&mut self, config: &Config, faults: &mut Option<Faults>) {
        self.guard = plan::guard(config, &Inside::default());
        self.install(Guard::start, faults);
    }

    /// Guards what another configuration protects, or the same with other addresses inside.
    pub fn set(&mut self, config: &Config, inside: &Inside, faults: &mut Option<Faults>) {
        let guard = plan::guard(config, inside);
        let stays = guard == self.guard && self.fault.is_none();
        if stays && matches!(self.is_missing(), Ok(false)) {
            return;
        }
        self.guard = guard;
        self.restore(faults);
    }

    /// Whether another program has changed or removed what was set up.
    pub fn is_missing(&self) -> Result<bool, Error> {
        if self.guard.is_none() || self.fault.is_some() {
            return Ok(false);
        }
        let now = clear::fingerprint()?;
        Ok(now.is_none() || now != self.installed)
    }

    /// Sets it up again.
    pub fn restore(&mut self, faults: &mut Option<Faults>) {
        self.install(Guard::set, faults);
    }

    /// Why packets in clear are not dropped as they ought to be, if that could not be set up.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// When the log wants to be brought up to date.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.guard.as_ref()?;
        Some(Deadline {
            at: self.next.unwrap_or(Instant::ZERO),
            reason: "look for packets in clear",
        })
    }

    /// Brings the log up to date, and tries again to set up a guard that could not be.
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
                        "packets in clear that claim to come out of a tunnel are dropped now"
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

    /// One line for each source with packets that the log does not know. `false` if there is none.
    fn tell(&mut self, claimants: &Claimants) -> bool {
        let Ok(sources) = clear::sources() else {
            return false;
        };
        // A table that was set up anew counts from zero.
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
            tracing::warn!("and packets in clear of {others} other sources: see `strata status`");
        }
        let told = !news.is_empty();
        let known = sources.iter().map(|source| (source.into(), source.packets));
        self.told = known.collect();
        told
    }
}

/// What a person is told of a guard that is not there.
fn unguarded(why: &str) -> String {
    format!("packets in clear that claim to come out of a tunnel are not dropped: {why}")
}

/// Takes the guard away, of ours or of a predecessor.
pub fn remove() -> Result<(), Error> {
    clear::remove()
}

/// Peers, by what they may claim.
#[derive(Clone, Debug, Default)]
pub struct Claimants(Vec<(String, Vec<TrafficSelector>)>);

impl Claimants {
    /// The peers of a configuration.
    pub fn new(config: &Config) -> Self {
        let claims = config.peers.iter().map(|peer| {
            let remote = peer.all_remote().cloned();
            (peer.party.name.clone(), remote.collect())
        });
        Self(claims.collect())
    }

    /// What the guard has dropped, those with the most packets first; nothing without a guard. `dropped` is what it
    /// says of their number.
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

    /// Why not all is dropped that ought to be, if that is so. `fault` is why the guard could not be set up.
    pub fn fault(&self, fault: Option<&str>, dropped: &Dropped) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let why = match (fault, dropped) {
            (Some(fault), _) => fault.to_owned(),
            (None, Ok(Some(_))) => return None,
            (None, Ok(None)) => format!("the {} is missing in nftables", clear::NAME),
            (None, Err(error)) => error.to_string(),
        };
        let told = unguarded(&why);
        Some(format!("{told}; `strata doctor` says what to do"))
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

    /// The peer with the longest prefix that has an address.
    fn peer(&self, address: IpAddr) -> Option<&str> {
        let fits = |selectors: &[TrafficSelector]| {
            let prefixes = selectors.iter().flat_map(TrafficSelector::prefixes);
            let prefixes = prefixes.map(os::Prefix::from);
            let fitting = prefixes.filter(|prefix| prefix.contains(address));
            fitting.map(|prefix| prefix.length).max()
        };
        let peers = self.0.iter();
        let longest = peers
            .filter_map(|(name, selectors)| Some((fits(selectors)?, name)))
            .max_by_key(|(length, _)| *length);
        longest.map(|(_, name)| name.as_str())
    }
}

/// Addresses outside of the source, or of the last router before us, as far as the kernel knows them.
fn neighbours(source: &Source) -> Vec<IpAddr> {
    let Some(link) = source.link else {
        return Vec::new();
    };
    let known = Netlink::open().and_then(|netlink| netlink.addresses_of(&source.interface, link));
    let mut known = known.unwrap_or_default();
    known.retain(|address| *address != source.claimed);
    known
}
