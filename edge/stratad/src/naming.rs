//! Names of peers: the questions to name servers, the list of hosts, and the addresses at which
//! peers were last up.
//!
//! The questions leave from marked sockets like encapsulated packets, so they go outside of all
//! tunnels, to the name servers of the network. No thread waits for an answer. With `leak =
//! "never"`, [`Outer`] lets the answers in, because the tunnel that would carry them is what they
//! are about.

use config::{Config, Tcp};
use model::{Instant, PeerId};
use node::{Node, Query, QueryId, Sources};
use os::poll::Interest;
use os::resolver::{self, FILE};
use os::routes::MARK;
use os::{Poller, QuerySocket};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use store::Addresses;
use wire::dns;

/// Most open sockets. The oldest one is closed for another.
const MOST: usize = 16;

/// Most answers that are read from a socket in one turn.
const AT_ONCE: usize = 8;

/// Hosts of the outer network that filters let through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outer {
    /// Name servers that we ask.
    pub servers: Vec<IpAddr>,
    /// Ends of our TCP streams to peers whose address is a name.
    pub streams: Vec<SocketAddr>,
}

/// Questions under way, and what is kept of their answers.
pub struct Names {
    /// Token of the first socket.
    first: u64,
    open: VecDeque<Asked>,
    /// Number of sockets so far.
    count: u64,
    /// The addresses at which peers were last up, if any has a name.
    kept: Option<Addresses>,
}

/// A question under way.
struct Asked {
    token: u64,
    query: QueryId,
    socket: QuerySocket,
}

impl Names {
    /// Creates the state without questions. Tokens count from `first`.
    pub const fn new(first: u64) -> Self {
        Self {
            first,
            open: VecDeque::new(),
            count: 0,
            kept: None,
        }
    }

    /// Tells the node the addresses at which the peers of a configuration were last up.
    pub fn restore(&mut self, config: &Config, node: &mut Node) {
        if !has_names(config) {
            self.kept = None;
            return;
        }
        let kept = self
            .kept
            .get_or_insert_with(|| Addresses::open(&config.store));
        for (name, address) in kept.iter() {
            node.restore_address(name, address);
        }
    }

    /// Keeps the address at which a peer is up.
    pub fn keep(&mut self, name: &str, address: IpAddr) -> Result<(), store::Error> {
        let kept = self.kept.as_mut();
        kept.map_or(Ok(()), |kept| kept.keep(name, address))
    }

    /// Sends the messages of a query. A failure is told to the node.
    pub fn ask(&mut self, query: &Query, poller: &Poller, node: &mut Node, now: Instant) {
        if self.open.len() >= MOST {
            self.open.pop_front();
        }
        if let Err(why) = self.send(query, poller) {
            node.handle_name_unsent(query.id, why, now);
        }
    }

    /// Reads the answers that have arrived at a socket.
    pub fn read(&mut self, token: u64, node: &mut Node, now: Instant) {
        let Some(place) = self.open.iter().position(|asked| asked.token == token) else {
            return;
        };
        let query = self.open[place].query;
        for _ in 0..AT_ONCE {
            let socket = &self.open[place].socket;
            match socket.recv(|answer| node.handle_name_reply(query, answer, now)) {
                Ok(()) => {}
                Err(error) if is_nothing(&error) => return,
                Err(error) => {
                    self.open.remove(place);
                    return node.handle_name_unsent(query, error.to_string(), now);
                }
            }
        }
    }

    /// Closes the sockets whose answers are of no use any more.
    pub fn tidy(&mut self, node: &Node) {
        self.open.retain(|asked| node.is_asking(asked.query));
    }

    fn send(&mut self, query: &Query, poller: &Poller) -> Result<(), String> {
        let server = SocketAddr::new(query.server, dns::PORT);
        let socket = QuerySocket::open(server, MARK).map_err(|error| error.to_string())?;
        let token = self.first + self.count;
        self.count += 1;
        let watched = poller.add(&socket, token, Interest::Read);
        watched.map_err(|error| error.to_string())?;
        for message in &query.messages {
            socket.send(message).map_err(|error| error.to_string())?;
        }
        self.open.push_back(Asked {
            token,
            query: query.id,
            socket,
        });
        Ok(())
    }
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Returns true if the address of a party is a name.
fn has_names(config: &Config) -> bool {
    let peers = config.peers.iter().filter_map(|peer| peer.address.as_ref());
    let licensed = config.licensed.iter().map(|node| &node.address);
    let adjacent = config.adjacent.iter();
    let adjacent = adjacent.filter_map(|neighbour| neighbour.address.as_ref());
    let mut addresses = peers.chain(licensed).chain(adjacent);
    addresses.any(|address| address.name().is_some())
}

/// Returns where a name is told. `inside` are name servers behind tunnels.
pub fn sources(config: &Config, name: &str, inside: &[IpAddr]) -> Sources {
    let list = config.tunnel.resolver.as_deref();
    let list = list.unwrap_or_else(|| Path::new(FILE));
    let mut servers = match config.tunnel.resolve_via.as_slice() {
        [] => resolver::servers_outside(list),
        chosen => return from(name, chosen.to_vec()),
    };
    servers.retain(|server| !inside.contains(server));
    from(name, servers)
}

fn from(name: &str, servers: Vec<IpAddr>) -> Sources {
    Sources {
        listed: resolver::addresses_in_hosts(name),
        servers,
    }
}

/// Returns the ends of TCP streams to peers whose address is a name.
pub fn streams(config: &Config, node: &Node) -> Vec<SocketAddr> {
    let is_named = |peer: &&config::Peer| {
        let address = peer.address.as_ref();
        address.is_some_and(|address| address.name().is_some())
    };
    let peers = config.peers.iter().filter(is_named);
    let by_stream = peers.filter(|peer| peer.tcp != Tcp::Off);
    let ends = by_stream.flat_map(|peer| {
        let id = node.names().id(&peer.party.name);
        let addresses = id.map_or_else(Vec::new, |id: PeerId| node.addresses_of(id));
        let port = peer.tcp_port;
        addresses
            .into_iter()
            .map(move |address| SocketAddr::new(address, port))
    });
    ends.collect()
}
