//! The state that this process installs in the kernel's routing configuration, as a whole: compared
//! with the present state, and restored.

use crate::netlink::{Route, Rule};
use crate::{Error, Netlink, Prefix, crash};

/// Expected devices, addresses, routes and rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Installed<'a> {
    /// Devices that must be up.
    pub(crate) devices: Vec<&'a str>,
    /// Addresses of interfaces.
    pub(crate) addresses: Vec<(&'a str, Prefix)>,
    pub(crate) routes: Vec<Route>,
    pub(crate) rules: Vec<Rule>,
}

impl Installed<'_> {
    /// Returns the missing state, in the notation of ip(8).
    pub(crate) fn missing(self, netlink: &Netlink) -> Result<Vec<String>, Error> {
        let mut missing = Vec::new();
        for name in self.devices {
            if !netlink.is_up(name)? {
                missing.push(format!("link {name} up"));
            }
        }
        for (name, address) in self.addresses {
            if !netlink.addresses(name)?.contains(&address) {
                missing.push(format!("address {address} dev {name}"));
            }
        }
        let routes = netlink.absent_routes(self.routes)?;
        missing.extend(routes.iter().map(|route| format!("route {route}")));
        let rules = netlink.absent_rules(self.rules)?;
        missing.extend(rules.iter().map(|rule| format!("rule {rule}")));
        Ok(missing)
    }

    /// Restores the missing state. Routes come before the rules that lead to them.
    pub(crate) fn restore(self, netlink: &Netlink) -> Result<(), Error> {
        for name in self.devices {
            netlink.link_up(name)?;
        }
        for (name, address) in self.addresses {
            if !netlink.addresses(name)?.contains(&address) {
                netlink.add_address(name, address)?;
            }
        }
        for route in netlink.absent_routes(self.routes)? {
            netlink.replace_route(&route)?;
        }
        for rule in netlink.absent_rules(self.rules)? {
            netlink.add_rule(&rule)?;
            crash::point("divert-rule-added");
        }
        Ok(())
    }
}
