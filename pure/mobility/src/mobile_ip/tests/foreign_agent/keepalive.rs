//! Several visitors of one home agent, behind a NAT: they share one mapping (RFC 3519 section
//! 4.10).

use super::*;
use wire::ecn::Ecn;
use wire::mobile_ip::{UdpTunnelReply, echo};

const SECOND_HOME: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 8);

/// An agent with two visitors of one home agent.
fn visited() -> ForeignAgent {
    let mut foreign = foreign_with(ForeignAgentConfig {
        nat: Nat::Detect,
        keepalive: Some(Duration::from_secs(20)),
        lifetime: Lifetime::INFINITE,
        ..foreign_config(1)
    });
    for home in [HOME, SECOND_HOME] {
        register(&mut foreign, home, 0);
    }
    foreign
}

fn register(foreign: &mut ForeignAgent, home: Ipv4Addr, milliseconds: u64) {
    let now = at(milliseconds);
    let asked = Request {
        home,
        lifetime: Lifetime::INFINITE,
        ..request(1, now)
    };
    let here = Arrival {
        interface: AIR,
        ttl: 255,
        ..arrival(home, agent(1))
    };
    foreign.handle_nearby(&here, STATION, &signed(&asked), now);
    let mut reply = reply_signed(&Reply::to(&asked, Code::Accepted));
    let udp = UdpTunnelReply {
        code: UdpTunnelReply::WILL,
        forced: false,
        keepalive: 0,
    };
    udp.append(&mut reply);
    answer(foreign, &reply, now);
    assert!(foreign.is_in_udp(home));
    datagrams(|| foreign.poll_transmit());
}

/// The events and messages of some minutes.
struct Seen {
    /// Number of times that the agent restarted its sequence numbers.
    begins: usize,
    unheard: Vec<Ipv4Addr>,
    /// Sequence numbers of the keepalives sent for each of the two visitors.
    asked: [Vec<u16>; 2],
}

/// Runs for some minutes, with a home agent that answers keepalives of these visitors only.
fn seen(foreign: &mut ForeignAgent, answered: &[Ipv4Addr], minutes: u64) -> Seen {
    let (mut begins, mut unheard) = (0, Vec::new());
    let mut asked = [const { Vec::new() }; 2];
    while let Some(due) = foreign
        .poll_timeout()
        .filter(|due| due.at <= at(minutes * 60_000))
    {
        foreign.handle_timeout(due.at);
        while let Some(transmit) = foreign.poll_transmit() {
            let (octets, home_agent) = match transmit {
                Transmit::Icmp { octets, .. } => {
                    let agent = Advertisement::parse(&octets).unwrap().agent.unwrap();
                    begins += usize::from(agent.sequence == 0);
                    continue;
                }
                Transmit::Udp {
                    octets,
                    destination,
                    ..
                } => (octets, destination),
            };
            let (front, inner) = octets.split_at(4);
            let home = wire::ip_in_ip::whole(inner).unwrap().source();
            let number = [HOME, SECOND_HOME].iter().position(|one| *one == home);
            asked[number.unwrap()].push(u16::from_be_bytes([inner[26], inner[27]]));
            let mut inner = inner.to_vec();
            if answered.iter().any(|one| *one == home) && echo::answer(&mut inner, HOME_AGENT) {
                let mut octets = [front, &inner].concat();
                let from = Remote::Udp(home_agent);
                let taken = foreign
                    .tunnel()
                    .decapsulate(from, Ecn::NotEct, &mut octets, due.at);
                assert_eq!(taken, Ok(None), "it is the answer");
            }
        }
        while let Some(event) = foreign.poll_event() {
            if let ForeignEvent::Unheard(visitor) = event {
                unheard.push(visitor.home);
            }
        }
    }
    Seen {
        begins,
        unheard,
        asked,
    }
}

/// The home agent drops keepalives of a visitor that has registered elsewhere, and answers those of
/// the other. The mapping therefore still exists.
#[test]
fn a_visitor_that_is_registered_elsewhere_has_nobody_else_register_again() {
    let mut foreign = visited();
    let seen = seen(&mut foreign, &[SECOND_HOME], 10);
    assert_eq!((seen.begins, seen.unheard), (1, vec![]));
    assert_eq!(seen.asked[0], [1, 2, 3, 4], "its keepalives have ended");
    let all: Vec<_> = (1..=30).collect();
    assert_eq!(seen.asked[1], all, "those of the other have not");
    assert_eq!(foreign.tunnel_counters().keepalives.lost, 0);
}

#[test]
fn a_mapping_that_is_lost_is_lost_for_all_and_has_them_register_again_once() {
    let mut foreign = visited();
    let seen = seen(&mut foreign, &[], 10);
    assert_eq!(seen.begins, 2);
    assert!(seen.unheard.contains(&HOME) && seen.unheard.contains(&SECOND_HOME));
}

/// A visitor that has registered meanwhile uses a newer mapping, and is reachable by it. The other
/// visitor's mapping may still be lost.
#[test]
fn a_mapping_that_is_lost_is_missed_though_another_visitor_has_a_new_one() {
    // The first advertisements have left by then.
    let registered = || {
        let mut foreign = visited();
        register(&mut foreign, SECOND_HOME, 10_000);
        foreign
    };
    let lost = seen(&mut registered(), &[SECOND_HOME], 10);
    assert_eq!((lost.begins, lost.unheard), (1, vec![HOME]));
    assert_eq!(lost.asked[0].len(), 4, "no more is asked");
    let there = seen(&mut registered(), &[HOME, SECOND_HOME], 10);
    assert_eq!((there.begins, there.unheard), (0, vec![]));
}

#[test]
fn a_home_agent_is_forgotten_with_the_last_of_its_visitors() {
    let mut foreign = visited();
    seen(&mut foreign, &[], 2);
    let nobody = "unheard: {}";
    assert!(!format!("{foreign:?}").contains(nobody));
    foreign.set_reserved(vec![network(HOME, 32)]);
    assert!(!format!("{foreign:?}").contains(nobody), "one is here");
    foreign.set_reserved(vec![network(SECOND_HOME, 32)]);
    assert!(format!("{foreign:?}").contains(nobody));
}
