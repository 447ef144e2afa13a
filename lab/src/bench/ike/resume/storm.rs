//! Very many clients lose their gateway at once: the time until all of them are served again.
//!
//! ```text
//!   crowd    10.64.0.0/14, 192.0.2.1 ---- 192.0.2.2  gateway, 10.8.0.1 inside
//!   daemons            10.90.0.2 -------- 10.90.0.1
//!                      10.90.1.2 -------- 10.90.1.1  ...
//! ```
//!
//! The gateway is killed and started again with the same files. All engines of the crowd begin
//! again as soon as it listens. The daemons have default settings and find out by themselves.

use super::super::super::certificates::Certificates;
use super::super::super::cores::OwnCore;
use super::super::super::crowd::{Crowd, Pace};
use super::super::super::responder::{self, Place, Responder, Terms};
use super::{AT_ONCE, SILENCE, Way, line, middle, ms};
use crate::daemon::Daemon;
use crate::echo::{Client, Service};
use crate::host::Host;
use crate::pair::{DEADLINE, is_up};
use crate::testbed::Testbed;
use crate::wire;
use anyhow::{Error, Result};
use ike::Resumption;
use model::Instant;
use os::clock;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::thread;

/// Terms of the crowd: those of most gateways with very many clients.
const TERMS: Terms = Terms::Ecdsa;

/// Way in which clients come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Recovery {
    /// A full exchange.
    Full,
    /// The session is resumed.
    Resumed(Way, Strategy),
}

/// Limit of the age of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Strategy {
    /// The time since the full exchange.
    Clocked,
    /// Also the time for which tunnels were up since, which the gateway writes to its file.
    Established,
    /// Also the octets that passed its tunnels since, which it writes as well.
    Data,
}

impl Recovery {
    /// All ways, with each strategy.
    pub const ALL: [Self; 7] = [
        Self::Full,
        Self::Resumed(Way::Ticket, Strategy::Clocked),
        Self::Resumed(Way::Ticket, Strategy::Established),
        Self::Resumed(Way::Ticket, Strategy::Data),
        Self::Resumed(Way::Skid3, Strategy::Clocked),
        Self::Resumed(Way::Skid3, Strategy::Established),
        Self::Resumed(Way::Skid3, Strategy::Data),
    ];

    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full exchange",
            Self::Resumed(Way::Ticket, Strategy::Clocked) => "ticket, clocked",
            Self::Resumed(Way::Ticket, Strategy::Established) => "ticket, established",
            Self::Resumed(Way::Ticket, Strategy::Data) => "ticket, data",
            Self::Resumed(Way::Skid3, Strategy::Clocked) => "SKID3, clocked",
            Self::Resumed(Way::Skid3, Strategy::Established) => "SKID3, established",
            Self::Resumed(Way::Skid3, Strategy::Data) => "SKID3, data",
        }
    }

    fn resumption(self) -> Resumption {
        match self {
            Self::Full => Resumption::Off,
            Self::Resumed(way, _) => way.into(),
        }
    }

    /// Returns a line of `[sessions]`.
    const fn limit(self) -> &'static str {
        match self {
            Self::Full | Self::Resumed(_, Strategy::Clocked) => "",
            Self::Resumed(_, Strategy::Established) => "established = \"8h\"\n",
            Self::Resumed(_, Strategy::Data) => "data = \"50MiB\"\n",
        }
    }
}

/// Number of clients.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Size {
    /// Engines of the crowd.
    pub clients: u32,
    /// Daemons beside them.
    pub daemons: u8,
}

impl Size {
    /// Returns the number of a daemon, which no engine has.
    const fn number_of(self, daemon: u8) -> u32 {
        self.clients + daemon as u32
    }
}

/// The gateway and its clients, after it was started again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Storm {
    /// Time from the first request to the gateway until half of the clients were served.
    pub half_ms: f64,
    /// Time until all were.
    pub all_ms: f64,
    /// Processor time of the gateway for each client, in microseconds.
    pub gateway_us: f64,
    /// Largest number of octets of the gateway's memory.
    pub peak: u64,
    /// Growth of its memory for each tunnel, in octets.
    pub octets: f64,
    /// Clients that resumed their session. The others were served by full exchanges.
    pub resumed: usize,
    /// Requests that clients retransmitted.
    pub retransmitted: u64,
    /// Times until the traffic of each daemon was back, the shortest first.
    pub daemons_ms: Vec<f64>,
    /// Daemons that resumed their session.
    pub daemons_resumed: usize,
}

/// Has all clients lose their gateway once. Without `resumes`, a negative control, all take full
/// exchanges.
///
/// # Errors
/// A tunnel does not come up, or carries no echo.
pub(crate) fn storm(recovery: Recovery, size: Size, resumes: bool) -> Result<Storm> {
    let resumption = match resumes {
        true => recovery.resumption(),
        false => Resumption::Off,
    };
    let mut scene = Scene::start(size, resumption, recovery.limit())?;
    scene.fail()
}

/// A gateway with its crowd and daemons.
struct Scene {
    size: Size,
    crowd: Crowd,
    members: Vec<Member>,
    responder: Responder,
    _service: Service,
    _hosts: [Host; 2],
    _bed: Testbed,
}

