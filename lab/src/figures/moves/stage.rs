//! A tunnel that is up, with traffic in it, and moves of the mobile node.

use super::daemons::Daemons;
use super::download::{Curve, Download};
use super::flow::Flow;
use super::place::{FIRST, Network, PEER, Place, SECOND};
use super::protection::Protection;
use super::recorder::Recorder;
use super::talk::Talk;
use super::terms::Terms;
use super::trace::{Change, Passage, Trace};
use super::watch::{Watch, now};
use super::way::Way;
use crate::pair::{GATEWAY, MOBILE};
use crate::process::{DEADLINE, until};
use anyhow::Result;
use model::Mode;
use os::Prefix;
use std::net::IpAddr;
use std::time::Duration;

/// Datagrams that arrive each way before a change, and after a move.
const ENOUGH: usize = 50;

/// Silence of IKE after which a move is over. strongSwan waits for 100 ms before it acts.
const QUIET: Duration = Duration::from_millis(250);

/// The network with a tunnel that is up.
pub(in crate::figures) struct Stage {
    daemons: Daemons,
    _talk: Talk,
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
        let daemons = Daemons::start(&network, &terms)?;
        let recorders = [
            Recorder::start(&network.mobile)?,
            Recorder::start(&network.gateway)?,
        ];
        Ok(Self {
            recorders,
            _talk: talk(&network, terms.protection)?,
            download: None,
            watch: Watch::start(&network.mobile)?,
            trace: Trace {
                clear: terms.protection == Protection::None,
                ..Trace::default()
            },
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

    /// Ends the tunnel and sets it up again. Returns the time from the first message of IKE to the
    /// first packet with traffic, at the mobile node.
    pub fn set_up_again(&mut self) -> Result<f64> {
        self.daemons.end()?;
        self.read()?;
        self.trace.forget();
        let begun = now();
        self.daemons.begin()?;
        until("traffic in the new tunnel", DEADLINE, || {
            self.read()?;
            Ok(self.trace.set_up(begun))
        })
    }

    /// Waits until this many paths carry packets, and returns the place that traffic leaves from.
    pub fn await_live_paths(&mut self, number: usize) -> Result<Place> {
        self.daemons.await_live_paths(number)?;
        self.read()?;
        self.trace.forget();
        until("traffic from one place", DEADLINE, || {
            self.read()?;
            let is_used = |place: &Place| {
                let address = place.address.parse();
                address.is_ok_and(|address| self.trace.sent_from(address) >= ENOUGH)
            };
            Ok([FIRST, SECOND].into_iter().find(is_used))
        })
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
        self.trace.forget();
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

/// Starts the programs whose traffic is recorded.
fn talk(network: &Network, protection: Protection) -> Result<Talk> {
    let (own, server) = match protection.mode() {
        Some(Mode::Tunnel | Mode::Beet) => (Some(MOBILE[0].parse()?), GATEWAY[0]),
        Some(Mode::Transport) | None => (None, PEER),
    };
    Talk::start(&network.mobile, own, &network.gateway, server.parse()?)
}
