//! Any host on the visited link can send anything, with any address and from any station.

use super::*;
use wire::mobile_ip::{Notice, Step};

/// Another station on the link.
const OTHER: Station = Station([2, 0, 0, 0, 0, 9]);
/// The home agent of an attacker.
const FALSE_HOME_AGENT: Ipv4Addr = agent(9);

fn from_link(source: Ipv4Addr) -> Arrival {
    Arrival {
        interface: AIR,
        ttl: 255,
        ..arrival(source, agent(1))
    }
}

fn ask_from(foreign: &mut ForeignAgent, station: Station, request: &Request, now: Instant) {
    foreign.handle_nearby(&from_link(request.home), station, &signed(request), now);
}

fn accept(foreign: &mut ForeignAgent, request: &Request, now: Instant) {
    let reply = reply_signed(&Reply::to(request, Code::Accepted));
    let from = arrival(request.home_agent, agent(1));
    foreign.handle_datagram(&from, &reply, now);
}

/// Registers a visitor from this station.
fn registered_at(foreign: &mut ForeignAgent, station: Station, request: &Request, now: Instant) {
    ask_from(foreign, station, request, now);
    accept(foreign, request, now);
    datagrams(|| foreign.poll_transmit());
}

fn visited() -> ForeignAgent {
    let mut foreign = foreign();
    registered_at(&mut foreign, STATION, &request(1, at(0)), at(0));
    foreign.poll_event();
    foreign
}

/// The station in the last registration event.
fn told(foreign: &mut ForeignAgent) -> Option<Station> {
    match foreign.poll_event() {
        Some(ForeignEvent::Came(visitor) | ForeignEvent::Renewed(visitor)) => visitor.station,
        other => panic!("{other:?}"),
    }
}

/// The station that the last reply on the link was sent to.
fn answered_at(foreign: &mut ForeignAgent) -> Option<Station> {
    let transmits = std::iter::from_fn(|| foreign.poll_transmit());
    let stations = transmits.filter_map(|transmit| match transmit {
        Transmit::Udp { station, .. } => station,
        Transmit::Icmp { .. } => None,
    });
    stations.last()
}

/// Home agents that have any mobile nodes.
fn listed(home_agents: &[Ipv4Addr]) -> BTreeMap<Ipv4Addr, Vec<TrafficSelector>> {
    let listed = home_agents.iter().map(|agent| (*agent, Vec::new()));
    listed.collect()
}

fn home_agents(foreign: &ForeignAgent) -> Vec<Ipv4Addr> {
    foreign
        .visitors()
        .map(|visitor| visitor.home_agent)
        .collect()
}

fn dropped(foreign: &ForeignAgent, reason: Dropped) -> u64 {
    let dropped = &foreign.counters().dropped;
    dropped.get(&reason).copied().unwrap_or_default()
}

fn leaving(now: Instant) -> Request {
    Request {
        lifetime: Lifetime::NONE,
        ..request(1, now)
    }
}

// Weakness: 86
#[test]
fn what_agents_say_is_not_believed_from_the_link_of_visitors() {
    let mut foreign = visited();
    let forged = leaving(at(1));
    let mut octets = forged.encode();
    octets.extend([32, 6, 0, 0, 1, 2, 3, 4]);
    foreign.handle_nearby(&from_link(HOME), OTHER, &octets, at(1));
    let notice = Notice {
        step: Step::Told,
        lifetime: Lifetime::NONE,
        home: HOME,
        identification: 1,
    };
    for octets in [
        reply_signed(&Reply::to(&forged, Code::Accepted)),
        notice.encode(),
    ] {
        foreign.handle_nearby(&from_link(HOME_AGENT), OTHER, &octets, at(2));
    }
    assert_eq!(dropped(&foreign, Dropped::OtherInterface), 2);
    assert_eq!(foreign.visitors().count(), 1);
}

