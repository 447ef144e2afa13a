//! Notifications of state that was removed or replaced.

use super::{link, route, rule};
use crate::divert::{self, Side};
use crate::{mobile, routes};
use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage as Message;
use rtnetlink::packet_route::link::{LinkFlags, LinkMessage};

/// Returns true if a notification reports the end of state that [`crate::Routes`] needs for the TUN
/// of this name, or [`crate::Divert`] and [`crate::mobile`] for their own. All addresses count,
/// because their notifications name no interface. So does an unreadable notification.
pub(crate) fn is_of_ours(octets: &[u8], device: &str) -> bool {
    let Ok(message) = NetlinkMessage::<Message>::deserialize(octets) else {
        return true;
    };
    let NetlinkPayload::InnerMessage(message) = message.payload else {
        return false;
    };
    match message {
        // A new route may have replaced another. A roaming host's routes are excluded: each renewed
        // registration makes new ones.
        Message::NewRoute(route) => is_our_table(route::table(&route)),
        Message::DelRoute(route) => {
            let table = route::table(&route);
            is_our_table(table) || mobile::is_table(table)
        }
        Message::DelRule(rule) => rule::priority(&rule).is_some_and(is_our_priority),
        Message::DelAddress(_) => true,
        // The kernel removes the routes through a device that goes down, and does not report those
        // of IPv4.
        Message::NewLink(link) => is_down(&link) && is_our_device(&link, device),
        _ => false,
    }
}

fn is_our_table(table: u32) -> bool {
    table == routes::TABLE || Side::ALL.iter().any(|side| side.table() == table)
}

fn is_our_priority(priority: u32) -> bool {
    priority == divert::PRIORITY
        || routes::PRIORITIES.contains(&priority)
        || mobile::is_priority(priority)
}

fn is_our_device(link: &LinkMessage, device: &str) -> bool {
    let sides = Side::ALL.iter().map(|side| side.device());
    let name = link::name(link);
    name.is_some_and(|name| {
        name == device || name == mobile::DEVICE || sides.clone().any(|side| name == side)
    })
}

fn is_down(link: &LinkMessage) -> bool {
    !link.header.flags.contains(LinkFlags::Up)
}
