//! Traffic that goes by certain interfaces, with two live paths: where tshark sees it, and what
//! becomes of it when an interface is lost and comes back.

use anyhow::{Result, ensure};
use lab::host::Host;
use lab::pair::{GATEWAY, MOBILE, Pair, Tunnel};
use lab::plain::{configs, start_with};
use lab::process::{DEADLINE, until};
use lab::tshark;
use lab::wiretap::{Wiretap, write_capture};
use std::cell::Cell;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Local addresses of the mobile node on its two networks.
const WIFI: &str = "10.3.0.2";
const CELL: &str = "10.4.0.2";

/// A kind of traffic, by the port of the server. Its datagrams have a length of their own, which
/// shows through encryption.
#[derive(Clone, Copy)]
struct Kind {
    port: u16,
    octets: usize,
}

const VOICE: Kind = Kind {
    port: 5060,
    octets: 200,
};
const BULK: Kind = Kind {
    port: 6000,
    octets: 900,
};

/// Number of flows of a kind, and of datagrams that each exchanges.
const FLOWS: usize = 16;
const ROUNDS: usize = 10;

/// Most packets of a length on a path that has none of that kind: other packets may have it.
const FEW: usize = 10;

/// Time for an answer on a path that may be gone.
const SOON: Duration = Duration::from_millis(100);

/// The flows of a kind through the tunnel.
struct Flows {
    kind: Kind,
    /// Number of datagrams so far.
    sent: Cell<u64>,
    server: UdpSocket,
    clients: Vec<UdpSocket>,
}

impl Flows {
    fn open(pair: &Pair, kind: Kind) -> Result<Self> {
        let socket = |host: &Host, address: &str, port| {
            host.inside(|| Ok(UdpSocket::bind((address, port))?))
        };
        let clients = (0..FLOWS).map(|_| socket(&pair.mobile, MOBILE[0], 0));
        Ok(Self {
            kind,
            sent: Cell::new(0),
            server: socket(&pair.gateway, GATEWAY[0], kind.port)?,
            clients: clients.collect::<Result<_>>()?,
        })
    }

    /// Returns true if the next datagram of a flow and its answer arrive, each within this time.
    fn answers(&self, client: &UdpSocket, within: Duration) -> Result<bool> {
        let number = self.sent.replace(self.sent.get() + 1);
        let mut datagram = vec![0x55; self.kind.octets];
        datagram[..8].copy_from_slice(&number.to_be_bytes());
        client.send_to(&datagram, (GATEWAY[0], self.kind.port))?;
        let Some(from) = receive(&self.server, &datagram, within)? else {
            return Ok(false);
        };
        self.server.send_to(&datagram, from)?;
        Ok(receive(client, &datagram, within)?.is_some())
    }

    /// Exchanges datagrams of all flows, none of which may be lost.
    fn exchange(&self) -> Result<()> {
        for _ in 0..ROUNDS {
            for client in &self.clients {
                ensure!(self.answers(client, DEADLINE)?, "a datagram is lost");
            }
        }
        Ok(())
    }

    /// Returns the time after which datagrams of all flows arrive and are answered again.
    fn resume(&self) -> Result<Duration> {
        let begin = Instant::now();
        for client in &self.clients {
            until("traffic on the other path", DEADLINE, || {
                Ok(self.answers(client, SOON)?.then_some(()))
            })?;
        }
        Ok(begin.elapsed())
    }
}

/// Waits for this datagram, and returns where it is from. Earlier ones may still come.
fn receive(socket: &UdpSocket, datagram: &[u8], within: Duration) -> Result<Option<SocketAddr>> {
    socket.set_read_timeout(Some(within))?;
    let mut buffer = [0; 2000];
    while let Ok((octets, from)) = socket.recv_from(&mut buffer) {
        if buffer[..octets] == *datagram {
            return Ok(Some(from));
        }
    }
    Ok(None)
}

/// Both kinds of traffic, and a tap between the hosts.
struct Scene {
    pair: Pair,
    tunnel: Tunnel,
    voice: Flows,
    bulk: Flows,
}

impl Scene {
    /// Starts both ends, with this line at the mobile node, and waits for two paths.
    fn start(line: &str) -> Result<Self> {
        let pair = Pair::new("traffic")?;
        pair.add_second_wire()?;
        let tunnel = start_with(&pair, &lines(line))?;
        tunnel.up()?;
        let voice = Flows::open(&pair, VOICE)?;
        let bulk = Flows::open(&pair, BULK)?;
        Ok(Self {
            pair,
            tunnel,
            voice,
            bulk,
        })
    }

    /// Waits until the live paths of both ends are so: the address of the mobile node, and true if
    /// voice is traffic of the path's own.
    fn await_paths(&self, wanted: &[(&str, bool)]) -> Result<()> {
        let locals: Vec<_> = wanted.iter().map(|(local, _)| *local).collect();
        self.tunnel.await_live_and(&locals, |local, path| {
            let is_own = path["traffic"].to_string().contains("5060");
            wanted.contains(&(local, is_own))
        })
    }