impl Scene {
    /// Starts all of them, and sets all tunnels up.
    fn start(size: Size, resumption: Resumption, limit: &str) -> Result<Self> {
        let bed = Testbed::new("storm")?;
        let (near, gateway) = (bed.host("near")?, bed.host("gateway")?);
        wire::veth(
            near.end("wan0", &["192.0.2.1/24"]),
            gateway.end("wan0", &["192.0.2.2/24"]),
        )?;
        Place::address(&near, &gateway)?;
        let (clients, each) = (size.clients as usize, line(resumption));
        let file = gateway.directory().join("sessions.redb");
        let mut tables = format!("[sessions]\nfile = \"{}\"\n{limit}", file.display());
        for place in 0..size.daemons {
            tables += &responder::table(size.number_of(place), Terms::Psk, each);
        }
        let certificates = Certificates::for_terms(TERMS, &gateway)?;
        let responder = Responder::start_for(&gateway, clients, TERMS, each, &tables)?;
        let service = Service::start(&gateway)?;
        // The daemons inherit the core of the crowd.
        let _core = OwnCore::apart_from(&[responder.pid()])?;
        let member = |place| Member::start(&bed, &gateway, place, size.number_of(place), each);
        let members = (0..size.daemons).map(member).collect::<Result<_>>()?;
        let mut crowd = Crowd::on(TERMS, &near, Place::TWO_HOSTS, certificates)?;
        crowd.resume(resumption);
        let run = crowd.run(clients, Pace::Queue(AT_ONCE))?;
        run.complete()?;
        crowd.persist();
        Ok(Self {
            size,
            crowd,
            members,
            responder,
            _service: service,
            _hosts: [near, gateway],
            _bed: bed,
        })
    }

    /// Kills the gateway, starts it again, and waits until all are served.
    fn fail(&mut self) -> Result<Storm> {
        let Self {
            size,
            crowd,
            members,
            responder,
            ..
        } = self;
        let clients = size.clients as usize;
        // Before the gateway is gone: so many take seconds, and the daemons would wait for them.
        crowd.lose(clients)?;
        responder.crash()?;
        let mut storm = thread::scope(|scope| {
            let waiting = members.iter_mut();
            let waiting = waiting.map(|member| scope.spawn(|| member.returned()));
            let waiting: Vec<_> = waiting.collect();
            responder.start_again()?;
            let start = clock::now();
            let mut storm = serve(crowd, responder, clients)?;
            for waiting in waiting {
                let returned = waiting.join().expect("a client returns its errors")?;
                storm.daemons_ms.push(ms(returned.since(start)));
            }
            Ok::<_, Error>(storm)
        })?;
        crowd.echo()?;
        storm.daemons_ms.sort_by(f64::total_cmp);
        let resumed = members
            .iter_mut()
            .map(|member| usize::from(member.has_resumed()));
        storm.daemons_resumed = resumed.sum();
        Ok(storm)
    }
}

/// Has all clients begin again at once.
fn serve(crowd: &mut Crowd, responder: &Responder, clients: usize) -> Result<Storm> {
    let _core = OwnCore::apart_from(&[responder.pid()])?;
    let (before, empty) = (responder.spent()?, responder.memory()?);
    let run = crowd.run_again(clients, Pace::Queue(clients))?;
    crowd.settle(SILENCE)?;
    run.complete()?;
    let spent = responder.spent()?.saturating_sub(before);
    let grown = responder.memory()?.saturating_sub(empty);
    Ok(Storm {
        half_ms: middle(&run.served),
        all_ms: run.served.last().copied().map_or(0.0, ms),
        gateway_us: spent.as_secs_f64() * 1e6 / clients as f64,
        peak: responder.peak()?,
        octets: grown as f64 / clients as f64,
        resumed: run.resumed,
        retransmitted: run.retransmitted,
        ..Storm::default()
    })
}

/// A daemon whose traffic never pauses.
struct Member {
    daemon: Daemon,
    client: Client,
    _host: Host,
}

impl Member {
    /// Starts the daemon, and waits until its tunnel carries traffic.
    fn start(bed: &Testbed, gateway: &Host, place: u8, number: u32, lines: &str) -> Result<Self> {
        let host = bed.host(&format!("daemon{place}"))?;
        let [near, far] = [2, 1].map(|end| Ipv4Addr::new(10, 90, place, end));
        wire::veth(
            host.end("eth0", &[&format!("{near}/24")]),
            gateway.end(&format!("daemon{place}"), &[&format!("{far}/24")]),
        )?;
        responder::secret(&host)?;
        let daemon = host.stratad(&responder::initiator(number, far.into(), lines))?;
        daemon.wait_until("status", DEADLINE, is_up)?;
        Ok(Self {
            daemon,
            client: Client::start(&host)?,
            _host: host,
        })
    }

    /// Waits until traffic is back. Returns that moment.
    fn returned(&mut self) -> Result<Instant> {
        self.client.answered()?;
        Ok(clock::now())
    }

    fn has_resumed(&mut self) -> bool {
        self.daemon.process().log().contains("session resumed")
    }
}
