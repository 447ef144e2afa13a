mod claims;
mod keepalive;
mod link;

use super::*;
use wire::mobile_ip::{Solicitation, append_authentication};

fn foreign_with(config: ForeignAgentConfig) -> ForeignAgent {
    ForeignAgent::new(config, [1; 32], at(0))
}

fn foreign() -> ForeignAgent {
    foreign_with(foreign_config(1))
}

fn ask_with(foreign: &mut ForeignAgent, octets: &[u8], now: Instant) {
    foreign.handle_datagram(&arrival(HOME, agent(1)), octets, now);
}

fn answer(foreign: &mut ForeignAgent, octets: &[u8], now: Instant) {
    foreign.handle_datagram(&arrival(HOME_AGENT, agent(1)), octets, now);
}

/// Registers a visitor.
fn register(foreign: &mut ForeignAgent, request: &Request, now: Instant) {
    ask_with(foreign, &signed(request), now);
    answer(
        foreign,
        &reply_signed(&Reply::to(request, Code::Accepted)),
        now,
    );
    datagrams(|| foreign.poll_transmit());
}

fn advertisements(foreign: &mut ForeignAgent, until: Instant) -> Vec<(Instant, Agent)> {
    let mut all = Vec::new();
    while let Some(deadline) = foreign.poll_timeout().filter(|due| due.at <= until) {
        foreign.handle_timeout(deadline.at);
        while let Some(transmit) = foreign.poll_transmit() {
            if let Transmit::Icmp { octets, .. } = transmit {
                let read = Advertisement::parse(&octets).unwrap();
                all.push((deadline.at, read.agent.unwrap()));
            }
        }
    }
    all
}

#[test]
fn it_advertises_itself_at_times_that_chance_moves_and_counts() {
    let all = advertisements(&mut foreign(), at(60_000));
    let sequence: Vec<_> = all.iter().map(|(_, agent)| agent.sequence).collect();
    assert_eq!(sequence, (0..all.len() as u16).collect::<Vec<_>>());
    let gaps: Vec<_> = all
        .windows(2)
        .map(|pair| pair[1].0.since(pair[0].0))
        .collect();
    let (shortest, longest) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
    assert!(*shortest >= Duration::from_millis(750) && *longest <= Duration::from_secs(1));
    assert!(
        *longest - *shortest > Duration::from_millis(100),
        "no jitter"
    );
    let flags = all[0].1.flags;
    assert!(flags.has(AgentFlags::FOREIGN_AGENT | AgentFlags::REVERSE_TUNNEL));
    assert!(flags.has(AgentFlags::REGISTRATION_REQUIRED) && !flags.has(AgentFlags::BUSY));
}

/// "The sequence number 0xffff MUST be followed by sequence number 256" (section 2.3.2).
#[test]
fn the_number_after_the_last_is_256() {
    let all = advertisements(&mut foreign(), at(66_000_000));
    let at_end = all
        .iter()
        .position(|(_, agent)| agent.sequence == 0xffff)
        .unwrap();
    assert_eq!(all[at_end + 1].1.sequence, 256);
}

#[test]
fn who_asks_is_answered_soon_and_who_asks_on_and_on_is_not_answered_more_often() {
    let mut foreign = foreign_with(ForeignAgentConfig {
        interval: Duration::from_secs(60),
        ..foreign_config(1)
    });
    advertisements(&mut foreign, at(10_000));
    let mut answers = 0;
    for millis in 10_000..12_000 {
        foreign.handle_solicitation(AIR, &Solicitation.encode(), at(millis));
        answers += std::iter::from_fn(|| foreign.poll_transmit()).count();
        if millis == 10_060 {
            assert_eq!(answers, 1, "soon");
        }
    }
    assert!((4..=8).contains(&answers), "{answers} in two seconds");
    foreign.handle_solicitation(WIRE, &Solicitation.encode(), at(12_000));
    assert_eq!(foreign.counters().dropped[&Dropped::OtherInterface], 1);
}

#[test]
fn a_request_is_passed_on_up_to_what_authorizes_it() {
    let mut foreign = foreign();
    let octets = signed(&request(1, at(0)));
    let mut more = octets.clone();
    more.extend([200, 2, 0, 0]);
    append_authentication(&mut more, Between::MobileForeign, (300, 2), |_| vec![1, 2]);
    ask_with(&mut foreign, &more, at(0));
    let mut transmits = std::iter::from_fn(|| foreign.poll_transmit());
    let passed_on = transmits.find(|transmit| matches!(transmit, Transmit::Udp { .. }));
    let expected = Transmit::Udp {
        interface: None,
        station: None,
        source: SocketAddrV4::new(agent(1), PORT),
        destination: SocketAddrV4::new(HOME_AGENT, PORT),
        ttl: 64,
        octets,
    };
    assert_eq!(passed_on, Some(expected));
}

