//! The daemon's end of its API: requests become commands, the node's state becomes answers.

use crate::assigned::AssignedAddresses;
use crate::clear::Claimants;
use crate::config_view::ConfigView;
use crate::explain::{explain, of_placement, told};
use crate::kept::Gap;
use crate::keylog::Keys;
use crate::ping::Pings;
use crate::readers::Readers;
use crate::sessions::Sessions;
use crate::sink::IoCounters;
use crate::{interface, metrics, signal, view};
use config::Config;
use control::{
    Changed, ClientId, Daemon, Failure, Keylog, Moved, PeerChanged, PeerState, Request, Response,
    Selection, Server, Trouble,
};
use crypto::UnixTime;
use model::{Deadline, Instant};
use node::{BadDestination, CannotMove, CannotReauthenticate, CannotRedirect, CannotRekey};
use node::{NoLevel, Node, NotRepeated, NotSent, Rekey, UnknownChild};
use os::{Links, clock, crash};
use resumption::{Handle, Store};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The socket, and the unanswered requests.
pub struct Api {
    server: Server,
    readers: Option<Readers>,
    view: ConfigView,
    /// Time of the start of the daemon.
    began: UnixTime,
    waiting: Vec<Waiting>,
    reloads: Vec<Reload>,
    pings: Pings,
}

/// The parts of the daemon that requests read or change.
pub struct Parts<'a> {
    pub node: &'a mut Node,
    pub keys: &'a mut Keys,
    pub sessions: &'a mut Sessions,
    pub counters: &'a IoCounters,
}

impl Parts<'_> {
    fn reborrow(&mut self) -> Parts<'_> {
        Parts {
            node: self.node,
            keys: self.keys,
            sessions: self.sessions,
            counters: self.counters,
        }
    }
}

/// A pending `reload` request.
pub struct Reload {
    client: ClientId,
    /// True to report the changes without applying them.
    pub dry_run: bool,
}

/// A pending `up --wait` request.
struct Waiting {
    client: ClientId,
    peers: Vec<String>,
    /// Name of the tunnel, if only one was requested.
    child: Option<String>,
    asked: Instant,
    until: Instant,
}

impl Api {
    /// Listens. Returns an error if another daemon has the socket.
    pub fn open(config: &Arc<Config>, now: Instant) -> Result<Self, control::CannotListen> {
        let server = Server::bind(&config.socket)?;
        Ok(Self {
            server,
            readers: Readers::open(config)?,
            view: ConfigView::new(config, now),
            began: config::today(),
            waiting: Vec::new(),
            reloads: Vec::new(),
            pings: Pings::default(),
        })
    }

    /// Applies another configuration to answers.
    pub fn reconfigure(&mut self, config: &Arc<Config>) {
        self.view.reconfigure(config);
    }

    /// Warns about removed state that the daemon no longer restores, until the next
    /// [`Api::reconfigure`].
    pub fn give_up(&mut self, removed: Vec<String>) {
        self.view.removed = removed;
    }

    /// Sets or clears the warning that unencrypted packets are not filtered.
    pub fn set_unguarded(&mut self, why: Option<&str>) {
        self.view.unguarded = why.map(str::to_owned);
    }

    /// Sets the gap of the restart with which the daemon began.
    pub const fn set_gap(&mut self, gap: Gap) {
        self.view.gap = Some(gap);
    }

    /// Sets the interfaces of hosts with link-local addresses.
    pub fn set_links(&mut self, links: &Links) {
        self.view.links = links.clone();
    }

    /// Sets the failures of the daemon and its host.
    pub fn set_errors(&mut self, errors: Vec<Trouble>) {
        self.view.errors = errors;
    }

    /// Updates the routes into the tunnels.
    pub fn set_routes(&mut self, config: &Config, inside: Option<&AssignedAddresses>) {
        self.view
            .set_routes(config, inside.unwrap_or(&AssignedAddresses::default()));
    }

    /// Returns the peers by the addresses that they may claim.
    pub const fn claimants(&self) -> &Claimants {
        &self.view.claimants
    }

    /// Logs the routes into the tunnel of a peer that announces its subnets.
    pub fn tell_routes(&self, peer: &str) {
        let Some(routes) = self.view.routes(peer) else {
            return;
        };
        match routes.beyond.is_empty() {
            true => tracing::info!("peer {peer}: routes: {routes}"),
            false => tracing::warn!("peer {peer}: routes: {routes}"),
        }
    }

