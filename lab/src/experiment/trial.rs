//! One cell: an exclusive network, one download over it, and the counters of the sender's kernel.

use super::cell::{Cell, Hops, Measured, Sample};
use crate::bystander::Bystander;
use crate::canary::Marked;
use crate::daemon::Daemon;
use crate::scene::{Level, SERVER, Scene, Settings, Setup};
use crate::testbed::Testbed;
use crate::transfer;
use anyhow::{Result, bail};
use os::poll::{Interest, Poller};
use os::{clock, tcp};
use serde_json::Value;
use socket2::SockRef;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

/// Sampling interval of the sender.
const SAMPLING: Duration = Duration::from_millis(100);

/// Runs cells one after another. A network is kept for the next cell that can use it, because
/// creating and removing namespaces keeps the kernel busy and delays the packets of other benches.
pub(super) struct Bench<'a> {
    stream: &'a Marked,
    bystander: &'a Bystander,
    network: Option<Network>,
}

/// A running network.
struct Network {
    kind: Kind,
    scene: Scene,
    /// Dropped after the scene: removes the files.
    _bed: Testbed,
}

/// Parameters that cannot change on a running network: setup, levels, whether SNOOP works in setups
/// that have it, and whether sizes are today's.
pub(super) type Kind = ((Setup, Option<Level>), bool, bool);

impl<'a> Bench<'a> {
    /// Creates a bench without a network.
    pub fn new(stream: &'a Marked, bystander: &'a Bystander) -> Self {
        Self {
            stream,
            bystander,
            network: None,
        }
    }

    /// Runs a cell. Every received octet is compared with the one sent. A network on which a cell
    /// failed is not used again.
    pub fn run(&mut self, cell: &Cell) -> Result<Measured> {
        let mut network = match self.network.take() {
            Some(network) if network.kind == cell.kind() => network,
            other => {
                drop(other);
                Network::build(cell)?
            }
        };
        network.scene.change(&cell.scene())?;
        let measured = measure(cell, &network.scene, self)?;
        self.network = Some(network);
        Ok(measured)
    }
}

impl Network {
    fn build(cell: &Cell) -> Result<Self> {
        let bed = Testbed::new("lab")?;
        // Nothing may be lost or late before the cell begins.
        let perfect = Settings {
            one_error_in: 0,
            ..cell.scene()
        };
        Ok(Self {
            kind: cell.kind(),
            scene: Scene::build(&bed, "cell", &perfect)?,
            _bed: bed,
        })
    }
}

fn measure(cell: &Cell, scene: &Scene, bench: &Bench<'_>) -> Result<Measured> {
    let (near, mut far) = transfer::connect(&scene.mobile, &scene.server, SERVER)?;
    for end in [&near, &far] {
        // Closing the connection leaves no packet of it under way.
        SockRef::from(end).set_linger(Some(Duration::ZERO))?;
    }
    tcp::set_congestion_control(&far, cell.condition.sender.key())?;
    // A sender that waits for a retransmission timeout is silent for long, without any fault.
    far.set_write_timeout(None)?;
    let watched = far.try_clone()?;
    let (stream, bystander) = (bench.stream, bench.bystander);
    let node = || scene.node.as_ref().map_or(Ok((0, 0)), snooped);
    let (before, (repaired, suppressed)) = (bystander.moments(), node()?);
    let received = thread::scope(|scope| {
        // Ends with an error, as intended: the stream has no last octet.
        scope.spawn(move || stream.write_to(&mut far, u64::MAX));
        let received = receive(cell, stream, near, &watched);
        // Fails only if the connection, and the writer with it, has already ended.
        let _ = watched.shutdown(Shutdown::Both);
        received
    })?;
    let now = node()?;
    let mut hops = Hops::default();
    for emulator in [&scene.lossy, &scene.wired] {
        emulator.statistics().iter().for_each(|way| hops.add(way));
    }
    Ok(Measured {
        cell: *cell,
        goodput: received.goodput,
        resent: tcp::sending(&watched)?.retransmitted.into(),
        repaired: now.0 - repaired,
        suppressed: now.1 - suppressed,
        hops,
        machine: bystander.moments() - before,
        repeats: 0,
        trace: received.trace,
    })
}

struct Received {
    goodput: f64,
    trace: Vec<Sample>,
}

/// Reads for the duration of the cell, and samples the sender meanwhile.
fn receive(
    cell: &Cell,
    stream: &Marked,
    mut near: TcpStream,
    sender: &TcpStream,
) -> Result<Received> {
    near.set_nonblocking(true)?;
    let mut poller = Poller::new()?;
    poller.add(&near, 0, Interest::Read)?;
    let (mut ready, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    let (mut octets, mut skipped_octets, mut trace) = (0, 0, Vec::new());
    let total = Duration::from_secs(cell.seconds);
    let start = clock::now();
    let mut next_sample = Duration::ZERO;
    loop {
        poller.wait(Some(start + next_sample.min(total)), &mut ready)?;
        let elapsed = clock::now().since(start);
        if elapsed >= total {
            break;
        }
        if elapsed >= next_sample {
            trace.push(sample(sender, elapsed)?);
            next_sample += SAMPLING;
        }
        match near.read(&mut buffer) {
            Ok(0) => bail!("the server ended the connection after {octets} octets"),
            Ok(length) => {
                if let Some(at) = stream.first_difference(octets, &buffer[..length]) {
                    bail!("octet {at} of the download is not what the server sent");
                }
                octets += length as u64;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        if elapsed < cell.skipped() {
            skipped_octets = octets;
        }
    }
    let seconds = (total - cell.skipped()).as_secs_f64();
    let goodput = (octets - skipped_octets) as f64 * 8.0 / seconds;
    Ok(Received { goodput, trace })
}

fn sample(sender: &TcpStream, elapsed: Duration) -> Result<Sample> {
    let sending = tcp::sending(sender)?;
    Ok(Sample {
        ms: elapsed.as_millis() as u64,
        acknowledged: sending.acknowledged,
        window: sending.window,
    })
}

/// Returns the packets that SNOOP retransmitted, and the acknowledgements that it suppressed.
fn snooped(node: &Daemon) -> Result<(u64, u64)> {
    let answer: Value = serde_json::from_str(&node.ask("flows", Value::Null)?)?;
    let total = &answer["flows"]["total"];
    let count = |name: &str| total[name].as_u64().unwrap_or(0);
    Ok((count("retransmitted"), count("suppressed")))
}
