//! Interfaces, addresses, routes and rules, through rtnetlink.
//!
//! rtnetlink is asynchronous and this crate is not: each [`Netlink`] owns a small runtime that runs
//! only inside its calls. Requests are built from the kernel's own messages (`packet_route`), so
//! that one function sends them and one reads them all, and listed state can be deleted as it is.
//! Names are resolved through the same socket: it belongs to the network namespace of the thread
//! that opened it, whichever thread calls later.

mod datagram;
mod link;
mod message;
mod neighbour;
mod own;
pub(crate) mod removal;
mod route;
mod rule;
mod way;

pub(crate) use datagram::messages;
pub use route::{Route, Via};
pub use rule::{Mark, Rule};

use crate::{Error, Family, Prefix, crash, sysctl};
use futures_util::StreamExt;
use nix::errno::Errno;
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
    NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage as Message;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::RangeInclusive;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// A connection to the kernel's routing configuration in one network namespace. It must not be used
/// inside an asynchronous runtime.
pub struct Netlink {
    runtime: Runtime,
    handle: rtnetlink::Handle,
    connection: JoinHandle<()>,
}

impl Netlink {
    /// Opens the connection in the calling thread's network namespace, where it stays.
    pub fn open() -> Result<Self, Error> {
        let failed = || Error::os("opening a netlink socket");
        let runtime = Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(failed())?;
        let guard = runtime.enter();
        let (connection, handle, _) = rtnetlink::new_connection().map_err(failed())?;
        let connection = runtime.spawn(connection);
        drop(guard);
        Ok(Self {
            runtime,
            handle,
            connection,
        })
    }

    /// Brings an interface up.
    pub fn link_up(&self, name: &str) -> Result<(), Error> {
        let mut message = link::message(self.index(name)?);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.set_link(format!("bringing up {name}"), message)
    }

    /// Sets the most segments of a packet that the kernel leaves to an interface to segment; with 1
    /// it segments all itself.
    pub fn set_most_segments(&self, name: &str, segments: u32) -> Result<(), Error> {
        let message = link::most_segments(self.index(name)?, segments);
        self.set_link(
            format!("limiting the segments of packets to {name}"),
            message,
        )
    }

    /// Returns true if an interface is up.
    pub fn is_up(&self, name: &str) -> Result<bool, Error> {
        Ok(self.link(name)?.header.flags.contains(LinkFlags::Up))
    }

    /// Takes an interface down, and with it the routes through it.
    pub fn link_down(&self, name: &str) -> Result<(), Error> {
        let mut message = link::message(self.index(name)?);
        message.header.change_mask = LinkFlags::Up;
        self.set_link(format!("taking down {name}"), message)
    }

    /// Sets the MTU of an interface.
    pub fn set_mtu(&self, name: &str, mtu: u32) -> Result<(), Error> {
        let mut message = link::message(self.index(name)?);
        message.attributes.push(LinkAttribute::Mtu(mtu));
        self.set_link(format!("setting the MTU of {name} to {mtu}"), message)
    }

    /// Returns the MTU of an interface.
    pub fn mtu(&self, name: &str) -> Result<u32, Error> {
        link::mtu(&self.link(name)?).ok_or_else(|| missing(name))
    }

    /// Returns the alias of an interface (`ip link set NAME alias TEXT`), if it has one.
    pub fn alias(&self, name: &str) -> Result<Option<String>, Error> {
        Ok(link::alias(&self.link(name)?))
    }

    /// Sets the alias of an interface, at most 254 octets.
    pub fn set_alias(&self, name: &str, alias: &str) -> Result<(), Error> {
        let mut message = link::message(self.index(name)?);
        message
            .attributes
            .push(LinkAttribute::IfAlias(alias.to_owned()));
        self.set_link(format!("setting the alias of {name}"), message)
    }

    /// Returns the index of an interface that can carry packets now; `None` if it is down, has no
    /// carrier or does not exist.
    pub fn running(&self, name: &str) -> Option<u32> {
        let header = self.link(name).ok()?.header;
        let wanted = LinkFlags::Up | LinkFlags::Running;
        header.flags.contains(wanted).then_some(header.index)
    }

    /// Creates a pair of virtual Ethernet interfaces, the second in another namespace. Both are
    /// down.
    pub fn add_veth(&self, name: &str, peer: &str, namespace: &crate::NetNs) -> Result<(), Error> {
        let message = link::veth(name, peer, namespace);
        let doing = format!("creating the interfaces {name} and {peer}");
        self.create(doing, Message::NewLink(message))
    }

