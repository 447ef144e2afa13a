//! Mobile IPv4 in `strata status`: a block before those of the peers.

use super::status::reason;
use crate::text::{Paint, clean, plural, span};
use control::{MobileHome, MobileIp, MobilePart, MobileRegistration, MobileVisitor};
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Appends the block. Writing to a `String` cannot fail, so results of `writeln!` are dropped.
pub(super) fn show(text: &mut String, mobile_ip: &MobileIp, paint: Paint) {
    match &mobile_ip.part {
        MobilePart::MobileNode {
            home_address,
            home_agent,
            registrations,
        } => {
            let state = match registrations.is_empty() {
                true => paint.bad("not registered"),
                false => "registered".to_owned(),
            };
            heading(text, "mobile node", *home_address, &state, paint);
            let _ = writeln!(text, "  home      {home_agent}");
            for registration in registrations {
                show_registration(text, registration);
            }
        }
        MobilePart::ForeignAgent { care_of, visitors } => {
            let count = plural(visitors.len() as u64, "visitor");
            heading(text, "foreign agent", *care_of, &count, paint);
            for visitor in visitors {
                show_visitor(text, visitor);
            }
        }
        MobilePart::HomeAgent { address, mobiles } => {
            let away = mobiles.iter().filter(|mobile| !mobile.bindings.is_empty());
            let count = format!("{} of {} away", away.count(), mobiles.len());
            heading(text, "home agent", *address, &count, paint);
            for mobile in mobiles {
                show_home(text, mobile);
            }
        }
    }
    if let Some(refusal) = &mobile_ip.last_refusal {
        let _ = writeln!(text, "  {}    {}", paint.bad("failed"), reason(refusal));
    }
}

fn heading(text: &mut String, what: &str, address: Ipv4Addr, state: &str, paint: Paint) {
    let address = paint.bold(&address.to_string());
    let _ = writeln!(text, "\n{what} {address}  {state}");
}

fn show_registration(text: &mut String, registration: &MobileRegistration) {
    let MobileRegistration { agent, care_of, .. } = registration;
    let interface = clean(&registration.interface);
    let (since, left) = (
        span(registration.since_seconds),
        left(registration.left_seconds),
    );
    let sends = if registration.sends {
        ""
    } else {
        ", not used to send"
    };
    let _ = writeln!(
        text,
        "  agent     {agent} on {interface}, care-of address {care_of}, for {since}, {left}{sends}"
    );
}

fn show_visitor(text: &mut String, visitor: &MobileVisitor) {
    let left = left(visitor.left_seconds);
    let MobileVisitor {
        home_address,
        home_agent,
        ..
    } = visitor;
    let gone = visitor.gone_to;
    let gone = gone.map_or_else(String::new, |to| format!(", packets are forwarded to {to}"));
    let udp = if visitor.in_udp { " in UDP" } else { "" };
    let _ = writeln!(
        text,
        "  visitor   {home_address} of {home_agent}{udp}, {left}{gone}"
    );
}

fn show_home(text: &mut String, mobile: &MobileHome) {
    let at = mobile.bindings.iter();
    let at = at.map(|binding| {
        let udp = binding.udp;
        let udp = udp.map_or_else(String::new, |end| format!(" in UDP from {end}"));
        format!("{}{udp}, {}", binding.care_of, left(binding.left_seconds))
    });
    let at = match mobile.bindings.is_empty() {
        true => "no care-of address".to_owned(),
        false => at.collect::<Vec<_>>().join("; "),
    };
    let _ = writeln!(text, "  mobile    {} at {at}", mobile.home_address);
}

fn left(seconds: Option<u64>) -> String {
    seconds.map_or("no time limit".to_owned(), |seconds| {
        format!("{} left", span(seconds))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::PLAIN;
    use super::*;
    use control::{MobileBinding, Refusal};
    use std::net::SocketAddrV4;

    fn shown(part: MobilePart, last_refusal: Option<Refusal>) -> String {
        let mut text = String::new();
        show(&mut text, &MobileIp { part, last_refusal }, PLAIN);
        text
    }

    fn address(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, last)
    }

    #[test]
    fn a_mobile_node_shows_where_it_is() {
        let registration = |agent, sends| MobileRegistration {
            agent: address(agent),
            care_of: address(agent),
            interface: format!("wlan{agent}"),
            sends,
            since_seconds: 75,
            left_seconds: Some(240),
        };
        let part = MobilePart::MobileNode {
            home_address: address(7),
            home_agent: address(1),
            registrations: vec![registration(2, true), registration(3, false)],
        };
        let expected = "
mobile node 192.0.2.7  registered
  home      192.0.2.1
  agent     192.0.2.2 on wlan2, care-of address 192.0.2.2, for 1 min 15 s, 4 min left
  agent     192.0.2.3 on wlan3, care-of address 192.0.2.3, for 1 min 15 s, 4 min left, not used to send
";
        assert_eq!(shown(part, None), expected);
    }

    #[test]
    fn agents_show_who_is_here_and_who_is_away() {
        let part = MobilePart::ForeignAgent {
            care_of: address(2),
            visitors: [None, Some(address(3))]
                .map(|gone_to| MobileVisitor {
                    home_address: address(7),
                    home_agent: address(1),
                    in_udp: gone_to.is_some(),
                    left_seconds: None,
                    gone_to,
                })
                .into(),
        };
        let expected = "
foreign agent 192.0.2.2  2 visitors
  visitor   192.0.2.7 of 192.0.2.1, no time limit
  visitor   192.0.2.7 of 192.0.2.1 in UDP, no time limit, packets are forwarded to 192.0.2.3
";
        assert_eq!(shown(part, None), expected);
        let part = MobilePart::HomeAgent {
            address: address(1),
            mobiles: vec![
                MobileHome {
                    home_address: address(7),
                    bindings: vec![MobileBinding {
                        care_of: address(2),
                        udp: Some(SocketAddrV4::new(address(9), 20_345)),
                        left_seconds: Some(9),
                    }],
                },
                MobileHome {
                    home_address: address(8),
                    bindings: Vec::new(),
                },
            ],
        };
        let refusal = Refusal {
            seconds_ago: 3,
            from: None,
            reason: "the key is another\x1b".to_owned(),
        };
        let text = shown(part, Some(refusal));
        assert!(
            text.starts_with("\nhome agent 192.0.2.1  1 of 2 away\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "  mobile    192.0.2.7 at 192.0.2.2 in UDP from 192.0.2.9:20345, 9 s left\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("  mobile    192.0.2.8 at no care-of address\n"),
            "{text}"
        );
        assert!(text.contains("  failed    the key is another"), "{text}");
        assert!(!text.contains('\x1b'), "{text:?}");
    }
}