/// Otherwise there would be a visitor that no home agent has accepted.
// Weakness: 86
#[test]
fn a_reply_from_the_link_of_visitors_grants_nothing() {
    let mut foreign = foreign();
    let asked = request(1, at(0));
    ask_from(&mut foreign, OTHER, &asked, at(0));
    let forged = reply_signed(&Reply::to(&asked, Code::Accepted));
    foreign.handle_nearby(&from_link(HOME_AGENT), OTHER, &forged, at(1));
    assert_eq!(foreign.visitors().count(), 0);
    accept(&mut foreign, &asked, at(2));
    assert_eq!(foreign.visitors().count(), 1);
}

#[test]
fn an_accepted_reply_ends_a_visit_only_if_its_own_lifetime_is_none() {
    let mut foreign = visited();
    let asked = leaving(at(1));
    let granted = Reply {
        lifetime: Lifetime(300),
        ..Reply::to(&asked, Code::Accepted)
    };
    ask_from(&mut foreign, STATION, &asked, at(1));
    datagrams(|| foreign.poll_transmit());
    answer(&mut foreign, &reply_signed(&granted), at(1));
    let told = only_reply(|| foreign.poll_transmit());
    assert_eq!(told.code, Code::ForeignPoorlyFormedReply);
    assert_eq!(foreign.visitors().count(), 1);
    registered_at(&mut foreign, STATION, &leaving(at(2)), at(2));
    assert_eq!(foreign.visitors().count(), 0);
}

/// Section 3.7.3.2: a lifetime of zero counts, whatever the request was for.
// Weakness: 86
#[test]
fn a_visit_ends_with_a_reply_that_grants_no_time() {
    let mut foreign = visited();
    let renewal = request(1, at(1));
    let none = Reply {
        lifetime: Lifetime::NONE,
        ..Reply::to(&renewal, Code::Accepted)
    };
    ask_from(&mut foreign, STATION, &renewal, at(1));
    answer(&mut foreign, &reply_signed(&none), at(1));
    assert_eq!(foreign.visitors().count(), 0);
}

#[test]
fn a_home_agent_need_not_prove_itself_only_where_somebody_leaves_or_is_denied_that() {
    for (lifetime, code, unproved, visitors) in [
        (Lifetime(300), Code::Accepted, 1, 1),
        (Lifetime(300), Code::HomeProhibited, 0, 1),
        (Lifetime::NONE, Code::Accepted, 0, 0),
    ] {
        let mut foreign = foreign_with(ForeignAgentConfig {
            home_keys: BTreeMap::from([(HOME_AGENT, foreign_home())]),
            ..foreign_config(1)
        });
        let asked = request(1, at(0));
        ask_from(&mut foreign, STATION, &asked, at(0));
        let mut proved = reply_signed(&Reply::to(&asked, Code::Accepted));
        foreign_home().sign(&mut proved, Between::ForeignHome);
        answer(&mut foreign, &proved, at(0));
        let asked = leaving(at(1));
        ask_from(&mut foreign, STATION, &asked, at(1));
        let reply = Reply {
            lifetime,
            ..Reply::to(&asked, code)
        };
        answer(&mut foreign, &reply_signed(&reply), at(1));
        assert_eq!(dropped(&foreign, Dropped::NotAuthenticForeign), unproved);
        assert_eq!(foreign.visitors().count(), visitors, "{code}");
    }
}

// Homes.

// Weakness: 86
#[test]
fn nobody_is_at_home_where_the_host_or_an_agent_is() {
    let config = ForeignAgentConfig {
        care_of: agent(2),
        home_agents: listed(&[HOME_AGENT, agent(3)]),
        home_keys: BTreeMap::from([(agent(4), foreign_home())]),
        neighbours: BTreeMap::from([(agent(5), between_agents())]),
        ..foreign_config(1)
    };
    let mut foreign = foreign_with(config);
    foreign.set_reserved(vec![network(agent(6), 32)]);
    let asked = Request {
        care_of: agent(2),
        ..request(1, at(0))
    };
    for number in 1..=6 {
        let home = agent(number);
        ask_from(&mut foreign, OTHER, &Request { home, ..asked }, at(0));
        let denied = only_reply(|| foreign.poll_transmit());
        assert_eq!(denied.code, Code::ForeignProhibited, "{home}");
    }
    ask_from(
        &mut foreign,
        OTHER,
        &Request {
            home: HOME_AGENT,
            ..asked
        },
        at(0),
    );
    let denied = only_reply(|| foreign.poll_transmit());
    assert_eq!(denied.code, Code::ForeignProhibited);
    ask_from(&mut foreign, STATION, &asked, at(0));
    assert_eq!(datagrams(|| foreign.poll_transmit()), [signed(&asked)]);
}

