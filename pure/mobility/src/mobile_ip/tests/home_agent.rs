use super::*;

fn agent_with(config: HomeAgentConfig) -> HomeAgent {
    let mut home = HomeAgent::new(config, [1; 32]);
    home.set_wall_clock(ntp(at(0)), at(0));
    home
}

fn home() -> HomeAgent {
    agent_with(home_config())
}

/// The home agent's reply to a request that arrives from its care-of address.
fn ask(home: &mut HomeAgent, request: &Request, now: Instant) -> Reply {
    let number = request.care_of.octets()[3];
    let source = if request.care_of == HOME {
        agent(1)
    } else {
        agent(number)
    };
    home.handle_datagram(&arrival(source, HOME_AGENT), &signed(request), now);
    only_reply(|| home.poll_transmit())
}

fn beside(request: Request) -> Request {
    Request {
        flags: RequestFlags::SIMULTANEOUS | RequestFlags::REVERSE_TUNNEL,
        ..request
    }
}

fn leaving(care_of: Ipv4Addr, now: Instant) -> Request {
    Request {
        care_of,
        lifetime: Lifetime::NONE,
        ..request(1, now)
    }
}

#[test]
fn a_request_that_is_in_order_binds_and_its_reply_is_authentic() {
    let mut home = home();
    let request = request(1, at(0));
    home.handle_datagram(&arrival(agent(1), HOME_AGENT), &signed(&request), at(0));
    let octets = datagrams(|| home.poll_transmit()).remove(0);
    let (reply, extensions) = Reply::parse(&octets).unwrap();
    assert_eq!(reply, Reply::to(&request, Code::Accepted));
    assert!(
        mobile_home()
            .verify(extensions, Between::MobileHome)
            .is_some()
    );
    assert_eq!(home.care_of(HOME), [agent(1)]);
}

/// "The Lifetime MUST be set to the length of time that service will actually be provided"
/// (3.8.3.2).
#[test]
fn a_lifetime_is_cut_to_what_is_granted_and_never_raised() {
    let mut home = home();
    for (n, asked, granted) in [(1, 900, 600), (2, 30, 30), (3, 0xffff, 600)] {
        let request = Request {
            lifetime: Lifetime(asked),
            ..request(1, at(n))
        };
        assert_eq!(ask(&mut home, &request, at(n)).lifetime, Lifetime(granted));
    }
}

#[test]
fn a_binding_ends_with_its_lifetime() {
    let mut home = home();
    ask(&mut home, &request(1, at(0)), at(0));
    assert_eq!(home.poll_timeout().unwrap().at, at(300_000));
    home.poll_event();
    home.handle_timeout(at(299_999));
    assert_eq!(home.poll_event(), None);
    home.handle_timeout(at(300_000));
    assert_eq!(home.poll_event(), Some(HomeEvent::Unbound { home: HOME }));
    assert_eq!(home.poll_timeout(), None);
}

#[test]
fn another_care_of_address_replaces_the_first_unless_it_is_to_be_beside() {
    let mut home = home();
    ask(&mut home, &request(1, at(0)), at(0));
    ask(&mut home, &request(2, at(10)), at(10));
    assert_eq!(home.care_of(HOME), [agent(2)]);
    ask(&mut home, &beside(request(1, at(20))), at(20));
    assert_eq!(home.care_of(HOME), [agent(2), agent(1)]);
}

#[test]
fn there_are_no_more_bindings_than_allowed() {
    let mut home = home();
    for number in 1..=2 {
        let now = at(number.into());
        ask(&mut home, &beside(request(number, now)), now);
    }
    let third = ask(&mut home, &beside(request(3, at(3))), at(3));
    assert_eq!(third.code, Code::HomeTooManyBindings);
    assert_eq!(home.care_of(HOME), [agent(1), agent(2)]);
    // A renewal adds no binding.
    let again = ask(&mut home, &beside(request(1, at(4))), at(4));
    assert_eq!(again.code, Code::Accepted);
}

#[test]
fn where_one_binding_is_allowed_it_says_so_and_replaces() {
    let mut home = agent_with(HomeAgentConfig {
        bindings: 1,
        ..home_config()
    });
    ask(&mut home, &request(1, at(0)), at(0));
    let reply = ask(&mut home, &beside(request(2, at(1))), at(1));
    assert_eq!(reply.code, Code::AcceptedAlone);
    assert_eq!(home.care_of(HOME), [agent(2)]);
}

#[test]
fn one_binding_is_ended_or_all_are() {
    let mut home = home();
    ask(&mut home, &request(1, at(0)), at(0));
    ask(&mut home, &beside(request(2, at(1))), at(1));
    let reply = ask(&mut home, &leaving(agent(1), at(2)), at(2));
    assert_eq!(
        (reply.code, reply.lifetime),
        (Code::Accepted, Lifetime::NONE)
    );
    assert_eq!(home.care_of(HOME), [agent(2)]);
    ask(&mut home, &beside(request(1, at(3))), at(3));
    let reply = ask(&mut home, &leaving(HOME, at(4)), at(4));
    assert_eq!(reply.code, Code::Accepted);
    assert!(home.care_of(HOME).is_empty());
    // The deregistration succeeds without any binding.
    assert_eq!(
        ask(&mut home, &leaving(HOME, at(5)), at(5)).code,
        Code::Accepted
    );
}

