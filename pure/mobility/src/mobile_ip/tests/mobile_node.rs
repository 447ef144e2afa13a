mod forgeries;

use super::*;
use wire::mobile_ip::Solicitation;

fn mobile_with(config: MobileNodeConfig) -> MobileNode {
    let mut mobile = MobileNode::new(config, [1; 32], at(0));
    mobile.set_wall_clock(ntp(at(0)), at(0));
    mobile
}

fn on_one_interface() -> MobileNodeConfig {
    MobileNodeConfig {
        interfaces: vec![WLAN[0]],
        ..mobile_config()
    }
}

fn hear(mobile: &mut MobileNode, number: u8, now: Instant) {
    let octets = advertisement(number, 1).encode();
    mobile.handle_advertisement(WLAN[0], agent(number), station(agent(number)), &octets, now);
}

/// The requests sent in an interval, with their times, while these agents advertise themselves.
fn requests(
    mobile: &mut MobileNode,
    heard: &[u8],
    (from, until): (Instant, Instant),
) -> Vec<(Instant, Request)> {
    let mut all = Vec::new();
    let mut next_heard = from;
    loop {
        let due = mobile
            .poll_timeout()
            .map_or(next_heard, |due| due.at.min(next_heard));
        if due > until {
            return all;
        }
        if due == next_heard {
            heard.iter().for_each(|&number| hear(mobile, number, due));
            next_heard = due + Duration::from_secs(1);
        }
        mobile.handle_timeout(due);
        for octets in datagrams(|| mobile.poll_transmit()) {
            all.push((due, Request::parse(&octets).unwrap().0));
        }
    }
}

fn grant(mobile: &mut MobileNode, code: Code, lifetime: Lifetime, now: Instant) -> Request {
    let octets = datagrams(|| mobile.poll_transmit()).pop().unwrap();
    let (request, _) = Request::parse(&octets).unwrap();
    let reply = Reply {
        lifetime,
        ..Reply::to(&request, code)
    };
    let source = if request.care_of == HOME {
        agent(1)
    } else {
        request.care_of
    };
    mobile.handle_reply(WLAN[0], source, station(source), &reply_signed(&reply), now);
    request
}

#[test]
fn a_request_is_sent_from_the_home_address_with_a_ttl_of_255() {
    let mut mobile = mobile_with(on_one_interface());
    hear(&mut mobile, 1, at(0));
    let Some(Transmit::Udp {
        interface,
        station: to,
        source,
        destination,
        ttl,
        octets,
    }) = mobile.poll_transmit()
    else {
        panic!("a request is due");
    };
    assert_eq!((interface, ttl), (Some(WLAN[0]), 255));
    assert_eq!(to, Some(station(agent(1))));
    assert_eq!(source, SocketAddrV4::new(HOME, PORT));
    assert_eq!(destination, SocketAddrV4::new(agent(1), PORT));
    let (request, extensions) = Request::parse(&octets).unwrap();
    assert_eq!(request.care_of, agent(1));
    assert_eq!(request.flags, RequestFlags::REVERSE_TUNNEL);
    assert!(
        mobile_home()
            .verify(extensions, Between::MobileHome)
            .is_some()
    );
    assert!(NtpTime(request.identification).is_near(ntp(at(0)), Duration::from_secs(1)));
}

#[test]
fn solicitations_are_three_in_three_seconds_and_then_ever_fewer() {
    let mut mobile = mobile_with(on_one_interface());
    let mut times = Vec::new();
    while let Some(due) = mobile.poll_timeout().filter(|due| due.at < at(600_000)) {
        mobile.handle_timeout(due.at);
        while let Some(Transmit::Icmp { octets, .. }) = mobile.poll_transmit() {
            assert_eq!(Solicitation::parse(&octets), Ok(Solicitation));
            times.push(due.at);
        }
    }
    assert!(times[2] < at(3_000), "{times:?}");
    let gaps: Vec<_> = times
        .windows(2)
        .map(|pair| pair[1].since(pair[0]).as_secs())
        .collect();
    assert_eq!(gaps[..2], [1, 1]);
    assert!(gaps.iter().all(|gap| *gap >= 1 && *gap <= 80));
    assert!(
        *gaps.last().unwrap() >= 60,
        "at most one a minute in the end"
    );
}