    /// Returns the next `reload` request.
    pub fn poll_reload(&mut self) -> Option<Reload> {
        self.reloads.pop()
    }

    /// Answers a `reload` request.
    pub fn reloaded(&mut self, reload: &Reload, response: &Response) {
        self.server.answer(reload.client, response);
    }

    /// Answers all requests that can be answered now.
    pub fn serve(&mut self, mut parts: Parts<'_>, now: Instant) {
        for (client, request) in self.server.handle_ready() {
            if let Some(answer) = self.answer(client, request, parts.reborrow(), now) {
                self.server.answer(client, &answer);
            }
        }
        self.answer_waiting(parts.node, now);
    }

    /// Answers the next request of a reader, if it may be answered now. All time since `began` is
    /// charged to the readers.
    pub fn serve_reader(&mut self, parts: Parts<'_>, began: Instant, now: Instant) {
        let readers = self.readers.as_mut();
        let Some((client, request)) = readers.and_then(|readers| readers.pop(began)) else {
            return;
        };
        // A request that only reads is answered at once.
        let answer = self.answer(client, request, parts, now);
        if let (Some(readers), Some(answer)) = (&mut self.readers, answer) {
            readers.answer(client, &answer, began, clock::now());
        }
    }

    /// Returns the socket for readers.
    pub const fn readers(&mut self) -> Option<&mut Readers> {
        self.readers.as_mut()
    }

    /// Returns the time of the next answer to a reader, if any waits.
    pub fn next_reader(&self, now: Instant) -> Option<Instant> {
        self.readers.as_ref()?.next(now)
    }

    /// Returns the metrics.
    pub fn metrics(&self, node: &Node, counters: &IoCounters, now: Instant) -> String {
        let dropped = os::clear::dropped();
        let sources = metrics::Sources {
            node,
            counters: &counters.with_filters(self.view.is_locked(), &dropped),
            certificates: self.view.certificates(),
            lists: self.view.lists(),
            failures: &self.view.failures(&dropped),
            began: self.began,
            restart: self.view.restart(now),
        };
        metrics::text(&sources, now)
    }

    /// Ends sessions that peers may resume, and lists the others.
    fn sessions(
        &self,
        end: Option<&str>,
        end_all: bool,
        node: &mut Node,
        sessions: &mut Sessions,
        now: Instant,
    ) -> Response {
        let today = config::today();
        let ended = end.map_or_else(Vec::new, |end| self.whose(end, node, sessions, now));
        for name in &ended {
            if node.end_sessions(Some(name)).is_err() {
                return Response::Error(unknown(name, node));
            }
        }
        if end_all {
            node.end_sessions(None).expect("no peer is named");
        }
        while let Some(operation) = node.poll_store() {
            sessions.submit(operation, today);
        }
        let identity = |name: &String| match node.peer_named(name) {
            Some(peer) => peer.identity.to_string(),
            None => name.clone(),
        };
        let ended: Vec<_> = ended.iter().map(identity).collect();
        let up = |handle: &Handle| node.session_usage(handle, now);
        match sessions.list(&self.view.strategy(), up, today) {
            Ok(mut sessions) => {
                // A file may not have been written yet.
                sessions.retain(|session| !end_all && !ended.contains(&session.identity));
                Response::Sessions(control::Sessions { sessions })
            }
            Err(error) => Response::Error(Failure::new(
                error.to_string(),
                "correct that, then restart stratad",
            )),
        }
    }

    /// Returns the peers or identities whose sessions end with those of a name: of a table for many
    /// users, all that have one.
    fn whose(&self, name: &str, node: &Node, sessions: &Sessions, now: Instant) -> Vec<String> {
        let table = node.peer_named(name).filter(|peer| peer.users.is_some());
        if table.is_none() {
            return vec![name.to_owned()];
        }
        let up = |handle: &Handle| node.session_usage(handle, now);
        let all = sessions.list(&self.view.strategy(), up, config::today());
        let all = all.unwrap_or_default().into_iter();
        let all = all.map(|session| session.identity);
        all.filter(|identity| node.stands_for(name, identity))
            .collect()
    }

    /// Returns the state of the selected peers, and with the first of them that of the host.
    fn status(
        &self,
        selection: &Selection,
        node: &Node,
        counters: &IoCounters,
        now: Instant,
    ) -> Response {
        let names = node.peer_names();
        let mut named = selection.names();
        if let Some(name) = named.find(|name| names.binary_search(name).is_err()) {
            return Response::Error(unknown(name, node));
        }
        if selection.after.is_some() {
            return Response::Status(view::more_peers(&self.view, node, selection, now));
        }
        let dropped = os::clear::dropped();
        let counters = counters.with_filters(self.view.is_locked(), &dropped);
        Response::Status(view::status(
            &self.view, node, selection, &counters, &dropped, now,
        ))
    }

