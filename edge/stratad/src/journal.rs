//! The log's lines about events.
//!
//! Unknown hosts can cause events at any rate, so lines about them appear at most once a second,
//! with the number of omitted ones. A peer can do so too by refused requests, moves and rekeys, and
//! a mobile node by its registrations. Each of them has a quota of lines of its own.

use crate::explain::told;
use crate::quota::Quota;
use model::{Instant, Mode, PeerId, PeerNames};
use node::mobile_ip::{self, ForeignEvent, HomeEvent, MobileEvent};
use node::{Ending, Event, Reported};
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Minimum time between lines about unknown hosts.
const PAUSE: Duration = Duration::from_secs(1);

/// Most quotas to remember; beyond, unused ones are forgotten.
const MOST_QUOTAS: usize = 1 << 16;

/// The state of the log.
#[derive(Default)]
pub struct Journal {
    silent_until: Instant,
    unsaid: u64,
    quotas: HashMap<Subject, Quota>,
}

/// The subject of lines that it can cause at any rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Subject {
    /// A peer.
    Peer(PeerId),
    /// A mobile node, by its address.
    Home(Ipv4Addr),
    /// The remote end of a path, by its address.
    End(IpAddr),
}

impl Journal {
    /// Logs one event. Events that ask for an action have no line.
    pub fn tell(&mut self, event: &Event, names: &PeerNames, now: Instant) {
        if let Some(subject) = Subject::from_event(event)
            && !self.grants_line(subject, names, now)
        {
            return;
        }
        let peer = peer_of(event).map_or("", |peer| names.name(peer));
        match event {
            Event::PeerUp { .. } => tracing::info!("peer {peer}: up"),
            Event::Redirected { to, .. } => {
                tracing::info!("peer {peer}: redirected to {to}");
            }
            Event::Resumed { .. } => {
                tracing::info!("peer {peer}: session resumed");
            }
            Event::NotResumed { .. } => {
                tracing::info!(
                    "peer {peer}: our ticket is not accepted or not answered, so a full exchange begins"
                );
            }
            Event::FellBack { to, .. } => {
                tracing::info!("peer {peer}: no answer by UDP, trying TCP to {to}");
            }
            Event::NameFound {
                name,
                addresses,
                by,
                ..
            } => {
                let addresses = list(addresses.iter().map(ToString::to_string));
                match by {
                    Some(by) => tracing::info!("peer {peer}: {name} is {addresses}, says {by}"),
                    None => tracing::info!("peer {peer}: {name} is {addresses}, says /etc/hosts"),
                }
            }
            Event::NameNotFound {
                name, why, instead, ..
            } => {
                let then = match instead {
                    Some(instead) => format!("trying {instead}, where it was last"),
                    None => format!("trying again; see `strata explain {peer}`"),
                };
                tracing::warn!("peer {peer}: cannot find {name}: {why}; {then}");
            }
            Event::Reauthenticated { .. } => {
                tracing::info!("peer {peer}: re-authenticated");
            }
            Event::Cloned { .. } => tracing::info!("peer {peer}: IKE SA cloned"),
            Event::HandedOver { path, .. } => {
                let (local, remote) = (path.local, path.remote);
                tracing::info!("peer {peer}: tunnel handed over, now between {local} and {remote}");
            }
            Event::SealedFor { node, .. } => match node {
                Some(node) => {
                    tracing::info!("peer {peer}: packets are now sealed for licensed node {node}")
                }
                None => tracing::info!(
                    "peer {peer}: packets are now sealed for none of the nodes that are licensed by place"
                ),
            },
            Event::Unanswered { to, tries, .. } => tracing::warn!(
                "peer {peer}: no answer yet from {to} to {tries} messages, still trying; see `strata explain {peer}`"
            ),
            Event::Displaced {
                old,
                new,
                in_turns: false,
                ..
            } => tracing::info!("peer {peer}: connected from {new}, its IKE SA from {old} ends"),
            Event::Displaced { old, new, .. } => {
                tracing::warn!("{}", two_machines(peer, &[*old, *new]));
            }
            Event::PeerDown {
                why,
                intended: true,
                ..
            } => tracing::info!("peer {peer}: down: {}", in_one_line(&told(why))),
            Event::PeerDown { why, .. } => {
                tracing::warn!("peer {peer}: down: {}", in_one_line(&told(why)));
            }
            Event::Configured { addresses, .. } => {
                let addresses = list(addresses.iter().map(|address| address.to_string()));
                tracing::info!("peer {peer}: assigned {addresses}");
            }
            Event::ChildUp {
                child,
                inbound,
                outbound,
                zoned,
                mode,
                ..
            } => {
                let kind = if *zoned { "zoned" } else { "plain" };
                let tunnel = match mode {
                    Mode::Tunnel => tunnel(child),
                    mode => format!("{} in {mode} mode", tunnel(child)),
                };
                tracing::info!(
                    "peer {peer}: {kind} {tunnel} up, SPIs {inbound} in, {outbound} out"
                );
            }
            Event::Unencrypted { child, suite, .. } => {
                let tunnel = tunnel(child);
                tracing::warn!(
                    "peer {peer}: {tunnel} is NOT ENCRYPTED ({suite}): every router on the path can read it; \
                     `unencrypted` in the peer's table accepts this"
                );
            }
            Event::UnencryptedLow { .. } => tracing::warn!(
                "peer {peer}: 90 % of the packets that `unencrypted` allows are used: the tunnel is rekeyed \
                 to encryption"
            ),
            Event::ChildRekeyed {
                child,
                inbound,
                outbound,
                exchanges,
                ..
            } => {
                let tunnel = tunnel(child);
                let from = match exchanges.group {
                    Some(_) => format!(", from {exchanges}"),
                    None => String::new(),
                };
                tracing::info!(
                    "peer {peer}: {tunnel} rekeyed{from}, SPIs {inbound} in, {outbound} out"
                );
            }
            Event::IkeRekeyed { .. } => tracing::info!("peer {peer}: IKE SA rekeyed"),
            Event::EcnUnused { child, .. } => {
                let tunnel = tunnel(child);
                tracing::warn!(
                    "peer {peer}: {tunnel}: the peer or a router sets ECN fields against RFC 6040; see \
                     `congestion` in `strata status --json`"
                );
            }
            Event::Unpadded { child, .. } => {
                let tunnel = tunnel(child);
                tracing::warn!(
                    "peer {peer}: {tunnel}: the peer does not support padding (ESP_TFC_PADDING_NOT_SUPPORTED), so packet \
                     lengths are visible: enable padding at the peer, or write `tfc = \"off\"`"
                );
            }
            Event::LevelSpent { child, .. } => {
                let tunnel = tunnel(child);
                tracing::warn!(
                    "peer {peer}: {tunnel}: the limit of unencrypted packets is reached, and all packets are encrypted; \
                     a rekey renews the limit only if `renewals` are left (`strata zones`)"
                );
            }
            Event::LevelRefused { child, .. } => {
                let tunnel = tunnel(child);
                tracing::warn!(
                    "peer {peer}: {tunnel}: dropped unencrypted packets that `level` does not allow, or over its limit; see \
                     `level_class` and `level_spent` in `strata status --json`"
                );
            }
            Event::ChildDown { child, .. } => {
                tracing::info!("peer {peer}: {} down", tunnel(child));
            }
            Event::Granted { sa, node, rights } => {
                let peer = names.name(sa.peer);
                let rights = rights
                    .iter()
                    .map(|(zone, right)| format!("{right:?} zone {zone}"));
                tracing::info!(
                    audit = true,
                    "{node} holds keys to the tunnel of {peer}: {}",
                    list(rights)
                );
            }
            Event::TokenGiven { sa, holder, asker } => {
                let peer = names.name(sa.peer);
                tracing::info!(
                    audit = true,
                    "peer {peer}: {asker} has a token to fetch keys of the tunnel from {holder}, until it gets other keys"
                );
            }
            Event::KeysHandedOn { held, node } => {
                let gateway = names.name(held.gateway);
                tracing::info!(
                    audit = true,
                    "gateway {gateway}: {node} fetched keys from us with a mobile node's token"
                );
            }
            Event::GrantRefused { node, why, .. } => {
                let why = told(why);
                let why = in_one_line(&why);
                tracing::warn!(audit = true, "{node} refused the keys: {why}");
            }
            Event::GrantHeld(held) => {
                let gateway = names.name(held.gateway);
                let zones = list(held.zones.iter().map(ToString::to_string));
                tracing::info!(
                    audit = true,
                    "gateway {gateway}: received keys of zones {zones}"
                );
            }
            Event::GrantDropped { held, .. } => {
                let gateway = names.name(held.gateway);
                tracing::info!(audit = true, "gateway {gateway}: keys deleted");
            }
            Event::Refused {
                peer: Some(_),
                from: None,
                why,
            } => tracing::warn!("peer {peer}: refused: {}", in_one_line(&told(why))),
            Event::Refused {
                peer: Some(_),
                from: Some(from),
                why,
            } => {
                let why = told(why);
                let why = in_one_line(&why);
                tracing::warn!("peer {peer}: refused a host at {from}: {why}");
            }
            Event::Refused {
                peer: None,
                from,
                why,
            } => self.log_unknown_peer(*from, &told(why), now),
            Event::MobileIp(mobile_ip::Event::Refused(refused)) => {
                self.log_unknown_peer(refused.from, &told(&refused.why), now);
            }
            Event::MobileIp(event) => tell_of_mobile_ip(event),
            Event::PathMtu {
                outside: Some(outside),
                inside: Some(inside),
                ..
            } => {
                tracing::info!("peer {peer}: path MTU {outside} octets, {inside} inside the tunnel")
            }
            Event::PathMtu { .. } => {
                tracing::info!("peer {peer}: path MTU expired, trying longer packets");
            }
            Event::PathMtuForged { path, mtu } => {
                let remote = path.remote.ip();
                tracing::warn!(
                    "ignoring a path MTU of {mtu} octets to {remote}, below the minimum of IP; the kernel may fragment \
                     packets on that path for ten minutes"
                );
            }
            Event::PathMoved { path, .. } => {
                let (local, remote) = (path.local, path.remote);
                match path.is_without_udp() {
                    false => {
                        tracing::info!(
                            "peer {peer}: tunnel moved, now between {local} and {remote}"
                        );
                    }
                    true => {
                        let (local, remote) = (local.ip(), remote.ip());
                        tracing::info!(
                            "peer {peer}: tunnel moved, now between {local} and {remote}, without UDP"
                        );
                    }
                }
            }
            Event::LivePath { path, works, .. } => {
                let (local, remote) = (path.local.ip(), path.remote.ip());
                match works {
                    true => tracing::info!("peer {peer}: path {local} - {remote} is used again"),
                    false => tracing::warn!(
                        "peer {peer}: path {local} - {remote} is down, packets take the others"
                    ),
                }
            }
            Event::Signal { locals, reported } => {
                let locals: Vec<_> = locals.iter().map(ToString::to_string).collect();
                let local = locals.join(", ");
                match reported {
                    Some(Reported {
                        percent,
                        is_weak,
                        by,
                        ..
                    }) => {
                        let by = by.as_deref().unwrap_or("an unnamed source");
                        match is_weak {
                            true => tracing::info!(
                                "signal of {local} is weak ({percent} %), says {by}: tunnels leave it if another path works"
                            ),
                            false => tracing::info!(
                                "signal of {local} is not weak any more ({percent} %), says {by}"
                            ),
                        }
                    }
                    None => tracing::info!(
                        "the weak signal of {local} is not reported any more: tunnels may use it again"
                    ),
                }
            }
            Event::GrantEnded {
                sa,
                node,
                why: Ending::Reconfigured,
                ..
            } => {
                let peer = names.name(sa.peer);
                tracing::info!(
                    audit = true,
                    "{node} lost its licence for the tunnel of {peer}: the configuration changed"
                );
            }
            // `strata zones` shows the first and the last event; the others also raise a refusal,
            // which is logged.
            Event::Licensed { .. }
            | Event::NotLicensed { .. }
            | Event::GrantUnusable { .. }
            | Event::GrantEnded { .. } => {}
            Event::PairLearnt { .. }
            | Event::PairForgotten { .. }
            | Event::WaysWanted { .. }
            | Event::NameWanted { .. }
            | Event::NameProved { .. }
            | Event::Giving { .. }
            | Event::KeyLog(_) => {}
        }
    }

