//! `strata explain`: the last attempt, the proposals of both ends side by side, and the changes to
//! make.

use super::{state, status};
use crate::text::{Paint, clean, plural, span};
use control::{Account, Explain, Fix, Outcome, Row, Verdict, place_on};
use std::fmt::Write;

/// Limit on the width of a column. Longer cells shift the rest of their line.
const WIDEST: usize = 48;

/// Formats the answer. Writing to a `String` cannot fail, so results of `writeln!` are dropped.
pub fn show(explain: &Explain, paint: Paint) -> String {
    let name = paint.bold(&clean(&explain.peer));
    let mut text = format!("{name} {}\n", state(explain.state, paint));
    if let Some(lookup) = &explain.lookup {
        let (name, told) = (clean(&lookup.name), status::lookup(lookup));
        let _ = writeln!(text, "lookup of {name}: {told}");
    }
    for cause in &explain.local {
        let (what, fix) = (clean(&cause.what), clean(&cause.fix));
        let _ = writeln!(text, "{} {what}\nfix: {fix}", paint.bad("cause:"));
    }
    match &explain.attempt {
        Some(account) => show_account(&mut text, account, paint),
        None => text.push_str("no attempt since stratad started\n"),
    }
    if let Some(stranger) = &explain.stranger {
        let heading = paint.bold("an unidentified host was refused; it may have been this peer");
        let _ = writeln!(text, "\n{heading}");
        show_account(&mut text, stranger, paint);
    }
    for refused in &explain.refused_grants {
        let (node, reason) = (clean(&refused.node), clean(&refused.reason));
        let _ = writeln!(text, "\n{node} refused the keys: {reason}");
    }
    text
}

fn show_account(text: &mut String, account: &Account, paint: Paint) {
    let _ = writeln!(text, "{}", headline(account, paint));
    show_rows(text, &account.rows, paint);
    for remark in &account.remarks {
        let _ = writeln!(text, "{} {}", paint.doubtful("note:"), clean(remark));
    }
    for fix in &account.fixes {
        let _ = writeln!(text, "fix: {}", self::fix(fix));
    }
}

fn headline(account: &Account, paint: Paint) -> String {
    let direction = if account.initiator { "to" } else { "from" };
    let remote = place_on(account.remote, account.interface.as_deref());
    let ago = span(account.seconds_ago);
    let end = match account.outcome {
        Outcome::Up => paint.good("up"),
        Outcome::Trying => format!("{}, sent {}", paint.doubtful("in progress"), times(account)),
        Outcome::Failed => {
            let reason = account.reason.as_deref().unwrap_or("failed");
            paint.bad(&clean(reason))
        }
    };
    let tried = match (account.outcome, account.initiator) {
        (Outcome::Failed, true) => format!(", sent {}", times(account)),
        _ => String::new(),
    };
    format!("attempt {direction} {remote} {ago} ago{tried}: {end}")
}

fn times(account: &Account) -> String {
    plural(account.tries.into(), "time")
}