/// Waits until an open claim is denied. Returns the code.
fn refused(foreign: &mut ForeignAgent, now: Instant) -> Code {
    datagrams(|| foreign.poll_transmit());
    foreign.handle_timeout(now + Duration::from_millis(2_499));
    assert!(
        datagrams(|| foreign.poll_transmit())
            .iter()
            .all(|octets| Reply::parse(octets).is_err())
    );
    foreign.handle_timeout(now + Duration::from_millis(2_500));
    let replies = datagrams(|| foreign.poll_transmit());
    let mut replies = replies
        .iter()
        .filter_map(|octets| Reply::parse(octets).ok());
    replies.next().unwrap().0.code
}

/// Otherwise packets for the home agent would go to the attacker. Its home agent accepts the
/// request, but no packet for the address comes from there.
// Weakness: 86
#[test]
fn nobody_is_at_home_where_the_home_agent_of_another_is() {
    let taking = Request {
        home: HOME_AGENT,
        home_agent: FALSE_HOME_AGENT,
        ..request(1, at(1))
    };
    let mut foreign = visited();
    ask_from(&mut foreign, OTHER, &taking, at(1));
    accept(&mut foreign, &taking, at(1));
    assert_eq!(
        refused(&mut foreign, at(1)),
        Code::ForeignHomeAuthentication
    );
    assert_eq!(home_agents(&foreign), [HOME_AGENT]);
}

/// A station of the link is there first, with a home agent of its own. It is refused once the home
/// agent has a mobile node here.
// Weakness: 145
#[test]
fn a_station_with_the_address_of_a_home_agent_keeps_none_of_its_mobile_nodes_out() {
    let mut foreign = foreign();
    let taking = |seconds| Request {
        home: HOME_AGENT,
        home_agent: FALSE_HOME_AGENT,
        ..request(1, at(seconds))
    };
    registered_at(&mut foreign, OTHER, &taking(0), at(0));
    registered_at(&mut foreign, STATION, &request(1, at(1)), at(1));
    let at_home = |foreign: &ForeignAgent| {
        let visitors = foreign.visitors().map(|visitor| visitor.home);
        visitors.collect::<Vec<_>>()
    };
    assert!(at_home(&foreign).contains(&HOME));
    ask_from(&mut foreign, OTHER, &taking(2), at(2));
    accept(&mut foreign, &taking(2), at(2));
    assert_eq!(
        refused(&mut foreign, at(2)),
        Code::ForeignHomeAuthentication
    );
    foreign.handle_timeout(at(300_000));
    assert_eq!(at_home(&foreign), [HOME]);
}

#[test]
fn the_place_of_a_home_agent_is_not_taken_by_who_has_asked_first_and_is_answered_last() {
    let mut foreign = foreign();
    let taking = Request {
        home: HOME_AGENT,
        home_agent: FALSE_HOME_AGENT,
        ..request(1, at(0))
    };
    ask_from(&mut foreign, OTHER, &taking, at(0));
    registered_at(&mut foreign, STATION, &request(1, at(1)), at(1));
    accept(&mut foreign, &taking, at(2));
    assert_eq!(
        refused(&mut foreign, at(2)),
        Code::ForeignHomeAuthentication
    );
    assert_eq!(home_agents(&foreign), [HOME_AGENT]);
}