    /// Returns true if a subject has a line left; reports the number of lines omitted before.
    fn grants_line(&mut self, subject: Subject, names: &PeerNames, now: Instant) -> bool {
        if self.quotas.len() >= MOST_QUOTAS {
            self.quotas.retain(|_, quota| !quota.is_whole(now));
        }
        let quota = self.quotas.entry(subject).or_default();
        let Some(left_out) = quota.take(now) else {
            return false;
        };
        if left_out > 0 {
            let subject = subject.told(names);
            tracing::warn!(
                "{subject}: omitted {left_out} lines before this one, as there were too many at once"
            );
        }
        true
    }

    fn log_unknown_peer(&mut self, from: Option<SocketAddr>, why: &str, now: Instant) {
        let line = match from {
            Some(from) => format!("unidentified host at {from} refused: {why}"),
            None => format!("unidentified host refused: {why}"),
        };
        self.warn(&line, now);
    }

    /// Logs a line that unknown hosts can cause.
    pub fn warn(&mut self, what: &str, now: Instant) {
        let what = in_one_line(what);
        if now < self.silent_until {
            self.unsaid += 1;
            return;
        }
        match std::mem::take(&mut self.unsaid) {
            0 => tracing::warn!("{what}"),
            unsaid => tracing::warn!("{what} ({unsaid} earlier lines omitted)"),
        }
        self.silent_until = now + PAUSE;
    }
}