    /// Removes an interface.
    pub fn delete_link(&self, name: &str) -> Result<(), Error> {
        let message = link::message(self.index(name)?);
        self.change(format!("removing {name}"), Message::DelLink(message), 0)
    }

    /// Returns the names of all interfaces.
    pub fn links(&self) -> Result<Vec<String>, Error> {
        let replies = self.dump("listing interfaces", Message::GetLink(link::message(0)))?;
        let names = replies.iter().filter_map(|reply| match reply {
            Message::NewLink(message) => link::name(message),
            _ => None,
        });
        Ok(names.collect())
    }

    /// Adds an address to an interface; its prefix becomes reachable through it. IPv6 addresses are
    /// usable at once, without duplicate address detection.
    pub fn add_address(&self, name: &str, address: Prefix) -> Result<(), Error> {
        let message = link::address(self.index(name)?, address);
        let doing = format!("adding the address {address} to {name}");
        self.create(doing, Message::NewAddress(message))
    }

    /// Removes an address from an interface.
    pub fn delete_address(&self, name: &str, address: Prefix) -> Result<(), Error> {
        let message = link::address(self.index(name)?, address);
        let doing = format!("removing the address {address} from {name}");
        self.change(doing, Message::DelAddress(message), 0)
    }

    /// Removes an address from an interface that may have lost it already.
    pub fn drop_address(&self, name: &str, address: Prefix) -> Result<(), Error> {
        match self.delete_address(name, address) {
            Err(error) if error.raw_os_error() == Some(Errno::EADDRNOTAVAIL as i32) => Ok(()),
            deleted => deleted,
        }
    }

    /// Returns the addresses of an interface.
    pub fn addresses(&self, name: &str) -> Result<Vec<Prefix>, Error> {
        let index = self.index(name)?;
        let get = Message::GetAddress(Default::default());
        let replies = self.dump("listing addresses", get)?;
        let addresses = replies.iter().filter_map(|reply| match reply {
            Message::NewAddress(message) if message.header.index == index => link::prefix(message),
            _ => None,
        });
        Ok(addresses.collect())
    }

    /// Adds a route. There must be none with the same prefix, table and metric.
    pub fn add_route(&self, route: &Route) -> Result<(), Error> {
        let message = self.route_message(route)?;
        self.create(
            format!("adding the route {route}"),
            Message::NewRoute(message),
        )
    }