    /// Answers waiting clients whose peers are up or have failed, or whose time is over.
    pub fn answer_waiting(&mut self, node: &Node, now: Instant) {
        let (done, open) = std::mem::take(&mut self.waiting)
            .into_iter()
            .filter(|waiting| self.server.waits(waiting.client))
            .map(|mut waiting| (waiting.until <= now || waiting.is_done(node), waiting))
            .partition::<Vec<_>, _>(|(is_done, _)| *is_done);
        let [done, open] = [done, open].map(|all| all.into_iter().map(|(_, one)| one));
        self.waiting = open.collect();
        for waiting in done {
            self.server.answer(waiting.client, &waiting.answer(node));
        }
    }

    /// Answers clients whose pings are over.
    pub fn answer_pings(&mut self, node: &mut Node, now: Instant) {
        for (client, answer) in self.pings.take_ended(node, now) {
            if self.server.waits(client) {
                self.server.answer(client, &answer);
            }
        }
    }

    /// Returns the time at which the first wait ends.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.waiting.iter().map(|waiting| waiting.until).min()?;
        Some(Deadline {
            at,
            reason: "answer `strata up --wait`",
        })
    }

    /// Answers a request; returns `None` if the answer follows later.
    fn answer(
        &mut self,
        client: ClientId,
        request: Request,
        parts: Parts<'_>,
        now: Instant,
    ) -> Option<Response> {
        let Parts {
            node,
            keys,
            sessions,
            counters,
        } = parts;
        Some(match request {
            Request::Up {
                peer,
                child,
                wait_seconds,
            } => {
                let everybody = peer.is_none();
                let mut peers = match self.select(peer, node) {
                    Ok(peers) => peers,
                    Err(failure) => return Some(Response::Error(failure)),
                };
                if let Some(child) = &child {
                    if let Err(failure) = open(&peers, child, true, node, now) {
                        return Some(Response::Error(failure));
                    }
                } else {
                    for name in &peers {
                        node.up(name, now)
                            .expect("the node knows every name that was selected");
                    }
                }
                if everybody {
                    // Peers without an address are admitted now, and connect when they like.
                    peers = self.view.reachable();
                }
                let Some(seconds) = wait_seconds else {
                    return Some(Response::Up(changed(node, &peers)));
                };
                let until = now + Duration::from_secs(seconds);
                self.waiting.push(Waiting {
                    client,
                    peers,
                    child,
                    asked: now,
                    until,
                });
                return None;
            }
            Request::Down {
                peer,
                child: Some(child),
            } => {
                let closed = self
                    .select(peer, node)
                    .and_then(|peers| open(&peers, &child, false, node, now).map(|()| peers));
                match closed {
                    Ok(peers) => Response::Down(changed(node, &peers)),
                    Err(failure) => Response::Error(failure),
                }
            }
            Request::Down { peer, child: None } => match self.select(peer, node) {
                Ok(peers) => {
                    for name in &peers {
                        node.down(name, now)
                            .expect("the node knows every name that was selected");
                    }
                    Response::Down(changed(node, &peers))
                }
                Err(failure) => Response::Error(failure),
            },
            Request::Rekey { peer, ike } => rekey(peer, ike, node, now),
            Request::Reauth { peer } => reauth(peer, node, now),
            Request::Redirect { peer, to } => redirect(peer, &to, node, now),
            Request::Move {
                peer,
                from,
                to,
                soft,
            } => {
                let asked = Asked { from, to, soft };
                moved(&self.view, peer, asked, node, now)
            }
            Request::Signal {
                interface,
                percent,
                by,
            } => {
                let report = signal::Report {
                    interface,
                    percent,
                    by,
                };
                signal::report(report, node, now)
            }
            Request::Ping { peer, count } => {
                match self.pings.begin(client, peer, count, node, now) {
                    Ok(()) => return None,
                    Err(failure) => Response::Error(failure),
                }
            }
            Request::Level { peer, signal } => level(peer, &signal, node),
            Request::Paths => Response::Paths(view::paths(&self.view, node)),
            Request::Status(selection) => self.status(&selection, node, counters, now),
            Request::Zones => Response::Zones(view::zones(node, now)),
            Request::Flows => Response::Flows(view::flows(node)),
            Request::Leases => Response::Leases(view::leases(&self.view, node)),
            Request::Sessions { end, end_all } => {
                self.sessions(end.as_deref(), end_all, node, sessions, now)
            }
            Request::Explain { peer } => match explain(&self.view, node, &peer, now) {
                Some(explained) => Response::Explain(explained),
                None => Response::Error(unknown(&peer, node)),
            },
            Request::Reload { dry_run } => {
                self.reloads.push(Reload { client, dry_run });
                return None;
            }
            Request::Keylog { directory } => keylog(directory, node, keys),
            Request::Metrics => Response::Metrics(self.metrics(node, counters, now)),
            Request::Version => Response::Daemon(Daemon {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
            }),
        })
    }

    /// Returns the peer or user that was named, or all peers that the request can concern.
    fn select(&self, peer: Option<String>, node: &Node) -> Result<Vec<String>, Failure> {
        let known = self.view.tunnels();
        let Some(name) = peer else {
            return Ok(known);
        };
        let user = node.peer_named(&name);
        if known.contains(&name) || user.is_some_and(|user| user.table.is_some()) {
            return Ok(vec![name]);
        }
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        Err(Failure::new(
            format!("the configuration has no [peer.{}]", name.escape_debug()),
            choice(&name, &known),
        ))
    }
}

