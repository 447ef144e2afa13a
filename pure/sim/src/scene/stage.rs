//! The network of a download: four hosts, three wires, and the nodes on them.

use super::Configuration;
use super::download::{Download, Failure, PATIENCE, Sample};
use super::parties::{GATEWAY, INNER, LICENSED, MOBILE, Parties, SERVER};
use crate::{Divert, Host, HostId, Network, Program, Received, Settings, Stream, Via, WireId};
use crypto::Rng;
use node::{Config, Node};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU64;
use std::time::Duration;
use world::Hosts;

/// The network of a download.
pub(super) struct Stage {
    pub network: Network,
    mobile: HostId,
    pub licensed: HostId,
    server: HostId,
    pub wireless: WireId,
}

impl Stage {
    pub fn build(download: &Download) -> Self {
        let mut network = Network::new();
        let mobile = network.add(Host::new(&[MOBILE, INNER]));
        let licensed = network.add(Host::new(&LICENSED));
        let gateway = network.add(Host::new(&GATEWAY));
        let server = network.add(Host::new(&[SERVER]));
        // Each configuration and each wire has a seed of its own, derived from the common seed.
        let seed = download.seed.wrapping_mul(16) + 2 * download.configuration as u64;
        let wireless = network.connect(licensed, mobile, wireless_hop(download.one_error_in), seed);
        let wired = network.connect(gateway, licensed, WIRED_HOP, seed + 1);
        let lan = network.connect(server, gateway, LAN, 0);
        let [[inner, radio], [outer, uplink]] =
            [wireless, wired].map(|wire| network.interfaces(wire));
        let [port, inside] = network.interfaces(lan);
        let any = (Ipv4Addr::UNSPECIFIED, 0);
        let tunnel = download.configuration.has_tunnel();
        for (host, (network_of, length), via) in [
            (mobile, any, Via::Wire(radio)),
            (licensed, (Ipv4Addr::new(10, 1, 0, 0), 24), Via::Wire(inner)),
            (licensed, any, Via::Wire(uplink)),
            (gateway, (Ipv4Addr::new(10, 3, 0, 0), 24), Via::Wire(inside)),
            (gateway, any, Via::Wire(outer)),
            (server, any, Via::Wire(port)),
        ] {
            let protected = match host {
                host if host == mobile => Some((Ipv4Addr::new(10, 3, 0, 0), 24)),
                host if host == gateway => Some((INNER, 32)),
                _ => None,
            };
            if let Some((inner, length)) = protected.filter(|_| tunnel) {
                network.host_mut(host).route(inner, length, Via::Tunnel);
            }
            network.host_mut(host).route(network_of, length, via);
        }
        let mut stage = Self {
            network,
            mobile,
            licensed,
            server,
            wireless,
        };
        let divert = Divert {
            wired: uplink,
            wireless: inner,
            clear_tcp: download.configuration == Configuration::Snoop,
        };
        stage.protect(download, gateway, divert);
        stage
    }

    /// Starts the nodes.
    fn protect(&mut self, download: &Download, gateway: HostId, divert: Divert) {
        let parties = Parties {
            configuration: download.configuration,
            every: download.every,
            licence: download.licence,
            snoop: download.snoop,
        };
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&download.seed.to_be_bytes());
        let mut rng = Rng::from_seed(seed);
        let now = self.network.now();
        let mut start = |host: HostId, config: Config| {
            let node = Node::new(config, rng.array(), now);
            self.network.host_mut(host).install(node);
        };
        if download.configuration.has_tunnel() {
            start(self.mobile, parties.mobile());
            start(gateway, parties.gateway());
        }
        if download.configuration.has_node() {
            start(self.licensed, parties.licensed());
            self.network.host_mut(self.licensed).divert(divert);
        }
    }

    /// Starts the two programs.
    pub fn begin(&mut self, download: &Download) {
        let content = Stream::new(download.seed);
        let client = if download.configuration.has_tunnel() {
            INNER
        } else {
            MOBILE
        };
        let ends = [
            SocketAddrV4::new(client, 40_000),
            SocketAddrV4::new(SERVER, 8080),
        ];
        let server = Program::server(download.tcp.clone(), ends[1], content);
        let client = Program::client(download.tcp(), ends, content, self.network.now());
        self.network.host_mut(self.server).start(server);
        self.network.host_mut(self.mobile).start(client);
    }

    pub fn wait_for_tunnel(&mut self) -> Result<(), Failure> {
        let result = self.wait_for(Self::has_tunnel, Failure::Silence);
        result.map_err(|_| {
            let node = self.network.host(self.mobile).node();
            let peer = node.and_then(|node| node.peers().pop());
            let why = peer
                .and_then(|peer| peer.refusal)
                .map(|refused| refused.why.to_string());
            Failure::NoTunnel {
                why: why.unwrap_or_else(|| "no answer".to_owned()),
            }
        })
    }

    pub fn wait_for(
        &mut self,
        what: impl Fn(&Self) -> bool,
        failure: Failure,
    ) -> Result<(), Failure> {
        const STEP: Duration = Duration::from_millis(10);
        let deadline = self.network.now() + PATIENCE;
        while !what(self) {
            if self.network.now() >= deadline {
                return Err(failure);
            }
            self.network.run_for(STEP);
        }
        Ok(())
    }

    fn has_tunnel(&self) -> bool {
        let peers = self.network.host(self.mobile).node().map(Node::peers);
        let mut children = peers.into_iter().flatten().map(|peer| peer.children.len());
        children.any(|children| children > 0)
    }

    pub fn has_grant(&self) -> bool {
        let node = self.network.host(self.licensed).node();
        node.is_some_and(|node| !node.held_grants().is_empty())
    }

    pub fn server_program(&self) -> Option<&Program> {
        self.network.host(self.server).program()
    }

    pub fn received(&self) -> Option<&Received> {
        self.network
            .host(self.mobile)
            .program()
            .and_then(Program::received)
    }

    pub fn octets(&self) -> u64 {
        self.received().map_or(0, |received| received.octets)
    }

    pub fn sample(&self, at: Duration) -> Option<Sample> {
        let connection = self.server_program()?.connection();
        let octets = |segments: u32| u64::from(segments) * connection.segment_len();
        let threshold = connection.slow_start_threshold();
        Some(Sample {
            at,
            sent: connection.sent(),
            acknowledged: connection.acknowledged(),
            window: octets(connection.congestion_window()),
            threshold: threshold.map(octets),
        })
    }
}

fn wireless_hop(one_error_in: u64) -> Settings {
    Settings {
        rate: NonZeroU64::new(2_000_000),
        delay: Duration::from_millis(1),
        queue: 200,
        bit_error_rate: match one_error_in {
            0 => 0.0,
            bits => 1.0 / bits as f64,
        },
    }
}

const WIRED_HOP: Settings = Settings {
    rate: NonZeroU64::new(100_000_000),
    delay: Duration::from_millis(100),
    queue: 1000,
    bit_error_rate: 0.0,
};

/// Gateway and server share a machine room.
const LAN: Settings = Settings {
    rate: None,
    delay: Duration::ZERO,
    queue: 0,
    bit_error_rate: 0.0,
};
