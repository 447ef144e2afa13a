//! Registrations of Mobile IP.

use super::refused;
use crate::config_view::ConfigView;
use crate::explain::told;
use control::{
    MobileBinding, MobileHome, MobileIp, MobilePart, MobileRegistration, MobileVisitor, Trouble,
};
use model::Instant;
use node::{Node, mobile_ip};

/// Returns this host's role in Mobile IP, and the last refusal.
pub fn mobile_ip(view: &ConfigView, node: &Node, now: Instant) -> Option<MobileIp> {
    let (status, refusal) = node.mobile_ip()?;
    let left = |until: Option<Instant>| until.map(|until| until.since(now).as_secs());
    let part = match status {
        mobile_ip::Status::MobileNode {
            home,
            home_agent,
            registrations,
            route,
        } => MobilePart::MobileNode {
            home_address: home,
            home_agent,
            registrations: registrations
                .into_iter()
                .map(|one| MobileRegistration {
                    agent: one.at.agent,
                    care_of: one.at.care_of,
                    interface: view.interface(one.at.interface),
                    sends: route == Some(one.at),
                    since_seconds: now.since(one.since).as_secs(),
                    left_seconds: left(one.until),
                })
                .collect(),
        },
        mobile_ip::Status::ForeignAgent { care_of, visitors } => MobilePart::ForeignAgent {
            care_of,
            visitors: visitors
                .into_iter()
                .map(|stay| MobileVisitor {
                    home_address: stay.visitor.home,
                    home_agent: stay.visitor.home_agent,
                    in_udp: stay.is_in_udp,
                    left_seconds: left(stay.until),
                    gone_to: stay.gone_to,
                })
                .collect(),
        },
        mobile_ip::Status::HomeAgent { address, homes } => MobilePart::HomeAgent {
            address,
            mobiles: homes
                .into_iter()
                .map(|(home_address, bindings)| MobileHome {
                    home_address,
                    bindings: bindings
                        .into_iter()
                        .map(|place| MobileBinding {
                            care_of: place.care_of,
                            udp: place.udp,
                            left_seconds: left(place.until),
                        })
                        .collect(),
                })
                .collect(),
        },
    };
    let last_refusal = refusal.map(|refusal| refused(refusal, now));
    Some(MobileIp { part, last_refusal })
}

/// Returns the reason why a mobile node can send nothing, if no foreign agent has accepted it.
pub fn no_agent(view: &ConfigView, node: &Node) -> Option<Trouble> {
    let (mobile_ip::Status::MobileNode { route: None, .. }, refusal) = node.mobile_ip()? else {
        return None;
    };
    let why = match refusal {
        Some(refused) => format!("the last refusal: {}", told(&refused.why)),
        None => "none has answered".to_owned(),
    };
    let interfaces = view.interfaces();
    Some(Trouble {
        task: "agent".to_owned(),
        remote: None,
        what: format!(
            "nothing can be sent: no foreign agent on {interfaces} has accepted this host; {why}"
        ),
        fix:
            "connect to a network with a foreign agent, and compare the keys of [mobile_node] with \
              those of the agents"
                .to_owned(),
        seconds: None,
    })
}
