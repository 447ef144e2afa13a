//! The home agent (RFC 5944 section 3.8): tracks the location of its mobile nodes.
//!
//! A request passes these checks in order: authentication of the mobile node ([`Dropped`] or code
//! 131), authentication of the foreign agent if there is a key (132), freshness (133), and policy
//! (128 to 139). Only a request that passes the first three changes state, and only if its tunnel
//! is permitted. At most a foreign agent's key authenticates the source address of a request, so a
//! copy from elsewhere must not make the mobile node's own request a replay.

mod udp;

use super::clock::WallClock;
use super::freshness::{Freshness, FreshnessChecker, join};
use super::limiter::{Denials, OldAnswers, Sender};
use super::transmit::ROUTED;
use super::tunnel::End;
use super::{
    Arrival, Association, Counters, Dropped, HomeTunnel, Nat, NtpTime, Remote, Transmit,
    TunnelCounters, is_host,
};
use crypto::Rng;
use model::{Deadline, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use udp::{Asked, Granted};
use wire::ip_in_ip::Egress;
use wire::mobile_ip::{
    Between, Code, Extensions, Lifetime, PORT, Reply, Request, RequestFlags, UdpTunnelReply, kind,
};

/// The configuration of a home agent.
#[derive(Clone, Debug)]
pub struct HomeAgentConfig {
    /// Its address.
    pub address: Ipv4Addr,
    /// Longest lifetime of a registration.
    pub lifetime: Lifetime,
    /// Care-of addresses that one mobile node may have at once, at most.
    pub bindings: usize,
    /// True if registrations without a reverse tunnel are denied.
    pub reverse_tunnel_required: bool,
    /// Its mobile nodes: home addresses and keys.
    pub mobiles: BTreeMap<Ipv4Addr, Association>,
    /// Foreign agents with a shared key, by care-of address.
    pub foreign: BTreeMap<Ipv4Addr, Association>,
    /// The policy for UDP tunnels, which foreign agents behind a NAT request.
    pub nat: Nat,
    /// Longest lifetime of a registration through a UDP tunnel: "it is RECOMMENDED to use a
    /// conservative (that is, short) mobility binding lifetime" (RFC 3519 section 6). An attacker
    /// who changes the source address of a request in transit receives packets for this long. The
    /// RFC suggests 60 s (section 5.2).
    pub nat_lifetime: Lifetime,
    /// Idle time after which the other end sends a keepalive through a UDP tunnel, in whole
    /// seconds; `None` leaves the interval to the other end.
    pub keepalive: Option<Duration>,
}

impl HomeAgentConfig {
    /// Creates the configuration of an agent that shares no key with foreign agents and demands
    /// reverse tunnels. A mobile node may have two care-of addresses at once.
    pub const fn new(address: Ipv4Addr, mobiles: BTreeMap<Ipv4Addr, Association>) -> Self {
        Self {
            address,
            lifetime: Lifetime(600),
            bindings: 2,
            reverse_tunnel_required: true,
            mobiles,
            foreign: BTreeMap::new(),
            nat: Nat::Never,
            nat_lifetime: Lifetime(60),
            keepalive: None,
        }
    }
}

/// An event of one mobile node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HomeEvent {
    /// The mobile node's care-of addresses have changed; packets now go to these.
    Bound {
        /// Its home address.
        home: Ipv4Addr,
        /// Its care-of addresses.
        care_of: Vec<Ipv4Addr>,
    },
    /// The mobile node has renewed its registration without a change of location.
    Renewed {
        /// Its home address.
        home: Ipv4Addr,
    },
    /// The care-of address is unchanged, but the mobile node's packets now arrive from another NAT
    /// mapping. Packets for the mobile node now go there.
    Remapped {
        /// Its home address.
        home: Ipv4Addr,
        /// Its care-of address.
        care_of: Ipv4Addr,
        /// The address and port of the mapping; `None` if packets come from the care-of address
        /// itself.
        udp: Option<SocketAddrV4>,
    },
    /// A copy of a granted request arrived from another source. The copy moves nothing; its answer
    /// asks for a new request.
    Contested {
        /// Its home address.
        home: Ipv4Addr,
        /// The tunnel endpoint that its packets go to.
        bound: Remote,
        /// The source of the copy.
        other: SocketAddrV4,
    },
    /// The mobile node has no bindings left.
    Unbound {
        /// Its home address.
        home: Ipv4Addr,
    },
}

