//! Peers whose address is a name, and gateways that a redirect names.
//!
//! A name is looked up for each attempt to initiate, again while no address answers, and when the
//! network has changed. What is found is a hint: the peer proves its identity. A tunnel that is up
//! stays where it is, whatever the name means by then.
//!
//! The driver knows the name servers ([`crate::Event::NameWanted`]) and carries the queries, so a
//! server that does not answer delays nothing else. A lookup goes through the servers
//! (`lookup.rs`), the addresses of both families alternate (`order.rs`), and one after the other is
//! tried without waiting for the answer of those before (`search.rs`,
//! `ike::Engine::initiate_beside`). The address at which the peer was last up is tried if there is
//! no name server.
//!
//! A redirect to a name is looked up once. Only the addresses count to which the peer may redirect
//! us.

pub(crate) mod lookup;
mod order;
mod search;
pub(crate) mod status;

use crate::effects::{Effect, Turn};
use crate::{Cause, Event};
use ike::SaState;
use lookup::{Found, Lookup, NotFound, Progress, Sources};
use model::{Deadline, IkeSaId, Instant, PeerId, TrafficSelector};
use search::{Search, Start};
use status::NameStatus;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Most lookups under way. Further ones wait.
const MOST_LOOKUPS: usize = 4;

/// Identifier of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId(pub u64);

/// Messages for one name server. Each has its own answer, which goes to
/// [`crate::Node::handle_name_reply`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Identifier of the query.
    pub id: QueryId,
    /// Address of the name server.
    pub server: IpAddr,
    /// The messages.
    pub messages: Vec<Vec<u8>>,
}

/// The names that are looked up.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Purpose {
    /// Those of peers.
    #[default]
    Peers,
    /// Those of gateways to which peers redirected us.
    Redirects,
}

/// The names of peers, and the searches for their addresses.
#[derive(Default)]
pub(crate) struct Naming {
    purpose: Purpose,
    searches: BTreeMap<PeerId, Search>,
    /// Addresses that are reached outside of all tunnels.
    bypassed: Vec<TrafficSelector>,
    /// Open queries, with the peer whose name they ask for.
    queries: BTreeMap<QueryId, (PeerId, IpAddr)>,
    /// Queries to hand to the driver.
    unsent: Vec<Query>,
    last_query: u64,
}

impl Naming {
    pub fn new(names: BTreeMap<PeerId, Box<str>>, bypassed: Vec<TrafficSelector>) -> Self {
        let mut naming = Self::default();
        naming.set(names, bypassed);
        naming
    }

    /// Creates the owner of the names of gateways to which peers redirect us.
    pub fn of_redirects(bypassed: Vec<TrafficSelector>) -> Self {
        Self {
            purpose: Purpose::Redirects,
            bypassed,
            // Its queries are told apart from those for peers.
            last_query: 1 << 63,
            ..Self::default()
        }
    }

    /// Looks for the gateway to which a peer redirected us.
    pub fn seek(&mut self, peer: PeerId, name: Box<str>, turn: &mut Turn<'_>) {
        self.end(peer);
        self.searches.insert(peer, Search::once(name));
        self.begin(peer, turn);
    }

    /// Applies another configuration. Returns the peers that have another name.
    pub fn set(
        &mut self,
        names: BTreeMap<PeerId, Box<str>>,
        bypassed: Vec<TrafficSelector>,
    ) -> BTreeSet<PeerId> {
        let mut before = std::mem::take(&mut self.searches);
        let mut changed = BTreeSet::new();
        for (peer, name) in names {
            let kept = before.remove(&peer);
            let kept = kept.filter(|search| *search.name() == *name);
            let search = kept.unwrap_or_else(|| {
                changed.insert(peer);
                Search::new(name)
            });
            self.searches.insert(peer, search);
        }
        changed.extend(before.into_keys());
        self.bypassed = bypassed;
        self.queries.retain(|_, (peer, _)| !changed.contains(peer));
        changed
    }

    /// Sets the address at which a peer with a name was last up, in an earlier process.
    pub fn restore(&mut self, name: &str, address: IpAddr) {
        let searches = self.searches.values_mut();
        for search in searches.filter(|search| search.name() == name) {
            search.restore(address);
        }
    }

    /// Begins to look for a peer, whose address is a name.
    pub fn begin(&mut self, peer: PeerId, turn: &mut Turn<'_>) {
        if let Some(search) = self.searches.get_mut(&peer) {
            search.begin(turn.now);
        }
        self.begin_lookups(turn);
    }

    /// Ends the search for a peer that is up, down, or no longer wanted.
    pub fn end(&mut self, peer: PeerId) {
        if let Some(search) = self.searches.get_mut(&peer) {
            search.end();
            self.queries.retain(|_, (asks, _)| *asks != peer);
        }
    }

