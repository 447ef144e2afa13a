//! FreeRADIUS 3.2: four sessions that charon accounted before it was killed, in a detail file and
//! in the table of module `sql`.

use super::*;

const TABLE: &str = include_str!("../../../../../fuzz/seeds/logs/radacct.csv");

/// 30 November 2026, 16:40:36 UTC: the first record of a begin.
const FIRST: u64 = 1_796_056_836;

fn session(begin: u64, end: Option<u64>, octets: Option<[u64; 2]>) -> Session {
    let begin = UnixTime(FIRST + begin);
    Session {
        user: "ours.example".into(),
        gateway: "192.0.2.2".into(),
        address: "192.0.2.1".parse().ok(),
        span: match end.map(|end| UnixTime(FIRST + end)) {
            Some(end) => Span::Whole { begin, end },
            None => Span::NotEnded { begin },
        },
        octets: octets.map(|[received, sent]| Octets { received, sent }),
    }
}

/// The last three sessions, which both forms have alike but for octets that are not there yet.
fn later(octets: Option<[u64; 2]>) -> [Session; 3] {
    [
        session(3, Some(4), Some([684, 104_636])),
        session(6, Some(7), Some([736, 104_688])),
        session(8, None, octets),
    ]
}

const CARRIED: [u64; 2] = [1048, 104_636];

/// Returns the first session of detail files, and the number of faults.
fn first(text: &str) -> (Session, u64) {
    let (found, faults) = read(Format::Detail.reader(), Zone::UTC, text);
    (found.into_iter().next().unwrap(), faults)
}

/// The first session lasted for two seconds, says charon.
#[test]
fn accounting_has_sessions_with_octets() {
    let found = sessions(Format::Detail, DETAIL);
    let whole = Span::Whole {
        begin: UnixTime(FIRST - 1),
        end: UnixTime(FIRST + 1),
    };
    assert_eq!(found[0].span, whole);
    let [received, sent] = CARRIED;
    assert_eq!(found[0].octets, Some(Octets { received, sent }));
    assert_eq!(found[1..], later(None));
}

#[test]
fn octets_have_a_high_word_and_records_that_are_late_say_so() {
    let late = DETAIL.replace(
        "\tAcct-Input-Octets = 684\n",
        "\tAcct-Input-Octets = 684\n\tAcct-Input-Gigawords = 1\n\tAcct-Delay-Time = 1\n\
         \tEvent-Timestamp = \"Jan  1 1970 00:00:09 UTC\"\n",
    );
    let second = &sessions(Format::Detail, &late)[1];
    let received = 684 + (1 << 32);
    assert_eq!(second.octets.unwrap().received, received);
    let end = Span::Whole {
        begin: UnixTime(FIRST + 2),
        end: UnixTime(FIRST + 3),
    };
    assert_eq!(second.span, end);
}

#[test]
fn a_record_that_lacks_something_is_a_fault_and_the_next_one_is_read() {
    let broken = DETAIL.replacen("Acct-Session-Time = 2", "Acct-Session-Time = many", 1);
    let (found, faults) = read(Format::Detail.reader(), Zone::UTC, &broken);
    assert_eq!((found.len(), faults), (4, 1));
}

#[test]
fn a_record_that_is_cut_off_is_a_fault() {
    let (from, to) = (
        DETAIL.rfind("Mon Nov").unwrap(),
        DETAIL.rfind("\tTimestamp").unwrap(),
    );
    for length in from + 60..to {
        let (found, faults) = read(Format::Detail.reader(), Zone::UTC, &DETAIL[..length]);
        assert_eq!((found.len(), faults), (3, 1), "{length}");
    }
}

/// As FreeRADIUS writes the name `a"n \ né`, a tabulator and an octet that is no UTF-8.
#[test]
fn names_are_read_without_their_quotation_marks_and_escapes() {
    for (written, name) in [
        (r#""a\"n \\ né\t\377""#, "a\"n \\ né\t\u{fffd}"),
        (r#""\"""#, "\""),
        (r#""x\\""#, "x\\"),
        ("unquoted", "unquoted"),
    ] {
        let text = DETAIL.replace("\"ours.example\"", written);
        let (session, faults) = first(&text);
        assert_eq!((&*session.user, faults), (name, 0), "{written}");
    }
}

/// charon calls itself the same everywhere.
#[test]
fn gateways_have_addresses_and_otherwise_names() {
    let lines = DETAIL
        .lines()
        .filter(|line| !line.contains("NAS-IP-Address"));
    let text: String = lines.map(|line| line.to_owned() + "\n").collect();
    assert_eq!(&*first(&text).0.gateway, "strongSwan");
    let text = DETAIL.replace(
        "NAS-IP-Address = 192.0.2.2",
        "NAS-IPv6-Address = 2001:db8::2",
    );
    assert_eq!(&*first(&text).0.gateway, "2001:db8::2");
}

#[test]
fn a_gateway_that_starts_again_has_lost_its_sessions() {
    let on = "Mon Nov 30 16:50:00 2026\n\tAcct-Status-Type = Accounting-On\n\
              \tNAS-IP-Address = 192.0.2.2\n\tTimestamp = 1796057400\n\n";
    let found = sessions(Format::Detail, &format!("{DETAIL}{on}"));
    assert_eq!(found[1..], later(None));
}

/// The table as `sqlite3 -csv`, `mysql -B` and `psql --csv` print it.
#[test]
fn the_table_is_read_as_each_database_prints_it() {
    let mut expected = vec![session(0, Some(1), Some(CARRIED))];
    expected.extend(later(Some([0, 0])));
    assert_eq!(Format::detect(TABLE), Some(Format::Csv));
    assert_eq!(sessions(Format::Csv, TABLE), expected);
    let [mysql, psql] = [("\t", "NULL", ""), (",", "", "+00")].map(|form| {
        let (separator, null, zone) = form;
        let row = |line: &str| {
            let fields = line.split(',').map(|field| match field.trim_matches('"') {
                "" => null.to_owned(),
                time if time.starts_with("17960568") && !time.contains('-') => {
                    let time = UnixTime(time.parse().unwrap()).rfc3339();
                    time.replace('T', " ").replace('Z', zone)
                }
                field => field.to_owned(),
            });
            fields.collect::<Vec<_>>().join(separator) + "\n"
        };
        TABLE.lines().map(row).collect::<String>()
    });
    for text in [mysql, psql] {
        assert_eq!(Format::detect(&text), Some(Format::Csv), "{text}");
        assert_eq!(sessions(Format::Csv, &text), expected, "{text}");
    }
}

/// Module `sql` escapes what might matter in SQL.
#[test]
fn names_of_the_table_are_read_without_the_escapes_of_sql() {
    let text = TABLE.replace("ours.example", "\"C=3DCH, O=3Dx =22y=22, CN=3Dann\"");
    let found = sessions(Format::Csv, &text);
    assert_eq!(&*found[0].user, "C=CH, O=x \"y\", CN=ann");
    assert_eq!(found[0].address, "192.0.2.1".parse().ok());
    // Other tables have no such escapes.
    let other = TABLE
        .replace("acctuniqueid", "id")
        .replace("ours.example", "a=5B");
    assert_eq!(&*sessions(Format::Csv, &other)[0].user, "a=5B");
}

#[test]
fn an_end_at_the_time_zero_is_none() {
    let text = TABLE.replace(
        "1796056844,1796056844,,",
        "1796056844,,0000-00-00 00:00:00,",
    );
    assert_eq!(sessions(Format::Csv, &text)[3], later(Some([0, 0]))[2]);
}