#[test]
fn it_proves_itself_to_a_home_agent_with_a_key_but_never_for_who_leaves() {
    let mut foreign = foreign_with(ForeignAgentConfig {
        home_keys: BTreeMap::from([(HOME_AGENT, foreign_home())]),
        ..foreign_config(1)
    });
    let leaving = Request {
        lifetime: Lifetime::NONE,
        ..request(1, at(1))
    };
    for (request, is_proved) in [(request(1, at(0)), true), (leaving, false)] {
        ask_with(&mut foreign, &signed(&request), at(0));
        let octets = datagrams(|| foreign.poll_transmit()).remove(0);
        let (_, extensions) = Request::parse(&octets).unwrap();
        let proof = foreign_home().verify(extensions, Between::ForeignHome);
        assert_eq!(proof.is_some(), is_proved);
    }
}

#[test]
fn a_request_is_denied_by_the_code_of_what_is_wrong_with_it() {
    let base = request(1, at(0));
    let flags = |flags| Request { flags, ..base };
    let reverse = RequestFlags::REVERSE_TUNNEL;
    let cases = [
        (
            flags(RequestFlags::default()),
            Code::ForeignReverseTunnelWanted,
        ),
        (
            flags(reverse | RequestFlags::GRE),
            Code::ForeignEncapsulation,
        ),
        (
            flags(reverse | RequestFlags::MINIMAL),
            Code::ForeignEncapsulation,
        ),
        (
            flags(reverse | RequestFlags::CO_LOCATED),
            Code::ForeignProhibited,
        ),
        (
            Request {
                lifetime: Lifetime(601),
                ..base
            },
            Code::ForeignLifetime,
        ),
        (
            Request {
                care_of: agent(2),
                ..base
            },
            Code::ForeignCareOf,
        ),
        (
            Request {
                home_agent: agent(1),
                ..base
            },
            Code::ForeignHomeAgent,
        ),
        (
            Request {
                home_agent: Ipv4Addr::BROADCAST,
                ..base
            },
            Code::ForeignHomeAgent,
        ),
    ];
    for (request, code) in cases {
        let mut foreign = foreign();
        ask_with(&mut foreign, &signed(&request), at(0));
        let reply = only_reply(|| foreign.poll_transmit());
        assert_eq!(reply.code, code);
        assert_eq!(foreign.counters().denied[&code], 1);
        if code == Code::ForeignLifetime {
            assert_eq!(reply.lifetime, Lifetime(600), "what it would accept");
        }
    }
}

#[test]
fn a_request_without_an_authorization_is_poorly_formed() {
    let mut foreign = foreign();
    ask_with(&mut foreign, &request(1, at(0)).encode(), at(0));
    let reply = only_reply(|| foreign.poll_transmit());
    assert_eq!(reply.code, Code::ForeignPoorlyFormed);
}

/// RFC 3024 section 4.2.1: "The foreign agent MUST verify that the TTL field of the IP header is
/// set to 255."
#[test]
fn who_is_not_on_the_link_is_too_distant() {
    let mut foreign = foreign();
    let far = Arrival {
        ttl: 254,
        ..arrival(HOME, agent(1))
    };
    foreign.handle_datagram(&far, &signed(&request(1, at(0))), at(0));
    let reply = only_reply(|| foreign.poll_transmit());
    assert_eq!(reply.code, Code::ForeignTooDistant);
}

#[test]
fn a_delivery_style_that_it_does_not_have_is_denied() {
    let mut foreign = foreign();
    let mut octets = signed(&request(1, at(0)));
    octets.extend([130, 0]);
    ask_with(&mut foreign, &octets, at(0));
    let reply = only_reply(|| foreign.poll_transmit());
    assert_eq!(reply.code, Code::ForeignDelivery);
}

#[test]
fn a_home_agent_that_is_not_on_the_list_is_nobodys_here() {
    let mut foreign = foreign_with(ForeignAgentConfig {
        home_agents: BTreeMap::from([(agent(9), Vec::new())]),
        ..foreign_config(1)
    });
    ask_with(&mut foreign, &signed(&request(1, at(0))), at(0));
    let reply = only_reply(|| foreign.poll_transmit());
    assert_eq!(reply.code, Code::ForeignProhibited);
}