impl AsFd for Api {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.server.as_fd()
    }
}

impl Waiting {
    /// Returns true if each peer is up, or has failed since the request. One that is not becomes
    /// the first: the next call, after each event of the daemon, finds it without visiting the
    /// others.
    fn is_done(&mut self, node: &Node) -> bool {
        let failed = |peer: &node::PeerStatus| {
            peer.state != node::PeerState::Connecting
                && peer
                    .refusal
                    .as_ref()
                    .is_some_and(|refused| refused.at >= self.asked)
        };
        let is_open = |name: &String| {
            let peer = node.peer_named(name);
            peer.is_some_and(|peer| !self.is_up(&peer) && !failed(&peer))
        };
        let open = self.peers.iter().position(is_open);
        if let Some(open) = open {
            self.peers.swap(0, open);
        }
        open.is_none()
    }

    /// Returns true if the requested tunnel is up.
    fn is_up(&self, peer: &node::PeerStatus) -> bool {
        let mut children = peer.children.iter();
        match &self.child {
            None => !peer.children.is_empty(),
            name => children.any(|child| child.name == *name && !child.draining),
        }
    }

    /// Returns the state of the peers or, for a single tunnel that is down, the reason.
    fn answer(&self, node: &Node) -> Response {
        let named = |name: &String| node.peer_named(name);
        let mut peers = self.peers.iter().filter_map(named);
        let down = peers.find(|peer| self.child.is_some() && !self.is_up(peer));
        let Some((child, peer)) = self.child.as_ref().zip(down) else {
            return Response::Up(changed(node, &self.peers));
        };
        let name = &peer.name;
        let why = match (&peer.refusal, peer.state) {
            (Some(refused), _) => told(&refused.why),
            (None, node::PeerState::Up) => "the peer has not answered".to_owned(),
            (None, _) => "the peer is not up".to_owned(),
        };
        let message = format!("the tunnel {child} of {name} is not up: {why}");
        Response::Error(Failure::new(
            message,
            format!("run `strata explain {name}`"),
        ))
    }
}

/// Requests one tunnel of a peer, or closes it.
fn open(
    peers: &[String],
    child: &str,
    up: bool,
    node: &mut Node,
    now: Instant,
) -> Result<(), Failure> {
    let [peer] = peers else {
        return Err(Failure::new(
            "`--child` needs a peer",
            "name the peer as well",
        ));
    };
    let said = match up {
        true => node.open_child(peer, child, now),
        false => node.close_child(peer, child, now),
    };
    said.map_err(|UnknownChild| {
        let message = format!(
            "the configuration has no [peer.{peer}.child.{}]",
            child.escape_debug()
        );
        Failure::new(
            message,
            "name an existing child, or add the table and run `strata reload`",
        )
    })
}

