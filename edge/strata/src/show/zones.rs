//! `strata zones`: at an endpoint the readers of each zone, at a licensed node the zones that it
//! opens.

use crate::text::{Paint, clean, span};
use control::{Composite, GrantState, Held, Holder, LevelGrant, Link, Zone, Zones};
use std::fmt::Write;

/// Formats the answer.
pub fn show(zones: &Zones, paint: Paint) -> String {
    if zones.composites.is_empty() && zones.held.is_empty() {
        return "no tunnel has zones, and this host holds no keys\n".to_owned();
    }
    let composites = zones
        .composites
        .iter()
        .map(|composite| show_composite(composite, paint));
    let held = zones.held.iter().map(|held| show_held(held, paint));
    composites.chain(held).collect::<Vec<_>>().join("\n")
}

fn show_composite(composite: &Composite, paint: Paint) -> String {
    let mut text = String::new();
    let peer = paint.bold(&clean(&composite.peer));
    let child = composite.child.as_ref();
    let child = child.map_or_else(String::new, |child| format!(" {}", clean(child)));
    let (spi_in, spi_out) = (clean(&composite.spi_in), clean(&composite.spi_out));
    let _ = writeln!(
        text,
        "tunnel {peer}{child}  in {spi_in}, out {spi_out}, window {}",
        composite.window
    );
    if let (Some(spi_in), Some(spi_out)) = (&composite.spi_opaque_in, &composite.spi_opaque_out) {
        let (spi_in, spi_out) = (clean(spi_in), clean(spi_out));
        let map = composite.map.join(", ");
        let map = clean(&map);
        let _ = writeln!(
            text,
            "  map     {map}, in every packet; all other packets are opaque (in {spi_in}, out {spi_out})"
        );
    }
    let width = composite
        .zones
        .iter()
        .map(|zone| clean(&zone.name).chars().count())
        .max();
    for zone in &composite.zones {
        let (name, width) = (clean(&zone.name), width.unwrap_or(0));
        let suite = clean(&zone.suite);
        let readers = readers(composite, zone, paint);
        let _ = writeln!(
            text,
            "  zone {}  {name:<width$}  {suite}  {readers}",
            zone.serial
        );
    }
    text.extend(
        composite
            .level
            .as_ref()
            .map(|level| show_level(level, paint)),
    );
    if !["", "auto"].contains(&composite.signal.as_str()) {
        let _ = writeln!(
            text,
            "  level   {}, by `strata level`",
            clean(&composite.signal)
        );
    }
    text.extend(composite.link.as_ref().map(show_link));
    for permit in &composite.not_agreed {
        let node = clean(&permit.node);
        let zones = permit.zones.join(", ");
        let (right, zones) = (clean(&permit.right), clean(&zones));
        let _ = writeln!(
            text,
            "  not given  {node} ({right} {zones}): the peer has no such licence"
        );
    }
    text
}

/// Formats the quality of the path and the protection that it selects.
fn show_link(link: &Link) -> String {
    let level = if link.good { "opaque" } else { "in zones" };
    match link.missing {
        Some(share) => {
            let (percent, part) = (share / 100, share % 100);
            format!("  link    {percent}.{part:02} % of packets to us are lost: {level}\n")
        }
        None => format!("  link    too few packets to measure losses: {level}\n"),
    }
}

/// Formats the grant for unencrypted packets, which every node on the path can read.
fn show_level(level: &LevelGrant, paint: Paint) -> String {
    let (spi_in, spi_out) = (clean(&level.spi_in), clean(&level.spi_out));
    let what = paint.bad(&format!("{} NOT ENCRYPTED", clean(&level.class)));
    let left = match (level.packets_left, level.seconds_left) {
        (0, _) | (_, 0) => "none are left".to_owned(),
        (packets, seconds) => format!("{packets} packets or {} are left", span(seconds)),
    };
    let times = level.renewals;
    format!(
        "  clear   {what}: {} sent, {left}, {} received, {times} renewals (in {spi_in}, out {spi_out})\n",
        level.sent, level.received
    )
}

fn readers(composite: &Composite, zone: &Zone, paint: Paint) -> String {
    let holders = composite
        .holders
        .iter()
        .filter(|holder| holder.zones.contains(&zone.name));
    let readers: Vec<_> = holders.map(|holder| reader(holder, paint)).collect();
    if readers.is_empty() {
        return paint.good("the two ends only");
    }
    // The payload zone has the highest serial: its key opens the whole payload.
    let is_payload = composite
        .zones
        .iter()
        .all(|other| other.serial <= zone.serial);
    let readers = format!("the two ends and {}", readers.join(", "));
    if is_payload {
        paint.bad(&readers.to_uppercase())
    } else {
        readers
    }
}