    /// Replaces the route with the same prefix, table and metric.
    pub fn replace_route(&self, route: &Route) -> Result<(), Error> {
        let message = Message::NewRoute(self.route_message(route)?);
        let doing = format!("replacing the route {route}");
        self.change(doing, message, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Replaces a route by another one with the same prefix, table and metric, so that each lookup
    /// finds one of the two. With [`Netlink::replace_route`] a lookup in IPv4 may find neither: the
    /// kernel passes over a route that was replaced after the lookup had reached it.
    pub fn move_route(&self, from: &Route, to: &Route) -> Result<(), Error> {
        // In IPv6 the two would share the packets, and replacing has no such moment.
        if from == to || to.prefix.family() == Family::V6 {
            return self.replace_route(to);
        }
        // Behind the first one, where a lookup that passes over that goes on.
        self.append_route(to)?;
        if self.take_route(from)? == 0 {
            // Another program removed it, or put a route of its own in its place.
            self.drop_route(to)?;
            self.replace_route(to)?;
        }
        Ok(())
    }

    /// Adds a route behind those with the same prefix, table and metric, unless it is there.
    fn append_route(&self, route: &Route) -> Result<(), Error> {
        let message = Message::NewRoute(self.route_message(route)?);
        let doing = format!("adding the route {route}");
        match self.change(doing, message, NLM_F_CREATE | NLM_F_APPEND) {
            Err(error) if error.raw_os_error() == Some(Errno::EEXIST as i32) => Ok(()),
            appended => appended,
        }
    }

    /// Deletes a route.
    pub fn delete_route(&self, route: &Route) -> Result<(), Error> {
        let message = Message::DelRoute(self.route_message(route)?);
        self.change(format!("deleting the route {route}"), message, 0)
    }

    /// Returns the routes of a table, in both families. Kinds of routes that [`Via`] does not cover
    /// are left out.
    pub fn routes(&self, table: u32) -> Result<Vec<Route>, Error> {
        let mut routes = Vec::new();
        let mut names = BTreeMap::<u32, Option<String>>::new();
        for message in self.route_messages(table)? {
            let mut devices = Vec::new();
            for index in route::output_indexes(&message) {
                devices.extend(match names.entry(index) {
                    Entry::Occupied(known) => known.get().clone(),
                    Entry::Vacant(new) => new.insert(self.link_name(index)?).clone(),
                });
            }
            routes.extend(route::parse(&message, devices));
        }
        Ok(routes)
    }

    /// Returns the missing ones of these routes.
    pub(crate) fn absent_routes(&self, mut wanted: Vec<Route>) -> Result<Vec<Route>, Error> {
        let tables: BTreeSet<_> = wanted.iter().map(|route| route.table).collect();
        let mut present = BTreeSet::new();
        for table in tables {
            present.extend(self.routes(table)?);
        }
        wanted.retain(|route| !present.contains(route));
        Ok(wanted)
    }

    /// Adds a rule as ours. There must be none exactly like it.
    pub fn add_rule(&self, rule: &Rule) -> Result<(), Error> {
        let message = Message::NewRule(rule.message());
        self.create(format!("adding the rule {rule}"), message)
    }

    /// Adds a rule, unless it exists.
    pub(crate) fn ensure_rule(&self, rule: &Rule) -> Result<(), Error> {
        match self.add_rule(rule) {
            Err(error) if error.raw_os_error() == Some(Errno::EEXIST as i32) => Ok(()),
            added => added,
        }
    }

    /// Deletes a rule of ours that may be gone already.
    pub(crate) fn drop_rule(&self, rule: &Rule) -> Result<(), Error> {
        let message = Message::DelRule(rule.message());
        self.remove(&format!("deleting the rule {rule}"), message)
            .map(drop)
    }

    /// Deletes a route that may be gone already, or whose interface may be.
    pub(crate) fn drop_route(&self, route: &Route) -> Result<(), Error> {
        self.take_route(route).map(drop)
    }

    /// Deletes a route that may be gone already; returns the number of deleted ones.
    fn take_route(&self, route: &Route) -> Result<usize, Error> {
        let message = match self.route_message(route) {
            Err(error) if error.raw_os_error() == Some(Errno::ENODEV as i32) => return Ok(0),
            message => Message::DelRoute(message?),
        };
        self.remove(&format!("deleting the route {route}"), message)
    }

    /// Deletes a rule of ours.
    pub fn delete_rule(&self, rule: &Rule) -> Result<(), Error> {
        let message = Message::DelRule(rule.message());
        self.change(format!("deleting the rule {rule}"), message, 0)
    }

    /// Returns all rules that look up a table, in both families.
    pub fn rules(&self) -> Result<Vec<Rule>, Error> {
        let messages = self.rule_messages()?;
        Ok(messages.iter().filter_map(Rule::parse).collect())
    }

    /// Returns the rules of one priority that are ours.
    pub(crate) fn own_rules(&self, priority: u32) -> Result<Vec<Rule>, Error> {
        let messages = self.rule_messages()?.into_iter().filter(rule::is_ours);
        let rules = messages.filter_map(|message| Rule::parse(&message));
        Ok(rules.filter(|rule| rule.priority == priority).collect())
    }

    /// Returns the missing ones of these rules. A rule of another owner with the same effect is not
    /// missing.
    pub(crate) fn absent_rules(&self, mut wanted: Vec<Rule>) -> Result<Vec<Rule>, Error> {
        let present = self.rules()?;
        wanted.retain(|rule| !present.contains(rule));
        Ok(wanted)
    }

    /// Removes the remains of a predecessor that could not clean up: every rule of ours with one of
    /// these priorities and every route of this table. Returns their number. Devices need no
    /// removal, because they vanish with their process.
    pub fn cleanup(&self, table: u32, priorities: RangeInclusive<u32>) -> Result<usize, Error> {
        let mut removed = 0;
        for message in self.rule_messages()?.into_iter().filter(rule::is_ours) {
            if rule::priority(&message).is_some_and(|priority| priorities.contains(&priority)) {
                let message = Message::DelRule(message);
                removed += self.remove("removing an old rule", message)?;
                crash::point("rule-removed");
            }
        }
        for message in self.route_messages(table)? {
            let message = Message::DelRoute(message);
            removed += self.remove("removing an old route", message)?;
        }
        Ok(removed)
    }

    fn set_link(&self, doing: String, message: link::LinkMessage) -> Result<(), Error> {
        self.change(doing, Message::SetLink(message), 0)
    }

    fn route_message(&self, route: &Route) -> Result<route::RouteMessage, Error> {
        let devices = route.via.devices().iter();
        let devices: Result<Vec<_>, _> = devices.map(|name| self.index(name)).collect();
        Ok(route.message(&devices?))
    }

    fn route_messages(&self, table: u32) -> Result<Vec<route::RouteMessage>, Error> {
        let mut messages = Vec::new();
        for family in sysctl::families() {
            let get = Message::GetRoute(route::request(family));
            for reply in self.dump("listing routes", get)? {
                match reply {
                    Message::NewRoute(route) if route::table(&route) == table => {
                        messages.push(route);
                    }
                    _ => {}
                }
            }
        }
        Ok(messages)
    }

    fn rule_messages(&self) -> Result<Vec<rule::RuleMessage>, Error> {
        let mut messages = Vec::new();
        for family in sysctl::families() {
            let get = Message::GetRule(rule::request(family));
            for reply in self.dump("listing rules", get)? {
                if let Message::NewRule(rule) = reply {
                    messages.push(rule);
                }
            }
        }
        Ok(messages)
    }

    fn index(&self, name: &str) -> Result<u32, Error> {
        Ok(self.link(name)?.header.index)
    }

    fn link(&self, name: &str) -> Result<link::LinkMessage, Error> {
        let mut message = link::message(0);
        message
            .attributes
            .push(LinkAttribute::IfName(name.to_owned()));
        let doing = format!("looking for the interface {name}");
        let replies = self.request(doing, Message::GetLink(message), 0)?;
        let link = replies.into_iter().find_map(|reply| match reply {
            Message::NewLink(message) => Some(message),
            _ => None,
        });
        link.ok_or_else(|| missing(name))
    }

    /// Returns the name of an interface; `None` if it has disappeared.
    fn link_name(&self, index: u32) -> Result<Option<String>, Error> {
        let get = Message::GetLink(link::message(index));
        match self.request("looking up the name of an interface".into(), get, 0) {
            Ok(replies) => Ok(replies.iter().find_map(|reply| match reply {
                Message::NewLink(message) => link::name(message),
                _ => None,
            })),
            Err(error) if error.raw_os_error() == Some(Errno::ENODEV as i32) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&self, doing: String, message: Message) -> Result<(), Error> {
        self.change(doing, message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Deletes an object that may be gone already; returns the number of deleted ones.
    fn remove(&self, doing: &str, message: Message) -> Result<usize, Error> {
        let gone = [Errno::ENOENT as i32, Errno::ESRCH as i32];
        match self.change(doing.to_owned(), message, 0) {
            Ok(()) => Ok(1),
            Err(error) if error.raw_os_error().is_some_and(|e| gone.contains(&e)) => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn change(&self, doing: String, message: Message, flags: u16) -> Result<(), Error> {
        self.request(doing, message, flags | NLM_F_ACK).map(drop)
    }

    fn dump(&self, doing: &str, message: Message) -> Result<Vec<Message>, Error> {
        self.request(doing.to_owned(), message, NLM_F_DUMP)
    }

    /// Sends one request and collects its replies.
    fn request(&self, doing: String, message: Message, flags: u16) -> Result<Vec<Message>, Error> {
        let replies = self.runtime.block_on(self.exchange(message, flags));
        replies.map_err(|error| match error.raw_os_error() {
            // A lack of privileges is EPERM; EACCES is an interface with `disable_ipv6` set.
            Some(number) if number == Errno::EACCES as i32 => {
                Error::NoFamily { family: Family::V6 }
            }
            _ => Error::os(doing)(error),
        })
    }

    async fn exchange(&self, message: Message, flags: u16) -> io::Result<Vec<Message>> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        let mut stream = self
            .handle
            .clone()
            .request(request)
            .map_err(io::Error::other)?;
        let mut replies = Vec::new();
        while let Some(reply) = stream.next().await {
            match reply.payload {
                NetlinkPayload::InnerMessage(message) => replies.push(message),
                NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                _ => {}
            }
        }
        // A broken connection ends the stream in the same way as a success.
        match self.connection.is_finished() {
            true => Err(Errno::ECONNRESET.into()),
            false => Ok(replies),
        }
    }
}

fn missing(name: &str) -> Error {
    let doing = format!("looking for the interface {name}");
    Error::os(doing)(Errno::ENODEV)
}
