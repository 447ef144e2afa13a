//! A TUN device: a network interface whose other end is this process, with one IP packet per call
//! ([`crate::Bulk`] has many).
//!
//! The device is created through tun-rs. What remains is a descriptor with a packet per system
//! call, which the caller reads in a loop until [`io::ErrorKind::WouldBlock`]. So the device may
//! also be one that outlived its process ([`crate::kept`]).
//!
//! The kernel is configured not to generate a link-local address, so it does not look for routers.
//! On a forwarding machine it still announces that it listens for routers' multicast, from the
//! unspecified address because it has no other. Such packets must not be forwarded or protected
//! (RFC 4291 section 2.5.2), so they are dropped here.

use crate::kept::{self, Unfit};
use crate::{Error, sysctl};
use nix::errno::Errno;
use nix::libc;
use nix::sys::stat::makedev;
use nix::unistd::{read, write};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::path::Path;
use tun_rs::{DeviceBuilder, SyncDevice};

/// The minimum MTU of IPv6 (RFC 8200 section 5).
const SHORTEST_MTU: u16 = 1280;

/// The form of packets and the number of queues of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// Each packet has a virtio header and may be unsegmented.
    pub(crate) uncut: bool,
    /// The device may have several queues ([`Tun::queue`]).
    pub(crate) queues: bool,
}

/// A TUN device that is up. The device and every route through it vanish when this is dropped,
/// unless another process has its descriptor too.
pub struct Tun {
    queue: OwnedFd,
    name: String,
    form: Form,
    /// The kernel accepts joined datagrams of UDP.
    pub(crate) udp_gso: bool,
}

impl Tun {
    /// Creates the device in the calling thread's network namespace and brings it up, without
    /// addresses. An `mtu` of 65535 accepts every packet unfragmented. A `%d` in the name becomes
    /// the first free number.
    pub fn open(name: &str, mtu: u16) -> Result<Self, Error> {
        Self::make(name, mtu, Form::PLAIN)
    }

    /// Creates the device in this form.
    pub(crate) fn make(name: &str, mtu: u16, form: Form) -> Result<Self, Error> {
        let device = build(name, mtu, form)?;
        let failed = || Error::os(format!("bringing up {name}"));
        let name = device.name().map_err(failed())?;
        // Fails only without IPv6, and then there is no address to prevent.
        let _no_ipv6 = sysctl::set(&format!("net/ipv6/conf/{name}/addr_gen_mode"), "1");
        device.enabled(true).map_err(failed())?;
        Self::over(device, name, form)
    }

    /// Takes over a device that outlived its process, if it has this name and form.
    pub(crate) fn adopt(kept: OwnedFd, name: &str, form: Form) -> Result<Self, Unfit> {
        if !kept::is_of_this_namespace(&kept) {
            return Err(Unfit::Namespace);
        }
        let (own, flags) = interface(&kept).ok_or(Unfit::Kind)?;
        if own != name {
            return Err(Unfit::Name(own));
        }
        if flags & FORM_FLAGS != form.flags() {
            return Err(Unfit::Form);
        }
        let udp_gso = form.uncut && offers_udp(&kept).map_err(|_| Unfit::Form)?;
        Ok(Self {
            queue: kept,
            name: own,
            form,
            udp_gso,
        })
    }

    /// Opens another queue of the device: the kernel distributes flows over the open queues.
    pub(crate) fn queue(&self) -> Result<Self, Error> {
        let doing = format!("opening another queue of {}", self.name);
        if !self.form.queues {
            return Err(Error::os(doing)(Errno::EINVAL));
        }
        let device = builder(&self.name, self.form).build_sync();
        let device = device.map_err(Error::os(doing))?;
        Self::over(device, self.name.clone(), self.form)
    }

