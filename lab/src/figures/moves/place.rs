//! Places of the mobile node: interfaces with addresses and routes.

use crate::emulator::{Emulator, Settings};
use crate::host::Host;
use crate::testbed::Testbed;
use crate::wire;
use anyhow::Result;
use os::netlink::{Route, Via};
use os::{Family, Prefix};
use std::time::Duration;

/// Address of the gateway.
pub(super) const PEER: &str = "192.0.2.1";

/// An interface with an address, and the router there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::figures) struct Place {
    pub device: &'static str,
    pub address: &'static str,
    pub prefix: &'static str,
    router: &'static str,
    table: u32,
}

/// The first interface.
pub(in crate::figures) const FIRST: Place = Place {
    device: "eth0",
    address: "10.3.0.2",
    prefix: "10.3.0.2/24",
    router: "10.3.0.1",
    table: 101,
};

/// The second interface.
pub(in crate::figures) const SECOND: Place = Place {
    device: "eth1",
    address: "10.4.0.2",
    prefix: "10.4.0.2/24",
    router: "10.4.0.1",
    table: 102,
};

/// Another subnet of the first interface.
pub(in crate::figures) const RENUMBERED: Place = Place {
    device: "eth0",
    address: "10.5.0.2",
    prefix: "10.5.0.2/24",
    router: "10.5.0.1",
    table: 103,
};

/// The mobile node, a router, and the gateway.
pub(super) struct Network {
    pub mobile: Host,
    pub gateway: Host,
    _between: Host,
    _far: Emulator,
    metric: u32,
    _bed: Testbed,
}

impl Network {
    /// Creates the hosts. The round trip is on the wire between router and gateway.
    pub fn new(round_trip: Duration) -> Result<Self> {
        let bed = Testbed::new("move")?;
        let (mobile, gateway) = (bed.host("mobile")?, bed.host("gateway")?);
        let between = bed.host("between")?;
        for host in [&mobile, &between, &gateway] {
            // Otherwise the tunnel would carry the kernel's own IPv6 packets too.
            host.sysctl("net.ipv6.conf.default.disable_ipv6", "1")?;
        }
        between.sysctl("net.ipv4.ip_forward", "1")?;
        let far = wires(&mobile, &between, &gateway, round_trip)?;
        for place in [FIRST, SECOND, RENUMBERED] {
            let rule = format!("from {} lookup {}", place.address, place.table);
            mobile.run(&format!("ip rule add {rule}"))?;
        }
        gateway.route("default", "192.0.2.2")?;
        let mut network = Self {
            mobile,
            gateway,
            _between: between,
            _far: far,
            metric: 100,
            _bed: bed,
        };
        network.add_routes(FIRST)?;
        network.add_routes(SECOND)?;
        Ok(network)
    }

    /// Adds the default routes of a place: for its address, and for all packets. The latter has a
    /// worse metric than any before, so that no daemon has a reason to return to an interface that
    /// is up again.
    pub fn add_routes(&mut self, place: Place) -> Result<()> {
        self.metric += 1;
        let netlink = self.mobile.netns().netlink()?;
        let via = Via::Onlink {
            gateway: place.router.parse()?,
            device: place.device.to_owned(),
        };
        let own = Route {
            table: place.table,
            ..Route::new(Prefix::everything(Family::V4), via)
        };
        netlink.replace_route(&own)?;
        let main = Route {
            table: Route::MAIN,
            metric: self.metric,
            ..own
        };
        Ok(netlink.add_route(&main)?)
    }
}

fn wires(mobile: &Host, between: &Host, gateway: &Host, round_trip: Duration) -> Result<Emulator> {
    wire::veth(
        mobile.end(FIRST.device, &[FIRST.prefix]),
        between.end("wireless", &["10.3.0.1/24", "10.5.0.1/24"]),
    )?;
    wire::veth(
        mobile.end(SECOND.device, &[SECOND.prefix]),
        between.end("wireless2", &["10.4.0.1/24"]),
    )?;
    let far = sim::Settings {
        rate: None,
        delay: round_trip / 2,
        queue: 0,
        bit_error_rate: 0.0,
    };
    wire::emulated(
        between.end("wired", &["192.0.2.2/24"]),
        gateway.end("eth0", &["192.0.2.1/24"]),
        Settings::symmetric(far),
        1,
    )
}
