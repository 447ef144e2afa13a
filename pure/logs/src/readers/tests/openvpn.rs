//! OpenVPN 2.6: a server on IPv4 and IPv6, whose clients roam, end, are killed, are replaced, and
//! give a wrong password.

use super::*;

const TCP: &str = include_str!("../../../../../fuzz/seeds/logs/openvpn-machine.log");
const STATUS_1: &str = include_str!("../../../../../fuzz/seeds/logs/openvpn-status-1");
const STATUS_3: &str = include_str!("../../../../../fuzz/seeds/logs/openvpn-status-3");

/// 30 November 2026, 16:25:02 UTC: the first client connects.
const FIRST: u64 = 1_796_055_902;

/// A client whose name has the marks that the formats use.
const EVE: &str = "eve/192.0.2.9:1 x, y";

fn session(user: &str, address: &str, begin: u64, end: Option<u64>) -> Session {
    let begin = UnixTime(begin);
    Session {
        user: user.into(),
        gateway: "".into(),
        address: address.parse().ok(),
        span: match end.map(UnixTime) {
            Some(end) => Span::Whole { begin, end },
            None => Span::NotEnded { begin },
        },
        octets: None,
    }
}

/// The sessions of the sample, in the order of their ends.
fn expected() -> [Session; 5] {
    let second = FIRST + 28;
    [
        session("bob smith", "2001:db8::9", FIRST, Some(FIRST + 6)),
        session("ann", "192.0.2.1", FIRST, Some(FIRST + 8)),
        session("ann", "192.0.2.77", second, Some(second)),
        session("ann", "192.0.2.77", second, Some(second + 1)),
        session(EVE, "192.0.2.9", second, Some(second + 1)),
    ]
}

#[test]
fn clients_have_sessions_from_their_admission_until_they_end_or_are_replaced() {
    assert_eq!(sessions(Format::OpenVpn, OPENVPN), expected());
}

#[test]
fn the_log_is_read_in_each_of_its_forms() {
    let at = |line: &str| {
        line.split_at_checked(20)
            .map(|(at, text)| (at.trim().to_owned(), text.to_owned()))
    };
    let form = |form: &dyn Fn(&str, &str) -> String| {
        let lines = OPENVPN.lines().filter_map(at);
        let text: String = lines.map(|(at, text)| form(&at, &text) + "\n").collect();
        assert_eq!(Format::detect(&text), Some(Format::OpenVpn), "{text}");
        sessions(Format::OpenVpn, &text)
    };
    let verbose = form(&|at, text| format!("{at} us=123456 {text}"));
    assert_eq!(verbose, expected());
    let old = |at: &str| at.replace("2026-11-30", "Mon Nov 30") + " 2026";
    assert_eq!(form(&|at, text| format!("{} {text}", old(at))), expected());
    let named = expected().map(|session| Session {
        gateway: "gw".into(),
        ..session
    });
    let journal = |at: &str| at.replace(' ', "T") + "+0000";
    assert_eq!(
        form(&|at, text| format!("{} gw openvpn[712]: {text}", journal(at))),
        named
    );
    let syslog = |at: &str| at.replace("2026-11-", "Nov ");
    assert_eq!(
        form(&|at, text| format!("<29>{} gw ovpn-server[7]: {text}", syslog(at))),
        named
    );
}