/// Any host can send a request with any address as its home agent's.
#[test]
fn who_is_called_a_home_agent_by_a_stranger_is_not_kept_away() {
    let mut foreign = foreign();
    let calling = Request {
        home: Ipv4Addr::new(10, 66, 0, 8),
        home_agent: HOME,
        ..request(1, at(0))
    };
    ask_from(&mut foreign, OTHER, &calling, at(0));
    datagrams(|| foreign.poll_transmit());
    let asked = request(1, at(1));
    ask_from(&mut foreign, STATION, &asked, at(1));
    assert_eq!(datagrams(|| foreign.poll_transmit()), [signed(&asked)]);
}

#[test]
fn who_is_at_home_where_the_host_itself_comes_to_be_has_left() {
    let mut foreign = visited();
    foreign.set_reserved(vec![network(HOME, 32)]);
    assert!(matches!(foreign.poll_event(), Some(ForeignEvent::Left(_))));
    assert_eq!(foreign.visitors().count(), 0);
}

/// The address may become reserved while the request is pending.
#[test]
fn who_is_granted_an_address_that_is_the_hosts_by_then_is_denied_it() {
    let mut foreign = foreign();
    let asked = request(1, at(0));
    ask_from(&mut foreign, STATION, &asked, at(0));
    datagrams(|| foreign.poll_transmit());
    foreign.set_reserved(vec![network(HOME, 32)]);
    accept(&mut foreign, &asked, at(1));
    let denied = only_reply(|| foreign.poll_transmit());
    assert_eq!(denied.code, Code::ForeignProhibited);
    assert_eq!(foreign.visitors().count(), 0);
}

// Stations.

/// A mobile node with two interfaces registers again through the other one.
#[test]
fn a_visitor_is_at_the_station_of_the_request_that_was_granted_last() {
    let mut foreign = foreign();
    for (millis, station) in [(0, STATION), (1, OTHER), (2, STATION)] {
        let asked = request(1, at(millis));
        ask_from(&mut foreign, station, &asked, at(millis));
        accept(&mut foreign, &asked, at(millis));
        assert_eq!(told(&mut foreign), Some(station));
        assert_eq!(
            answered_at(&mut foreign),
            Some(station),
            "and has the reply there"
        );
    }
}

/// Neither an unanswered request nor a malformed message moves a visitor.
// Weakness: 86
#[test]
fn what_comes_in_a_visitors_name_while_it_is_asked_for_does_not_move_it() {
    let mut foreign = foreign();
    let asked = request(1, at(0));
    ask_from(&mut foreign, STATION, &asked, at(0));
    ask_from(&mut foreign, OTHER, &request(1, at(1)), at(1));
    for octets in [&[][..], &[1], &[200; 30]] {
        foreign.handle_nearby(&from_link(HOME), OTHER, octets, at(1));
    }
    accept(&mut foreign, &asked, at(2));
    assert_eq!(told(&mut foreign), Some(STATION));
    assert_eq!(answered_at(&mut foreign), Some(STATION));
}

#[test]
fn a_copy_of_the_request_that_was_granted_moves_nobody() {
    let mut foreign = visited();
    let copy = request(1, at(0));
    ask_from(&mut foreign, OTHER, &copy, at(1));
    accept(&mut foreign, &copy, at(1));
    assert_eq!(told(&mut foreign), Some(STATION));
}

#[test]
fn however_many_ask_who_is_served_has_a_station() {
    let mut foreign = foreign();
    let asked = request(1, at(0));
    ask_from(&mut foreign, STATION, &asked, at(0));
    for number in 0..2_000_u32 {
        let stranger = Request {
            home: Ipv4Addr::from_bits(0x0a42_1000 + number),
            ..request(1, at(1))
        };
        ask_from(&mut foreign, OTHER, &stranger, at(1));
    }
    accept(&mut foreign, &asked, at(2));
    assert_eq!(told(&mut foreign), Some(STATION));
}

// Lookalikes.