fn rekey(peer: String, ike: bool, node: &mut Node, now: Instant) -> Response {
    let what = if ike { Rekey::Ike } else { Rekey::Children };
    let failure = match node.rekey(&peer, what, now) {
        Ok(()) => {
            crash::point(match what {
                Rekey::Ike => "rekey-ike-asked",
                Rekey::Children => "rekey-child-asked",
            });
            return Response::Rekey(changed(node, &[peer]));
        }
        Err(failure) => failure,
    };
    let fix = match failure {
        CannotRekey::UnknownPeer => "name a peer that `strata status` shows".to_owned(),
        CannotRekey::NotUp => format!("bring it up first: `strata up {peer}`"),
        CannotRekey::NoChild => format!("run `strata rekey {peer} --ike`"),
    };
    let message = format!("cannot rekey {}: {failure}", peer.escape_debug());
    Response::Error(Failure::new(message, fix))
}

fn level(peer: String, signal: &str, node: &mut Node) -> Response {
    let Ok(signal) = signal.parse() else {
        let message = format!("unknown level `{}`", signal.escape_debug());
        let fix = "write auto, zoned, opaque or integrity".to_owned();
        return Response::Error(Failure::new(message, fix));
    };
    let failure = match node.choose_level(&peer, signal) {
        Ok(()) => {
            tracing::info!("peer {peer}: level changed to {signal} by `strata level`");
            return Response::Level(changed(node, &[peer]));
        }
        Err(failure) => failure,
    };
    let fix = match failure {
        NoLevel::UnknownPeer => "name a peer that `strata status` shows".to_owned(),
        NoLevel::NoZones => "write `zones = \"accept\"` in its table at both ends".to_owned(),
        NoLevel::NotGranted => format!(
            "write `integrity` in [peer.{}.level] at both ends",
            peer.escape_debug()
        ),
        NoLevel::NotAgreed => format!(
            "compare `integrity` at both ends, or run `strata rekey {}`; see `strata explain`",
            peer.escape_debug()
        ),
    };
    let message = format!(
        "cannot change the level of {}: {failure}",
        peer.escape_debug()
    );
    Response::Error(Failure::new(message, fix))
}

fn reauth(peer: String, node: &mut Node, now: Instant) -> Response {
    let failure = match node.reauthenticate(&peer, now) {
        Ok(()) => return Response::Reauth(changed(node, &[peer])),
        Err(failure) => failure,
    };
    let fix = match failure {
        CannotReauthenticate::UnknownPeer(_) => "name a peer that `strata status` shows".to_owned(),
        CannotReauthenticate::Ike(NotRepeated::NotUp) => {
            format!("bring it up first: `strata up {peer}`")
        }
        CannotReauthenticate::Ike(NotRepeated::NotOurs) => {
            "run `strata reauth` at the other end".to_owned()
        }
        CannotReauthenticate::Ike(_) => "wait a moment; `strata status` shows new SPIs".to_owned(),
    };
    let message = format!("cannot re-authenticate {}: {failure}", peer.escape_debug());
    Response::Error(Failure::new(message, fix))
}

fn redirect(peer: String, to: &str, node: &mut Node, now: Instant) -> Response {
    let asked = match to.parse() {
        Ok(to) => node.redirect(&peer, to, now),
        Err(bad @ BadDestination) => {
            let message = format!("cannot redirect to {}: {bad}", to.escape_debug());
            let fix = "write it like 192.0.2.7 or gw2.example.net, without a port";
            return Response::Error(Failure::new(message, fix));
        }
    };
    let failure = match asked {
        Ok(()) => return Response::Redirect(changed(node, &[peer])),
        Err(failure) => failure,
    };
    let fix = match failure {
        CannotRedirect::UnknownPeer(_) => "name a peer that `strata status` shows".to_owned(),
        CannotRedirect::Ike(NotSent::NotUp) => "wait until it connects".to_owned(),
        CannotRedirect::Ike(NotSent::NotTheirs) => {
            format!("write another `address` in [peer.{peer}]")
        }
        CannotRedirect::Ike(_) => {
            format!(
                "list {to} in `redirect` of the peer's table for this host, a name by its addresses"
            )
        }
    };
    let message = format!("cannot redirect {}: {failure}", peer.escape_debug());
    Response::Error(Failure::new(message, fix))
}

/// The new path that a request to move a tunnel names.
struct Asked {
    from: Option<IpAddr>,
    to: Option<String>,
    soft: bool,
}