impl Subject {
    fn from_event(event: &Event) -> Option<Self> {
        match event {
            Event::MobileIp(event) => home_of(event).map(Self::Home),
            Event::PathMtuForged { path, .. } => Some(Self::End(path.remote.ip())),
            event => peer_of(event).map(Self::Peer),
        }
    }

    fn told(self, names: &PeerNames) -> String {
        match self {
            Self::Peer(peer) => format!("peer {}", names.name(peer)),
            Self::Home(home) => format!("mobile node {home}"),
            Self::End(end) => format!("paths to {end}"),
        }
    }
}

/// Returns the peer that a line is about, which can cause such lines at any rate.
fn peer_of(event: &Event) -> Option<PeerId> {
    Some(match event {
        Event::PeerUp { peer }
        | Event::Redirected { peer, .. }
        | Event::Resumed { peer }
        | Event::NotResumed { peer }
        | Event::FellBack { peer, .. }
        | Event::Reauthenticated { peer }
        | Event::Cloned { peer }
        | Event::HandedOver { peer, .. }
        | Event::SealedFor { peer, .. }
        | Event::NameFound { peer, .. }
        | Event::NameNotFound { peer, .. }
        | Event::Unanswered { peer, .. }
        | Event::Displaced { peer, .. }
        | Event::PeerDown { peer, .. }
        | Event::Configured { peer, .. }
        | Event::ChildUp { peer, .. }
        | Event::Unencrypted { peer, .. }
        | Event::UnencryptedLow { peer }
        | Event::ChildRekeyed { peer, .. }
        | Event::IkeRekeyed { peer }
        | Event::EcnUnused { peer, .. }
        | Event::Unpadded { peer, .. }
        | Event::LevelSpent { peer, .. }
        | Event::LevelRefused { peer, .. }
        | Event::ChildDown { peer, .. }
        | Event::PathMtu { peer, .. }
        | Event::PathMoved { peer, .. }
        | Event::LivePath { peer, .. }
        | Event::Refused {
            peer: Some(peer), ..
        } => *peer,
        Event::Granted { sa, .. }
        | Event::TokenGiven { sa, .. }
        | Event::GrantRefused { sa, .. } => sa.peer,
        Event::GrantHeld(held)
        | Event::KeysHandedOn { held, .. }
        | Event::GrantDropped { held, .. } => held.gateway,
        _ => return None,
    })
}

