//! The server's gateway and the mobile nodes: both ends of child SAs.

use super::segment::{SERVER, mobile};
use super::{BATCH, Legacy, SUITE, Shape, WINDOW, cycles, each, key};
use anyhow::{Context, Result, ensure};
use crypto::Secret;
use esp::{DropReason, Packet, Sink, Spd, Worker};
use model::{
    ChildSa, ChildSaId, Exchanges, Half, IkeSaId, Instant, Keys, MapKind, Mode, Path, PeerId, Spi,
    TrafficSelector, Zone, ZoneAgreement, ZoneId, ZoneKey,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::checksum::Checksum;

/// The SA of the first mobile node.
const FIRST: ChildSaId = ChildSaId(1);

/// The workers of both ends. All mobile nodes share one worker, as if they were one host.
pub(crate) struct Ends {
    pub(super) sender: Worker,
    pub(super) receiver: Worker,
    pub(super) batch: Vec<Packet>,
    /// State of the transport checksums: left to a device (offload), or already made.
    pub(super) checksum: Checksum,
}

/// Time of [`Ends::carry`] for each packet.
pub(crate) struct Carried<T = Duration> {
    pub sealing: T,
    pub opening: T,
    /// The sealed packets, from the SPI on.
    pub sealed: Vec<Vec<u8>>,
}

/// A sink that leaves the packets in the batch, and records the reason of a drop.
struct InPlace {
    dropped: Option<DropReason>,
    checksum: Checksum,
}

impl Sink for InPlace {
    fn transmit(&mut self, _packet: &mut Packet, _to: Path) {}

    fn deliver(&mut self, _packet: &mut Packet) {}

    fn dropped(&mut self, _packet: &mut Packet, why: DropReason) {
        self.dropped = Some(why);
    }

    fn makes_checksums(&self) -> bool {
        self.checksum == Checksum::Left
    }
}

impl Ends {
    /// Creates ends with an SA for each of `nodes` mobile nodes.
    pub fn new(shape: Shape, nodes: usize) -> Result<Self> {
        Self::with_keys(shape, nodes, [0, 0])
    }

    /// Creates ends with different keys: the receiver cannot open the sender's packets.
    pub fn strangers(shape: Shape) -> Result<Self> {
        Self::with_keys(shape, 1, [0, 0x0400_0000])
    }

    /// Creates ends with the algorithms of a paper in all zones.
    pub fn with_legacy(legacy: &Legacy) -> Result<Self> {
        let mut ends = Self::new(legacy.shape(), 1)?;
        for worker in [&mut ends.sender, &mut ends.receiver] {
            worker.make_foreign(FIRST, |zone| legacy.cipher(zone));
        }
        ends.sender.recognise(FIRST, Box::new(legacy.links));
        Ok(ends)
    }

    fn with_keys(shape: Shape, nodes: usize, secrets: [u32; 2]) -> Result<Self> {
        let agreement = (shape != Shape::Plain).then(|| agreement(shape));
        Self::with_workers(|end| {
            let mut worker = Worker::new(Spd::default());
            for node in 0..nodes {
                let sa = child_sa(node, end, secrets[end], agreement.as_ref());
                let id = sa.id;
                worker.install(sa).context("an SA that the lab made")?;
                if shape == Shape::One {
                    worker.make_opaque(id);
                }
            }
            Ok(worker)
        })
    }

    /// Creates ends with the workers of the sender (0) and the receiver (1).
    pub(super) fn with_workers(worker: impl Fn(usize) -> Result<Worker>) -> Result<Self> {
        Ok(Self {
            sender: worker(0)?,
            receiver: worker(1)?,
            batch: vec![Packet::with_capacity(2000); BATCH],
            checksum: Checksum::Made,
        })
    }

    /// Places a device with checksum offload at both ends, as on Linux.
    pub fn between_devices(self) -> Self {
        let checksum = Checksum::Left;
        Self { checksum, ..self }
    }

    /// Carries a batch of datagrams, and times both ends.
    pub fn carry(&mut self, datagrams: &[Vec<u8>]) -> Result<Carried> {
        self.measure(datagrams, |work| each(work))
    }

    /// Carries a batch of datagrams, and times both ends in cycles.
    pub fn carry_in_cycles(&mut self, datagrams: &[Vec<u8>]) -> Result<Carried<f64>> {
        self.measure(datagrams, |work| cycles(work))
    }

    fn measure<T>(
        &mut self,
        datagrams: &[Vec<u8>],
        each: impl Fn(&mut dyn FnMut()) -> Result<T>,
    ) -> Result<Carried<T>> {
        self.fill(datagrams);
        let mut sink = InPlace::new(self.checksum);
        let sealing = each(&mut || self.sender.seal(&mut self.batch, &mut sink, Instant::ZERO))?;
        let sealed = self.batch.iter().map(|packet| packet.octets().to_vec());
        let sealed = sealed.collect();
        let opening = each(&mut || self.open(&mut sink))?;
        sink.ensure_all()?;
        let mut pairs = self.batch.iter_mut().zip(datagrams);
        let same = pairs.all(|(packet, datagram)| {
            packet.make_checksum().is_ok() && packet.octets() == datagram
        });
        ensure!(same, "a packet is not what was sent");
        Ok(Carried {
            sealing,
            opening,
            sealed,
        })
    }

    /// Carries a batch of datagrams without timing.
    pub fn pass(&mut self, datagrams: &[Vec<u8>]) -> Result<()> {
        self.fill(datagrams);
        let mut sink = InPlace::new(self.checksum);
        self.sender.seal(&mut self.batch, &mut sink, Instant::ZERO);
        self.open(&mut sink);
        sink.ensure_all()
    }

    fn fill(&mut self, datagrams: &[Vec<u8>]) {
        for (packet, datagram) in self.batch.iter_mut().zip(datagrams) {
            packet.fill(datagram);
            packet.checksum = self.checksum;
        }
    }

    fn open(&mut self, sink: &mut InPlace) {
        self.receiver.open(&mut self.batch, sink, Instant::ZERO);
    }
}

impl InPlace {
    const fn new(checksum: Checksum) -> Self {
        let dropped = None;
        Self { dropped, checksum }
    }

    fn ensure_all(&self) -> Result<()> {
        let why = self.dropped;
        ensure!(why.is_none(), "a packet was dropped: {why:?}");
        Ok(())
    }
}

/// Returns the SPI of packets to a mobile node.
pub(super) fn forth(node: usize) -> u32 {
    0x1000 + 2 * node as u32
}

/// Returns the SPI of packets from a mobile node.
pub(super) fn back(node: usize) -> u32 {
    forth(node) + 1
}

/// Returns the SA with a mobile node, as the sender (0) or the receiver (1) of segments holds it.
pub(super) fn child_sa(
    node: usize,
    end: usize,
    secret: u32,
    agreement: Option<&ZoneAgreement>,
) -> ChildSa<Secret> {
    let half = |spi| Half {
        spi: Spi(spi),
        keys: keys(spi ^ secret, agreement),
        writers: None,
        injectors: None,
    };
    let mut selectors = [vec![host(SERVER)], vec![host(mobile(node))]];
    let mut spis = [back(node), forth(node)];
    if end == 1 {
        selectors.reverse();
        spis.reverse();
    }
    let [local, remote] = selectors;
    let [inbound, outbound] = spis.map(half);
    ChildSa {
        id: ChildSaId(FIRST.0 + node as u64),
        ike: IkeSaId(1),
        peer: PeerId(0),
        name: None,
        resource: None,
        narrowed: false,
        mode: Mode::Tunnel,
        path: Path::udp(outer(1), outer(2)),
        local,
        remote,
        inbound,
        outbound,
        agreement: agreement.cloned(),
        opaque: None,
        integrity: None,
        exchanges: Exchanges::default(),
        tokens: None,
        takes_padding: true,
        allowance: None,
        initiator: true,
    }
}

pub(super) fn agreement(shape: Shape) -> ZoneAgreement {
    let zones = (1..).map(ZoneId).zip(shape.selectors());
    ZoneAgreement {
        zones: zones
            .map(|(id, selector)| Zone {
                id,
                selector: *selector,
                suite: SUITE.into(),
            })
            .collect(),
        map: MapKind::Changeable,
        window: WINDOW,
        licences: Vec::new(),
        level: None,
    }
}

fn keys(spi: u32, agreement: Option<&ZoneAgreement>) -> Keys<Secret> {
    match agreement {
        None => Keys::Plain {
            suite: SUITE.into(),
            implicit_iv: true,
            esn: false,
            key: key(spi, 0),
        },
        Some(agreement) => {
            let keys = agreement.zones.iter().map(|zone| ZoneKey {
                zone: zone.id,
                suite: zone.suite,
                key: key(spi, zone.id.0),
            });
            Keys::Zoned(keys.collect())
        }
    }
}

fn host(address: Ipv4Addr) -> TrafficSelector {
    TrafficSelector {
        protocol: 0,
        ports: 0..=u16::MAX,
        first: IpAddr::V4(address),
        last: IpAddr::V4(address),
    }
}

fn outer(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], wire::esp::NATT_PORT))
}
