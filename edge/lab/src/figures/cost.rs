//! What a packet costs each host that handles it: the code that `stratad` runs, in memory, without a
//! device or a socket. What is compared is timed in turns, so that what else a machine does meets all
//! of it alike.

use crate::bench::spent_here;
use crate::experiment::{Estimate, Finding};
use anyhow::{Context, Result, ensure};
use crypto::{Aead, AeadAlgorithm, Secret};
use esp::{DropReason, Licensed, NotOpened, Packet, Protected, Scratch, Sink, Spd, Worker};
use model::{
    ChildSa, ChildSaId, CsaId, Exchanges, Grant, GrantHalf, Half, IkeSaId, Instant, Keys, MapKind,
    Mode, Path, Spi, Suite, TrafficSelector, Zone, ZoneAgreement, ZoneId, ZoneKey, ZoneSelector,
};
use pep::{Position, Segment, Side, Snoop};
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::checksum::{Sum, restore};
use wire::{ip, tcp};

/// Packets that are timed together. SNOOP keeps as many of a connection, and they fit a cache.
const BATCH: usize = 64;

/// What everything is sealed with.
const SUITE: Suite = Suite::Aes128Gcm16;
const KEY_LEN: usize = 16;
const KEYMAT_LEN: usize = SUITE.keymat_len();

/// Headers and the rest.
const ZONES: [ZoneSelector; 2] = [ZoneSelector::IpTransport, ZoneSelector::Rest];

const WINDOW: u32 = 4096;
const CSA: CsaId = CsaId(1);
const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 8, 0, 1), 80);
const MOBILE: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 1, 0, 2), 40_000);
const HEADERS: usize = ip::V4_HEADER_LEN + tcp::MIN_HEADER_LEN;

/// Two ends of a child SA.
pub(super) struct Ends {
    sender: Worker,
    receiver: Worker,
    batch: Vec<Packet>,
}

/// What [`Ends::carry`] took for each packet.
pub(super) struct Carried {
    pub sealing: Duration,
    pub opening: Duration,
    /// The packets on the wire, from the SPI on.
    pub sealed: Vec<Vec<u8>>,
}

/// Keeps the packets where they are, and whether one was dropped.
#[derive(Default)]
struct InPlace {
    dropped: Option<DropReason>,
}

impl Sink for InPlace {
    fn transmit(&mut self, _packet: &mut Packet, _to: Path) {}

    fn deliver(&mut self, _packet: &mut Packet) {}

    fn dropped(&mut self, _packet: &mut Packet, why: DropReason) {
        self.dropped = Some(why);
    }
}

impl Ends {
    /// In two zones or in plain ESP.
    pub fn new(zones: bool) -> Result<Self> {
        let [server, mobile] = [SERVER, MOBILE].map(|(address, _)| host(address));
        let agreement = zones.then(agreement);
        let half = |spi| Half {
            spi: Spi(spi),
            keys: keys(spi, agreement.as_ref()),
        };
        let sa = |local: &TrafficSelector, remote: &TrafficSelector, inbound, outbound| ChildSa {
            id: ChildSaId(1),
            ike: IkeSaId(1),
            peer: "peer".into(),
            name: None,
            resource: None,
            mode: Mode::Tunnel,
            path: Path::udp(outer(1), outer(2)),
            local: vec![local.clone()],
            remote: vec![remote.clone()],
            inbound: half(inbound),
            outbound: half(outbound),
            agreement: agreement.clone(),
            exchanges: Exchanges::default(),
            initiator: true,
        };
        Ok(Self {
            sender: endpoint(sa(&server, &mobile, BACK, FORTH))?,
            receiver: endpoint(sa(&mobile, &server, FORTH, BACK))?,
            batch: vec![Packet::with_capacity(2000); BATCH],
        })
    }

    /// Carries as many datagrams as a batch has, and times both ends.
    pub fn carry(&mut self, datagrams: &[Vec<u8>]) -> Result<Carried> {
        for (packet, datagram) in self.batch.iter_mut().zip(datagrams) {
            packet.fill(datagram);
        }
        let mut sink = InPlace::default();
        let sealing = each(|| self.sender.seal(&mut self.batch, &mut sink))?;
        let sealed = self.batch.iter().map(|packet| packet.octets().to_vec());
        let sealed = sealed.collect();
        let opening = each(|| {
            self.receiver
                .open(&mut self.batch, &mut sink, Instant::ZERO)
        })?;
        ensure!(
            sink.dropped.is_none(),
            "a packet was dropped: {:?}",
            sink.dropped
        );
        let same = self
            .batch
            .iter()
            .zip(datagrams)
            .all(|(a, b)| a.octets() == b);
        ensure!(same, "a packet is not what was sent");
        Ok(Carried {
            sealing,
            opening,
            sealed,
        })
    }
}