/// One location of a mobile node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its care-of address.
    pub care_of: Ipv4Addr,
    /// The NAT mapping of its UDP tunnel, if it uses one.
    pub udp: Option<SocketAddrV4>,
    /// The end of the binding; `None` if its lifetime is infinite.
    pub until: Option<Instant>,
}

/// A home agent.
#[derive(Debug)]
pub struct HomeAgent {
    config: HomeAgentConfig,
    rng: Rng,
    clock: WallClock,
    beginning: Option<NtpTime>,
    mobiles: BTreeMap<Ipv4Addr, Mobile>,
    /// The end of the next binding, kept so that messages from unknown hosts cause no scan of all
    /// bindings.
    next: Option<Instant>,
    denials: Denials<Ipv4Addr>,
    tunnel: HomeTunnel,
    counters: Counters,
    transmits: VecDeque<Transmit>,
    events: VecDeque<HomeEvent>,
}

/// The state of a mobile node.
#[derive(Debug)]
struct Mobile {
    judge: FreshnessChecker,
    bindings: Vec<Binding>,
    old_answers: OldAnswers,
}

#[derive(Clone, Copy, Debug)]
struct Binding {
    care_of: Ipv4Addr,
    tunnel: Granted,
    identification: u64,
    reverse: bool,
    /// True if a copy of the request arrived from another source. The event is emitted once.
    contested: bool,
    /// The end of the binding; `None` if its lifetime is infinite.
    until: Option<Instant>,
}

