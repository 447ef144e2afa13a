//! The sockets of an interface with neighbours, which are open while the interface is up.

use super::each_message;
use node::mobile_ip::PORT;
use os::discovery::Role;
use os::poll::Interest;
use os::{Discovery, Ends, Error, LocalUdp, Poller};
use std::io;

/// Descriptors of an interface.
pub const DESCRIPTORS: u64 = 2;

/// The sockets of an interface.
pub struct Sockets {
    /// Advertisements and solicitations.
    pub discovery: Discovery,
    /// Registrations.
    pub local: LocalUdp,
}

impl Sockets {
    /// Opens the sockets. With `shared`, port 434 has another socket for routed peers.
    pub fn open(interface: &str, role: Role, shared: bool) -> Result<Self, Error> {
        Ok(Self {
            discovery: Discovery::open(interface, role)?,
            local: match shared {
                true => LocalUdp::open_beside(interface, PORT)?,
                false => LocalUdp::open(interface, PORT)?,
            },
        })
    }

    /// Registers the sockets with the poller, under [`DESCRIPTORS`] tokens from `token` on.
    pub fn watch(&self, poller: &Poller, token: u64) -> io::Result<()> {
        poller.add(&self.discovery, token, Interest::Read)?;
        poller.add(&self.local, token + 1, Interest::Read)
    }

    /// Reads advertisements or solicitations.
    pub fn read_discovery(&mut self, mut each: impl FnMut(Ends, &[u8])) -> io::Result<()> {
        unless_gone(each_message(|| self.discovery.recv(&mut each)))
    }

    /// Reads registrations, each with its source port.
    pub fn read_local(&mut self, mut each: impl FnMut(Ends, u16, &[u8])) -> io::Result<()> {
        unless_gone(each_message(|| self.local.recv(&mut each)))
    }
}

/// Ignores the removal of the interface, which the kernel also reports as an event.
fn unless_gone(read: io::Result<()>) -> io::Result<()> {
    match read {
        Err(error) if os::is_gone(&error) => Ok(()),
        read => read,
    }
}
