//! `strata ping`: how many pings came back, and where the others were lost.

use crate::text::{Paint, clean, millis, plural, span};
use control::Ping;
use std::fmt::Write;
use std::time::Duration;

/// Formats the answer. Writing to a `String` cannot fail.
pub fn show(ping: &Ping, paint: Paint) -> String {
    let name = paint.bold(&clean(&ping.name));
    if !ping.strata {
        return foreign(ping, &name, paint);
    }
    let (pings, answers) = (plural(ping.pings, "ping"), plural(ping.returned, "answer"));
    let answers = match ping.is_well() {
        true => paint.good(&answers),
        false => paint.bad(&answers),
    };
    let mut text = format!("{name}: {pings}, {answers}");
    if let Some(times) = ping.round_trip {
        let [least, mean, most] = [times.min_micros, times.mean_micros, times.max_micros].map(time);
        let _ = write!(text, ", round trip min {least}, mean {mean}, max {most}");
    }
    text.push('\n');
    for loss in &ping.lost {
        let (why, fix) = (clean(&loss.why), clean(&loss.fix));
        let _ = writeln!(text, "  {} {why}\n    fix: {fix}", loss.packets);
    }
    text
}

/// Formats what can be told of a peer that answers no pings.
fn foreign(ping: &Ping, name: &str, paint: Paint) -> String {
    let ike = match ping.ike_micros {
        Some(micros) => format!("IKE is answered after {}", time(micros)),
        None => paint.bad("IKE is not answered"),
    };
    let esp = match ping.heard_seconds {
        Some(seconds) => format!("the last ESP packet arrived {} ago", span(seconds)),
        None => "no ESP packet has arrived".to_owned(),
    };
    format!("{name}: the peer is not Strata, and answers no pings\n  {ike}\n  {esp}\n")
}

fn time(micros: u64) -> String {
    millis(Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::tests::PLAIN;
    use control::{Loss, LossPlace, RoundTrip};

    fn all() -> Ping {
        Ping {
            name: "office".to_owned(),
            strata: true,
            pings: 4,
            sent: 4,
            returned: 4,
            round_trip: Some(RoundTrip {
                min_micros: 900,
                mean_micros: 1260,
                max_micros: 12_345,
            }),
            ike_micros: Some(1500),
            ..Ping::default()
        }
    }

    #[test]
    fn pings_that_all_return_take_one_line() {
        let expected =
            "office: 4 pings, 4 answers, round trip min 0.9 ms, mean 1.3 ms, max 12.3 ms\n";
        assert_eq!(show(&all(), PLAIN), expected);
        assert!(all().is_well());
    }

    #[test]
    fn each_place_has_its_number_and_its_remedy() {
        let ping = Ping {
            returned: 0,
            round_trip: None,
            lost: vec![Loss {
                place: LossPlace::NotReceived,
                packets: 4,
                why: "sent here,\x1b[2J and not received by the peer".to_owned(),
                fix: "look for a firewall".to_owned(),
            }],
            ..all()
        };
        let expected = "\
office: 4 pings, 0 answers
  4 sent here,\\u{1b}[2J and not received by the peer
    fix: look for a firewall
";
        assert_eq!(show(&ping, PLAIN), expected);
        assert!(!ping.is_well());
    }

    #[test]
    fn of_a_foreign_peer_ike_and_esp_are_told() {
        let mut ping = Ping {
            strata: false,
            pings: 0,
            returned: 0,
            heard_seconds: Some(61),
            ..all()
        };
        let expected = "\
office: the peer is not Strata, and answers no pings
  IKE is answered after 1.5 ms
  the last ESP packet arrived 1 min 1 s ago
";
        assert!(show(&ping, PLAIN) == expected && ping.is_well());
        (ping.ike_micros, ping.heard_seconds) = (None, None);
        let shown = show(&ping, PLAIN);
        assert!(
            shown.contains("IKE is not answered\n  no ESP packet"),
            "{shown}"
        );
        assert!(!ping.is_well());
    }
}