/// The two requests would match the same reply.
// Weakness: 86
#[test]
fn a_request_that_looks_like_one_that_waits_does_not_take_its_place() {
    let mut foreign = visited();
    let renewal = request(1, at(1));
    ask_from(&mut foreign, STATION, &renewal, at(1));
    datagrams(|| foreign.poll_transmit());
    let other_half = renewal.identification ^ 1 << 32;
    for (station, lookalike) in [
        (STATION, leaving(at(1))),
        (
            STATION,
            Request {
                identification: other_half,
                ..renewal
            },
        ),
        (OTHER, renewal),
    ] {
        ask_from(&mut foreign, station, &lookalike, at(2));
    }
    assert_eq!(dropped(&foreign, Dropped::NotAuthenticMobile), 3);
    assert!(datagrams(|| foreign.poll_transmit()).is_empty());
    accept(&mut foreign, &renewal, at(3));
    assert_eq!(told(&mut foreign), Some(STATION));
    let until = at(3) + Duration::from_secs(300);
    assert_eq!(foreign.until(HOME), Some(until));
}

#[test]
fn a_request_that_is_repeated_unchanged_is_passed_on_again() {
    let mut foreign = foreign();
    let asked = request(1, at(0));
    for millis in [0, 1_000] {
        ask_from(&mut foreign, STATION, &asked, at(millis));
        let sent = datagrams(|| foreign.poll_transmit());
        assert_eq!(sent, [signed(&asked)]);
    }
    assert_eq!(dropped(&foreign, Dropped::NotAuthenticMobile), 0);
}

// Room.

fn home(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a42_1000 + number)
}

/// Any station can name any mobile node, and can send requests faster than its home agent answers.
// Weakness: 113
#[test]
fn requests_of_a_station_push_out_none_of_another() {
    let mut foreign = foreign();
    let asked = request(1, at(0));
    ask_from(&mut foreign, STATION, &asked, at(0));
    for millis in 1..=20 {
        ask_from(&mut foreign, OTHER, &request(1, at(millis)), at(millis));
    }
    accept(&mut foreign, &asked, at(30));
    assert_eq!(told(&mut foreign), Some(STATION));
}

// Weakness: 113
#[test]
fn a_station_has_a_share_of_what_waits_and_a_newcomer_finds_room() {
    let mut foreign = foreign_with(ForeignAgentConfig {
        pending: 64,
        ..foreign_config(1)
    });
    let of_other = |number| Request {
        home: home(number),
        ..request(1, at(number.into()))
    };
    for number in 0..100 {
        ask_from(&mut foreign, OTHER, &of_other(number), at(number.into()));
    }
    datagrams(|| foreign.poll_transmit());
    let asked = request(1, at(100));
    ask_from(&mut foreign, STATION, &asked, at(100));
    assert_eq!(datagrams(|| foreign.poll_transmit()), [signed(&asked)]);
    (0..100).for_each(|number| accept(&mut foreign, &of_other(number), at(101)));
    assert_eq!(foreign.visitors().count(), 8, "the first of them");
    assert_eq!(dropped(&foreign, Dropped::Unsolicited), 92);
}

/// One of some stations on the link, or a forged address of one.
fn numbered(number: u32) -> Station {
    let [.., high, low] = number.to_be_bytes();
    Station([2, 0, 0, 1, high, low])
}

/// A request for one of many mobile nodes.
fn for_home(number: u32) -> Request {
    Request {
        home: home(number),
        ..request(1, at(number.into()))
    }
}

/// An agent at which this many requests wait, each station's share full.
fn full(stations: u32, each: u32) -> ForeignAgent {
    let mut foreign = foreign_with(ForeignAgentConfig {
        pending: 64,
        visitors: 100,
        ..foreign_config(1)
    });
    for number in 0..stations * each {
        let asked = for_home(number);
        ask_from(&mut foreign, numbered(number / each), &asked, at(0));
    }
    assert_eq!(datagrams(|| foreign.poll_transmit()).len(), 64);
    foreign
}

