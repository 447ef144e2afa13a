//! Packets of the crowd: each client sends echo requests through its own tunnel.

use crate::bench::client::{Client, SEALED};
use crate::bench::crowd::Crowd;
use anyhow::{Context, Result, ensure};
use esp::Packet;
use os::poll::{Interest, Poller, Ready};
use os::{Datagrams, clock};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// Largest number of requests under way: more than a batch of the gateway, and less than any buffer
/// holds.
const WINDOW: usize = 128;

/// Time after which an echo counts as lost.
const PATIENCE: Duration = Duration::from_secs(2);

/// Step that scatters consecutive packets over SAs; a prime number.
const STEP: usize = 7919;

/// All clients, behind one socket.
pub(super) struct Clients {
    everybody: Vec<Client>,
    /// Index of each client by its outer address.
    by_address: BTreeMap<IpAddr, usize>,
    udp: Datagrams,
    poller: Poller,
    ready: Vec<Ready>,
    requests: Vec<Request>,
    /// Replies as received, each with the index of its client.
    replies: Vec<(usize, Packet)>,
}

/// A sealed echo request.
struct Request {
    client: usize,
    packet: Packet,
}

impl Clients {
    /// Number of echoes in one volley.
    pub const VOLLEY: usize = 4096;

    /// Creates a client for each tunnel of a crowd.
    pub fn new(crowd: Crowd) -> Result<Self> {
        let (tunnels, udp) = crowd.into_tunnels();
        let everybody = tunnels.into_iter().map(Client::new);
        let everybody = everybody.collect::<Result<Vec<_>>>()?;
        let addresses = everybody.iter().enumerate();
        let by_address = addresses.map(|(index, client)| (client.path.local.ip(), index));
        let by_address = by_address.collect();
        let poller = Poller::new()?;
        poller.add(&udp, 0, Interest::Read)?;
        let packet = || Packet::with_capacity(SEALED);
        let requests = (0..Self::VOLLEY).map(|_| Request {
            client: 0,
            packet: packet(),
        });
        Ok(Self {
            requests: requests.collect(),
            replies: (0..Self::VOLLEY).map(|_| (0, packet())).collect(),
            everybody,
            by_address,
            udp,
            poller,
            ready: Vec::new(),
        })
    }

    /// Sends the echo requests of a volley from the first `sas` clients in turns, starting at the
    /// `first` echo. Returns the time until all replies were back. Replies are opened and checked
    /// after that.
    pub fn volley(&mut self, first: usize, sas: usize) -> Result<Duration> {
        self.seal(first, sas)?;
        let begun = clock::now();
        self.exchange()?;
        let lasted = clock::now().since(begun);
        self.check()?;
        Ok(lasted)
    }

    fn seal(&mut self, first: usize, sas: usize) -> Result<()> {
        let now = clock::now();
        for (place, request) in self.requests.iter_mut().enumerate() {
            request.client = (first + place) * STEP % sas;
            let client = &mut self.everybody[request.client];
            client.request(&mut request.packet, place as u16, now)?;
        }
        Ok(())
    }

    /// Sends all requests, with at most [`WINDOW`] under way, and stores the replies.
    fn exchange(&mut self) -> Result<()> {
        let (mut sent, mut back) = (0, 0);
        while back < Self::VOLLEY {
            let most = Self::VOLLEY.min(back + WINDOW);
            for request in &self.requests[sent..most] {
                let path = self.everybody[request.client].path;
                self.udp.send(path, 0, request.packet.octets())?;
            }
            sent = most;
            let deadline = clock::now() + PATIENCE;
            let before = back;
            while back == before {
                back += self.receive(back)?;
                if back == before {
                    let left = Self::VOLLEY - back;
                    ensure!(clock::now() < deadline, "{left} echoes did not come back");
                    self.poller.wait(Some(deadline), &mut self.ready)?;
                }
            }
        }
        Ok(())
    }

    /// Receives the replies of one system call into the places from `next` on. Returns their
    /// number.
    fn receive(&mut self, next: usize) -> Result<usize> {
        let mut room = self.replies[next..].iter_mut();
        let mut came = 0;
        let read = self.udp.recv(|arrival, payload| {
            let client = self.by_address.get(&arrival.path.local.ip());
            // Anything else is IKE, or a surplus packet.
            if let (Some(&client), Some(reply)) = (client, room.next()) {
                reply.0 = client;
                reply.1.fill(payload);
                reply.1.path = Some(arrival.path);
                came += 1;
            }
        });
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            read => read.context("reading echoes").map(|_| came),
        }
    }

    /// Checks that every packet is an echo reply to its client.
    fn check(&mut self) -> Result<()> {
        let now = clock::now();
        for (client, packet) in &mut self.replies {
            self.everybody[*client].check(packet, now)?;
        }
        Ok(())
    }
}
