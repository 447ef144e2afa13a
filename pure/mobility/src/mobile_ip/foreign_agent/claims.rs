//! Claims to a home address that a mobile node of another home agent has here.
//!
//! Any station can name a home agent of its own that accepts every request, so an accepted
//! registration does not show whose address it is. Routing does: what is sent to a home address
//! reaches its home network, and the home agent there tunnels it to the registered care-of address.
//! Before a claim displaces a visitor, the agent sends a cookie to the home address, like any host
//! would. It must come out of the tunnel of the claim's home agent. If it comes out of the
//! visitor's, or does not come, the claim is denied. A home agent off the route never sees the
//! cookie, neither here nor on the visited link: the agent delivers no test to a visitor.
//!
//! The same test decides about a home address that visitors call the address of their home agent.
//! The host at that address would get no packets if a mobile node had it, and it answers no test. A
//! mobile node would be kept out unless such a home agent had to be shown to exist.
//!
//! So the order of claims does not matter, and no state says that one was shown before: when the
//! route to a home address changes, the home agent on the new route is the next to show it.
//!
//! A test is smaller than the request and the reply that it takes, is sent three times at most, and
//! what its destination answers decides nothing. The number of open claims bounds the rate.

use super::{ForeignAgent, ForeignEvent, Visitor};
use crate::mobile_ip::pending::{Waiting, share_of_station};
use crate::mobile_ip::transmit::ROUTED;
use crate::mobile_ip::{Dropped, Remote, Station, Transmit};
use model::{Instant, most_crowded};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use wire::mobile_ip::{Code, HomeTest, PORT, Reply, Request, UdpTunnelReply};

/// Delay before a test is repeated; it doubles each time.
const FIRST: Duration = Duration::from_millis(500);
/// Time after which a claim is denied: a second after the third test, and before a mobile node has
/// sent its request a third time, so that the denial answers its latest one.
const PATIENCE: Duration = Duration::from_millis(2_500);
/// Limit on claims.
const MOST: usize = 32;

/// An accepted reply to a request.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) waiting: Waiting,
    pub(super) reply: Reply,
    pub(super) udp: Option<UdpTunnelReply>,
    /// The part of the reply for the mobile node.
    pub(super) octets: Vec<u8>,
}

impl Grant {
    /// Returns true if the mobile node is to be served: it does not deregister.
    pub(super) fn is_for_service(&self) -> bool {
        !self.waiting.request.is_deregistration() && !self.reply.lifetime.is_none()
    }

    fn is_same(&self, other: &Self) -> bool {
        let of = |grant: &Self| {
            let request = &grant.waiting.request;
            (request.home, request.home_agent)
        };
        of(self) == of(other)
    }
}

/// A home agent's claim to a home address.
#[derive(Debug)]
struct Claim {
    /// The latest grant.
    grant: Grant,
    cookie: [u8; 16],
    /// The time of the next repetition, and its delay.
    next: (Instant, Duration),
    until: Instant,
}

impl Claim {
    fn request(&self) -> &Request {
        &self.grant.waiting.request
    }

    fn test(&self) -> HomeTest {
        HomeTest {
            home: self.request().home,
            cookie: self.cookie,
        }
    }
}

/// All open claims: one for each home address and home agent.
#[derive(Debug, Default)]
pub(super) struct Claims(Vec<Claim>);

impl Claims {
    /// Replaces the grant of an open claim. A mobile node believes only the reply to its latest
    /// request. The test goes on: more requests do not cause more tests.
    fn renew(&mut self, grant: &Grant) -> bool {
        let open = self.0.iter_mut().find(|claim| claim.grant.is_same(grant));
        open.map(|claim| claim.grant = grant.clone()).is_some()
    }

    /// Returns the first of identical requests, if a claim for it is open. A copy moves no claim,
    /// whatever its source: a home agent accepts it again.
    pub(super) fn original(&self, copy: Waiting) -> Waiting {
        let mut granted = self.0.iter().map(|claim| claim.grant.waiting);
        let original = granted.find(|one| one.request == copy.request);
        original.unwrap_or(copy)
    }

    /// Ends the open claim that a later reply of the same home agent replaces.
    pub(super) fn end(&mut self, later: &Grant) {
        self.0.retain(|claim| !claim.grant.is_same(later));
    }

    /// Returns true if there is room for another claim: in total, and for this station.
    fn has_room(&self, station: Option<Station>) -> bool {
        self.0.len() < MOST && self.of_station(station) < share_of_station(MOST)
    }

    /// If there is no room in total, removes the oldest claim of the station with the most, if it
    /// has more even after the exchange. Otherwise each new station would cause a test.
    fn make_room(&mut self, station: Option<Station>) -> Option<Claim> {
        let own = self.of_station(station);
        let members = self.0.iter().map(|claim| claim.grant.waiting.station);
        let most = most_crowded(members.zip(0..)).filter(|(_, most)| *most > own + 1);
        let (place, _) = most.filter(|_| self.0.len() >= MOST)?;
        Some(self.0.remove(place))
    }