fn show_rows(text: &mut String, rows: &[Row], paint: Paint) {
    let cells: Vec<_> = rows
        .iter()
        .map(|row| {
            let theirs = row.theirs.as_deref().unwrap_or("-");
            [clean(&row.what), clean(&row.ours), clean(theirs)]
        })
        .collect();
    if cells.is_empty() {
        return;
    }
    let width = |column: usize, head: &str| {
        let widths = cells.iter().map(|row| row[column].chars().count());
        let widest = widths.chain([head.len()]).max().unwrap_or(0);
        widest.min(WIDEST)
    };
    let (what, ours, theirs) = (width(0, ""), width(1, "here"), width(2, "there"));
    let _ = writeln!(text, "  {:what$}  {:ours$}  there", "", "here");
    let mut wrong = rows.iter().position(is_wrong);
    for (index, (row, [a, b, c])) in rows.iter().zip(&cells).enumerate() {
        let mark = match (row.verdict, wrong.take_if(|first| *first == index)) {
            (Verdict::Differs, Some(_)) => paint.bad("  <== this differs"),
            (Verdict::Suspect, Some(_)) => paint.doubtful("  <== not sent by the peer; check this"),
            (Verdict::Differs, None) => paint.bad("  <- this differs too"),
            (Verdict::Fits | Verdict::Suspect | Verdict::Unknown, _) => String::new(),
        };
        let line = format!("  {a:what$}  {b:ours$}  {c:theirs$}{mark}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

const fn is_wrong(row: &Row) -> bool {
    matches!(row.verdict, Verdict::Differs | Verdict::Suspect)
}

fn fix(fix: &Fix) -> String {
    let change = clean(&fix.change);
    let Some(file) = &fix.file else {
        return format!("at the peer: {change}");
    };
    let line = fix.line.map_or_else(String::new, |line| format!(":{line}"));
    let key = fix
        .key
        .as_deref()
        .map_or_else(String::new, |key| format!(" ({})", clean(key)));
    format!("{}{line}{key}: {change}", clean(file))
}

#[cfg(test)]
mod tests {
    use super::super::tests::PLAIN;
    use super::*;
    use control::{Lookup, PeerState, RefusedGrant, Trouble};

    fn row(what: &str, ours: &str, theirs: Option<&str>, verdict: Verdict) -> Row {
        Row {
            what: what.to_owned(),
            ours: ours.to_owned(),
            theirs: theirs.map(str::to_owned),
            verdict,
        }
    }

    fn explain(evil: &str) -> Explain {
        let fix = |file: Option<&str>, change: &str| Fix {
            file: file.map(str::to_owned),
            line: file.map(|_| 12),
            key: file.map(|_| "peer.office.suite".to_owned()),
            change: change.to_owned(),
        };
        let attempt = Account {
            outcome: Outcome::Failed,
            reason: Some(format!("no suite in common{evil}")),
            seconds_ago: 75,
            initiator: true,
            remote: "192.0.2.1:500".parse().unwrap(),
            interface: None,
            tries: 16,
            rows: vec![
                row(
                    "IKE cipher",
                    "AES_GCM_16-128",
                    Some("AES_CBC-256"),
                    Verdict::Differs,
                ),
                row(
                    "key exchange",
                    "CURVE25519",
                    Some("CURVE25519"),
                    Verdict::Fits,
                ),
                row(
                    "IKE PRF",
                    "HMAC_SHA2_256",
                    Some("HMAC_SHA1"),
                    Verdict::Differs,
                ),
                row(
                    "peer identity",
                    &format!("gw{evil}"),
                    None,
                    Verdict::Unknown,
                ),
            ],
            remarks: vec![format!("zones{evil}")],
            fixes: vec![
                fix(Some("/etc/strata/strata.toml"), "write `suite = ...`"),
                fix(None, &format!("allow ours{evil}")),
            ],
        };
        Explain {
            peer: "office".to_owned(),
            state: PeerState::Down,
            lookup: Some(Lookup {
                name: "gw.example.net".to_owned(),
                asking: true,
                seconds_ago: Some(9),
                server: None,
                addresses: Vec::new(),
                failure: Some(format!("no answer{evil}")),
                tried: vec!["192.0.2.1".parse().unwrap()],
                last_up: Some("192.0.2.1".parse().unwrap()),
            }),
            stranger: Some(Account {
                outcome: Outcome::Trying,
                reason: None,
                initiator: false,
                rows: vec![row("authentication", "a", None, Verdict::Suspect)],
                remarks: Vec::new(),
                fixes: Vec::new(),
                ..attempt.clone()
            }),
            attempt: Some(attempt),
            local: vec![Trouble {
                task: "send".to_owned(),
                remote: None,
                what: format!("nothing can be sent{evil}"),
                fix: format!("connect this host to a network{evil}"),
                seconds: Some(3),
            }],
            refused_grants: vec![RefusedGrant {
                node: "fa.example.net".to_owned(),
                reason: format!("no{evil}"),
            }],
        }
    }

    #[test]
    fn both_ends_stand_side_by_side_and_the_first_mismatch_is_marked() {
        let expected = "\
office down
lookup of gw.example.net: no answer; tried 192.0.2.1; last up at 192.0.2.1, 9 s ago, asking again
cause: nothing can be sent
fix: connect this host to a network
attempt to 192.0.2.1:500 1 min 15 s ago, sent 16 times: no suite in common
                 here            there
  IKE cipher     AES_GCM_16-128  AES_CBC-256  <== this differs
  key exchange   CURVE25519      CURVE25519
  IKE PRF        HMAC_SHA2_256   HMAC_SHA1    <- this differs too
  peer identity  gw              -
note: zones
fix: /etc/strata/strata.toml:12 (peer.office.suite): write `suite = ...`
fix: at the peer: allow ours

an unidentified host was refused; it may have been this peer
attempt from 192.0.2.1:500 1 min 15 s ago: in progress, sent 16 times
                  here  there
  authentication  a     -      <== not sent by the peer; check this

fa.example.net refused the keys: no
";
        assert_eq!(show(&explain(""), PLAIN), expected);
    }

    // Weakness: 26
    #[test]
    fn nothing_a_peer_says_reaches_the_terminal_raw() {
        let shown = show(&explain("\x1b]0;x\x07\u{202e}"), PLAIN);
        assert!(!shown.contains(['\x1b', '\x07', '\u{202e}']), "{shown:?}");
    }
}