#[test]
fn a_visitor_comes_with_an_accepted_reply_and_leaves_with_its_lifetime() {
    let mut foreign = foreign();
    register(&mut foreign, &request(1, at(0)), at(100));
    assert!(matches!(foreign.poll_event(), Some(ForeignEvent::Came(_))));
    foreign.handle_timeout(at(300_099));
    assert_eq!(foreign.poll_event(), None);
    foreign.handle_timeout(at(300_100));
    assert!(matches!(foreign.poll_event(), Some(ForeignEvent::Left(_))));
}

/// "The existing visitor list entry for the mobile node MUST NOT be modified" (section 3.7.2).
#[test]
fn a_denied_reply_changes_nothing_for_a_visitor() {
    let mut foreign = foreign();
    register(&mut foreign, &request(1, at(0)), at(0));
    foreign.poll_event();
    let again = request(1, at(1000));
    ask_with(&mut foreign, &signed(&again), at(1000));
    let denied = reply_signed(&Reply::to(&again, Code::HomeResources));
    answer(&mut foreign, &denied, at(1000));
    assert_eq!(
        datagrams(|| foreign.poll_transmit()).len(),
        2,
        "it is passed on"
    );
    assert_eq!(foreign.visitors().count(), 1);
    assert_eq!(foreign.poll_event(), None);
}

#[test]
fn who_leaves_is_forgotten_when_the_home_agent_agrees() {
    let mut foreign = foreign();
    register(&mut foreign, &request(1, at(0)), at(0));
    let elsewhere = Request {
        lifetime: Lifetime::NONE,
        care_of: agent(2),
        ..request(1, at(1))
    };
    register(&mut foreign, &elsewhere, at(1));
    assert_eq!(
        foreign.visitors().count(),
        1,
        "it left another agent through us"
    );
    let leaving = Request {
        care_of: HOME,
        identification: ntp(at(2)).0,
        ..elsewhere
    };
    ask_with(&mut foreign, &signed(&leaving), at(2));
    assert_eq!(foreign.visitors().count(), 1);
    register(&mut foreign, &leaving, at(2));
    assert_eq!(foreign.visitors().count(), 0);
}

#[test]
fn a_home_agent_that_is_silent_for_seven_seconds_is_told_of() {
    let mut foreign = foreign();
    ask_with(&mut foreign, &signed(&request(1, at(0))), at(0));
    datagrams(|| foreign.poll_transmit());
    foreign.handle_timeout(at(6_999));
    assert!(datagrams(|| foreign.poll_transmit()).is_empty());
    foreign.handle_timeout(at(7_000));
    let reply = only_reply(|| foreign.poll_transmit());
    assert_eq!(reply.code, Code::ForeignTimeout);
}

#[test]
fn a_mobile_node_with_a_key_has_to_prove_itself_and_is_answered_alike() {
    let key = association(0x3003);
    let mut foreign = foreign_with(ForeignAgentConfig {
        mobile_keys: BTreeMap::from([(HOME, key.clone())]),
        ..foreign_config(1)
    });
    let mut octets = signed(&request(1, at(0)));
    ask_with(&mut foreign, &octets, at(0));
    let reply = datagrams(|| foreign.poll_transmit()).remove(0);
    let (reply, extensions) = Reply::parse(&reply).unwrap();
    assert_eq!(reply.code, Code::ForeignMobileAuthentication);
    assert!(key.verify(extensions, Between::MobileForeign).is_some());
    key.sign(&mut octets, Between::MobileForeign);
    ask_with(&mut foreign, &octets, at(0));
    let passed_on = datagrams(|| foreign.poll_transmit()).remove(0);
    assert_eq!(passed_on, signed(&request(1, at(0))));
}

#[test]
fn when_it_is_full_it_says_so_and_serves_whom_it_serves() {
    let mut foreign = foreign_with(ForeignAgentConfig {
        visitors: 1,
        ..foreign_config(1)
    });
    register(&mut foreign, &request(1, at(0)), at(0));
    let other = Request {
        home: Ipv4Addr::new(10, 66, 0, 8),
        ..request(1, at(1))
    };
    foreign.handle_datagram(
        &Arrival {
            interface: AIR,
            ttl: 255,
            ..arrival(other.home, agent(1))
        },
        &signed(&other),
        at(1),
    );
    let reply = only_reply(|| foreign.poll_transmit());
    assert_eq!(reply.code, Code::ForeignResources);
    let last = advertisements(&mut foreign, at(5_000)).pop().unwrap().1;
    assert!(last.flags.has(AgentFlags::BUSY));
    register(&mut foreign, &request(1, at(5_000)), at(5_000));
    assert_eq!(foreign.counters().accepted, 2);
}