    fn over(device: SyncDevice, name: String, form: Form) -> Result<Self, Error> {
        #![allow(
            unsafe_code,
            reason = "tun-rs hands its descriptor over only as a number"
        )]
        let failed = Error::os(format!("opening {name}"));
        device.set_nonblocking(true).map_err(failed)?;
        let udp_gso = device.udp_gso();
        // SAFETY: the descriptor is open, and `into_raw_fd` gives up its ownership.
        let queue = unsafe { OwnedFd::from_raw_fd(device.into_raw_fd()) };
        Ok(Self {
            queue,
            name,
            form,
            udp_gso,
        })
    }

    /// Returns true if each packet has a virtio header and may be unsegmented.
    pub(crate) const fn is_uncut(&self) -> bool {
        self.form.uncut
    }

    /// Reads one packet, with the virtio header if there is one.
    pub(crate) fn read(&self, packet: &mut [u8]) -> io::Result<usize> {
        Ok(read(&self.queue, packet)?)
    }

    /// Writes one packet, with the virtio header if there is one.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<usize> {
        Ok(write(&self.queue, packet)?)
    }

    /// Returns the interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads one packet that the kernel routed into the device. A packet longer than the buffer is
    /// truncated, so the buffer should be as long as the MTU.
    pub fn recv(&self, packet: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.read(packet)?;
            if !is_from_nobody(&packet[..length]) {
                return Ok(length);
            }
        }
    }

    /// Passes one packet to the kernel as if it had arrived on the device.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.write(packet).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
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
        let device = build(name, SHORTEST_MTU, Form::PLAIN)?;
        // Fails only without IPv6. With IPv6, the device would get an address if another program
        // brought it up.
        let _no_ipv6 = sysctl::set(&format!("net/ipv6/conf/{name}/addr_gen_mode"), "1");
        Ok(Self { _device: device })
    }
}

/// Creates a device that is down.
fn build(name: &str, mtu: u16, form: Form) -> Result<SyncDevice, Error> {
    // tun-rs would create the device node silently; its permissions are not ours to decide.
    if !Path::new("/dev/net/tun").exists() {
        return Err(Error::NoTunDevice);
    }
    let builder = builder(name, form).mtu(mtu).enable(false);
    builder.build_sync().map_err(|error| explain(error, name))
}

fn builder(name: &str, form: Form) -> DeviceBuilder {
    let builder = DeviceBuilder::new().name(name);
    builder.with(|builder| {
        builder.offload(form.uncut).multi_queue(form.queues);
    })
}

/// The flags of a device that [`Form`] decides; a persistent one is not ours.
const FORM_FLAGS: i32 =
    libc::IFF_TUN | libc::IFF_TAP | libc::IFF_VNET_HDR | libc::IFF_MULTI_QUEUE | libc::IFF_PERSIST;

impl Form {
    /// A packet per system call, and one queue.
    const PLAIN: Self = Self {
        uncut: false,
        queues: false,
    };

    const fn flags(self) -> i32 {
        let uncut = if self.uncut { libc::IFF_VNET_HDR } else { 0 };
        let queues = if self.queues {
            libc::IFF_MULTI_QUEUE
        } else {
            0
        };
        libc::IFF_TUN | uncut | queues
    }
}

/// Returns the name and the flags of the device that a descriptor leads to; `None` if it leads to
/// another file, or the device is gone.
fn interface(descriptor: &OwnedFd) -> Option<(String, i32)> {
    #![allow(unsafe_code, reason = "no crate at hand has this call")]
    // The number has the size of an `unsigned int`, but the kernel writes a whole `ifreq`.
    nix::ioctl_read_bad!(
        interface_of,
        nix::request_code_read!(b'T', 210, size_of::<u32>()),
        libc::ifreq
    );
    if !kept::is_device(descriptor, TUN_NODE) {
        return None;
    }
    // SAFETY: all fields of the union are numbers or arrays of them, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the pointer is to a live `ifreq`, which TUNGETIFF fills.
    unsafe { interface_of(descriptor.as_raw_fd(), &raw mut request) }.ok()?;
    // SAFETY: TUNGETIFF has written the flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    let name = request.ifr_name.iter().take_while(|octet| **octet != 0);
    let name: Vec<u8> = name.map(|octet| octet.to_ne_bytes()[0]).collect();
    Some((String::from_utf8(name).ok()?, flags.into()))
}

/// Major and minor number of `/dev/net/tun`.
const TUN_NODE: u64 = makedev(10, 200);

/// Sets a device to deliver unsegmented packets of TCP, and of UDP if the kernel can. Returns true
/// if it can.
fn offers_udp(descriptor: &OwnedFd) -> nix::Result<bool> {
    #![allow(unsafe_code, reason = "no crate at hand has this call")]
    nix::ioctl_write_int!(set_offload, b'T', 208);
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
    let all = tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6;
    // SAFETY: the descriptor is open, and TUNSETOFFLOAD takes a number.
    let set = |what: u32| unsafe { set_offload(descriptor.as_raw_fd(), what.into()) };
    set(tcp)?;
    Ok(set(all).is_ok())
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
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EACCES) => Error::NoTunRight,
        Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => Error::NoTunDevice,
        Some(Errno::EBUSY) => Error::TunBusy { name: name.into() },
        _ => Error::os(format!("creating the interface {name}"))(error),
    }
}