#[test]
fn connections_of_tcp_end_when_they_are_reset() {
    let found = sessions(Format::OpenVpn, TCP);
    let begin = 1_796_054_750;
    let expected = [
        session("ann", "192.0.2.1", begin, Some(begin + 1)),
        session("bob smith", "192.0.2.9", begin, Some(begin + 1)),
        session(EVE, "192.0.2.9", begin + 1, Some(begin + 2)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_server_that_was_killed_leaves_sessions_without_an_end() {
    let (whole, _) = OPENVPN.split_once("2026-11-30 16:25:31").unwrap();
    let up = "2026-11-30 16:30:00 Initialization Sequence Completed\n";
    let again = "2026-11-30 16:31:00 192.0.2.77:50609 [ann] Peer Connection Initiated with \
                 [AF_INET]192.0.2.77:50609\n";
    let found = sessions(Format::OpenVpn, &format!("{whole}{up}{again}"));
    let [.., ann, eve] = expected();
    let unended = |session: &Session| {
        let begin = session.span.begin().unwrap();
        Session {
            span: Span::NotEnded { begin },
            ..session.clone()
        }
    };
    let last = session("ann", "192.0.2.77", FIRST + 358, None);
    assert_eq!(found[3..], [unended(&ann), unended(&eve), last]);
}

#[test]
fn a_log_without_times_is_unreadable() {
    let text: String = OPENVPN
        .lines()
        .map(|line| line[20..].to_owned() + "\n")
        .collect();
    let (found, faults) = read(Format::OpenVpn.reader(), Zone::UTC, &text);
    assert_eq!((found.len(), faults), (0, 12));
}

/// What a client sends at each rekey is in the log of its server.
#[test]
fn the_words_of_a_client_end_no_session_of_another() {
    let ends = "ann/192.0.2.1:48259 SIGTERM[soft,remote-exit] received, client-instance exiting";
    let begins = "[ann] Peer Connection Initiated with [AF_INET]192.0.2.8:1";
    for words in [
        format!("192.0.2.8:1 peer info: UV_X={ends}"),
        format!("eve/192.0.2.8:1 peer info: UV_X={ends}"),
        format!("192.0.2.8:1 peer info: UV_X= {begins}"),
        format!("192.0.2.8:1 VERIFY OK: depth=0, CN=x {begins}"),
        format!("192.0.2.8:1 for username 'x {begins} for username 'x"),
        "x SIGTERM[hard,] received, process exiting".to_owned(),
        "x MULTI: new connection by client 'ann' will cause previous active sessions by this \
         client to be dropped."
            .to_owned(),
    ] {
        let mut lines: Vec<_> = OPENVPN.lines().collect();
        let line = format!("2026-11-30 16:25:03 {words}");
        let at = lines
            .iter()
            .position(|line| line.contains("16:25:04"))
            .unwrap();
        lines.insert(at, &line);
        assert_eq!(
            sessions(Format::OpenVpn, &lines.join("\n")),
            expected(),
            "{words}"
        );
    }
}

fn with_octets(session: Session, received: u64, sent: u64) -> Session {
    let octets = Some(Octets { received, sent });
    Session { octets, ..session }
}

/// The file is read twice, as it is written again and again.
#[test]
fn a_status_file_has_the_sessions_that_are_up_in_each_version() {
    let begin = 1_796_054_745;
    let one = [with_octets(
        session(EVE, "2001:db8::9", begin, None),
        1857,
        1836,
    )];
    let two = [
        with_octets(session(EVE, "192.0.2.9", FIRST, None), 1791, 1656),
        with_octets(session("bob smith", "2001:db8::9", FIRST, None), 1898, 1876),
        with_octets(session("ann", "192.0.2.1", FIRST, None), 1879, 1875),
    ];
    let three = [with_octets(
        session(EVE, "192.0.2.9", begin + 6, None),
        1877,
        1894,
    )];
    for (text, expected) in [(STATUS_1, &one[..]), (STATUS, &two), (STATUS_3, &three)] {
        assert_eq!(Format::detect(text), Some(Format::OpenVpnStatus), "{text}");
        assert_eq!(sessions(Format::OpenVpnStatus, text), expected);
        let twice = format!("{}{text}", text.replace("18", "10"));
        let found = sessions(Format::OpenVpnStatus, &twice);
        assert_eq!(found.len(), expected.len());
        assert_eq!(found.last(), expected.last());
    }
}

#[test]
fn a_client_that_has_not_proved_its_name_is_none_and_a_broken_line_is_a_fault() {
    let unknown = STATUS.replace("CLIENT_LIST,ann,", "CLIENT_LIST,UNDEF,");
    assert_eq!(sessions(Format::OpenVpnStatus, &unknown).len(), 2);
    for (what, broken) in [
        ("1879", "many"),
        (",1879,1875", ""),
        ("192.0.2.1:48259", "here"),
    ] {
        let text = STATUS.replace(what, broken);
        let (found, faults) = read(Format::OpenVpnStatus.reader(), Zone::UTC, &text);
        assert_eq!((found.len(), faults), (2, 1), "{what}");
    }
}