    /// Exchanges both kinds, and returns what tshark sees of them: the numbers of packets with the
    /// lengths of voice and of bulk, from and to the mobile node, on the first network and on the
    /// second.
    fn seen(&self) -> Result<[[usize; 2]; 2]> {
        let tap = Wiretap::open(&self.pair.between)?;
        self.voice.exchange()?;
        self.bulk.exchange()?;
        let host = &self.pair.mobile;
        write_capture(&host.directory().join("wire.pcap"), &tap.rest()?)?;
        let on = |address: &str| {
            let filter = format!("esp && ip.addr == {address}");
            let keys = host.directory();
            let lengths = tshark::fields(host, keys, "wire.pcap", &[], &filter, "ip.len")?;
            let lengths: Vec<usize> = lengths
                .iter()
                .filter_map(|length| length.parse().ok())
                .collect();
            let like = |kind: Kind| {
                let is_like = |length: &&usize| (kind.octets..kind.octets + 120).contains(*length);
                lengths.iter().filter(is_like).count()
            };
            Ok::<_, anyhow::Error>([like(VOICE), like(BULK)])
        };
        let seen = [on(WIFI)?, on(CELL)?];
        println!("voice and bulk on the first network, on the second: {seen:?}");
        Ok(seen)
    }
}

/// Returns the configurations with two paths, and this line at the mobile node.
fn lines(line: &str) -> [String; 2] {
    configs(&format!("paths = 2\n{line}"), "paths = 2")
}

/// Returns the line that has voice go by an interface.
fn voice_by(interface: &str) -> String {
    format!(
        "traffic = [{{ interface = \"{interface}\", remote = [\"10.8.0.0/16 udp 5060-5061\"] }}]"
    )
}

/// Checks that voice is seen on one network alone, and bulk on the other.
fn are_apart([[voice, bulk], [other_voice, other_bulk]]: [[usize; 2]; 2]) -> Result<()> {
    let each = 2 * FLOWS * ROUNDS;
    ensure!(voice < FEW && other_bulk < FEW, "some on the other network");
    ensure!(other_voice >= each && bulk >= each, "some are missing");
    Ok(())
}

// Works: path-traffic
#[lab::test]
fn voice_takes_one_interface_and_bulk_the_other_in_both_directions() -> Result<()> {
    let scene = Scene::start(&voice_by("eth1"))?;
    scene.await_paths(&[(WIFI, false), (CELL, true)])?;
    are_apart(scene.seen()?)?;
    let text = scene.tunnel.mobile.strata_text("paths")?;
    let line = "live: 10.4.0.2:4500 - 192.0.2.1:4500  carries only 10.8.0.0/16 protocol 17 ports \
                5060-5061";
    ensure!(text.contains(line), "{text}");
    let text = scene.tunnel.gateway.strata_text("status alice")?;
    ensure!(text.contains("traffic of path 2"), "{text}");
    // The rule changes: the selectors are negotiated again for the other path.
    let [config, _] = lines(&voice_by("eth0"));
    scene.tunnel.mobile.change(&config)?;
    scene.await_paths(&[(WIFI, true), (CELL, false)])?;
    let [wifi, cell] = scene.seen()?;
    are_apart([cell, wifi])
}

/// Negative control: without a rule, flows of both kinds share both paths.
#[lab::test]
fn without_a_rule_both_kinds_share_both_interfaces() -> Result<()> {
    let scene = Scene::start("")?;
    scene.await_paths(&[(WIFI, false), (CELL, false)])?;
    let seen = scene.seen()?;
    ensure!(
        are_apart(seen).is_err() && seen.as_flattened().iter().all(|count| *count >= ROUNDS),
        "{seen:?}"
    );
    Ok(())
}

/// An interface that is missing is a remark, as it may come: it is no error of the daemon.
// Recovers: path-traffic
#[lab::test]
fn traffic_of_a_missing_interface_takes_the_others_until_it_is_there() -> Result<()> {
    let scene = Scene::start(&voice_by("wwan9"))?;
    scene.await_paths(&[(WIFI, false), (CELL, false)])?;
    let (mobile, host) = (&scene.tunnel.mobile, &scene.pair.mobile);
    let what = "the interface wwan9 (`peer.office.traffic`)";
    let log = fs::read_to_string(mobile.log_path())?;
    ensure!(log.contains(&format!("without {what}")), "{log}");
    let status = mobile.strata("status")?;
    ensure!(!status.to_string().contains("wwan9"), "{status}");
    let doctor = format!("doctor {}", host.directory().join("strata.toml").display());
    let told = mobile.strata_text(&doctor);
    let told = told.unwrap_or_else(|found| format!("{found:#}"));
    ensure!(told.contains("there is no interface wwan9"), "{told}");
    host.run("ip link set eth1 name wwan9")?;
    scene.await_paths(&[(WIFI, false), (CELL, true)])?;
    let log = fs::read_to_string(mobile.log_path())?;
    ensure!(log.contains(&format!("found {what}")), "{log}");
    Ok(())
}

// Recovers: path-traffic
#[lab::test(quiet)]
fn traffic_goes_on_over_the_other_interface_and_returns_with_its_own() -> Result<()> {
    let scene = Scene::start(&voice_by("eth1"))?;
    scene.await_paths(&[(WIFI, false), (CELL, true)])?;
    scene.voice.exchange()?;
    scene.pair.set_second_wire(false)?;
    let paused = scene.voice.resume()?;
    println!("voice is answered again after {paused:?}");
    ensure!(paused < Duration::from_secs(3), "{paused:?}");
    scene.await_paths(&[(WIFI, false)])?;
    let [[voice, bulk], cell] = scene.seen()?;
    let each = 2 * FLOWS * ROUNDS;
    ensure!(voice >= each && bulk >= each && cell == [0, 0], "{cell:?}");
    scene.pair.set_second_wire(true)?;
    scene.await_paths(&[(WIFI, false), (CELL, true)])?;
    are_apart(scene.seen()?)
}