    fn of_station(&self, station: Option<Station>) -> usize {
        let claims = self.0.iter();
        let claims = claims.filter(|claim| claim.grant.waiting.station == station);
        claims.count()
    }

    fn find(&self, test: &HomeTest) -> Option<usize> {
        self.0.iter().position(|claim| claim.test() == *test)
    }

    /// Returns the tests to repeat.
    fn due(&mut self, now: Instant) -> Vec<HomeTest> {
        let due = self.0.iter_mut().filter(|claim| claim.next.0 <= now);
        let again = due.map(|claim| {
            let after = claim.next.1 * 2;
            claim.next = (now + after, after);
            claim.test()
        });
        again.collect()
    }

    fn pop_late(&mut self, now: Instant) -> Option<Claim> {
        let late = self.0.iter().position(|claim| claim.until <= now)?;
        Some(self.0.remove(late))
    }

    pub(super) fn next(&self) -> Option<Instant> {
        let all = self.0.iter();
        all.map(|claim| claim.next.0.min(claim.until)).min()
    }
}

impl ForeignAgent {
    /// Tests a claim to a disputed home address.
    pub(super) fn contest(&mut self, grant: Grant, now: Instant) {
        if self.claims.renew(&grant) {
            return;
        }
        if let Some(other) = self.claims.make_room(grant.waiting.station) {
            self.counters.drop(Dropped::GaveWay);
            self.deny(&other.grant.waiting, Code::ForeignResources, now);
        }
        if !self.claims.has_room(grant.waiting.station) {
            return self.deny(&grant.waiting, Code::ForeignResources, now);
        }
        let claim = Claim {
            grant,
            cookie: self.rng.array(),
            next: (now + FIRST, FIRST),
            until: now + PATIENCE,
        };
        self.send_test(claim.test());
        self.claims.0.push(claim);
    }

    /// Runs all actions that are due.
    pub(super) fn handle_claims(&mut self, now: Instant) {
        while let Some(late) = self.claims.pop_late(now) {
            self.refuse(late, now);
        }
        for test in self.claims.due(now) {
            self.send_test(test);
        }
    }

    /// Handles a packet from a tunnel. Returns true if it was the test of an open claim, which is
    /// delivered to no visitor: any station of the link could read it and have it sent again.
    pub(super) fn tested(&mut self, from: Remote, octets: &mut [u8], now: Instant) -> bool {
        if self.claims.0.is_empty() {
            return false;
        }
        let test = from.open(octets).ok();
        let Some(test) = test.and_then(|inner| HomeTest::within(inner)) else {
            return false;
        };
        let Some(place) = self.claims.find(&test) else {
            return false;
        };
        let from = from.address();
        let holder = self.holder(test.home).map(|holder| holder.home_agent);
        if from == self.claims.0[place].request().home_agent {
            let claim = self.claims.0.remove(place);
            self.apply(claim.grant, now);
        } else if Some(from) == holder {
            let claim = self.claims.0.remove(place);
            self.refuse(claim, now);
        }
        true
    }

    /// Removes the mobile node of another home agent that has the home address of a request, and
    /// the visitors that call this address their home agent's.
    pub(super) fn displace(&mut self, request: &Request) {
        let by = request.home_agent;
        let holder = self.holder(request.home);
        if let Some(visitor) = holder.filter(|holder| holder.home_agent != by) {
            self.events
                .push_back(ForeignEvent::Displaced { visitor, by });
            self.leave(request.home);
        }
        let callers = self.visitors();
        let callers = callers.filter(|visitor| visitor.home_agent == request.home);
        let callers: Vec<_> = callers.map(|visitor| visitor.home).collect();
        callers.into_iter().for_each(|home| self.leave(home));
    }

    fn refuse(&mut self, claim: Claim, now: Instant) {
        let waiting = &claim.grant.waiting;
        self.counters.drop(Dropped::NotRouted);
        self.deny(waiting, Code::ForeignHomeAuthentication, now);
        self.events.push_back(ForeignEvent::Unproved(Visitor {
            home: waiting.request.home,
            home_agent: waiting.request.home_agent,
            interface: self.config.interface,
            station: waiting.station,
        }));
    }

    /// Sends a test from the address that the route determines. From the care-of address the home
    /// agent would drop it: "If the IP Source Address of the datagram matches the IP address of the
    /// tunnel destination [...], the router MUST NOT tunnel the datagram" (RFC 2003 section 3.2).
    fn send_test(&mut self, test: HomeTest) {
        self.transmits.push_back(Transmit::Udp {
            interface: None,
            station: None,
            source: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT),
            destination: SocketAddrV4::new(test.home, PORT),
            ttl: ROUTED,
            octets: test.encode(),
        });
    }
}