fn moved(view: &ConfigView, peer: String, asked: Asked, node: &mut Node, now: Instant) -> Response {
    let to = asked.to.map(|to| interface::address_of(&to, &peer, node));
    let moved = match (to.transpose(), asked.soft) {
        (Err(failure), _) => return Response::Error(failure),
        (Ok(Some(to)), false) => node.hand_over_or_move(&peer, to, now),
        (Ok(to), true) => {
            let handed_over = node.hand_over(&peer, to.or(asked.from), now);
            handed_over.map(|path| (path, true))
        }
        (Ok(None), false) => {
            let moved = node.move_peer(&peer, asked.from, now);
            moved.map(|path| (path, false))
        }
    };
    let failure = match moved {
        Ok((path, soft)) => {
            return Response::Move(Moved {
                name: peer,
                local: view::without_scope(path.local),
                remote: view::without_scope(path.remote),
                interface: view.link(path.remote),
                soft,
            });
        }
        Err(failure) => failure,
    };
    let fix = match &failure {
        CannotMove::UnknownPeer(_) => "name a peer that `strata status` shows".to_owned(),
        CannotMove::Ike(ike) => unmoved(*ike, &peer),
        CannotMove::NoWay(no_way) if no_way.from.is_empty() => {
            "no route to the peer: check with `ip route get`".to_owned()
        }
        CannotMove::NoWay(no_way) => {
            let from: Vec<_> = no_way.from.iter().map(ToString::to_string).collect();
            format!(
                "name one of: {}; another address needs its own routes (`ip rule add from ADDRESS lookup TABLE`)",
                from.join(", ")
            )
        }
    };
    let message = format!("cannot move {}: {failure}", peer.escape_debug());
    Response::Error(Failure::new(message, fix))
}

fn unmoved(why: node::NotMovable, peer: &str) -> String {
    match why {
        node::NotMovable::NotUp => format!("bring it up first: `strata up {peer}`"),
        node::NotMovable::NotOurs => "run `strata move` at the other end".to_owned(),
        node::NotMovable::NotCloned => {
            format!("write `clone = true` in [peer.{peer}] at both ends, or omit `--soft`")
        }
        node::NotMovable::UnderWay => {
            "wait until `ike_sas` in `strata status --json` is 1".to_owned()
        }
        node::NotMovable::Enough => {
            format!("run `strata down {peer}`, or omit `--soft`")
        }
        node::NotMovable::Transport => format!(
            "list all addresses of the host that moves in [peer.{peer}] at both ends, if both run \
             Strata; or write `mode = \"beet\"`"
        ),
        node::NotMovable::Unplaced(why) => of_placement(why).to_owned(),
        node::NotMovable::NotByClone => "omit `--soft`".to_owned(),
        _ => format!("write `mobike = \"on\"` in [peer.{peer}] at both ends"),
    }
}

fn changed(node: &Node, names: &[String]) -> Changed {
    let peers = names.iter().filter_map(|name| node.peer_named(name));
    let mut peers: Vec<_> = peers.map(|peer| peer_changed(&peer)).collect();
    peers.sort_by(|a, b| a.name.cmp(&b.name));
    Changed { peers }
}

fn peer_changed(peer: &node::PeerStatus) -> PeerChanged {
    let state = view::state(peer);
    let reason = peer.refusal.as_ref().filter(|_| state != PeerState::Up);
    PeerChanged {
        name: peer.name.clone(),
        state,
        reason: reason.map(|refused| told(&refused.why)),
    }
}

/// Returns the failure for an unknown name. Every peer can be explained, not only those with
/// tunnels.
fn unknown(name: &str, node: &Node) -> Failure {
    let fix = choice(name, &node.peer_names());
    let name = name.escape_debug();
    Failure::new(format!("the configuration has no peer named {name}"), fix)
}

/// Number of names that a failure proposes.
const MOST_PROPOSED: usize = 8;

/// Returns the advice for an unknown name: the names that are most like it, if there are many.
fn choice(name: &str, known: &[&str]) -> String {
    let mut known = known.to_vec();
    if known.len() > MOST_PROPOSED {
        let likeness = |known: &&str| strsim::jaro_winkler(name, known);
        known.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
        known.truncate(MOST_PROPOSED);
        known.push("or another peer of `strata status`");
    }
    format!("name one of: {}", known.join(", "))
}

fn keylog(directory: Option<PathBuf>, node: &mut Node, keys: &mut Keys) -> Response {
    match keys.set(directory.clone()) {
        Ok(()) => {
            node.set_key_log(directory.is_some());
            Response::Keylog(Keylog { directory })
        }
        Err(error) => {
            let message = format!("cannot write keys: {error}");
            Response::Error(Failure::new(
                message,
                "name a folder that stratad may write to",
            ))
        }
    }
}
