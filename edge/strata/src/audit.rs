//! `strata audit`: prints the audit log from its file. Needs no daemon.

use crate::text::{clean, plural};
use config::Config;
use control::{AuditEvent, Failure, Permit, Record, Why};
use crypto::UnixTime;
use model::Identity;
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;
use terminal::{Exit, Output};

/// Which lines are wanted.
#[derive(Debug, clap::Args)]
pub struct Wanted {
    /// Configuration file, which names the audit log
    #[arg(default_value = config::DEFAULT_FILE)]
    file: PathBuf,
    /// Only records of this [peer.NAME] or [gateway.NAME]
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,
    /// Only records about this identity: a licensed node, or at a licensed node its gateway
    #[arg(long, value_name = "ID")]
    node: Option<String>,
    /// Only records of the last TIME: `90s`, `15m`, `2h` or `30d`
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Duration>,
}

/// Prints the selected lines of the audit log that the configuration names.
pub fn run(wanted: &Wanted, output: &Output) -> Exit {
    let config = match config::load(&wanted.file) {
        Ok(config) => config,
        Err(_) => {
            let message = format!("the configuration {} is not valid", wanted.file.display());
            let fix = format!(
                "run `strata check {}` to see the errors",
                wanted.file.display()
            );
            return output.fail(Exit::Usage, &Failure::new(message, fix));
        }
    };
    let lines = match lines(&config) {
        Ok(lines) => lines,
        Err((exit, failure)) => return output.fail(exit, &failure),
    };
    let since = wanted.since.map(|since| {
        let today = config::today();
        UnixTime(today.0.saturating_sub(since.as_secs())).rfc3339()
    });
    let (records, foreign) = read(&lines);
    let records: Vec<_> = records
        .into_iter()
        .filter(|record| is_wanted(record, wanted, since.as_deref()))
        .collect();
    match output.json {
        true => output.print_json(&json!({"audit": records, "unreadable": foreign}).to_string()),
        false => output.print(&table(&records, foreign)),
    }
    Exit::Done
}

/// Returns the contents of the audit log.
fn lines(config: &Config) -> Result<String, (Exit, Failure)> {
    let Some(audit) = &config.audit else {
        let message = "the configuration has no audit log";
        let fix =
            "add `file = \"/var/log/strata/audit.jsonl\"` to [audit], then run `strata reload`";
        return Err((Exit::No, Failure::new(message, fix)));
    };
    let octets = std::fs::read(&audit.file).map_err(|error| {
        let message = format!("cannot read {}: {error}", audit.file.display());
        let fix = "run as the user that owns the file; stratad creates it at its start";
        (Exit::No, Failure::new(message, fix))
    })?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

/// Parses the lines; returns the records and the number of lines that are not records.
fn read(lines: &str) -> (Vec<Record>, u64) {
    let lines = lines.lines().filter(|line| !line.is_empty());
    let (mut records, mut foreign) = (Vec::new(), 0);
    for line in lines {
        match Record::read(line) {
            Some(record) => records.push(record),
            None => foreign += 1,
        }
    }
    (records, foreign)
}

fn is_wanted(record: &Record, wanted: &Wanted, since: Option<&str>) -> bool {
    let named = |name: &String| [&record.peer, &record.gateway].contains(&&Some(name.clone()));
    let concerns = |node: &String| {
        let is_it = |name: &String| name.parse::<Identity>() == node.parse();
        record.licences.iter().any(|permit| is_it(&permit.node))
            || record.identity.as_ref().is_some_and(is_it)
    };
    wanted.peer.as_ref().is_none_or(named)
        && wanted.node.as_ref().is_none_or(concerns)
        && since.is_none_or(|since| record.time.as_str() >= since)
}

/// Formats one line per record. Writing to a `String` cannot fail.
fn table(records: &[Record], foreign: u64) -> String {
    let mut text = String::new();
    for record in records {
        let _ = writeln!(text, "{}", line(record));
    }
    if records.is_empty() {
        text.push_str("no matching records\n");
    }
    if foreign > 0 {
        let _ = writeln!(text, "{} could not be read", plural(foreign, "line"));
    }
    text
}

/// `2026-11-22T11:25:07Z  given       alice  fa.example.net  read headers  in 000000a1, out 000000b2`
fn line(record: &Record) -> String {
    let whose = record.peer.as_ref().or(record.gateway.as_ref());
    let whose = match (whose, &record.child) {
        (Some(peer), Some(child)) => format!("{peer}/{child}"),
        (Some(peer), None) => peer.clone(),
        (None, _) => String::new(),
    };
    let mut fields = vec![
        record.time.clone(),
        format!("{:<10}", event(record.event)),
        whose,
    ];
    fields.extend(record.identity.clone());
    fields.extend(record.licences.iter().map(|licence| match record.identity {
        Some(_) => may(licence),
        None => format!("{} {}", licence.node, may(licence)),
    }));
    if !record.opens.is_empty() {
        let zones: Vec<_> = record.opens.iter().map(u8::to_string).collect();
        fields.push(format!("zone {}", zones.join(", ")));
    }
    if let (Some(spi_in), Some(spi_out)) = (&record.spi_in, &record.spi_out) {
        fields.push(format!("in {spi_in}, out {spi_out}"));
    }
    fields.extend(record.until.iter().map(|until| format!("until {until}")));
    fields.extend(record.why.map(|why| self::why(why).to_owned()));
    fields.extend(record.reason.clone());
    clean(&fields.join("  ")).into_owned()
}

fn may(licence: &Permit) -> String {
    format!("{} {}", licence.right, licence.zones.join(" and "))
}

const fn event(event: AuditEvent) -> &'static str {
    match event {
        AuditEvent::Agreed => "agreed",
        AuditEvent::NotAgreed => "not agreed",
        AuditEvent::Given => "given",
        AuditEvent::Accepted => "accepted",
        AuditEvent::Held => "held",
        AuditEvent::Refused => "refused",
        AuditEvent::Revoked => "revoked",
        AuditEvent::Ended => "ended",
        AuditEvent::Expired => "expired",
        AuditEvent::Unencrypted => "unencrypted",
    }
}