/// Section 3.6.3.
#[test]
fn an_unanswered_request_is_repeated_after_times_that_double_under_new_identifications() {
    let mut mobile = mobile_with(on_one_interface());
    let all = requests(&mut mobile, &[1], (at(0), at(20_000)));
    let times: Vec<_> = all
        .iter()
        .map(|(at, _)| at.since_origin().as_secs())
        .collect();
    assert_eq!(times, [0, 1, 3, 7, 15]);
    for pair in all.windows(2) {
        let [first, second] = [&pair[0].1, &pair[1].1].map(|one| NtpTime(one.identification));
        assert!(second.is_after(first));
        assert_ne!(first.0 as u32, second.0 as u32);
    }
}

#[test]
fn with_nonces_an_unanswered_request_is_repeated_unchanged() {
    let mut mobile = mobile_with(MobileNodeConfig {
        key: Association {
            replay: Replay::Nonces,
            ..mobile_home()
        },
        ..on_one_interface()
    });
    let all = requests(&mut mobile, &[1], (at(0), at(10_000)));
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|(_, request)| *request == all[0].1));
}

#[test]
fn a_silent_agent_is_left_for_another_that_is_heard() {
    let mut mobile = mobile_with(on_one_interface());
    hear(&mut mobile, 1, at(0));
    let all = requests(&mut mobile, &[1, 2], (at(0), at(9_000)));
    let care_of: Vec<_> = all.iter().map(|(_, request)| request.care_of).collect();
    assert_eq!(care_of[..2], [agent(1); 2]);
    assert!(care_of.contains(&agent(2)), "{care_of:?}");
}

#[test]
fn a_lifetime_is_asked_for_that_the_agent_accepts() {
    let mut mobile = mobile_with(MobileNodeConfig {
        lifetime: Lifetime(900),
        ..on_one_interface()
    });
    hear(&mut mobile, 1, at(0));
    let request = grant(&mut mobile, Code::ForeignLifetime, Lifetime(120), at(10));
    assert_eq!(request.lifetime, Lifetime(600), "it advertises that");
    let all = requests(&mut mobile, &[1], (at(0), at(1_500)));
    assert_eq!(all[0].1.lifetime, Lifetime(120), "and was told otherwise");
    assert_eq!(all[0].0, at(1_000), "a second later at the soonest");
}

#[test]
fn a_registration_is_renewed_at_three_quarters_of_what_was_granted() {
    let mut mobile = mobile_with(on_one_interface());
    hear(&mut mobile, 1, at(0));
    grant(&mut mobile, Code::Accepted, Lifetime(100), at(500));
    let all = requests(&mut mobile, &[1], (at(0), at(80_000)));
    assert_eq!(all[0].0, at(75_000), "counted from when it was sent");
}

#[test]
fn a_registration_for_ever_is_not_renewed() {
    let mut mobile = mobile_with(MobileNodeConfig {
        lifetime: Lifetime::INFINITE,
        ..on_one_interface()
    });
    let forever = Advertisement {
        agent: advertisement(1, 1).agent.map(|agent| Agent {
            registration_lifetime: Lifetime::INFINITE,
            ..agent
        }),
        lifetime: 0xffff,
        ..advertisement(1, 1)
    };
    mobile.handle_advertisement(
        WLAN[0],
        agent(1),
        station(agent(1)),
        &forever.encode(),
        at(0),
    );
    grant(&mut mobile, Code::Accepted, Lifetime::INFINITE, at(10));
    assert_eq!(mobile.poll_timeout().unwrap().at, at(9_000_000));
}