/// A station forges its address.
// Weakness: 113
#[test]
fn stations_that_fill_what_waits_leave_room_for_another() {
    for (stations, each) in [(8, 8), (64, 1)] {
        let mut foreign = full(stations, each);
        let asked = request(1, at(100));
        ask_from(&mut foreign, STATION, &asked, at(100));
        assert_eq!(datagrams(|| foreign.poll_transmit()), [signed(&asked)]);
        assert_eq!(dropped(&foreign, Dropped::GaveWay), 1);
        // More of them take the places of each other.
        for number in 100..130 {
            ask_from(&mut foreign, numbered(number), &for_home(number), at(101));
        }
        accept(&mut foreign, &asked, at(102));
        let served = foreign.visitors().map(|visitor| visitor.station);
        assert_eq!(served.collect::<Vec<_>>(), [Some(STATION)]);
    }
    // Control: a station that has its share gets no other's place.
    let mut foreign = full(8, 8);
    ask_from(&mut foreign, numbered(3), &for_home(200), at(100));
    let denied = only_reply(|| foreign.poll_transmit());
    assert_eq!(denied.code, Code::ForeignResources);
    assert_eq!(dropped(&foreign, Dropped::GaveWay), 0);
}

/// A visitor renews its registration meanwhile.
// Weakness: 113
#[test]
fn the_request_of_a_visitor_outlasts_those_of_any_number_of_stations() {
    let mut foreign = foreign_with(ForeignAgentConfig {
        pending: 64,
        ..foreign_config(1)
    });
    registered_at(&mut foreign, STATION, &request(1, at(0)), at(0));
    let renewal = request(1, at(1_000));
    ask_from(&mut foreign, STATION, &renewal, at(1_000));
    for number in 0..200 {
        ask_from(&mut foreign, numbered(number), &for_home(number), at(1_001));
    }
    assert_eq!(dropped(&foreign, Dropped::GaveWay), 137);
    foreign.poll_event();
    accept(&mut foreign, &renewal, at(1_002));
    assert_eq!(told(&mut foreign), Some(STATION));
    // Its next one replaces one of theirs.
    let renewal = request(1, at(1_500));
    ask_from(&mut foreign, numbered(500), &for_home(500), at(1_500));
    ask_from(&mut foreign, STATION, &renewal, at(1_500));
    accept(&mut foreign, &renewal, at(1_501));
    assert_eq!(told(&mut foreign), Some(STATION));
    // Whose station only names it is a newcomer like any other.
    let asked = request(1, at(2_000));
    ask_from(&mut foreign, OTHER, &asked, at(2_000));
    for number in 300..400 {
        ask_from(&mut foreign, numbered(number), &for_home(number), at(2_001));
    }
    accept(&mut foreign, &asked, at(2_002));
    assert_eq!(dropped(&foreign, Dropped::Unsolicited), 1);
}

/// Registers visitors of a home agent, this many at each of some stations.
fn fill(foreign: &mut ForeignAgent, agent: Ipv4Addr, stations: &[u32], each: u32) {
    for station in stations {
        for number in 0..each {
            let asked = Request {
                home_agent: agent,
                ..for_home(station * 100 + number)
            };
            registered_at(foreign, numbered(*station), &asked, at(0));
        }
    }
}

fn is_busy(foreign: &mut ForeignAgent, now: Instant) -> bool {
    foreign.handle_timeout(now);
    let sent = std::iter::from_fn(|| foreign.poll_transmit());
    let last = sent.filter_map(|transmit| match transmit {
        Transmit::Icmp { octets, .. } => Advertisement::parse(&octets).ok()?.agent,
        Transmit::Udp { .. } => None,
    });
    last.last().unwrap().flags.has(AgentFlags::BUSY)
}