const fn why(why: Why) -> &'static str {
    match why {
        Why::Rekey => "rekeyed",
        Why::Reload => "configuration changed",
        Why::Lifetime => "lifetime over",
        Why::Unbound => "registration over",
        Why::Moved => "path moved",
        Why::Down => "peer down",
        Why::NodeGone => "node disconnected",
    }
}

fn time(text: &str) -> Result<Duration, String> {
    const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
    let read = UNITS.iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        number.checked_mul(*seconds)
    });
    let read = read.map(Duration::from_secs);
    read.ok_or_else(|| "write a number and a unit, such as 90s, 15m, 2h or 30d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(peer: Option<&str>, node: Option<&str>) -> Wanted {
        Wanted {
            file: PathBuf::new(),
            peer: peer.map(str::to_owned),
            node: node.map(str::to_owned),
            since: None,
        }
    }

    fn record(event: AuditEvent) -> Record {
        Record {
            time: "2026-11-22T11:25:07Z".to_owned(),
            event,
            peer: Some("alice".to_owned()),
            identity: Some("fa.example.net".to_owned()),
            spi_in: Some("000000a1".to_owned()),
            spi_out: Some("000000b2".to_owned()),
            ..Record::default()
        }
    }

    fn given() -> Record {
        Record {
            licences: vec![Permit {
                node: "fa.example.net".to_owned(),
                zones: vec!["headers".to_owned()],
                right: "read".to_owned(),
                fields: Vec::new(),
            }],
            until: Some("2026-11-22T19:25:07Z".to_owned()),
            ..record(AuditEvent::Given)
        }
    }

    #[test]
    fn each_record_has_a_line_and_what_is_none_is_counted() {
        let agreed = Record {
            identity: None,
            child: Some("voice".to_owned()),
            ..given()
        };
        let agreed = Record {
            event: AuditEvent::Agreed,
            until: None,
            ..agreed
        };
        let ended = Record {
            why: Some(Why::Down),
            reason: Some("the peer \u{1b}[2J closed it".to_owned()),
            ..record(AuditEvent::Revoked)
        };
        let lines = [agreed, given(), ended].map(|record| record.to_line() + "\n");
        let (records, foreign) = read(&format!("{}\n{{\"time\":\n", lines.concat()));
        let expected = "\
2026-11-22T11:25:07Z  agreed      alice/voice  fa.example.net read headers  in 000000a1, out 000000b2
2026-11-22T11:25:07Z  given       alice  fa.example.net  read headers  in 000000a1, out 000000b2  until 2026-11-22T19:25:07Z
2026-11-22T11:25:07Z  revoked     alice  fa.example.net  in 000000a1, out 000000b2  peer down  the peer \\u{1b}[2J closed it
1 line could not be read
";
        assert_eq!(table(&records, foreign), expected);
        assert_eq!(table(&[], 0), "no matching records\n");
    }

    #[test]
    fn lines_are_chosen_by_peer_node_and_time() {
        let chosen = |peer, node, since| is_wanted(&given(), &wanted(peer, node), since);
        assert!(chosen(None, None, None));
        assert!(chosen(Some("alice"), Some("fa.example.net"), None));
        assert!(!chosen(Some("bob"), None, None));
        assert!(!chosen(None, Some("fb.example.net"), None));
        assert!(chosen(None, None, Some("2026-11-22T11:25:07Z")));
        assert!(!chosen(None, None, Some("2026-11-22T11:25:08Z")));
        let agreed = Record {
            identity: None,
            ..given()
        };
        assert!(is_wanted(
            &agreed,
            &wanted(None, Some("fa.example.net")),
            None
        ));
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(time("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(time("30d"), Ok(Duration::from_secs(30 * 86_400)));
        for wrong in ["", "2", "h", "-1h", "2 h", "99999999999999999999d", "2w"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
