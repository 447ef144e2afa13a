//! Servers and clients around a switch.
//!
//! ```text
//!  native      192.0.2.1     --- link ---+
//!  strata      198.51.100.1  --- link ---+ switch --- 10.3.N.2  client N, 10.1.0.N inside
//!  strongswan  203.0.113.1   --- link ---+
//! ```
//!
//! Each server is on its gateway, and has a link of its own with the same rate. The clients are the
//! same for all servers: each has a `stratad` with a tunnel to both gateways. With at least two
//! processors, everything on the gateways has the first, and the clients share the last.

use super::server::{Link, Server};
use super::trial::{Work, fetch};
use crate::bench::{OwnCore, spent_by};
use crate::daemon::Daemon;
use crate::demo::web;
use crate::duo::{self, PSK, add_inner_address};
use crate::host::{End, Host};
use crate::process::Process;
use crate::strongswan::{Charon, Connection};
use crate::testbed::Testbed;
use crate::wire::veth;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The clients' identities, from the number of the client.
const IDENTITY: &str = "client";

/// Queue of a link: its burst holds the packets of one system call, and its limit 8 ms of packets.
const BUCKET: &str = "tbf rate 1gbit burst 128kb limit 1mb";

/// No limit on segments per packet.
const SEGMENTS: u32 = u16::MAX as u32;

pub(super) struct Network {
    clients: Vec<Client>,
    gateways: Vec<Gateway>,
    switch: Host,
    link: Link,
    octets: u64,
    _core: OwnCore,
    _bed: Testbed,
}

struct Client {
    host: Host,
    _daemon: Daemon,
}

struct Gateway {
    server: Server,
    host: Host,
    web: Process,
    daemon: Program,
}

/// The daemon of a gateway.
enum Program {
    None,
    Strata(Daemon),
    Strongswan(Box<Charon>),
}

impl Network {
    /// Creates the network with all tunnels up, and a file of this length at each server.
    pub fn new(clients: usize, octets: u64) -> Result<Self> {
        let bed = Testbed::new("clients")?;
        let switch = bed.host("switch")?;
        switch.sysctl("net.ipv4.ip_forward", "1")?;
        let folder = file(bed.directory(), octets)?;
        let gateways = Server::ALL.map(|server| Gateway::start(server, &bed, &switch, &folder));
        let mut gateways = gateways.into_iter().collect::<Result<Vec<_>>>()?;
        let processes: Vec<_> = gateways.iter_mut().flat_map(Gateway::processes).collect();
        let core = OwnCore::apart_from(&processes)?;
        let clients = (1..=clients).map(|number| Client::start(number, &bed, &switch));
        Ok(Self {
            clients: clients.collect::<Result<_>>()?,
            gateways,
            switch,
            link: Link::Unlimited,
            octets,
            _core: core,
            _bed: bed,
        })
    }

    /// Gives all links this rate.
    pub fn set_rate(&mut self, link: Link) -> Result<()> {
        if link == self.link {
            return Ok(());
        }
        for gateway in &self.gateways {
            let far = gateway.server.key();
            for (host, device) in [(&gateway.host, "eth0"), (&self.switch, far)] {
                host.run(&match link {
                    Link::Gigabit => format!("tc qdisc add dev {device} root {BUCKET}"),
                    Link::Unlimited => format!("tc qdisc del dev {device} root"),
                })?;
            }
        }
        self.link = link;
        Ok(())
    }

    /// Downloads the file of a server to this many clients at once. Returns the time that each
    /// client took, in seconds, and the work of the gateway. Without tunnels, all is in clear.
    pub fn download(
        &mut self,
        server: Server,
        clients: usize,
        tunnels: bool,
    ) -> Result<(Vec<f64>, Work)> {
        let inside = server.inside().filter(|_| tunnels);
        let address = inside.unwrap_or(server.outside());
        let hosts: Vec<_> = self.clients.iter().map(|client| &client.host).collect();
        let gateways = self.gateways.iter_mut();
        let mut gateways = gateways.filter(|gateway| gateway.server == server);
        let gateway = gateways.next().context("a gateway for each server")?;
        let before = gateway.spent()?;
        let times = fetch(&hosts[..clients], &web::url(address), self.octets)?;
        Ok((times, gateway.spent()? - before))
    }
}

impl Gateway {
    fn start(server: Server, bed: &Testbed, switch: &Host, folder: &Path) -> Result<Self> {
        let host = bed.host(server.key())?;
        let ends = [server.outside(), server.next_hop()].map(|address| format!("{address}/24"));
        wire(
            host.end("eth0", &[&ends[0]]),
            switch.end(server.key(), &[&ends[1]]),
        )?;
        host.route("default", server.next_hop())?;
        let daemon = match server {
            Server::Native => Program::None,
            Server::Strata => strata(&host)?,
            Server::Strongswan => strongswan(&host)?,
        };
        Ok(Self {
            server,
            web: web::serve(&host, "0.0.0.0", folder)?,
            host,
            daemon,
        })
    }

