//! A TUN device: a network interface whose other end is this process, with one IP packet per call
//! ([`crate::Bulk`] has many).
//!
//! The device is opened through tun-rs, whose synchronous interface wraps two system calls. The
//! caller reads in a loop until [`io::ErrorKind::WouldBlock`].
//!
//! The kernel is configured not to generate a link-local address, so it does not look for routers.
//! On a forwarding machine it still announces that it listens for routers' multicast, from the
//! unspecified address because it has no other. Such packets must not be forwarded or protected
//! (RFC 4291 section 2.5.2), so they are dropped here.

use crate::{Error, sysctl};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use tun_rs::{DeviceBuilder, SyncDevice};

/// The minimum MTU of IPv6 (RFC 8200 section 5).
const SHORTEST_MTU: u16 = 1280;

/// A TUN device that is up. The device and every route through it vanish when this is dropped.
pub struct Tun {
    pub(crate) device: SyncDevice,
    name: String,
}

impl Tun {
    /// Creates the device in the calling thread's network namespace and brings it up, without
    /// addresses. An `mtu` of 65535 accepts every packet unfragmented. A `%d` in the name becomes
    /// the first free number.
    pub fn open(name: &str, mtu: u16) -> Result<Self, Error> {
        Self::make(name, mtu, false, false)
    }

    /// Creates the device; with `uncut`, each packet has a virtio header and may be unsegmented;
    /// with `queues`, it may have several queues ([`Tun::queue`]).
    pub(crate) fn make(name: &str, mtu: u16, uncut: bool, queues: bool) -> Result<Self, Error> {
        let device = build(name, mtu, uncut, queues)?;
        let failed = || Error::os(format!("bringing up {name}"));
        device.set_nonblocking(true).map_err(failed())?;
        let name = device.name().map_err(failed())?;
        // Fails only without IPv6, and then there is no address to prevent.
        let _no_ipv6 = sysctl::set(&format!("net/ipv6/conf/{name}/addr_gen_mode"), "1");
        device.enabled(true).map_err(failed())?;
        Ok(Self { device, name })
    }

    /// Opens another queue of the device: the kernel distributes flows over the open queues.
    pub(crate) fn queue(&self) -> Result<Self, Error> {
        let failed = || Error::os(format!("opening another queue of {}", self.name));
        let device = self.device.try_clone().map_err(failed())?;
        device.set_nonblocking(true).map_err(failed())?;
        Ok(Self {
            device,
            name: self.name.clone(),
        })
    }

    /// Returns the interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads one packet that the kernel routed into the device. A packet longer than the buffer is
    /// truncated, so the buffer should be as long as the MTU.
    pub fn recv(&self, packet: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.device.recv(packet)?;
            if !is_from_nobody(&packet[..length]) {
                return Ok(length);
            }
        }
    }

    /// Passes one packet to the kernel as if it had arrived on the device.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.device.send(packet).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        #![allow(unsafe_code, reason = "tun-rs lends its descriptor only as a number")]
        // SAFETY: `device` owns the descriptor and outlives the borrow of `self`.
        unsafe { BorrowedFd::borrow_raw(self.device.as_raw_fd()) }
    }
}

/// A TUN device that stays down: it reserves a name and carries no packets.
pub(crate) struct TunName {
    _device: SyncDevice,
}

impl TunName {
    /// Creates the device in the calling thread's network namespace.
    ///
    /// # Errors
    /// Those of [`Tun::open`].
    pub(crate) fn reserve(name: &str) -> Result<Self, Error> {
        let device = build(name, SHORTEST_MTU, false, false)?;
        // Fails only without IPv6. With IPv6, the device would get an address if another program
        // brought it up.
        let _no_ipv6 = sysctl::set(&format!("net/ipv6/conf/{name}/addr_gen_mode"), "1");
        Ok(Self { _device: device })
    }
}

/// Creates a device that is down.
fn build(name: &str, mtu: u16, uncut: bool, queues: bool) -> Result<SyncDevice, Error> {
    // tun-rs would create the device node silently; its permissions are not ours to decide.
    if !Path::new("/dev/net/tun").exists() {
        return Err(Error::NoTunDevice);
    }
    DeviceBuilder::new()
        .name(name)
        .mtu(mtu)
        .enable(false)
        .with(|builder| {
            builder.offload(uncut).multi_queue(queues);
        })
        .build_sync()
        .map_err(|error| explain(error, name))
}

/// Returns true if the TUN devices of this machine support large packets with incomplete checksums.
/// `node` is the opened `/dev/net/tun`; the query creates nothing. `None` if it is another file.
pub fn offers_offload(node: &File) -> Option<bool> {
    #![allow(unsafe_code, reason = "no crate at hand has this call")]
    /// Flag of packets behind a virtio header, from `linux/if_tun.h`.
    const IFF_VNET_HDR: u32 = 0x4000;
    nix::ioctl_read!(features_of, b'T', 207, u32);
    let mut features = 0;
    // SAFETY: the descriptor is open, and the pointer is to a live `u32`; TUNGETFEATURES writes
    // one.
    let answer = unsafe { features_of(node.as_raw_fd(), &raw mut features) };
    answer.ok().map(|_| features & IFF_VNET_HDR != 0)
}

/// Returns true if a packet's source is the unspecified address.
pub(crate) fn is_from_nobody(packet: &[u8]) -> bool {
    let source = match packet.first().map(|octet| octet >> 4) {
        Some(4) => packet.get(12..16),
        Some(6) => packet.get(8..24),
        _ => None,
    };
    source.is_some_and(|source| source.iter().all(|octet| *octet == 0))
}

/// Explains an error. Opening the node fails with EACCES; creating the interface with EPERM or
/// EBUSY.
fn explain(error: io::Error, name: &str) -> Error {
    use nix::errno::Errno;
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EACCES) => Error::NoTunRight,
        Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => Error::NoTunDevice,
        Some(Errno::EBUSY) => Error::TunBusy { name: name.into() },
        _ => Error::os(format!("creating the interface {name}"))(error),
    }
}