impl HomeAgent {
    /// Creates a home agent without bindings.
    pub fn new(config: HomeAgentConfig, seed: [u8; 32]) -> Self {
        let mut rng = Rng::from_seed(seed);
        let mut mobile = || Mobile {
            judge: FreshnessChecker::new(&mut rng),
            bindings: Vec::new(),
            old_answers: OldAnswers::default(),
        };
        let mobiles = config.mobiles.keys().map(|&home| (home, mobile()));
        Self {
            mobiles: mobiles.collect(),
            next: None,
            rng,
            clock: WallClock::default(),
            beginning: None,
            denials: Denials::default(),
            tunnel: HomeTunnel::new(config.address),
            counters: Counters::default(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            config,
        }
    }

    /// Sets the time of day, by which timestamps are checked. Until the first call, requests with
    /// timestamps are dropped. Timestamps before the earliest time set count as replays, because an
    /// earlier run of the home agent may have accepted them.
    pub fn set_wall_clock(&mut self, time: NtpTime, now: Instant) {
        self.clock.set(time, now);
        let is_earlier = self
            .beginning
            .is_none_or(|beginning| beginning.is_after(time));
        if is_earlier {
            self.beginning = Some(time);
        }
    }

    // Inputs.

    /// Handles a UDP datagram for port 434.
    pub fn handle_datagram(&mut self, arrival: &Arrival, octets: &[u8], now: Instant) {
        self.counters.received += 1;
        self.handle_timeout(now);
        if let Err(reason) = self.request(arrival, octets, now) {
            self.counters.drop(reason);
        }
    }

    /// Removes bindings that have ended.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        let homes = self.mobiles.iter_mut().filter_map(|(&home, mobile)| {
            let before = mobile.bindings.len();
            let lasts = |binding: &Binding| binding.until.is_none_or(|until| until > now);
            mobile.bindings.retain(lasts);
            (mobile.bindings.len() < before).then_some(home)
        });
        for home in homes.collect::<Vec<_>>() {
            self.tell(home);
        }
    }

    // Outputs.

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<HomeEvent> {
        self.events.pop_front()
    }

    /// Returns the time of the next call to [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.next?;
        Some(Deadline {
            at,
            reason: "a registration ends",
        })
    }

    // Getters.

    /// Returns the home agent's end of its tunnels.
    pub const fn tunnel(&mut self) -> &mut HomeTunnel {
        &mut self.tunnel
    }

    /// Returns the care-of addresses of a mobile node.
    pub fn care_of(&self, home: Ipv4Addr) -> Vec<Ipv4Addr> {
        let mobile = self.mobiles.get(&home);
        let bindings = mobile.into_iter().flat_map(|mobile| &mobile.bindings);
        bindings.map(|binding| binding.care_of).collect()
    }

    /// Returns all mobile nodes with their locations.
    pub fn bindings(&self) -> impl Iterator<Item = (Ipv4Addr, impl Iterator<Item = Place>)> {
        self.mobiles.iter().map(|(&home, mobile)| {
            let places = mobile.bindings.iter().map(|binding| Place {
                care_of: binding.care_of,
                udp: binding.tunnel.to.udp(),
                until: binding.until,
            });
            (home, places)
        })
    }

    /// Returns the packet counters of the tunnels.
    pub const fn tunnel_counters(&self) -> &TunnelCounters {
        self.tunnel.counters()
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &HomeAgentConfig {
        &self.config
    }

    /// Returns the message counters.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    // Requests.

    fn request(&mut self, arrival: &Arrival, octets: &[u8], now: Instant) -> Result<(), Dropped> {
        let (request, extensions) = Request::parse(octets).map_err(|_| Dropped::Malformed)?;
        let keys = &self.config.mobiles;
        let key = keys
            .get(&request.home)
            .ok_or(Dropped::UnknownMobile)?
            .clone();
        let foreign = self.key_of(&request, arrival).cloned();
        let verdict = self.judge(&request, extensions, arrival, now)?;
        let identification = match verdict {
            Verdict::Denied(code, identification) => {
                self.counters.deny(code);
                identification
            }
            Verdict::Accepted(..) => {
                self.counters.accepted += 1;
                self.mobile(request.home)
                    .judge
                    .answer(key.replay, request.identification)
            }
        };
        let (code, lifetime, granted) = match verdict {
            Verdict::Denied(code, _) => (code, request.lifetime, None),
            Verdict::Accepted(lifetime, granted) if self.config.bindings > 1 => {
                (Code::Accepted, lifetime, granted)
            }
            Verdict::Accepted(lifetime, granted) => (Code::AcceptedAlone, lifetime, granted),
        };
        let answers = |co_located| {
            let granted = granted.filter(|granted| granted.co_located == co_located);
            granted.and_then(|granted| granted.answer)
        };
        let reply = Reply {
            code,
            lifetime,
            home: request.home,
            home_agent: self.config.address,
            identification,
        };
        let mut octets = reply.encode();
        append(answers(true), &mut octets);
        key.sign(&mut octets, Between::MobileHome);
        append(answers(false), &mut octets);
        // It "MUST NOT be applied to deregistration messages" (section 3.5.4).
        if let Some(foreign) = foreign.filter(|_| !request.is_deregistration()) {
            foreign.sign(&mut octets, Between::ForeignHome);
        }
        self.transmits.push_back(Transmit::Udp {
            interface: None,
            station: None,
            source: SocketAddrV4::new(self.config.address, PORT),
            destination: arrival.source,
            ttl: ROUTED,
            octets,
        });
        Ok(())
    }

    fn judge(
        &mut self,
        request: &Request,
        extensions: Extensions<'_>,
        arrival: &Arrival,
        now: Instant,
    ) -> Result<Verdict, Dropped> {
        let key = &self.config.mobiles[&request.home];
        if key.verify(extensions, Between::MobileHome).is_none() {
            return self.judge_unproved(request, extensions, arrival, now);
        }
        let asked = Asked::from_extensions(extensions);
        if let Some(verdict) = self.judge_old(request, extensions, arrival, now)? {
            let sender = self.sender(request, extensions, arrival);
            if self.mobile(request.home).old_answers.allow(sender, now) {
                return Ok(verdict);
            }
            if let Verdict::Denied(code, _) = verdict {
                self.counters.deny(code);
            }
            return Err(Dropped::TooOften);
        }
        let (identification, home) = (request.identification, request.home);
        let replay = self.config.mobiles[&home].replay;
        if let Some(mobile) = self.mobiles.get_mut(&home) {
            mobile.judge.take(replay, identification, &mut self.rng);
        }
        let said = self.mobile(home).judge.answer(replay, identification);
        let granted = match request.is_deregistration() {
            true => self.release(request).map(|lifetime| (lifetime, None)),
            false => self.bind(request, asked, arrival, now),
        };
        Ok(match granted {
            Ok((lifetime, granted)) => Verdict::Accepted(lifetime, granted),
            Err(code) => Verdict::Denied(code, said),
        })
    }

    /// Denies a request that the mobile node has not signed, or drops it.
    fn judge_unproved(
        &mut self,
        request: &Request,
        extensions: Extensions<'_>,
        arrival: &Arrival,
        now: Instant,
    ) -> Result<Verdict, Dropped> {
        let is_false = self.is_agent_proved(request, extensions, arrival) == Some(false);
        let may_answer = extensions.has(kind::MOBILE_HOME) && !is_false;
        let source = *arrival.source.ip();
        match may_answer && self.denials.allow(source, request.home, now) {
            true => Ok(Verdict::Denied(
                Code::HomeMobileAuthentication,
                request.identification,
            )),
            false => Err(Dropped::NotAuthenticMobile),
        }
    }

    /// Returns the verdict on a mobile node's request that changes no state: its foreign agent is
    /// not authentic, it is not new, or its tunnel is not permitted. Returns `None` for all others.
    fn judge_old(
        &mut self,
        request: &Request,
        extensions: Extensions<'_>,
        arrival: &Arrival,
        now: Instant,
    ) -> Result<Option<Verdict>, Dropped> {
        if let Some(denied) = self.authenticate_agent(request, extensions, arrival)? {
            return Ok(Some(Verdict::Denied(denied, request.identification)));
        }
        let asked = Asked::from_extensions(extensions);
        if let Some(verdict) = self.repeated(request, asked, arrival, now) {
            return Ok(Some(verdict));
        }
        let replay = self.config.mobiles[&request.home].replay;
        let time = self.clock.time(now);
        let stamp = NtpTime(request.identification);
        let is_before = self
            .beginning
            .is_some_and(|beginning| beginning.is_after(stamp));
        let judge = &self.mobile(request.home).judge;
        match judge.judge(replay, request.identification, time, is_before) {
            Freshness::Unknown => return Err(Dropped::NoClock),
            Freshness::Old(upper) => {
                let said = join(upper, request.identification as u32);
                return Ok(Some(Verdict::Denied(Code::HomeIdentification, said)));
            }
            Freshness::New => {}
        }
        let said = judge.answer(replay, request.identification);
        if request.is_deregistration() {
            return Ok(None);
        }
        let tunnel = self.check_tunnel(request, asked, arrival);
        Ok(tunnel.err().map(|code| Verdict::Denied(code, said)))
    }

    /// Authenticates the foreign agent of a request (section 3.8.2.1). Returns the code of a
    /// denial, or `None`.
    fn authenticate_agent(
        &self,
        request: &Request,
        extensions: Extensions<'_>,
        arrival: &Arrival,
    ) -> Result<Option<Code>, Dropped> {
        match self.is_agent_proved(request, extensions, arrival) {
            _ if request.is_deregistration() => Ok(None),
            Some(false) => Ok(Some(Code::HomeForeignAuthentication)),
            None if extensions.has(kind::FOREIGN_HOME) => Err(Dropped::StrangeForeign),
            // Any host can add the extension to a copy and so divert the mobile node's packets to
            // itself.
            None if self.has_unproved_udp(request, Asked::from_extensions(extensions), arrival) => {
                Ok(Some(Code::HomeForeignAuthentication))
            }
            Some(true) | None => Ok(None),
        }
    }

    /// Returns the key shared with the foreign agent that relayed a request. Behind a NAT the
    /// source address differs, and the care-of address identifies the agent: "it is REQUIRED that
    /// the foreign agent [...] sends the registration request with an IP source address matching
    /// the care-of address" (RFC 3519 section 4.5).
    fn key_of(&self, request: &Request, arrival: &Arrival) -> Option<&Association> {
        let foreign = &self.config.foreign;
        let by_care_of = || foreign.get(&request.care_of);
        foreign.get(arrival.source.ip()).or_else(by_care_of)
    }

    /// Returns true if the foreign agent of a request has proved itself; `None` if it shares no key
    /// with us.
    fn is_agent_proved(
        &self,
        request: &Request,
        extensions: Extensions<'_>,
        arrival: &Arrival,
    ) -> Option<bool> {
        let key = self.key_of(request, arrival)?;
        Some(key.verify(extensions, Between::ForeignHome).is_some())
    }

    /// Returns the sender of a request, for the limit on answers. It is an agent if its address is
    /// configured or bound, and its proof is right where there is a key.
    fn sender(&self, request: &Request, extensions: Extensions<'_>, arrival: &Arrival) -> Sender {
        let address = *arrival.source.ip();
        let mut bindings = self.mobiles[&request.home].bindings.iter();
        let is_known = self.config.foreign.contains_key(&address)
            || bindings.any(|binding| binding.tunnel.to.address() == address);
        let is_agent =
            is_known && self.is_agent_proved(request, extensions, arrival) != Some(false);
        Sender { address, is_agent }
    }

    /// Returns the remaining lifetime of a registration that an identical request was granted: "the
    /// new Lifetime MUST NOT extend beyond the Lifetime originally granted". This answer applies
    /// only to the tunnel that was granted. If a copy arrives from another source, the mobile
    /// node's true location is unknown, so the reply asks for a new request.
    fn repeated(
        &mut self,
        request: &Request,
        asked: Asked,
        arrival: &Arrival,
        now: Instant,
    ) -> Option<Verdict> {
        let here = self.check_tunnel(request, asked, arrival);
        let bindings = &mut self.mobiles.get_mut(&request.home)?.bindings;
        let is_same = |binding: &&mut Binding| {
            binding.care_of == request.care_of
                && binding.identification == request.identification
                && !request.is_deregistration()
        };
        let binding = bindings.iter_mut().find(is_same)?;
        if here.is_ok_and(|here| here.to == binding.tunnel.to) {
            let left = |until: Instant| Lifetime::from_duration(until.since(now));
            let left = binding.until.map_or(Lifetime::INFINITE, left);
            return Some(Verdict::Accepted(left, Some(binding.tunnel)));
        }
        if !std::mem::replace(&mut binding.contested, true) {
            self.events.push_back(HomeEvent::Contested {
                home: request.home,
                bound: binding.tunnel.to,
                other: arrival.source,
            });
        }
        None
    }

    /// Ends one binding or all of a mobile node. Succeeds even if there is none.
    fn release(&mut self, request: &Request) -> Result<Lifetime, Code> {
        self.check_agent(request)?;
        let all = request.care_of == request.home;
        let bindings = &mut self.mobile(request.home).bindings;
        let before = bindings.len();
        bindings.retain(|binding| !all && binding.care_of != request.care_of);
        if bindings.len() < before {
            self.tell(request.home);
        }
        Ok(Lifetime::NONE)
    }

    fn bind(
        &mut self,
        request: &Request,
        asked: Asked,
        arrival: &Arrival,
        now: Instant,
    ) -> Result<(Lifetime, Option<Granted>), Code> {
        self.check_agent(request)?;
        let tunnel = self.check_tunnel(request, asked, arrival)?;
        let longest = match tunnel.to {
            Remote::Ip(_) => self.config.lifetime,
            Remote::Udp(_) => self.config.lifetime.min(self.config.nat_lifetime),
        };
        let lifetime = request.lifetime.min(longest);
        let most = self.config.bindings.max(1);
        let beside = request.flags.has(RequestFlags::SIMULTANEOUS) && most > 1;
        let before = self.care_of(request.home);
        let was_at = self.end_at(request.home, request.care_of);
        let bindings = &mut self.mobile(request.home).bindings;
        let others = |binding: &&Binding| binding.care_of != request.care_of;
        if beside && bindings.iter().filter(others).count() >= most {
            return Err(Code::HomeTooManyBindings);
        }
        bindings.retain(|binding| beside && binding.care_of != request.care_of);
        bindings.push(Binding {
            care_of: request.care_of,
            tunnel,
            identification: request.identification,
            reverse: request.flags.has(RequestFlags::REVERSE_TUNNEL),
            contested: false,
            until: lifetime.duration().map(|lasting| now + lasting),
        });
        self.set_tunnel(request.home);
        let mut changed = [before, self.care_of(request.home)];
        changed.iter_mut().for_each(|set| set.sort());
        match changed[0] == changed[1] {
            false => self.tell(request.home),
            true => {
                let (home, care_of) = (request.home, request.care_of);
                self.events.push_back(match was_at == Some(tunnel.to) {
                    true => HomeEvent::Renewed { home },
                    false => HomeEvent::Remapped {
                        home,
                        care_of,
                        udp: tunnel.to.udp(),
                    },
                });
            }
        }
        Ok((lifetime, Some(tunnel)))
    }

    /// "The Registration Reply will contain the home agent's unicast address."
    fn check_agent(&self, request: &Request) -> Result<(), Code> {
        match request.home_agent == self.config.address {
            true => Ok(()),
            false => Err(Code::HomeAddress),
        }
    }

    /// Checks if a tunnel is permitted. The tunnel ends at the source of the request: the relaying
    /// agent sends from the care-of address (section 3.7.2.2). The reply goes to the same address,
    /// so the agent has to receive there to complete the registration.
    fn check_tunnel(
        &self,
        request: &Request,
        asked: Asked,
        arrival: &Arrival,
    ) -> Result<Granted, Code> {
        let Request { care_of, flags, .. } = *request;
        if !is_host(care_of) || self.is_ours(care_of) {
            return Err(Code::HomePoorlyFormed);
        }
        let granted = self.grant(request, asked, arrival)?;
        if matches!(granted.to, Remote::Ip(_)) && flags.asks_for_other_encapsulation() {
            return Err(Code::HomeEncapsulation);
        }
        if self.config.reverse_tunnel_required && !flags.has(RequestFlags::REVERSE_TUNNEL) {
            return Err(Code::HomeReverseTunnelWanted);
        }
        Ok(granted)
    }

    /// Returns true for the address of the home agent or one of its mobile nodes. Tunnels never end
    /// there.
    fn is_ours(&self, address: Ipv4Addr) -> bool {
        address == self.config.address || self.mobiles.contains_key(&address)
    }

    /// Returns the endpoint of the tunnel to a mobile node's care-of address.
    fn end_at(&self, home: Ipv4Addr, care_of: Ipv4Addr) -> Option<Remote> {
        let mut bindings = self.mobiles.get(&home)?.bindings.iter();
        let binding = bindings.find(|binding| binding.care_of == care_of)?;
        Some(binding.tunnel.to)
    }

    // Effects.

    fn tell(&mut self, home: Ipv4Addr) {
        self.set_tunnel(home);
        let care_of = self.care_of(home);
        self.events.push_back(match care_of.is_empty() {
            true => HomeEvent::Unbound { home },
            false => HomeEvent::Bound { home, care_of },
        });
    }

    /// Updates the tunnel table and the next deadline to match a mobile node's bindings.
    fn set_tunnel(&mut self, home: Ipv4Addr) {
        let foreign = &self.config.foreign;
        let bindings = self.mobiles[&home].bindings.iter();
        // An agent with a shared key was configured as one of ours, which passes marks on (RFC 6040
        // section 4.3).
        let ends = bindings.map(|binding| End {
            to: binding.tunnel.to,
            egress: match foreign.contains_key(&binding.care_of) {
                true => Egress::PassesMarks,
                false => Egress::Unknown,
            },
            reverse: binding.reverse,
        });
        self.tunnel.set(home, ends.collect());
        let bindings = self.mobiles.values().flat_map(|mobile| &mobile.bindings);
        self.next = bindings.filter_map(|binding| binding.until).min();
    }

    fn mobile(&mut self, home: Ipv4Addr) -> &mut Mobile {
        let mobile = self.mobiles.get_mut(&home);
        mobile.expect("there is one for each key, and the key was found")
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    /// Granted, with the tunnel; `None` for a deregistration.
    Accepted(Lifetime, Option<Granted>),
    /// Denied, with the identification of the reply.
    Denied(Code, u64),
}

/// The UDP answer stands in the same place as the UDP request: before or after the authentication
/// of the mobile node.
fn append(answer: Option<UdpTunnelReply>, octets: &mut Vec<u8>) {
    if let Some(answer) = answer {
        answer.append(octets);
    }
}
