//! Wires between hosts.

use crate::emulator::{Emulator, Settings};
use crate::host::End;
use anyhow::{Context, Result};
use os::{Tun, netns};

/// The MTU of every wire, as on Ethernet.
const MTU: u16 = 1500;

/// Creates an ideal wire: a pair of virtual Ethernet devices. As on real Ethernet, super-packets
/// (GSO) are segmented before they are sent.
///
/// # Errors
/// A device of that name exists, or an address is malformed.
pub fn veth(a: End<'_>, b: End<'_>) -> Result<()> {
    netns::veth(a.host.netns(), a.device, b.host.netns(), b.device)?;
    for end in [&a, &b] {
        end.host
            .netns()
            .netlink()?
            .set_most_segments(end.device, 1)?;
    }
    a.set_addresses()?;
    b.set_addresses()
}

/// Creates a wire with a rate, a delay, a queue and errors. Dropping the emulator cuts it. Its ends
/// are point-to-point devices: no ARP, no Ethernet header.
///
/// # Errors
/// As [`veth`], and those of [`Emulator::start`].
pub fn emulated(a: End<'_>, b: End<'_>, settings: Settings, seed: u64) -> Result<Emulator> {
    Emulator::start(a.open_tun()?, b.open_tun()?, settings, seed)
}

impl End<'_> {
    fn open_tun(&self) -> Result<Tun> {
        let tun = self.host.inside(|| Ok(Tun::open(self.device, MTU)?))?;
        self.set_addresses()?;
        Ok(tun)
    }

    fn set_addresses(&self) -> Result<()> {
        let netlink = self.host.netns().netlink()?;
        for address in self.addresses {
            let prefix = address.parse().with_context(|| (*address).to_owned())?;
            netlink.add_address(self.device, prefix)?;
        }
        Ok(())
    }
}