/// A licensed node that may read the headers.
pub(super) struct Node {
    licensed: Licensed,
    scratch: Scratch,
}

impl Node {
    pub fn new() -> Result<Self> {
        let half = |spi| GrantHalf {
            spi: Spi(spi),
            zones: vec![(ZoneId::DESIGNATED, SUITE.into(), key(spi, 1))],
        };
        let mut licensed = Licensed::new();
        licensed.install(Grant {
            csa: CSA,
            line: CSA,
            grant: 1,
            payload_zone: ZoneId(2),
            suites: vec![SUITE.into(); 2],
            window: WINDOW,
            lifetime: Duration::from_secs(60),
            from_gateway: half(FORTH),
            to_gateway: half(BACK),
        })?;
        let scratch = Scratch::new();
        Ok(Self { licensed, scratch })
    }

    /// Opens what it may of each packet: how long that took, and in how many it saw TCP headers.
    pub fn open(&mut self, sealed: &[Vec<u8>]) -> Result<(Duration, usize)> {
        let mut seen = 0;
        let time = each(|| {
            for packet in sealed {
                seen += usize::from(self.sees(packet) == Ok(true));
            }
        })?;
        Ok((time, seen))
    }

    fn sees(&mut self, packet: &[u8]) -> Result<bool, NotOpened> {
        let view = self.licensed.open(packet, &mut self.scratch)?;
        Ok(view.headers().is_some())
    }
}

/// The AEAD calls that a packet of two zones or in plain ESP needs, and nothing else.
pub(super) struct Raw {
    aead: Aead,
    texts: Vec<Vec<u8>>,
}

impl Raw {
    /// For datagrams of so many octets.
    pub fn new(zones: bool, octets: usize) -> Result<Self> {
        let texts = match zones {
            true => vec![vec![0; HEADERS + 1], vec![0; octets - HEADERS]],
            false => vec![vec![0; (octets + 2).next_multiple_of(4)]],
        };
        let aead = Aead::new(AeadAlgorithm::Aes128Gcm, &[7; KEY_LEN])?;
        Ok(Self { aead, texts })
    }

    /// How long they take for one packet; opening takes the same.
    pub fn time(&mut self) -> Result<Duration> {
        each(|| {
            for number in 0..BATCH {
                for text in &mut self.texts {
                    black_box(self.aead.seal(&[number as u8; 12], &[1; 21], text));
                }
            }
        })
    }
}

/// SNOOP with a connection to the mobile node.
pub(super) struct Proxy {
    snoop: Snoop,
    sent: u32,
}

impl Proxy {
    pub fn new() -> Self {
        Self {
            snoop: Snoop::new(pep::Config::default()),
            sent: 0,
        }
    }

    /// Shows it these segments on their way to the mobile node, and an acknowledgement of each: how long
    /// it took for one of either kind.
    pub fn snoop(&mut self, datagrams: &[Vec<u8>]) -> Result<[Duration; 2]> {
        let numbers = self.sent + 1..;
        self.sent += datagrams.len() as u32;
        let data = each(|| {
            for (datagram, seq) in datagrams.iter().zip(numbers.clone()) {
                let _ = self.show(Side::Wired, datagram, seq);
            }
        })?;
        let acks: Vec<_> = datagrams.iter().map(|data| acknowledgement(data)).collect();
        let acked = each(|| {
            for (ack, seq) in acks.iter().zip(numbers) {
                let _ = self.show(Side::Wireless, ack, seq);
            }
        })?;
        ensure!(self.snoop.poll_transmit().is_none(), "nothing was lost");
        let cached: usize = self.snoop.flows().map(|flow| flow.packets).sum();
        ensure!(
            cached == 0,
            "{cached} packets are cached that were acknowledged"
        );
        Ok([data, acked])
    }