    fn daemon(&mut self) -> Option<u32> {
        match &mut self.daemon {
            Program::None => None,
            Program::Strata(stratad) => Some(stratad.pid()),
            Program::Strongswan(charon) => Some(charon.process().pid()),
        }
    }

    fn processes(&mut self) -> Vec<u32> {
        [self.web.pid()].into_iter().chain(self.daemon()).collect()
    }

    /// Returns the processor time so far.
    fn spent(&mut self) -> Result<Work> {
        let daemon = self.daemon().map_or(Ok(Default::default()), spent_by)?;
        Ok(Work {
            web: spent_by(self.web.pid())?.as_secs_f64(),
            daemon: daemon.as_secs_f64(),
        })
    }
}

impl Client {
    fn start(number: usize, bed: &Testbed, switch: &Host) -> Result<Self> {
        let host = bed.host(&format!("{IDENTITY}{number}"))?;
        let [near, far] = [2, 1].map(|last| format!("10.3.{number}.{last}"));
        let (ours, theirs) = (format!("{near}/24"), format!("{far}/24"));
        wire(
            host.end("eth0", &[&ours]),
            switch.end(&format!("client{number}"), &[&theirs]),
        )?;
        host.route("default", &far)?;
        host.secret("tunnel.psk", PSK)?;
        let daemon = host.stratad(&client(number))?;
        for server in Server::PROTECTED {
            daemon.strata_text(&format!("up {} --wait", server.key()))?;
        }
        Ok(Self {
            host,
            _daemon: daemon,
        })
    }
}

/// Creates a wire whose devices segment by themselves (TSO, UDP GSO), as real ones do.
fn wire(a: End<'_>, b: End<'_>) -> Result<()> {
    let ends = [(a.host, a.device), (b.host, b.device)];
    veth(a, b)?;
    for (host, device) in ends {
        let netlink = host.netns().netlink()?;
        netlink.set_most_segments(device, SEGMENTS)?;
    }
    Ok(())
}

/// Makes a folder with the file that all servers have.
fn file(folder: &Path, octets: u64) -> Result<PathBuf> {
    let folder = folder.join("served");
    fs::create_dir(&folder)?;
    File::create(folder.join("stream"))?.set_len(octets)?;
    Ok(folder)
}

/// Starts a gateway that knows all clients. No key is replaced while files are transferred.
fn strata(host: &Host) -> Result<Program> {
    host.secret("tunnel.psk", PSK)?;
    let mut config = format!(
        "[node]\nid = \"{}\"\n[tunnel]\naddresses = [\"10.8.0.1/32\"]\n",
        identity(Server::Strata)
    );
    for number in 1..=super::MOST {
        config += &format!(
            "[peer.{IDENTITY}{number}]\nid = \"{IDENTITY}{number}.example\"\n{TERMS}\
             local = [\"10.8.0.0/24\"]\nremote = [\"10.1.0.{number}/32\"]\n"
        );
    }
    host.stratad(&config).map(Program::Strata)
}

fn strongswan(host: &Host) -> Result<Program> {
    add_inner_address(host, "10.9.0.1/32")?;
    let connection = Connection {
        id: &identity(Server::Strongswan),
        peer_id: "%any",
        address: Server::Strongswan.outside(),
        peer_address: "%any",
        local: "10.9.0.0/24",
        remote: "10.1.0.0/24",
        ike_rekey: "24h",
        rekey: "24h",
        ..duo::THEIRS
    };
    Ok(Program::Strongswan(Box::new(host.charon(&connection)?)))
}

fn identity(server: Server) -> String {
    format!("{}.example", server.key())
}

/// Lines of every peer's table.
const TERMS: &str =
    "psk = \"tunnel.psk\"\nzones = \"refuse\"\nrekey = \"24h\"\nike_rekey = \"24h\"\n";

/// Returns the configuration of a client, with a tunnel to each gateway.
fn client(number: usize) -> String {
    let mut config = format!(
        "[node]\nid = \"{IDENTITY}{number}.example\"\n\
         [tunnel]\naddresses = [\"10.1.0.{number}/32\"]\n"
    );
    for (server, network) in Server::PROTECTED
        .into_iter()
        .zip(["10.8.0.0/24", "10.9.0.0/24"])
    {
        config += &format!(
            "[peer.{}]\naddress = \"{}\"\nid = \"{}\"\n{TERMS}start = \"manual\"\n\
             local = [\"10.1.0.{number}/32\"]\nremote = [\"{network}\"]\n",
            server.key(),
            server.outside(),
            identity(server)
        );
    }
    config
}
