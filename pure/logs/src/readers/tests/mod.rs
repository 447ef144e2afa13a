//! Samples of each format: how it is recognised, and the sessions that are read. The samples are
//! the seeds of the fuzzer. Those of FreeRADIUS and OpenVPN are from runs of them, and one of
//! charon is.

mod openvpn;
mod radius;

use super::*;
use crate::{Clock, Column, Columns, Logs, Octets, Session, Span, Zone};
use crypto::UnixTime;
use proptest::prelude::*;

/// 30 November 2026, 09:00:00 UTC.
const NINE: u64 = 1_796_029_200;

const CHARON: &str = include_str!("../../../../../fuzz/seeds/logs/charon.log");
const CHARON_FILE: &str = include_str!("../../../../../fuzz/seeds/logs/charon-file.log");
const DETAIL: &str = include_str!("../../../../../fuzz/seeds/logs/detail");
const ASA: &str = include_str!("../../../../../fuzz/seeds/logs/asa.log");
const OPENVPN: &str = include_str!("../../../../../fuzz/seeds/logs/openvpn.log");
const STATUS: &str = include_str!("../../../../../fuzz/seeds/logs/openvpn-status");
const STRATA: &str = include_str!("../../../../../fuzz/seeds/logs/strata.log");
const CSV: &str = include_str!("../../../../../fuzz/seeds/logs/sessions.csv");

/// Returns the sessions of a log, and the number of faults.
fn read(reader: Box<dyn Reader>, zone: Zone, text: &str) -> (Vec<Session>, u64) {
    let mut logs = Logs::new(reader, Clock::new(zone, UnixTime(NINE)), 100);
    let mut found = Vec::new();
    let mut out = |session| found.push(session);
    logs.read("a.log", text.as_bytes(), &mut out).unwrap();
    logs.finish(&mut out);
    (found, logs.faults().count())
}

fn sessions(format: Format, text: &str) -> Vec<Session> {
    let (found, faults) = read(format.reader(), Zone::UTC, text);
    assert_eq!(faults, 0, "{format:?}");
    found
}

/// Ann's session from nine to ten.
fn anns(gateway: &str, octets: bool) -> Session {
    Session {
        user: "ann".into(),
        gateway: gateway.into(),
        address: "192.0.2.1".parse().ok(),
        span: Span::Whole {
            begin: UnixTime(NINE),
            end: UnixTime(NINE + 3600),
        },
        octets: octets.then_some(Octets {
            received: 10,
            sent: 20,
        }),
    }
}

const SAMPLES: [(Format, &str); 7] = [
    (Format::Charon, CHARON),
    (Format::Detail, DETAIL),
    (Format::Asa, ASA),
    (Format::OpenVpn, OPENVPN),
    (Format::OpenVpnStatus, STATUS),
    (Format::Strata, STRATA),
    (Format::Csv, CSV),
];

#[test]
fn every_format_is_recognised_by_its_sample_only() {
    for (format, sample) in SAMPLES {
        assert_eq!(Format::detect(sample), Some(format), "{}", format.name());
        let others = Format::ALL.iter().filter(|other| **other != format);
        for other in others {
            let mut lines = sample.lines();
            assert!(
                !lines.any(|line| other.has(line)),
                "{format:?} as {other:?}"
            );
        }
    }
    assert_eq!(Format::detect("hello\nworld\n"), None);
}

/// strongSwan 5.9, which wrote to a file until it was killed.
#[test]
fn charon_has_the_sessions_that_it_accounts() {
    let found = sessions(Format::Charon, CHARON_FILE);
    let begin = UnixTime(1_796_056_836);
    let spans = [(0, 1), (3, 4), (6, 7)].map(|(from, to)| Span::Whole {
        begin: UnixTime(begin.0 + from),
        end: UnixTime(begin.0 + to),
    });
    let last = Span::NotEnded {
        begin: UnixTime(begin.0 + 8),
    };
    let found: Vec<_> = found.iter().map(|session| session.span).collect();
    assert_eq!(found, [&spans[..], &[last]].concat());
}

#[test]
fn a_session_of_charon_is_an_ike_sa_with_its_rekeys() {
    let found = sessions(Format::Charon, CHARON);
    let ann = Session {
        user: "C=CH, O=x, CN=ann".into(),
        span: Span::Whole {
            begin: UnixTime(NINE + 2),
            end: UnixTime(NINE + 3602),
        },
        ..anns("gw", false)
    };
    let bob = Session {
        user: "bob@example".into(),
        gateway: "gw".into(),
        address: "2001:db8::9".parse().ok(),
        span: Span::Whole {
            begin: UnixTime(NINE + 3),
            end: UnixTime(NINE + 1803),
        },
        octets: Some(Octets {
            received: 1000,
            sent: 2000,
        }),
    };
    assert_eq!(found, [bob, ann]);
}