fn reader(holder: &Holder, paint: Paint) -> String {
    let since = holder
        .since_seconds
        .map_or(String::new(), |seconds| format!(" for {}", span(seconds)));
    let state = match holder.state {
        Some(GrantState::Held) => paint.doubtful("has the keys"),
        Some(GrantState::Sent) => "keys sent".to_owned(),
        Some(GrantState::Pending) => "not connected yet".to_owned(),
        Some(GrantState::Refused) => paint.bad(&refused(holder)),
        None => "licensed; the peer gives the keys".to_owned(),
    };
    format!(
        "{} ({}: {state}{since})",
        clean(&holder.node),
        clean(&holder.right)
    )
}

fn refused(holder: &Holder) -> String {
    match &holder.refusal {
        Some(why) => format!("refused the keys, {}", clean(why)),
        None => "refused the keys".to_owned(),
    }
}

fn show_held(held: &Held, paint: Paint) -> String {
    let mut text = String::new();
    let gateway = paint.bold(&clean(&held.gateway));
    let opens: Vec<_> = held.opens.iter().map(ToString::to_string).collect();
    let closed = (1..=held.payload_zone).filter(|zone| !held.opens.contains(zone));
    let closed: Vec<_> = closed.map(|zone| zone.to_string()).collect();
    let _ = writeln!(text, "keys from {gateway}  {}", clean(&held.identity));
    let _ = writeln!(text, "  csa        {}", clean(&held.csa));
    let (from, to) = (clean(&held.spi_from_gateway), clean(&held.spi_to_gateway));
    let _ = writeln!(text, "  packets    {from} from the gateway, {to} to it");
    let _ = writeln!(text, "  opens      zone {}", opens.join(", "));
    if !held.writes.is_empty() {
        let fields = held.writes.join(", ");
        let _ = writeln!(text, "  writes     {}", paint.doubtful(&clean(&fields)));
    }
    if held.injects {
        let repeats = paint.doubtful("acknowledgements for a silent endpoint");
        let _ = writeln!(text, "  injects    {repeats}");
    }
    if closed.is_empty() {
        let _ = writeln!(
            text,
            "  closed     {}",
            paint.bad("NOTHING: THE PAYLOAD IS READABLE")
        );
    } else {
        let _ = writeln!(text, "  closed     zone {}", closed.join(", "));
    }
    let _ = writeln!(text, "  forgotten  in {}", span(held.lifetime_left_seconds));
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::PLAIN;
    use super::*;
    use control::Permit;

    fn composite(state: Option<GrantState>) -> Composite {
        let zone = |serial, name: &str| Zone {
            serial,
            name: name.to_owned(),
            suite: "aes128gcm16".to_owned(),
        };
        Composite {
            csa: "0123456789abcdef".to_owned(),
            peer: "alice".to_owned(),
            child: None,
            spi_in: "c0de0001".to_owned(),
            spi_out: "beef0002".to_owned(),
            map: Vec::new(),
            spi_opaque_in: None,
            spi_opaque_out: None,
            level: None,
            link: None,
            signal: "auto".to_owned(),
            window: 4096,
            zones: vec![zone(1, "headers"), zone(2, "payload")],
            holders: vec![Holder {
                node: "fa.example.net".to_owned(),
                zones: vec!["headers".to_owned()],
                right: "read".to_owned(),
                state,
                since_seconds: state.map(|_| 12),
                refusal: None,
            }],
            not_agreed: Vec::new(),
        }
    }

    fn shown(composite: Composite) -> String {
        show(
            &Zones {
                composites: vec![composite],
                held: Vec::new(),
            },
            PLAIN,
        )
    }

    #[test]
    fn each_zone_says_who_can_read_it() {
        let expected = "\
tunnel alice  in c0de0001, out beef0002, window 4096
  zone 1  headers  aes128gcm16  the two ends and fa.example.net (read: has the keys for 12 s)
  zone 2  payload  aes128gcm16  the two ends only
";
        assert_eq!(shown(composite(Some(GrantState::Held))), expected);
        let mut further = composite(None);
        further.child = Some("path 2".to_owned());
        assert!(shown(further).starts_with("tunnel alice path 2  in c0de0001,"));
        let elsewhere = shown(composite(None));
        assert!(elsewhere.contains("fa.example.net (read: licensed; the peer gives the keys)"));
    }

    #[test]
    fn a_fixed_map_is_shown_with_where_all_other_packets_go() {
        let mut fixed = composite(None);
        fixed.map = vec!["20 ip".to_owned(), "32 transport".to_owned()];
        fixed.spi_opaque_in = Some("c0de0003".to_owned());
        fixed.spi_opaque_out = Some("beef0004".to_owned());
        let line = "  map     20 ip, 32 transport, in every packet; all other packets are opaque \
                    (in c0de0003, out beef0004)\n";
        assert!(shown(fixed).contains(line));
    }

    #[test]
    fn what_goes_without_encryption_is_shouted_with_what_is_left_of_it() {
        let mut open = composite(None);
        let level = LevelGrant {
            class: "ports 5004-5005".to_owned(),
            spi_in: "c0de0005".to_owned(),
            spi_out: "beef0006".to_owned(),
            packets: 1000,
            seconds: 3600,
            renewals: 2,
            sent: 10,
            received: 7,
            packets_left: 990,
            seconds_left: 60,
        };
        open.level = Some(level.clone());
        open.link = Some(Link {
            missing: Some(25),
            good: true,
        });
        open.signal = "opaque".to_owned();
        let lines = "  clear   ports 5004-5005 NOT ENCRYPTED: 10 sent, 990 packets or 1 min are left, \
                     7 received, 2 renewals (in c0de0005, out beef0006)\n  level   opaque, by `strata level`\n  \
                     link    0.25 % of packets to us are lost: opaque\n";
        let text = shown(open.clone());
        assert!(text.contains(lines), "{text}");
        open.level = Some(LevelGrant {
            seconds_left: 0,
            ..level
        });
        assert!(shown(open).contains("10 sent, none are left, 7 received"));
    }

    #[test]
    fn what_was_refused_and_what_the_other_end_does_not_want_is_said() {
        let mut refused = composite(Some(GrantState::Refused));
        refused.holders[0].refusal = Some("it holds as many as it can".to_owned());
        refused.not_agreed = vec![Permit {
            node: "fb.example.net".to_owned(),
            zones: vec!["headers".to_owned(), "payload".to_owned()],
            right: "read".to_owned(),
            fields: Vec::new(),
        }];
        let shown = shown(refused);
        for words in [
            "(read: refused the keys, it holds as many as it can for 12 s)",
            "  not given  fb.example.net (read headers, payload): the peer has no such licence\n",
        ] {
            assert!(shown.contains(words), "{shown}");
        }
    }

    #[test]
    fn a_reader_of_the_payload_is_shouted() {
        let mut open = composite(Some(GrantState::Held));
        open.holders[0].zones.push("payload".to_owned());
        let shown = shown(open);
        assert!(
            shown.contains("payload  aes128gcm16  THE TWO ENDS AND FA.EXAMPLE.NET"),
            "{shown}"
        );
    }

    #[test]
    fn a_licensed_node_shows_what_it_opens_and_what_stays_closed() {
        let held = Held {
            csa: "0123456789abcdef".to_owned(),
            gateway: "gw".to_owned(),
            identity: "gw.example.net".to_owned(),
            spi_from_gateway: "beef0002".to_owned(),
            spi_to_gateway: "c0de0001".to_owned(),
            opens: vec![1],
            writes: Vec::new(),
            injects: false,
            payload_zone: 2,
            lifetime_left_seconds: 28_740,
        };
        let both = Zones {
            composites: Vec::new(),
            held: vec![
                held.clone(),
                Held {
                    opens: vec![1, 2],
                    writes: vec!["window".to_owned()],
                    injects: true,
                    ..held
                },
            ],
        };
        let expected = "\
keys from gw  gw.example.net
  csa        0123456789abcdef
  packets    beef0002 from the gateway, c0de0001 to it
  opens      zone 1
  closed     zone 2
  forgotten  in 7 h 59 min
";
        let shown = show(&both, PLAIN);
        assert!(shown.starts_with(expected), "{shown}");
        assert!(
            shown.contains("  opens      zone 1, 2\n  writes     window\n  injects    acknowledgements for a silent endpoint\n"),
            "{shown}"
        );
        assert!(
            shown.contains("NOTHING: THE PAYLOAD IS READABLE"),
            "{shown}"
        );
        assert_eq!(
            show(&Zones::default(), PLAIN),
            "no tunnel has zones, and this host holds no keys\n"
        );
    }
}
