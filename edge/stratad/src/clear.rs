//! Packets in clear that claim to come out of a tunnel: what drops them, who they claim to be, and what the log says.

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

/// The guard, and what the log has said of the packets it dropped.
#[derive(Default)]
pub struct Clear {
    guard: Option<Guard>,
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
    pub fn start(&mut self, config: &Config) {
        self.guard = plan::guard(config, &Inside::default());
        complain(match &self.guard {
            Some(guard) => guard.start(),
            None => clear::remove(),
        });
    }

    /// Guards what another configuration protects, or the same with other addresses inside.
    pub fn set(&mut self, config: &Config, inside: &Inside) {
        let guard = plan::guard(config, inside);
        if guard == self.guard {
            return;
        }
        self.guard = guard;
        complain(match &self.guard {
            Some(guard) => guard.set(),
            None => clear::remove(),
        });
    }

    /// When the log wants to be brought up to date.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.guard.as_ref()?;
        Some(Deadline {
            at: self.next.unwrap_or(Instant::ZERO),
            reason: "look for packets in clear",
        })
    }

    /// Brings the log up to date, and puts back a guard that is gone.
    pub fn handle_timeout(&mut self, claimants: &Claimants, now: Instant) {
        let Some(guard) = &self.guard else {
            return;
        };
        if self.next.is_some_and(|next| next > now) {
            return;
        }
        let dropped = clear::dropped();
        if matches!(dropped, Ok(None)) && guard.set().is_ok() {
            tracing::warn!("the table strata_clear was removed from nftables, and is back");
            self.told.clear();
        }
        let told = matches!(dropped, Ok(Some(1..))) && self.tell(claimants);
        self.next = Some(now + if told { QUIET } else { PERIOD });
    }

    /// One line for each source with packets that the log does not know. `false` if there is none.
    fn tell(&mut self, claimants: &Claimants) -> bool {
        let Ok(sources) = clear::sources() else {
            return false;
        };
        let before = |source: &Source| self.told.get(&source.into()).copied().unwrap_or(0);
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

fn complain(done: Result<(), Error>) {
    if let Err(error) = done {
        tracing::error!(
            "packets in clear that claim to come out of a tunnel are not dropped: {error}"
        );
    }
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

    /// What the guard has dropped, those with the most packets first; nothing without a guard.
    pub fn claims(&self) -> Vec<control::ClearClaim> {
        let sources = match clear::dropped() {
            Ok(Some(1..)) => clear::sources().unwrap_or_default(),
            _ => Vec::new(),
        };
        let shown = sources.iter().take(MOST_SHOWN);
        shown
            .map(|source| self.claim(source, source.packets))
            .collect()
    }

    /// Why nothing is dropped, if that is so.
    pub fn fault(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let reason = match clear::dropped() {
            Ok(Some(_)) => return None,
            Ok(None) => "the table strata_clear is missing in nftables".to_owned(),
            Err(error) => error.to_string(),
        };
        Some(format!(
            "packets in clear that claim to come out of a tunnel are not dropped: {reason}; \
             `strata doctor` says what to do"
        ))
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
