//! What the log says about events.
//!
//! Strangers can make the node speak as often as they like, so what is said about them is said at
//! most once a second; how much was left unsaid is said as well.

use model::{Instant, Mode};
use node::mobile_ip::{self, ForeignEvent, HomeEvent, MobileEvent};
use node::{Ending, Event};
use std::time::Duration;

/// How long strangers are not mentioned again.
const PAUSE: Duration = Duration::from_secs(1);

/// The log, as far as it remembers anything.
#[derive(Default)]
pub struct Journal {
    silent_until: Instant,
    unsaid: u64,
}

impl Journal {
    /// Tells one event. Those that ask for an action and not for a line are left out.
    pub fn tell(&mut self, event: &Event, now: Instant) {
        match event {
            Event::PeerUp { peer } => tracing::info!("peer {peer}: up"),
            Event::Redirected { peer, to } => {
                tracing::info!("peer {peer}: sends us to {to}");
            }
            Event::FellBack { peer, to } => {
                tracing::info!("peer {peer}: nobody answers by UDP, trying TCP to {to}");
            }
            Event::Reauthenticated { peer } => {
                tracing::info!("peer {peer}: both ends proved anew who they are");
            }
            Event::Cloned { peer } => tracing::info!("peer {peer}: IKE SA cloned"),
            Event::HandedOver { peer, path } => {
                let (local, remote) = (path.local, path.remote);
                tracing::info!("peer {peer}: tunnel handed over, from {local} to {remote}");
            }
            Event::SealedFor { peer, node } => match node {
                Some(node) => {
                    tracing::info!("peer {peer}: the tunnel passes {node}, which may read")
                }
                None => tracing::info!(
                    "peer {peer}: the tunnel passes no node that may read in its place alone, or none yet"
                ),
            },
            Event::PeerDown { peer, why } => tracing::warn!("peer {peer}: down: {why}"),
            Event::Configured { peer, addresses } => {
                let addresses = list(addresses.iter().map(|address| address.to_string()));
                tracing::info!("peer {peer}: lends us {addresses}");
            }
            Event::ChildUp {
                peer,
                child,
                inbound,
                outbound,
                zoned,
                mode,
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
            Event::ChildRekeyed {
                peer,
                child,
                inbound,
                outbound,
                exchanges,
            } => {
                let tunnel = tunnel(child);
                let from = match exchanges.group {
                    Some(_) => format!(", from {exchanges}"),
                    None => String::new(),
                };
                tracing::info!(
                    "peer {peer}: {tunnel} has new keys{from}, SPIs {inbound} in, {outbound} out"
                );
            }
            Event::IkeRekeyed { peer } => tracing::info!("peer {peer}: IKE SA has new keys"),
            Event::EcnUnused { peer, child } => {
                let tunnel = tunnel(child);
                tracing::warn!(
                    "peer {peer}: {tunnel}: somebody on the way, or the peer, writes ECN fields against \
                     RFC 6040; `congestion` in `strata status --json` counts such packets"
                );
            }
            Event::Unpadded { peer, child } => {
                let tunnel = tunnel(child);
                tracing::warn!(
                    "peer {peer}: {tunnel}: the peer takes no padding (ESP_TFC_PADDING_NOT_SUPPORTED), so whoever \
                     is on the way sees how long packets are: have it take some, or write `tfc = \"off\"`"
                );
            }
            Event::LevelSpent { peer, child } => {
                let tunnel = tunnel(child);
                tracing::warn!(
                    "peer {peer}: {tunnel}: what was granted to go without encryption is used up, and all is \
                     encrypted; new keys give more only if `renewals` are left (`strata zones`)"
                );
            }
            Event::LevelRefused { peer, child } => {
                let tunnel = tunnel(child);
                tracing::warn!(
                    "peer {peer}: {tunnel}: it sends without encryption what it may not, or more than was \
                     granted: that is dropped; `level_class` and `level_spent` in `strata status --json` \
                     count it"
                );
            }
            Event::ChildDown { peer, child } => {
                tracing::info!("peer {peer}: {} down", tunnel(child));
            }
            Event::Granted { sa, node, rights } => {
                let peer = &sa.peer;
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
                let peer = &sa.peer;
                tracing::info!(
                    audit = true,
                    "peer {peer}: {asker} may have its keys from {holder} until it gets others: it has a token"
                );
            }
            Event::KeysHandedOn { held, node } => {
                let gateway = &held.gateway;
                tracing::info!(
                    audit = true,
                    "gateway {gateway}: {node} has keys from us, by a mobile node's token"
                );
            }
            Event::GrantRefused { node, why, .. } => {
                tracing::warn!(audit = true, "{node} did not take keys: {why}");
            }
            Event::GrantHeld(held) => {
                let gateway = &held.gateway;
                let zones = list(held.zones.iter().map(ToString::to_string));
                tracing::info!(
                    audit = true,
                    "gateway {gateway}: keys to zones {zones} arrived"
                );
            }
            Event::GrantDropped { held, .. } => {
                let gateway = &held.gateway;
                tracing::info!(audit = true, "gateway {gateway}: keys forgotten");
            }
            Event::Refused {
                peer: Some(peer),
                why,
            } => tracing::warn!("peer {peer}: refused: {why}"),
            Event::Refused { peer: None, why } => self.tell_of_stranger(why, now),
            Event::MobileIp(mobile_ip::Event::Refused(why)) => self.tell_of_stranger(why, now),
            Event::MobileIp(event) => tell_of_mobile_ip(event),
            Event::PathMtu {
                peer,
                outside: Some(outside),
                inside: Some(inside),
            } => tracing::info!(
                "peer {peer}: the way there takes packets of {outside} octets, datagrams of {inside}"
            ),
            Event::PathMtu { peer, .. } => {
                tracing::info!("peer {peer}: longer packets are tried again");
            }
            Event::PathMtuForged { path, mtu } => {
                let remote = path.remote.ip();
                tracing::warn!(
                    "somebody says that the way to {remote} takes {mtu} octets, which is less than any way \
                     takes: not believed, but packets there may be cut for ten minutes"
                );
            }
            Event::PathMoved { peer, path } => {
                let (local, remote) = (path.local, path.remote);
                match path.is_without_udp() {
                    false => tracing::info!("peer {peer}: tunnel moved, from {local} to {remote}"),
                    true => {
                        let (local, remote) = (local.ip(), remote.ip());
                        tracing::info!(
                            "peer {peer}: tunnel moved, from {local} to {remote}, without UDP"
                        );
                    }
                }
            }
            Event::GrantEnded {
                sa,
                node,
                why: Ending::Reconfigured,
                ..
            } => {
                let peer = &sa.peer;
                tracing::info!(
                    audit = true,
                    "{node} has no licence for the tunnel of {peer} any more: the configuration changed"
                );
            }
            // `zones` shows the first and the last, and a refusal of its own tells the others.
            Event::Licensed { .. }
            | Event::NotLicensed { .. }
            | Event::GrantUnusable { .. }
            | Event::GrantEnded { .. } => {}
            Event::PairLearnt { .. }
            | Event::PairForgotten { .. }
            | Event::WaysWanted
            | Event::Giving { .. }
            | Event::KeyLog(_) => {}
        }
    }

    fn tell_of_stranger(&mut self, why: &str, now: Instant) {
        self.warn(&format!("somebody was refused: {why}"), now);
    }

    /// Says what strangers can cause.
    pub fn warn(&mut self, what: &str, now: Instant) {
        if now < self.silent_until {
            self.unsaid += 1;
            return;
        }
        match std::mem::take(&mut self.unsaid) {
            0 => tracing::warn!("{what}"),
            unsaid => tracing::warn!("{what} (and {unsaid} before, not told)"),
        }
        self.silent_until = now + PAUSE;
    }
}

/// One of a peer's tunnels, which may have a name.
fn tunnel(child: &Option<String>) -> String {
    let name = child.as_ref().map(|name| format!(" {name}"));
    format!("tunnel{}", name.unwrap_or_default())
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// Renewals are no news.
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
            tracing::info!("mobile node: packets leave by {}", at.agent);
        }
        mobile_ip::Event::MobileNode(MobileEvent::Route(None)) => {
            tracing::warn!("mobile node: no foreign agent to send by");
        }
        mobile_ip::Event::MobileNode(MobileEvent::Denied { at, code }) => {
            tracing::warn!("mobile node: denied through {}: {code}", at.agent);
        }
        mobile_ip::Event::MobileNode(MobileEvent::Silent(at)) => {
            tracing::warn!("mobile node: nothing came back through {}", at.agent);
        }
        mobile_ip::Event::ForeignAgent(ForeignEvent::Came(visitor)) => tracing::info!(
            "foreign agent: {} is here, at home with {}",
            visitor.home,
            visitor.home_agent
        ),
        mobile_ip::Event::ForeignAgent(ForeignEvent::Followed(visitor)) => tracing::info!(
            "foreign agent: {} comes from another, which sends on what is for it",
            visitor.home
        ),
        mobile_ip::Event::ForeignAgent(ForeignEvent::Gone { visitor, to }) => tracing::info!(
            "foreign agent: {} is at {to} now, and what still comes for it is sent there",
            visitor.home
        ),
        mobile_ip::Event::ForeignAgent(ForeignEvent::Unheard(visitor)) => tracing::warn!(
            "foreign agent: nothing comes in UDP for {} from {}: a NAT has forgotten it, or that home agent is out of reach. \
             It is had to register again; if this happens often, write a shorter `keepalive`",
            visitor.home,
            visitor.home_agent
        ),
        mobile_ip::Event::ForeignAgent(ForeignEvent::Left(visitor)) => {
            tracing::info!("foreign agent: {} has left", visitor.home);
        }
        mobile_ip::Event::HomeAgent(HomeEvent::Bound { home, care_of }) => {
            let care_of = list(care_of.iter().map(ToString::to_string));
            tracing::info!("home agent: {home} is at {care_of}");
        }
        mobile_ip::Event::HomeAgent(HomeEvent::Unbound { home }) => {
            tracing::info!("home agent: {home} is nowhere");
        }
        mobile_ip::Event::HomeAgent(HomeEvent::Remapped { home, care_of, udp }) => match udp {
            Some(end) => {
                tracing::info!("home agent: {home} is at {care_of} still, in UDP by {end} now")
            }
            None => tracing::info!("home agent: {home} is at {care_of} still, in IP now"),
        },
        mobile_ip::Event::HomeAgent(HomeEvent::Contested { home, bound, other }) => {
            let bound = bound.address();
            tracing::warn!(
                "home agent: two places claim one registration: packets for {home} go to {bound}, and the same request came from {other}. It is denied there and the mobile node asks again; if this goes on, one of the two is a stranger that hears the mobile node: give the foreign agent a key ([home_agent.foreign.NAME])"
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