#[test]
fn a_denial_is_told_and_the_agent_left_alone_ever_longer() {
    let mut mobile = mobile_with(on_one_interface());
    hear(&mut mobile, 1, at(0));
    grant(&mut mobile, Code::HomeProhibited, Lifetime(300), at(10));
    let denied = MobileEvent::Denied {
        at: Attachment {
            interface: WLAN[0],
            agent: agent(1),
            care_of: agent(1),
        },
        code: Code::HomeProhibited,
    };
    assert_eq!(mobile.poll_event(), Some(denied));
    let all = requests(&mut mobile, &[1], (at(0), at(9_000)));
    assert!(all.is_empty());
    let all = requests(&mut mobile, &[1], (at(9_000), at(12_000)));
    assert_eq!(all[0].0, at(10_010));
}

#[test]
fn who_is_no_foreign_agent_that_tunnels_back_is_not_asked() {
    let mut mobile = mobile_with(on_one_interface());
    let mut router = advertisement(1, 1);
    router.agent = None;
    let mut one_way = advertisement(1, 1);
    one_way.agent.as_mut().unwrap().flags = AgentFlags::FOREIGN_AGENT;
    let mut nowhere = advertisement(1, 1);
    nowhere.agent.as_mut().unwrap().care_of.clear();
    for advertisement in [router, one_way, nowhere] {
        let octets = advertisement.encode();
        mobile.handle_advertisement(WLAN[0], agent(1), station(agent(1)), &octets, at(0));
    }
    assert_eq!(mobile.counters().dropped[&Dropped::NoForeignAgent], 3);
    assert!(datagrams(|| mobile.poll_transmit()).is_empty());
}

#[test]
fn a_busy_agent_is_not_asked_by_who_is_not_there_already() {
    let mut mobile = mobile_with(on_one_interface());
    let mut busy = advertisement(1, 1);
    let flags = &mut busy.agent.as_mut().unwrap().flags;
    *flags = *flags | AgentFlags::BUSY;
    mobile.handle_advertisement(WLAN[0], agent(1), station(agent(1)), &busy.encode(), at(0));
    assert!(datagrams(|| mobile.poll_transmit()).is_empty());
}

/// Section 2.4.4.
#[test]
fn a_number_that_falls_below_256_is_a_new_beginning_and_one_that_falls_to_it_is_not() {
    for (from, to, is_new) in [(40, 3, true), (0xffff, 256, false), (0xfffe, 255, true)] {
        let mut mobile = mobile_with(on_one_interface());
        let first = advertisement(1, from).encode();
        mobile.handle_advertisement(WLAN[0], agent(1), station(agent(1)), &first, at(0));
        grant(&mut mobile, Code::Accepted, Lifetime(300), at(10));
        let second = advertisement(1, to).encode();
        mobile.handle_advertisement(WLAN[0], agent(1), station(agent(1)), &second, at(2_000));
        let again = datagrams(|| mobile.poll_transmit()).len();
        assert_eq!(again == 1, is_new, "{from} then {to}");
    }
}

#[test]
fn an_agent_with_a_key_is_given_a_proof_and_gives_one() {
    let key = association(0x3003);
    let mut mobile = mobile_with(MobileNodeConfig {
        agent_keys: BTreeMap::from([(agent(1), key.clone())]),
        ..on_one_interface()
    });
    hear(&mut mobile, 1, at(0));
    let octets = datagrams(|| mobile.poll_transmit()).remove(0);
    let (request, extensions) = Request::parse(&octets).unwrap();
    assert!(key.verify(extensions, Between::MobileForeign).is_some());
    let mut reply = reply_signed(&Reply::to(&request, Code::Accepted));
    mobile.handle_reply(WLAN[0], agent(1), station(agent(1)), &reply, at(10));
    assert_eq!(mobile.counters().dropped[&Dropped::NotAuthenticForeign], 1);
    key.sign(&mut reply, Between::MobileForeign);
    mobile.handle_reply(WLAN[0], agent(1), station(agent(1)), &reply, at(10));
    assert_eq!(mobile.registrations().count(), 1);
}
