//! Rules that select the routing table, to and from the kernel's message.

use super::message::table_in_header;
use crate::{Family, Prefix};
use rtnetlink::packet_route::route::RouteProtocol;
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RulePortRange};
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

pub(super) use rtnetlink::packet_route::rule::RuleMessage;

/// The owner of our rules, which the kernel keeps and `ip rule` shows as `proto 72`. Priorities are
/// no owner: a rule that is added without one gets that before the first rule, such as ours. The
/// number has no name in `/etc/iproute2/rt_protos`.
const OWNER: RouteProtocol = RouteProtocol::Other(72);

/// A rule that sends packets matching all of its conditions to a routing table. It is made with
/// [`Rule::new`] and narrowed by methods with the names of ip-rule(8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The packets' family.
    pub family: Family,
    /// The order in which rules are tried, lowest first.
    pub priority: u32,
    /// The table to look up.
    pub table: u32,
    /// The interface that packets arrived on; `lo` for packets made here.
    pub iif: Option<String>,
    /// The firewall mark that packets must have, or must not have.
    pub mark: Option<Mark>,
    /// IP protocol. A fragment counts as the protocol of its datagram.
    pub protocol: Option<u8>,
    /// Source ports; a fragment has none.
    pub source_ports: Option<RangeInclusive<u16>>,
    /// Destination ports; a fragment has none.
    pub destination_ports: Option<RangeInclusive<u16>>,
    /// Source prefix.
    pub from: Option<Prefix>,
    /// Destination prefix.
    pub to: Option<Prefix>,
    /// True to ignore the table's default route and continue with the next rule.
    pub but_default: bool,
}

/// A condition on a packet's firewall mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The packet has this mark; 0 is no mark.
    Is(u32),
    /// The packet has another mark, or none. The kernel inverts all conditions of a rule together,
    /// so use it alone.
    IsNot(u32),
}

impl Rule {
    /// Returns a rule for every packet of a family.
    pub const fn new(family: Family, priority: u32, table: u32) -> Self {
        Self {
            family,
            priority,
            table,
            iif: None,
            mark: None,
            protocol: None,
            source_ports: None,
            destination_ports: None,
            from: None,
            to: None,
            but_default: false,
        }
    }

    /// Uses only the table's specific routes (`suppress_prefixlength 0`).
    pub fn but_default(mut self) -> Self {
        self.but_default = true;
        self
    }

    /// Matches only packets that arrived on this interface.
    pub fn iif(mut self, name: &str) -> Self {
        self.iif = Some(name.to_owned());
        self
    }

    /// Matches only packets with or without a mark.
    pub fn mark(mut self, mark: Mark) -> Self {
        self.mark = Some(mark);
        self
    }

    /// Matches only packets of this IP protocol.
    pub fn protocol(mut self, protocol: u8) -> Self {
        self.protocol = Some(protocol);
        self
    }

    /// Matches only packets from these ports; the kernel does not support 0 and 65535.
    pub fn source_ports(mut self, ports: RangeInclusive<u16>) -> Self {
        self.source_ports = Some(ports);
        self
    }

    /// Matches only packets to these ports; the kernel does not support 0 and 65535.
    pub fn destination_ports(mut self, ports: RangeInclusive<u16>) -> Self {
        self.destination_ports = Some(ports);
        self
    }

    /// Matches only packets from this prefix.
    pub fn from(mut self, prefix: impl Into<Prefix>) -> Self {
        self.from = Some(prefix.into());
        self
    }

    /// Matches only packets to this prefix.
    pub fn to(mut self, prefix: impl Into<Prefix>) -> Self {
        self.to = Some(prefix.into());
        self
    }