    /// Records that a peer is up.
    pub fn up(&mut self, peer: PeerId, sa: IkeSaId, turn: &mut Turn<'_>) {
        let remote = turn.ike.sa(sa).map(|sa| sa.path.remote.ip());
        let search = self.searches.get_mut(&peer);
        let Some((search, remote)) = search.zip(remote) else {
            return;
        };
        if search.prove(remote) && self.purpose == Purpose::Peers {
            turn.add(Event::NameProved {
                peer,
                name: search.name().to_owned(),
                address: remote,
            });
        }
        self.end(peer);
    }

    /// Records the end of an attempt, which `is_over` says was the last one in progress.
    pub fn failed(&mut self, peer: PeerId, sa: IkeSaId, is_over: bool) {
        if let Some(search) = self.searches.get_mut(&peer) {
            search.failed(sa);
        }
        if is_over {
            self.end(peer);
        }
    }

    /// Records that an attempt continues on another IKE SA: elsewhere, or over TCP.
    pub fn replaced(&mut self, peer: PeerId, old: IkeSaId, new: IkeSaId) {
        if let Some(search) = self.searches.get_mut(&peer) {
            search.replaced(old, new);
        }
    }

    /// Handles a change of the network: what was found before may be of no use here. Returns the
    /// peers that are not being looked for because nothing was found.
    pub fn handle_change(&mut self, turn: &mut Turn<'_>) -> Vec<PeerId> {
        for search in self.searches.values_mut() {
            search.look_again(turn.now);
        }
        self.begin_lookups(turn);
        let idle = self.searches.iter();
        let idle = idle.filter(|(_, search)| search.is_without_answer());
        idle.map(|(peer, _)| *peer).collect()
    }

    /// Handles what the driver knows of a name: addresses in a file, or name servers to ask.
    pub fn handle_sources(
        &mut self,
        peer: PeerId,
        name: &str,
        sources: &Sources,
        turn: &mut Turn<'_>,
    ) {
        let search = self.searches.get_mut(&peer);
        let search = search.filter(|search| search.name() == name && search.is_wanted());
        if let Some(search) = search {
            let lookup = Lookup::begin(name, sources.clone(), turn.rng, turn.now);
            search.set_lookup(lookup);
            self.advance(peer, turn);
        }
    }

    /// Handles the answer to one of the messages of a query.
    pub fn handle_reply(&mut self, query: QueryId, message: &[u8], turn: &mut Turn<'_>) {
        let Some((peer, server)) = self.queries.get(&query).copied() else {
            return;
        };
        if let Some(lookup) = self.lookup(peer) {
            lookup.handle_reply(server, message, turn.now);
            self.advance(peer, turn);
        }
    }

    /// Handles a query that could not be sent, or whose server does not listen.
    pub fn handle_unsent(&mut self, query: QueryId, why: &str, turn: &mut Turn<'_>) {
        let Some((peer, server)) = self.queries.remove(&query) else {
            return;
        };
        if let Some(lookup) = self.lookup(peer) {
            lookup.handle_unsent(server, why.to_owned(), turn.now);
            self.advance(peer, turn);
        }
    }

    /// Handles the deadlines of lookups and searches.
    pub fn handle_timeout(&mut self, turn: &mut Turn<'_>) {
        let due = self.searches.iter().filter(|(_, search)| {
            let deadline = search.poll_timeout();
            deadline.is_some_and(|at| at <= turn.now)
        });
        let due: Vec<_> = due.map(|(peer, _)| *peer).collect();
        for peer in due {
            if let Some(search) = self.searches.get_mut(&peer) {
                let waited = search.waits_for_ways();
                search.handle_timeout(turn.now);
                if search.waits_for_ways() && !waited {
                    turn.add(Event::WaysWanted { of: None });
                }
            }
            self.advance(peer, turn);
        }
        self.begin_lookups(turn);
    }

    /// Lets the searches continue that wait for the routes to their addresses.
    pub fn handle_ways(&mut self, is_reachable: impl Fn(&IpAddr) -> bool) {
        for search in self.searches.values_mut() {
            search.release(&is_reachable);
        }
    }

    /// Returns the next address to initiate to, which is due now.
    pub fn take_start(&mut self, ike: &ike::Engine, now: Instant) -> Option<Start> {
        let waits = |sa: IkeSaId| ike.sa(sa).is_some_and(|sa| sa.state == SaState::Connecting);
        let answered = |sa: IkeSaId| {
            let state = ike.sa(sa).map(|sa| sa.state);
            matches!(state, Some(SaState::Authenticating | SaState::Established))
        };
        let mut searches = self.searches.iter_mut();
        searches.find_map(|(peer, search)| search.take_start(*peer, waits, answered, now))
    }

    /// Records that an initiation was started at an address.
    pub fn started(&mut self, start: &Start, sa: IkeSaId, now: Instant) {
        if let Some(search) = self.searches.get_mut(&start.peer) {
            search.started(start.address, sa, now);
        }
    }

    /// Returns the next query to send.
    pub fn poll_query(&mut self) -> Option<Query> {
        (!self.unsent.is_empty()).then(|| self.unsent.remove(0))
    }