    fn show(&mut self, from: Side, datagram: &[u8], seq: u32) -> Option<pep::Verdict> {
        let header = ip::Header::parse(datagram).ok()?;
        let segment = Segment {
            line: Some(CSA),
            flow: header.flow(),
            header: tcp::Header::parse(header.payload())?,
            payload_len: datagram.len() - HEADERS,
            sealed: datagram,
            fresh: true,
            position: Some(Position {
                csa: CSA,
                seq,
                highest: seq,
                window: WINDOW,
            }),
        };
        Some(self.snoop.handle_segment(from, &segment, Instant::ZERO))
    }
}

/// Nothing that is timed means anything if the packets were in no zones: a licensed node could read these
/// of them. Of none it can read none.
pub(super) fn readable(read: usize, all: usize) -> Finding {
    let share = Estimate {
        value: read as f64 / all.max(1) as f64,
        interval: None,
        runs: all,
    };
    let what = "packets in two zones whose headers a licensed node reads, over all";
    Finding::at_least(what, 1.0, Some(share)).detail(format!("{read} of {all}"))
}

/// As the tables have it.
pub(super) fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

/// As many segments in a row as a batch has, of so many octets with headers, from the `round`th on.
pub(super) fn segments(octets: usize, round: u32) -> Vec<Vec<u8>> {
    let payload = vec![0x55; octets - HEADERS];
    let step = payload.len() as u32;
    let first = round.wrapping_mul(BATCH as u32 * step).wrapping_add(1);
    let number = |place: usize| first.wrapping_add(place as u32 * step);
    let all = (0..BATCH).map(|place| segment(SERVER, MOBILE, [number(place), 1], &payload));
    all.collect()
}

/// What the receiver says to a segment.
fn acknowledgement(data: &[u8]) -> Vec<u8> {
    let number = &data[ip::V4_HEADER_LEN + 4..][..4];
    let number = u32::from_be_bytes([number[0], number[1], number[2], number[3]]);
    let next = number.wrapping_add((data.len() - HEADERS) as u32);
    segment(MOBILE, SERVER, [1, next], &[])
}

fn segment(
    from: (Ipv4Addr, u16),
    to: (Ipv4Addr, u16),
    [number, acknowledged]: [u32; 2],
    payload: &[u8],
) -> Vec<u8> {
    let len = (HEADERS + payload.len()) as u16;
    let mut octets = [
        [0x45, 0],
        len.to_be_bytes(),
        [0, 0],
        [0x40, 0],
        [64, tcp::PROTOCOL],
        [0, 0],
    ]
    .concat();
    octets.extend(from.0.octets());
    octets.extend(to.0.octets());
    let sum = Sum::default().with(&octets).finish();
    octets[10..12].copy_from_slice(&sum.to_be_bytes());
    octets.extend([from.1, to.1].map(u16::to_be_bytes).concat());
    octets.extend([number, acknowledged].map(u32::to_be_bytes).concat());
    octets.extend([0x50, 0x10, 0x72, 0x10, 0, 0, 0, 0]);
    octets.extend(payload);
    let _ = restore(&mut octets);
    octets
}

/// The time of this thread for one packet of a batch.
fn each(work: impl FnOnce()) -> Result<Duration> {
    let begun = spent_here()?;
    work();
    Ok((spent_here()? - begun) / BATCH as u32)
}

/// SPIs of either direction.
const FORTH: u32 = 0x1001;
const BACK: u32 = 0x1002;

fn agreement() -> ZoneAgreement {
    let zones = (1..).map(ZoneId).zip(ZONES).map(|(id, selector)| Zone {
        id,
        selector,
        suite: SUITE.into(),
    });
    ZoneAgreement {
        zones: zones.collect(),
        map: MapKind::Changeable,
        window: WINDOW,
        licences: Vec::new(),
    }
}

fn keys(spi: u32, agreement: Option<&ZoneAgreement>) -> Keys<Secret> {
    match agreement {
        None => Keys::Plain {
            suite: SUITE,
            implicit_iv: true,
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

fn key(spi: u32, zone: u8) -> Secret {
    Secret::new(vec![spi as u8 ^ zone << 4; KEYMAT_LEN])
}

fn endpoint(sa: ChildSa<Secret>) -> Result<Worker> {
    let protected = Protected {
        local: sa.local.clone(),
        remote: sa.remote.clone(),
    };
    let mut worker = Worker::new(Spd::new(Vec::new(), vec![protected]));
    worker.install(sa).context("an SA that the lab made")?;
    Ok(worker)
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