/// Returns the mobile node that a line of Mobile IP is about. Renewals have no line.
const fn home_of(event: &mobile_ip::Event) -> Option<Ipv4Addr> {
    match event {
        mobile_ip::Event::ForeignAgent(
            ForeignEvent::Came(visitor)
            | ForeignEvent::Followed(visitor)
            | ForeignEvent::Gone { visitor, .. }
            | ForeignEvent::Unheard(visitor)
            | ForeignEvent::Displaced { visitor, .. }
            | ForeignEvent::Unproved(visitor)
            | ForeignEvent::Left(visitor),
        ) => Some(visitor.home),
        mobile_ip::Event::HomeAgent(
            HomeEvent::Bound { home, .. }
            | HomeEvent::Unbound { home }
            | HomeEvent::Remapped { home, .. }
            | HomeEvent::Contested { home, .. },
        ) => Some(*home),
        _ => None,
    }
}

/// Escapes text that a peer may control, so that it cannot forge a line of the log.
fn in_one_line(text: &str) -> Cow<'_, str> {
    match text.contains(char::is_control) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(text.escape_debug().to_string()),
    }
}

/// Returns the warning about a peer that connects from two addresses in turns.
pub fn two_machines(peer: &str, [one, other]: &[SocketAddr; 2]) -> String {
    format!(
        "peer {peer}: connects from {one} and {other} in turns, as if two machines used its identity and key: give each \
         machine its own"
    )
}