    /// Returns the message that adds the rule as ours, or deletes it if it is ours.
    pub(super) fn message(&self) -> RuleMessage {
        let range = |ports: &RangeInclusive<u16>| RulePortRange {
            start: *ports.start(),
            end: *ports.end(),
        };
        let mut message = request(self.family);
        message.header.action = RuleAction::ToTable;
        message.header.table = table_in_header(self.table);
        message.header.src_len = self.from.map_or(0, |prefix| prefix.length);
        message.header.dst_len = self.to.map_or(0, |prefix| prefix.length);
        if let Some(Mark::IsNot(_)) = self.mark {
            message.header.flags = RuleFlags::Invert;
        }
        let numbers = [
            RuleAttribute::Priority(self.priority),
            RuleAttribute::Table(self.table),
            RuleAttribute::Protocol(OWNER),
        ];
        let mark = self.mark.map(|mark| match mark {
            Mark::Is(mark) | Mark::IsNot(mark) => mark,
        });
        // Without a mask, mark 0 is no condition.
        let mask = mark.map(|_| RuleAttribute::FwMask(u32::MAX));
        let conditions = [
            self.iif.clone().map(RuleAttribute::Iifname),
            mark.map(RuleAttribute::FwMark),
            mask,
            self.protocol.map(|p| RuleAttribute::IpProtocol(p.into())),
            self.source_ports
                .as_ref()
                .map(|ports| RuleAttribute::SourcePortRange(range(ports))),
            self.destination_ports
                .as_ref()
                .map(|ports| RuleAttribute::DestinationPortRange(range(ports))),
            self.from
                .map(|prefix| RuleAttribute::Source(prefix.address)),
            self.to
                .map(|prefix| RuleAttribute::Destination(prefix.address)),
            self.but_default
                .then_some(RuleAttribute::SuppressPrefixLen(0)),
        ];
        message.attributes = numbers
            .into_iter()
            .chain(conditions.into_iter().flatten())
            .collect();
        message
    }

    /// Parses a rule. Returns `None` for rules that do not look up a table.
    pub(super) fn parse(message: &RuleMessage) -> Option<Self> {
        if message.header.action != RuleAction::ToTable {
            return None;
        }
        let family = Family::from_kernel(message.header.family)?;
        let mut rule = Self::new(family, 0, message.header.table.into());
        let prefix = |address: &IpAddr, length| Some(Prefix::from((*address, length)));
        let invert = message.header.flags.contains(RuleFlags::Invert);
        let mark = |mark| match invert {
            true => Mark::IsNot(mark),
            false => Mark::Is(mark),
        };
        for attribute in &message.attributes {
            match attribute {
                RuleAttribute::Priority(priority) => rule.priority = *priority,
                RuleAttribute::Table(table) => rule.table = *table,
                RuleAttribute::Iifname(name) => rule.iif = Some(name.clone()),
                RuleAttribute::FwMark(value) => rule.mark = Some(mark(*value)),
                // The kernel leaves mark 0 out.
                RuleAttribute::FwMask(u32::MAX) => rule.mark = rule.mark.or(Some(mark(0))),
                RuleAttribute::IpProtocol(p) => rule.protocol = Some((*p).into()),
                RuleAttribute::SourcePortRange(ports) => {
                    rule.source_ports = Some(ports.start..=ports.end);
                }
                RuleAttribute::DestinationPortRange(ports) => {
                    rule.destination_ports = Some(ports.start..=ports.end);
                }
                RuleAttribute::Source(a) => rule.from = prefix(a, message.header.src_len),
                RuleAttribute::Destination(a) => rule.to = prefix(a, message.header.dst_len),
                RuleAttribute::SuppressPrefixLen(0) => rule.but_default = true,
                _ => {}
            }
        }
        Some(rule)
    }
}

impl fmt::Display for Rule {
    /// Formats the rule in the notation of ip-rule(8).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.priority)?;
        match self.mark {
            Some(Mark::Is(mark)) => write!(f, " fwmark {mark:#x}")?,
            Some(Mark::IsNot(mark)) => write!(f, " not fwmark {mark:#x}")?,
            None => {}
        }
        let range = |ports: &RangeInclusive<u16>| match (ports.start(), ports.end()) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        };
        let conditions = [
            ("from", self.from.map(|prefix| prefix.to_string())),
            ("to", self.to.map(|prefix| prefix.to_string())),
            ("iif", self.iif.clone()),
            ("ipproto", self.protocol.map(|number| number.to_string())),
            ("sport", self.source_ports.as_ref().map(range)),
            ("dport", self.destination_ports.as_ref().map(range)),
        ];
        for (word, value) in conditions {
            if let Some(value) = value {
                write!(f, " {word} {value}")?;
            }
        }
        write!(f, " lookup {}", self.table)?;
        if self.but_default {
            write!(f, " suppress_prefixlength 0")?;
        }
        write!(f, " ({})", self.family)
    }
}

/// Returns a request for every rule of a family.
pub(super) fn request(family: Family) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family.into();
    message
}

pub(super) fn priority(message: &RuleMessage) -> Option<u32> {
    message.attributes.iter().find_map(|a| match a {
        RuleAttribute::Priority(priority) => Some(*priority),
        _ => None,
    })
}

/// Returns true if this program, or a predecessor, added the rule.
pub(super) fn is_ours(message: &RuleMessage) -> bool {
    message.attributes.contains(&RuleAttribute::Protocol(OWNER))
}