// Weakness: 113
#[test]
fn stations_with_many_visitors_leave_places_and_those_with_one_keep_it() {
    let with = |stations: &[u32], each| {
        let mut foreign = foreign_with(ForeignAgentConfig {
            visitors: 16,
            home_agents: listed(&[HOME_AGENT]),
            ..foreign_config(1)
        });
        fill(&mut foreign, HOME_AGENT, stations, each);
        assert_eq!(foreign.visitors().count(), 16);
        let is_busy = is_busy(&mut foreign, at(2_000));
        // Without the home agent's answer nobody leaves.
        ask_from(&mut foreign, STATION, &request(1, at(2_000)), at(2_000));
        assert_eq!(foreign.visitors().count(), 16);
        accept(&mut foreign, &request(1, at(2_000)), at(2_000));
        let visitors: Vec<_> = foreign.visitors().collect();
        assert_eq!(visitors.len(), 16);
        let is_served = visitors.iter().any(|visitor| visitor.home == HOME);
        (is_busy, is_served, dropped(&foreign, Dropped::GaveWay))
    };
    assert_eq!(with(&[0, 1], 8), (false, true, 1));
    let each: Vec<_> = (0..16).collect();
    assert_eq!(with(&each, 1), (true, false, 0));
}

/// Home agents with a key have accepted most visitors. One without a key accepts everything.
// Weakness: 113
#[test]
fn a_visitor_with_a_key_leaves_no_place_to_one_without() {
    let mut foreign = foreign_with(ForeignAgentConfig {
        visitors: 18,
        home_agents: listed(&[HOME_AGENT, FALSE_HOME_AGENT]),
        home_keys: BTreeMap::from([(HOME_AGENT, foreign_home())]),
        ..foreign_config(1)
    });
    let accept_keyed = |foreign: &mut ForeignAgent, asked: &Request| {
        let mut reply = reply_signed(&Reply::to(asked, Code::Accepted));
        foreign_home().sign(&mut reply, Between::ForeignHome);
        foreign.handle_datagram(&arrival(HOME_AGENT, agent(1)), &reply, at(2));
    };
    for number in 0..15 {
        let asked = for_home(number);
        ask_from(&mut foreign, numbered(number / 8), &asked, at(2));
        accept_keyed(&mut foreign, &asked);
    }
    fill(&mut foreign, FALSE_HOME_AGENT, &[50, 51, 52], 1);
    assert_eq!(foreign.visitors().count(), 18);
    let newcomer = Request {
        home_agent: FALSE_HOME_AGENT,
        ..for_home(900)
    };
    registered_at(&mut foreign, OTHER, &newcomer, at(1));
    let homes = |foreign: &ForeignAgent| {
        let homes = foreign.visitors().map(|visitor| visitor.home);
        homes.collect::<Vec<_>>()
    };
    assert!(!homes(&foreign).contains(&home(900)));
    assert_eq!(dropped(&foreign, Dropped::GaveWay), 0);
    // With a key there is a place: that of the first at the station with the most.
    let newcomer = for_home(901);
    ask_from(&mut foreign, OTHER, &newcomer, at(2));
    accept_keyed(&mut foreign, &newcomer);
    let homes = homes(&foreign);
    assert!(homes.contains(&home(901)) && !homes.contains(&home(0)));
    assert_eq!(homes.len(), 18);
}

// Weakness: 113
#[test]
fn a_station_has_a_few_visitors_and_the_others_find_room() {
    let mut foreign = foreign_with(ForeignAgentConfig {
        visitors: 1000,
        ..foreign_config(1)
    });
    for number in 0..1000 {
        let asked = Request {
            home: home(number),
            ..request(1, at(number.into()))
        };
        registered_at(&mut foreign, OTHER, &asked, at(number.into()));
    }
    assert_eq!(foreign.visitors().count(), 8);
    let resources = foreign.counters().denied[&Code::ForeignResources];
    assert_eq!(resources, 992);
    registered_at(&mut foreign, STATION, &request(1, at(2_000)), at(2_000));
    assert_eq!(foreign.visitors().count(), 9);
    // A visitor that registers again from another station does not raise the total.
    let second = Request {
        home: home(1),
        ..request(1, at(3_000))
    };
    registered_at(&mut foreign, STATION, &second, at(3_000));
    assert_eq!(foreign.visitors().count(), 9);
}