/// The same lines from a file, and from the journal in the short ISO format.
#[test]
fn charon_writes_to_a_file_and_the_journal_too() {
    let times = |text: &str| {
        text.replace("Nov 30 ", "2026-11-30T")
            .replace(" gw ", "+0000 gw ")
    };
    let journal = times(CHARON).replace("charon:", "charon-systemd[712]:");
    assert_eq!(
        sessions(Format::Charon, &journal),
        sessions(Format::Charon, CHARON)
    );
    let file = CHARON.replace("gw charon: ", "");
    let found = sessions(Format::Charon, &file);
    assert_eq!((found.len(), &*found[0].gateway), (2, ""));
    let (none, faults) = read(
        Format::Charon.reader(),
        Zone::UTC,
        &CHARON.replace("Nov 30 ", ""),
    );
    assert_eq!((none.len(), faults), (0, 9));
}

#[test]
fn an_asa_ends_a_session_with_its_duration_and_octets() {
    let found = sessions(Format::Asa, ASA);
    assert_eq!(found[0], anns("asa1", true));
    let lasted = found[1].span.duration().unwrap().as_secs();
    assert_eq!((&*found[1].user, lasted), ("bob", 25 * 3600));
}

#[test]
fn a_peer_of_strata_is_up_and_down() {
    let expected = Session {
        address: None,
        ..anns("", false)
    };
    assert_eq!(sessions(Format::Strata, STRATA), [expected]);
    let journal = STRATA.replace("2026-11-30T", "Nov 30 10:00:00 gw stratad[7]: 2026-11-30T");
    assert_eq!(&*sessions(Format::Strata, &journal)[0].gateway, "gw");
}

#[test]
fn a_table_is_read_by_its_header() {
    let found = sessions(Format::Csv, CSV);
    assert_eq!(found[0], anns("192.0.2.2", true));
    let begin = UnixTime(NINE);
    assert_eq!(found[1].span, Span::NotEnded { begin });
}

#[test]
fn a_table_of_other_columns_is_read_by_a_map() {
    let text = "who,from,seconds,down,up\n\"ann \"\"a\"\"\",2026-11-30 11:00:00,3600,20,10\n";
    assert_eq!(Format::detect(text), None);
    let columns = Columns::default()
        .with("who", Column::User)
        .with("From", Column::Begin)
        .with("seconds", Column::Duration)
        .with("down", Column::Sent)
        .with("up", Column::Received);
    let zone = Zone::read("+02:00").unwrap();
    let (found, faults) = read(columns.reader(), zone, text);
    let expected = Session {
        user: "ann \"a\"".into(),
        address: None,
        ..anns("", true)
    };
    assert_eq!((found, faults), (vec![expected], 0));
}

#[test]
fn broken_rows_are_faults() {
    for row in [
        "ann,x,20",
        "ann,10,5",
        ",10,20",
        "ann,,",
        "\"ann,10,20",
        "\"ann\"x,10,20",
    ] {
        let text = format!("user,begin,end\n{row}\nbob,10,20\n");
        let (found, faults) = read(Format::Csv.reader(), Zone::UTC, &text);
        assert_eq!((found.len(), faults), (1, 1), "{row}");
    }
}

proptest! {
    /// Samples that are cut and joined anywhere: nothing fails, and no session ends before it
    /// begins.
    #[test]
    fn any_pieces_of_samples_are_read(
        format in 0..7_usize,
        pieces in proptest::collection::vec((0..7_usize, 0..2000_usize, 0..200_usize), 0..20),
    ) {
        let mut text = String::new();
        for (sample, from, length) in pieces {
            let sample = SAMPLES[sample].1;
            let from = from % sample.len();
            text.push_str(&sample[from..(from + length).min(sample.len())]);
        }
        let _ = Format::detect(&text);
        let (found, _) = read(Format::ALL[format].reader(), Zone::UTC, &text);
        for session in found {
            if let Span::Whole { begin, end } = session.span {
                prop_assert!(begin <= end);
            }
        }
    }
}

/// What a client chooses as its identity is in the logs of its gateway.
#[test]
fn the_words_of_a_client_are_neither_a_format_nor_a_session() {
    let at = "2026-11-30T09:26:17Z";
    let charon = format!("{at} gw charon: 04[IKE] IKE_SA a[1] established between ");
    let charon = charon + "192.0.2.1[gw]...203.0.113.7[ann]\n";
    let asa = format!("{at} gw charon: 05[CFG] looking for peer configs [%ASA-6-113039: x]\n");
    assert_eq!(
        Format::detect(&(asa + &charon + &charon)),
        Some(Format::Charon)
    );
    let victim = "IKE_SA a[9] established between 192.0.2.1[gw]...203.0.113.9[victim]";
    for (format, line) in [
        (
            Format::Charon,
            format!("{at} gw charon: 05[CFG] looking for [x 04[IKE] {victim}"),
        ),
        (
            Format::Strata,
            format!("{at} WARN peer mallory: down: it says x INFO peer alice: up"),
        ),
        (
            Format::OpenVpn,
            format!("{at} x Initialization Sequence Completed, says a client"),
        ),
    ] {
        let found = sessions(format, &line);
        assert!(
            found
                .iter()
                .all(|session| !["victim", "alice"].contains(&&*session.user)),
            "{line}"
        );
        assert!(found.is_empty(), "{line}: {found:?}");
    }
}
