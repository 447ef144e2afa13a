//! The inner end of one tunnel of the crowd: it seals echo requests (RFC 792) to the gateway, and
//! opens and checks the replies.

use super::crowd::Tunnel;
use super::responder::INNER;
use crate::bare::segment;
use anyhow::{Context, Result, bail, ensure};
use esp::{DropReason, Packet, Sink, Spd, Worker};
use model::{ChildSaId, Instant, Path};
use std::net::{IpAddr, Ipv4Addr};
use std::slice;
use wire::checksum::Sum;
use wire::ip;

/// Octets of an inner datagram, and largest size of the sealed packet.
const LENGTH: usize = 1280;
pub(super) const SEALED: usize = 1500;

/// Protocol number of ICMP, and the types of echo request and reply.
const ICMP: u8 = 1;
const ECHO: u8 = 8;
const ECHO_REPLY: u8 = 0;

/// One client with its SAs.
pub(super) struct Client {
    /// Inner address of the client.
    inner: Ipv4Addr,
    worker: Worker,
    pub path: Path,
}

/// Reason of the last drop.
#[derive(Default)]
struct Outcome(Option<DropReason>);

impl Sink for Outcome {
    fn transmit(&mut self, _packet: &mut Packet, _to: Path) {}

    fn deliver(&mut self, _packet: &mut Packet) {}

    fn dropped(&mut self, _packet: &mut Packet, why: DropReason) {
        self.0 = Some(why);
    }
}

impl Client {
    /// Installs the SAs of a tunnel.
    pub fn new(tunnel: Tunnel) -> Result<Self> {
        let Tunnel { mut child, .. } = tunnel;
        child.id = ChildSaId(1);
        let Some(IpAddr::V4(inner)) = child.local.first().map(|local| local.first) else {
            bail!("a tunnel of the crowd carries no IPv4 address");
        };
        let path = child.path;
        let mut worker = Worker::new(Spd::default());
        worker.install(*child).context("an SA of the crowd")?;
        Ok(Self {
            inner,
            worker,
            path,
        })
    }

    /// Fills a packet with a sealed echo request.
    pub fn request(&mut self, packet: &mut Packet, sequence: u16, now: Instant) -> Result<()> {
        packet.fill(&echo(self.inner, sequence));
        self.pass(packet, |worker, packet, sink| {
            worker.seal(packet, sink, now)
        })
    }

    /// Opens a packet, and checks that it is an echo reply to this client.
    pub fn check(&mut self, packet: &mut Packet, now: Instant) -> Result<()> {
        self.pass(packet, |worker, packet, sink| {
            worker.open(packet, sink, now)
        })?;
        let header = ip::Header::parse(packet.octets()).context("an echo is IP")?;
        let to = IpAddr::V4(self.inner);
        let kind = header.payload().first();
        ensure!(
            header.destination() == to && kind == Some(&ECHO_REPLY),
            "ICMP of type {kind:?} came to {}, and not an echo to {to}",
            header.destination()
        );
        Ok(())
    }

    /// Seals or opens one packet.
    fn pass(
        &mut self,
        packet: &mut Packet,
        work: impl Fn(&mut Worker, &mut [Packet], &mut Outcome),
    ) -> Result<()> {
        let mut outcome = Outcome::default();
        work(&mut self.worker, slice::from_mut(packet), &mut outcome);
        let why = outcome.0;
        ensure!(why.is_none(), "a packet of the crowd was dropped: {why:?}");
        Ok(())
    }
}

/// Returns an echo request to the gateway's inner address.
fn echo(inner: Ipv4Addr, sequence: u16) -> Vec<u8> {
    let mut datagram = segment::header((inner, INNER), ICMP, LENGTH);
    let at = datagram.len();
    datagram.extend([ECHO, 0, 0, 0, 0, 1]);
    datagram.extend(sequence.to_be_bytes());
    datagram.resize(LENGTH, 0x55);
    let sum = Sum::default().with(&datagram[at..]).finish();
    datagram[at + 2..at + 4].copy_from_slice(&sum.to_be_bytes());
    datagram
}