    /// Returns true if the answer to a query is still of use.
    pub fn is_asking(&self, query: QueryId) -> bool {
        self.queries.contains_key(&query)
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        let deadlines = self.searches.values().filter_map(Search::poll_timeout);
        deadlines.min().map(|at| Deadline {
            at,
            reason: "look for the address of a peer",
        })
    }

    /// Returns true while a peer is being looked for.
    pub fn is_searching(&self, peer: PeerId) -> bool {
        self.searches.get(&peer).is_some_and(Search::is_searching)
    }

    /// Returns the addresses at which a peer may be.
    pub fn candidates(&self) -> impl Iterator<Item = IpAddr> {
        self.searches.values().flat_map(Search::candidates)
    }

    /// Returns the addresses of a peer, as far as known.
    pub fn addresses_of(&self, peer: PeerId) -> Vec<IpAddr> {
        let search = self.searches.get(&peer);
        search.map_or_else(Vec::new, |search| search.known().into_iter().collect())
    }

    pub fn status(&self, peer: PeerId) -> Option<NameStatus> {
        self.searches.get(&peer).map(Search::status)
    }

    fn lookup(&mut self, peer: PeerId) -> Option<&mut Lookup> {
        self.searches.get_mut(&peer)?.lookup_mut()
    }

    /// Asks the driver for the sources of the names to look up, a few at a time.
    fn begin_lookups(&mut self, turn: &mut Turn<'_>) {
        let busy = self.searches.values().filter(|search| search.is_asking());
        let mut room = MOST_LOOKUPS.saturating_sub(busy.count());
        for (peer, search) in &mut self.searches {
            if room > 0 && search.take_wanted(turn.now) {
                room -= 1;
                turn.add(Event::NameWanted {
                    peer: *peer,
                    name: search.name().to_owned(),
                });
            }
        }
    }

    /// Takes the progress of a lookup: queries, and what was found.
    fn advance(&mut self, peer: PeerId, turn: &mut Turn<'_>) {
        while let Some(progress) = self.lookup(peer).and_then(|lookup| lookup.poll(turn.now)) {
            match progress {
                Progress::Ask { server, messages } => self.ask(peer, server, messages),
                Progress::Found(found) => self.found(peer, found, turn),
                Progress::Done(outcome) => {
                    self.queries.retain(|_, (asks, _)| *asks != peer);
                    if let Some(search) = self.searches.get_mut(&peer) {
                        search.drop_lookup();
                    }
                    match outcome {
                        Ok(found) => self.found(peer, found, turn),
                        Err(why) => self.not_found(peer, why, turn),
                    }
                    self.begin_lookups(turn);
                }
            }
        }
    }

    fn ask(&mut self, peer: PeerId, server: IpAddr, messages: Vec<Vec<u8>>) {
        self.last_query += 1;
        let id = QueryId(self.last_query);
        self.queries.insert(id, (peer, server));
        self.unsent.push(Query {
            id,
            server,
            messages,
        });
    }

    fn found(&mut self, peer: PeerId, mut found: Found, turn: &mut Turn<'_>) {
        let peers = turn.ike.peers();
        let bypassed = &self.bypassed;
        let (inside, outside): (Vec<_>, Vec<_>) = found
            .addresses
            .drain(..)
            .partition(|address| order::is_inside(*address, peers, bypassed));
        found.addresses = outside;
        if found.addresses.is_empty() {
            return self.not_found(peer, NotFound::Inside { addresses: inside }, turn);
        }
        if self.purpose == Purpose::Redirects {
            let told = found.addresses.clone();
            let is_listed = |address: &IpAddr| turn.ike.may_redirect(peer, *address);
            found.addresses.retain(is_listed);
            if found.addresses.is_empty() {
                return self.not_found(peer, NotFound::NotListed { addresses: told }, turn);
            }
        }
        let Some(search) = self.searches.get_mut(&peer) else {
            return;
        };
        let name = search.name().to_owned();
        let (addresses, by) = (found.addresses.clone(), found.by);
        if search.found(found, turn.now) {
            turn.add(Event::NameFound {
                peer,
                name,
                addresses,
                by,
            });
        }
        turn.add(Event::WaysWanted { of: None });
    }

    fn not_found(&mut self, peer: PeerId, why: NotFound, turn: &mut Turn<'_>) {
        let Some(search) = self.searches.get_mut(&peer) else {
            return;
        };
        let name = search.name().to_owned();
        let has_changed = search.not_found(why.clone(), turn.now);
        if has_changed {
            turn.add(Event::NameNotFound {
                peer,
                name: name.clone(),
                why: why.clone(),
                instead: search.instead(),
            });
        }
        if search.is_lost() {
            search.end();
            let why = Cause::Name { name, why };
            turn.add(match self.purpose {
                Purpose::Peers => Effect::NotStarted(peer, why),
                Purpose::Redirects => Effect::NotFollowed(peer, why),
            });
        } else if search.waits_for_ways() {
            turn.add(Event::WaysWanted { of: None });
        }
    }
}
