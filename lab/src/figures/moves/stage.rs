//! A tunnel that is up, with traffic in it, and moves of the mobile node.

use super::daemons::{Contender, Daemons};
use super::download::{Curve, Download};
use super::flow::Flow;
use super::place::{Network, Place};
use super::recorder::Recorder;
use super::trace::{Change, Passage, Trace};
use super::watch::{Watch, now};
use super::way::Way;
use crate::bait::DISCARD;
use crate::chatter::Chatter;
use crate::host::Host;
use crate::pair::{GATEWAY, MOBILE};
use crate::process::{DEADLINE, until};
use anyhow::Result;
use os::Prefix;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

/// Interval between two datagrams each way.
const PERIOD: Duration = Duration::from_millis(1);

/// Datagrams that arrive each way before a change, and after a move.
const ENOUGH: usize = 50;

/// Silence of IKE after which a move is over. strongSwan waits for 100 ms before it acts.
const QUIET: Duration = Duration::from_millis(250);

/// Programs and network of a stage.
#[derive(Clone, Copy, Debug)]
pub(in crate::figures) struct Terms {
    pub contender: Contender,
    /// Round trip between mobile node and gateway.
    pub round_trip: Duration,
    /// Lines in Strata's tables of both peers.
    pub more: &'static str,
    /// Time after a change that is recorded at least.
    pub recorded: Duration,
}

/// The network with a tunnel that is up.
pub(in crate::figures) struct Stage {
    daemons: Daemons,
    _chatter: [Chatter; 2],
    _sinks: [UdpSocket; 2],
    download: Option<Download>,
    recorders: [Recorder; 2],
    watch: Watch,
    trace: Trace,
    recorded: Duration,
    network: Network,
}

impl Stage {
    pub fn new(terms: Terms) -> Result<Self> {
        let network = Network::new(terms.round_trip)?;
        let daemons = Daemons::start(&network, terms.contender, terms.more)?;
        let near = (&network.mobile, MOBILE[0]);
        let far = (&network.gateway, GATEWAY[0]);
        Ok(Self {
            // Without a socket, each datagram would be answered by ICMP.
            _sinks: [sink(near.0, near.1)?, sink(far.0, far.1)?],
            recorders: [
                Recorder::start(&network.mobile)?,
                Recorder::start(&network.gateway)?,
            ],
            _chatter: [
                Chatter::start(near, GATEWAY[0], PERIOD)?,
                Chatter::start(far, MOBILE[0], PERIOD)?,
            ],
            download: None,
            watch: Watch::start(&network.mobile)?,
            trace: Trace::default(),
            recorded: terms.recorded,
            daemons,
            network,
        })
    }

    /// Starts a TCP download to the mobile node, which runs until the end.
    pub fn start_download(&mut self) -> Result<()> {
        let ends = (&self.network.gateway, &self.network.mobile);
        self.download = Some(Download::start(ends.0, ends.1)?);
        Ok(())
    }

    /// Takes an interface down for good.
    pub fn take_down(&self, place: Place) -> Result<()> {
        Ok(self
            .network
            .mobile
            .netns()
            .netlink()?
            .link_down(place.device)?)
    }

    /// Hands the tunnel over to another interface, and loses the one in use. It is up again when
    /// the tunnel has moved.
    pub fn hand_over(&mut self, way: Way, from: Place, to: Place) -> Result<Passage> {
        let netlink = self.network.mobile.netns().netlink()?;
        let passage = self.record(from, to, |stage| {
            stage.prepare(way, to)?;
            Ok(netlink.link_down(from.device)?)
        })?;
        netlink.link_up(from.device)?;
        self.network.add_routes(from)?;
        Ok(passage)
    }

    fn prepare(&self, way: Way, to: Place) -> Result<()> {
        match way {
            Way::Lost => Ok(()),
            Way::Hard => self.daemons.ask_to_move(to, false),
            Way::Soft => {
                self.daemons.ask_to_move(to, true)?;
                until("a clone alone on the other path", DEADLINE, || {
                    Ok(self.daemons.is_alone_at(to)?.then_some(()))
                })
            }
        }
    }

    /// Replaces the address of an interface, and with it the routes.
    pub fn renumber(&mut self, from: Place, to: Place) -> Result<Passage> {
        let netlink = self.network.mobile.netns().netlink()?;
        let [old, new]: [Prefix; 2] = [from.prefix.parse()?, to.prefix.parse()?];
        self.record(from, to, |stage| {
            netlink.delete_address(from.device, old)?;
            netlink.add_address(to.device, new)?;
            stage.network.add_routes(to)
        })
    }

    /// Returns the packets at the mobile node around the last change.
    pub fn flow(&self) -> Result<Flow> {
        Flow::from_trace(&self.trace)
    }

    /// Returns the octets of the download around the last change.
    pub fn curve(&self) -> Option<Curve> {
        let change = self.trace.change?;
        Some(self.download.as_ref()?.curve(change.begun))
    }

    /// Records a change while traffic passes, and returns the times of the move that it causes.
    fn record(
        &mut self,
        from: Place,
        to: Place,
        change: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Passage> {
        self.settle(from)?;
        let (begun, said) = (now(), self.daemons.log().len());
        change(self)?;
        self.await_quiet_at(to)?;
        self.await_end(begun + self.recorded)?;
        self.trace.change = Some(Change {
            begun,
            event: self.watch.first_after(begun)?,
            address: to.address.parse()?,
            requests: self.daemons.requests(&self.trace, begun, said),
        });
        self.trace.passage()
    }

    /// Waits until the tunnel is at a place, and forgets the packets before. Those between now and
    /// the change show the last arrival before it.
    fn settle(&mut self, at: Place) -> Result<()> {
        self.await_quiet_at(at)?;
        self.trace = Trace::default();
        let address = at.address.parse()?;
        until("datagrams", DEADLINE, || {
            self.read()?;
            Ok(self.has_arrivals(address).then_some(()))
        })
    }

    /// Waits until datagrams arrive each way by this place, and the daemons are silent.
    fn await_quiet_at(&mut self, at: Place) -> Result<()> {
        let (address, begun) = (at.address.parse()?, now());
        let what = format!("traffic by {} and no more messages", at.address);
        until(&what, DEADLINE, || {
            self.read()?;
            let last = self.trace.last_message().max(begun);
            let is_quiet = now().saturating_sub(last) >= QUIET;
            Ok((is_quiet && self.has_arrivals(address)).then_some(()))
        })
    }

    fn await_end(&mut self, end: Duration) -> Result<()> {
        until("the end of a record", DEADLINE, || {
            self.read()?;
            Ok((now() >= end).then_some(()))
        })
    }

    fn has_arrivals(&self, address: IpAddr) -> bool {
        let arrived = self.trace.arrived_by(address);
        arrived.iter().all(|count| *count >= ENOUGH)
    }

    fn read(&mut self) -> Result<()> {
        for (recorder, packets) in self.recorders.iter().zip(&mut self.trace.packets) {
            packets.extend(recorder.take()?);
        }
        Ok(())
    }
}

fn sink(host: &Host, address: &str) -> Result<UdpSocket> {
    let address: IpAddr = address.parse()?;
    host.inside(|| Ok(UdpSocket::bind((address, DISCARD))?))
}