/// An agent with forty places that lists these home agents. One of them accepts all requests, and
/// can have them sent from any number of stations.
fn crowded(home_agents: &[Ipv4Addr]) -> ForeignAgent {
    let mut foreign = foreign_with(ForeignAgentConfig {
        visitors: 40,
        home_agents: listed(home_agents),
        ..foreign_config(1)
    });
    for number in 0..100 {
        let asked = Request {
            home: home(number),
            home_agent: FALSE_HOME_AGENT,
            ..request(1, at(number.into()))
        };
        let station = Station([2, 0, 0, 0, 1, number as u8]);
        registered_at(&mut foreign, station, &asked, at(number.into()));
    }
    foreign
}

// Weakness: 113
#[test]
fn a_home_agent_that_is_not_listed_has_a_share_of_the_visitors() {
    for (home_agents, expected) in [(&[][..], 10), (&[FALSE_HOME_AGENT], 40)] {
        assert_eq!(crowded(home_agents).visitors().count(), expected);
    }
}

// Weakness: 128
#[test]
fn a_home_agent_that_fills_the_list_of_visitors_leaves_another_its_places() {
    let mut foreign = crowded(&[FALSE_HOME_AGENT, HOME_AGENT]);
    assert_eq!(foreign.visitors().count(), 35);
    registered_at(&mut foreign, STATION, &request(1, at(2_000)), at(2_000));
    let mut visitors = foreign.visitors();
    assert!(visitors.any(|visitor| visitor.home_agent == HOME_AGENT));
    assert_eq!(foreign.visitors().count(), 36);
}

// Weakness: 86
// Weakness: 112
#[test]
fn nobody_is_at_home_where_visitors_may_not_be_or_the_host_has_a_network() {
    let mut foreign = foreign_with(ForeignAgentConfig {
        homes: vec![network(HOME, 16), network(agent(0), 24)],
        ..foreign_config(1)
    });
    foreign.set_reserved(vec![network(agent(0), 24)]);
    let refused = [Ipv4Addr::new(10, 67, 0, 7), agent(8)];
    for home in refused {
        let asked = Request {
            home,
            ..request(1, at(0))
        };
        ask_from(&mut foreign, OTHER, &asked, at(0));
        let denied = only_reply(|| foreign.poll_transmit());
        assert_eq!(denied.code, Code::ForeignProhibited, "{home}");
    }
    registered_at(&mut foreign, STATION, &request(1, at(1)), at(1));
    assert_eq!(foreign.visitors().count(), 1);
}

// Weakness: 136
#[test]
fn a_listed_home_agent_does_not_vouch_for_mobile_nodes_of_another() {
    let (customers, elsewhere) = (network(HOME, 16), network(Ipv4Addr::new(10, 67, 0, 0), 16));
    // The other home agent names networks of its own, or none.
    for of_other in [vec![elsewhere.clone()], vec![]] {
        let mut foreign = foreign_with(ForeignAgentConfig {
            home_agents: BTreeMap::from([
                (HOME_AGENT, vec![customers.clone()]),
                (FALSE_HOME_AGENT, of_other),
            ]),
            ..foreign_config(1)
        });
        let taking = Request {
            home_agent: FALSE_HOME_AGENT,
            ..request(1, at(0))
        };
        ask_from(&mut foreign, OTHER, &taking, at(0));
        let denied = only_reply(|| foreign.poll_transmit());
        assert_eq!(denied.code, Code::ForeignProhibited);
        let own = Request {
            home: Ipv4Addr::new(10, 67, 0, 8),
            ..taking
        };
        registered_at(&mut foreign, OTHER, &own, at(1));
        registered_at(&mut foreign, STATION, &request(1, at(2)), at(2));
        assert_eq!(home_agents(&foreign), [HOME_AGENT, FALSE_HOME_AGENT]);
        // Nor does the other one vouch for those of the first.
        let beyond = Request {
            home: Ipv4Addr::new(10, 67, 0, 9),
            ..request(1, at(3))
        };
        ask_from(&mut foreign, OTHER, &beyond, at(3));
        let denied = only_reply(|| foreign.poll_transmit());
        assert_eq!(denied.code, Code::ForeignProhibited);
    }
}