/// Section 3.8.2.1: requests that cannot be answered are dropped, each with its reason.
#[test]
fn what_is_of_no_mobile_node_of_ours_is_dropped_silently() {
    let mut home = home();
    let stranger = Request {
        home: Ipv4Addr::new(10, 66, 0, 8),
        ..request(1, at(0))
    };
    let cases = [
        (signed(&stranger), Dropped::UnknownMobile),
        (request(1, at(0)).encode(), Dropped::NotAuthenticMobile),
        (vec![3; 40], Dropped::Malformed),
        (Vec::new(), Dropped::Malformed),
    ];
    for (octets, reason) in cases {
        home.handle_datagram(&arrival(agent(1), HOME_AGENT), &octets, at(0));
        assert_eq!(
            home.counters().dropped[&reason],
            1 + u64::from(octets.is_empty())
        );
        assert_eq!(home.poll_transmit(), None);
    }
    assert!(home.care_of(HOME).is_empty());
}

#[test]
fn a_request_is_denied_by_the_code_of_what_is_wrong_with_it() {
    let base = |n| request(1, at(n));
    let with = |n, flags| Request { flags, ..base(n) };
    let cases = [
        (
            Request {
                home_agent: agent(9),
                ..base(1)
            },
            Code::HomeAddress,
        ),
        (
            with(2, RequestFlags::REVERSE_TUNNEL | RequestFlags::GRE),
            Code::HomeEncapsulation,
        ),
        (
            with(3, RequestFlags::REVERSE_TUNNEL | RequestFlags::MINIMAL),
            Code::HomeEncapsulation,
        ),
        (
            with(4, RequestFlags::default()),
            Code::HomeReverseTunnelWanted,
        ),
        (
            Request {
                care_of: HOME_AGENT,
                ..base(5)
            },
            Code::HomePoorlyFormed,
        ),
        (
            Request {
                care_of: HOME,
                ..base(6)
            },
            Code::HomePoorlyFormed,
        ),
        (
            Request {
                care_of: Ipv4Addr::BROADCAST,
                ..base(7)
            },
            Code::HomePoorlyFormed,
        ),
    ];
    for (request, code) in cases {
        let mut home = home();
        let reply = ask(&mut home, &request, at(0));
        assert_eq!((reply.code, reply.home_agent), (code, HOME_AGENT));
        assert_eq!(home.counters().denied[&code], 1);
        assert!(home.care_of(HOME).is_empty());
    }
}

/// "The Registration Reply … supplies the high-order 32 bits from its own time of day" (5.7.1).
#[test]
fn a_request_of_another_time_is_denied_with_the_time() {
    for off in [-8_i64, 8] {
        let mut home = home();
        let mut request = request(1, at(0));
        let shift = off.unsigned_abs() << 32;
        request.identification = match off < 0 {
            true => request.identification - shift,
            false => request.identification + shift,
        };
        let reply = ask(&mut home, &request, at(0));
        assert_eq!(reply.code, Code::HomeIdentification);
        assert_eq!(reply.identification as u32, request.identification as u32);
        assert_eq!(reply.identification >> 32, ntp(at(0)).0 >> 32);
    }
}

#[test]
fn without_the_time_nothing_is_judged_by_it() {
    let mut home = HomeAgent::new(home_config(), [1; 32]);
    let octets = signed(&request(1, at(0)));
    home.handle_datagram(&arrival(agent(1), HOME_AGENT), &octets, at(0));
    assert_eq!(home.counters().dropped[&Dropped::NoClock], 1);
}

/// "The new Lifetime MUST NOT extend beyond the Lifetime originally granted" (3.8.2.2).
#[test]
fn a_request_that_comes_twice_is_answered_twice_and_lengthens_nothing() {
    let mut home = home();
    let request = request(1, at(0));
    ask(&mut home, &request, at(0));
    let again = ask(&mut home, &request, at(5_000));
    assert_eq!(
        (again.code, again.lifetime),
        (Code::Accepted, Lifetime(295))
    );
    assert_eq!(home.poll_timeout().unwrap().at, at(300_000));
}

#[test]
fn a_foreign_agent_with_a_key_has_to_prove_itself() {
    let mut home = agent_with(HomeAgentConfig {
        foreign: BTreeMap::from([(agent(1), foreign_home())]),
        ..home_config()
    });
    let without = ask(&mut home, &request(1, at(1)), at(1));
    assert_eq!(without.code, Code::HomeForeignAuthentication);
    let mut octets = signed(&request(1, at(1)));
    foreign_home().sign(&mut octets, Between::ForeignHome);
    home.handle_datagram(&arrival(agent(1), HOME_AGENT), &octets, at(1));
    let octets = datagrams(|| home.poll_transmit()).remove(0);
    let (reply, extensions) = Reply::parse(&octets).unwrap();
    assert_eq!(
        reply.code,
        Code::Accepted,
        "what was denied made nothing old"
    );
    assert!(
        foreign_home()
            .verify(extensions, Between::ForeignHome)
            .is_some()
    );
    // "When the home agent receives a deregistration request that does not contain" one (3.5.4).
    assert_eq!(
        ask(&mut home, &leaving(HOME, at(2)), at(2)).code,
        Code::Accepted
    );
}

#[test]
fn a_foreign_agent_that_proves_itself_with_an_unknown_key_is_dropped() {
    let mut home = home();
    let mut octets = signed(&request(1, at(0)));
    foreign_home().sign(&mut octets, Between::ForeignHome);
    home.handle_datagram(&arrival(agent(1), HOME_AGENT), &octets, at(0));
    assert_eq!(home.counters().dropped[&Dropped::StrangeForeign], 1);
    assert_eq!(home.poll_transmit(), None);
}