/// Names one of a peer's tunnels, which may have a name.
fn tunnel(child: &Option<String>) -> String {
    let name = child.as_ref().map(|name| format!(" {name}"));
    format!("tunnel{}", name.unwrap_or_default())
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// Logs an event of Mobile IP. Renewals have no line.
fn tell_of_mobile_ip(event: &mobile_ip::Event) {
    match event {
        mobile_ip::Event::MobileNode(MobileEvent::Registered(at)) => tracing::info!(
            "mobile node: registered through the foreign agent {}, care-of address {}",
            at.agent,
            at.care_of
        ),
        mobile_ip::Event::MobileNode(MobileEvent::Unregistered(at)) => {
            tracing::info!("mobile node: no longer registered through {}", at.agent);
        }
        mobile_ip::Event::MobileNode(MobileEvent::Route(Some(at))) => {
            tracing::info!("mobile node: sending through {}", at.agent);
        }
        mobile_ip::Event::MobileNode(MobileEvent::Route(None)) => {
            tracing::warn!("mobile node: no foreign agent to send through");
        }
        mobile_ip::Event::MobileNode(MobileEvent::Denied { at, code }) => {
            tracing::warn!(
                "mobile node: registration through {} denied: {code}",
                at.agent
            );
        }
        mobile_ip::Event::MobileNode(MobileEvent::Silent(at)) => {
            tracing::warn!(
                "mobile node: no answer to the registration through {}",
                at.agent
            );
        }
        mobile_ip::Event::ForeignAgent(ForeignEvent::Came(visitor)) => tracing::info!(
            "foreign agent: {} has arrived, home agent {}",
            visitor.home,
            visitor.home_agent
        ),
        mobile_ip::Event::ForeignAgent(ForeignEvent::Followed(visitor)) => tracing::info!(
            "foreign agent: {} has arrived, and its previous foreign agent forwards its packets",
            visitor.home
        ),
        mobile_ip::Event::ForeignAgent(ForeignEvent::Gone { visitor, to }) => tracing::info!(
            "foreign agent: {} has moved to {to}, forwarding its packets",
            visitor.home
        ),
        mobile_ip::Event::ForeignAgent(ForeignEvent::Unheard(visitor)) => tracing::warn!(
            "foreign agent: no UDP packets for {} from {}: a NAT mapping has expired, or the home agent cannot be reached; \
             the mobile node must register again; if this happens often, write a shorter `keepalive`",
            visitor.home,
            visitor.home_agent
        ),
        mobile_ip::Event::ForeignAgent(ForeignEvent::Displaced { visitor, by }) => tracing::warn!(
            "foreign agent: {} is the mobile node of {by} now, which is on the route of that address; the one of {} has \
             left, and may be an attacker",
            visitor.home,
            visitor.home_agent
        ),
        mobile_ip::Event::ForeignAgent(ForeignEvent::Unproved(claim)) => tracing::warn!(
            "foreign agent: denied a registration of {}, which another mobile node has here: the home agent {} is not on \
             the route of that address, or a firewall there drops UDP to port 434; to decide by configuration, list home \
             agents ([foreign_agent.home.NAME])",
            claim.home,
            claim.home_agent
        ),
        mobile_ip::Event::ForeignAgent(ForeignEvent::Left(visitor)) => {
            tracing::info!("foreign agent: {} has left", visitor.home);
        }
        mobile_ip::Event::HomeAgent(HomeEvent::Bound { home, care_of }) => {
            let care_of = list(care_of.iter().map(ToString::to_string));
            tracing::info!("home agent: {home} is at {care_of}");
        }
        mobile_ip::Event::HomeAgent(HomeEvent::Unbound { home }) => {
            tracing::info!("home agent: {home} deregistered");
        }
        mobile_ip::Event::HomeAgent(HomeEvent::Remapped { home, care_of, udp }) => match udp {
            Some(end) => {
                tracing::info!("home agent: {home} is still at {care_of}, now in UDP from {end}")
            }
            None => tracing::info!("home agent: {home} is still at {care_of}, now in IP"),
        },
        mobile_ip::Event::HomeAgent(HomeEvent::Contested { home, bound, other }) => {
            let bound = bound.address();
            tracing::warn!(
                "home agent: denied a registration of {home} (at {bound}) that was repeated from {other}; if this continues, one of the two is an attacker: give the foreign agent a key ([home_agent.foreign.NAME])"
            );
        }
        mobile_ip::Event::MobileNode(
            MobileEvent::Renewed(_) | MobileEvent::Deregistered { .. } | MobileEvent::Found { .. },
        )
        | mobile_ip::Event::ForeignAgent(ForeignEvent::Renewed(_))
        | mobile_ip::Event::HomeAgent(HomeEvent::Renewed { .. })
        | mobile_ip::Event::Refused(_) => {}
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use model::Path;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    /// The captured log.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(octets)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines(tell: impl FnOnce(&mut Journal)) -> Vec<String> {
        lines_of(|| tell(&mut Journal::default()))
    }

    /// Returns the lines that a call logs, at every level.
    pub fn lines_of(tell: impl FnOnce()) -> Vec<String> {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .without_time()
            .with_target(false)
            .with_ansi(false)
            .with_max_level(tracing::Level::TRACE)
            .finish();
        tracing::subscriber::with_default(subscriber, tell);
        let octets = lines.0.lock().unwrap().clone();
        let text = String::from_utf8(octets).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    fn names() -> PeerNames {
        let mut names = PeerNames::default();
        names.enter(["alice", "mallory", "office"]);
        names
    }

    fn id(peer: &str) -> PeerId {
        names().id(peer).unwrap()
    }

    fn refused(peer: &str, why: &str) -> Event {
        Event::Refused {
            peer: Some(id(peer)),
            from: None,
            why: why.to_owned().into(),
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    // Weakness: 126
    #[test]
    fn a_peer_that_is_refused_without_end_has_a_few_lines_and_others_have_theirs() {
        let lines = lines(|journal| {
            for millis in 0..10_000 {
                journal.tell(&refused("mallory", "no"), &names(), at(millis));
                if millis % 1000 == 0 {
                    journal.tell(&refused("alice", "no"), &names(), at(millis));
                }
            }
        });
        let of = |peer: &str, what: &str| {
            let of = format!("peer {peer}: {what}");
            lines.iter().filter(|line| line.contains(&of)).count()
        };
        assert_eq!(of("alice", "refused"), 10);
        let told = of("mallory", "refused");
        assert!((100..110).contains(&told), "{told}");
        // The log itself counts omitted lines.
        let unsaid = lines.iter().filter(|line| line.contains("omitted"));
        assert!(unsaid.count() > 30 && lines.len() < 160, "{}", lines.len());
    }

    // Weakness: 126
    #[test]
    fn a_mobile_node_that_registers_without_end_has_a_few_lines() {
        let bound = |home: [u8; 4], last| {
            Event::MobileIp(mobile_ip::Event::HomeAgent(HomeEvent::Bound {
                home: home.into(),
                care_of: vec![[203, 0, 113, last].into()],
            }))
        };
        let lines = lines(|journal| {
            for number in 0..1000 {
                journal.tell(&bound([10, 66, 0, 7], number as u8), &names(), at(0));
            }
            journal.tell(&bound([10, 66, 0, 8], 1), &names(), at(0));
        });
        assert!(lines.len() < 70, "{}", lines.len());
        assert!(
            lines
                .last()
                .unwrap()
                .contains("10.66.0.8 is at 203.0.113.1")
        );
    }

    // Weakness: 153
    // Weakness: 126
    #[test]
    fn a_path_mtu_that_is_forged_without_end_has_a_few_lines() {
        let forged = |last| {
            let ends = [1, last].map(|last| ([192, 0, 2, last], 4500).into());
            let path = Path::udp(ends[0], ends[1]);
            Event::PathMtuForged { path, mtu: 68 }
        };
        let lines = lines(|journal| {
            (0..1000).for_each(|_| journal.tell(&forged(2), &names(), at(0)));
            journal.tell(&forged(3), &names(), at(0));
        });
        assert!(lines.len() < 70, "{}", lines.len());
        let last = lines.last().unwrap();
        assert!(last.contains("68 octets to 192.0.2.3"), "{last}");
    }

    #[test]
    fn a_refused_host_is_named_by_its_address() {
        let refused = |peer: Option<&str>| Event::Refused {
            peer: peer.map(id),
            from: Some(([192, 0, 2, 102], 4500).into()),
            why: "no".to_owned().into(),
        };
        let lines = lines(|journal| {
            journal.tell(&refused(None), &names(), at(0));
            journal.tell(&refused(Some("alice")), &names(), at(0));
        });
        assert_eq!(
            lines,
            [
                "WARN unidentified host at 192.0.2.102:4500 refused: no",
                "WARN peer alice: refused a host at 192.0.2.102:4500: no",
            ]
        );
    }

    #[test]
    fn a_peer_that_does_not_answer_and_two_machines_with_one_key_are_warnings() {
        let (old, new) = (([192, 0, 2, 1], 4500).into(), ([192, 0, 2, 2], 4500).into());
        let displaced = |in_turns| Event::Displaced {
            peer: id("alice"),
            old,
            new,
            in_turns,
        };
        let unanswered = Event::Unanswered {
            peer: id("office"),
            to: new,
            tries: 3,
        };
        let lines = lines(|journal| {
            journal.tell(&unanswered, &names(), at(0));
            journal.tell(&displaced(false), &names(), at(0));
            journal.tell(&displaced(true), &names(), at(0));
        });
        assert!(lines[0].starts_with("WARN peer office: no answer yet from 192.0.2.2:4500 to 3"));
        assert!(lines[1].starts_with("INFO peer alice: connected from 192.0.2.2:4500"));
        assert!(lines[2].starts_with("WARN peer alice: ") && lines[2].contains("two machines"));
    }

    #[test]
    fn an_end_that_this_host_was_asked_for_is_no_warning() {
        let down = |intended| Event::PeerDown {
            peer: id("office"),
            why: "so".to_owned().into(),
            intended,
        };
        let lines = lines(|journal| {
            journal.tell(&down(true), &names(), at(0));
            journal.tell(&down(false), &names(), at(0));
        });
        assert_eq!(
            lines,
            ["INFO peer office: down: so", "WARN peer office: down: so"]
        );
    }

    // Weakness: 127
    #[test]
    fn a_text_with_a_line_of_its_own_is_one_line() {
        let forged = "it says x\n INFO peer alice: up\x1b[2K";
        let down = Event::PeerDown {
            peer: id("mallory"),
            why: forged.to_owned().into(),
            intended: false,
        };
        let stranger = Event::Refused {
            peer: None,
            from: None,
            why: forged.to_owned().into(),
        };
        for event in [refused("mallory", forged), down, stranger] {
            let lines = lines(|journal| journal.tell(&event, &names(), at(0)));
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(lines[0].contains(r"x\n INFO") && !lines[0].contains('\x1b'));
        }
    }
}
