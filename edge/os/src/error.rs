//! Errors of the operating system, with their remedies.

use crate::{Family, owner::Owner};
use std::io;
use std::net::IpAddr;

/// Returns true if the error means that a device was removed.
pub fn is_gone(error: &io::Error) -> bool {
    use nix::errno::Errno::{EBADFD, ENODEV};
    let errno = error.raw_os_error().map(nix::errno::Errno::from_raw);
    matches!(errno, Some(EBADFD | ENODEV))
}

/// An error of the operating system. If the cause is known, the text ends with the fix.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another socket has the port.
    #[error(
        "{protocol} port {port} is already taken{owner}: stop it or choose another port in [listen] or [metrics]"
    )]
    PortTaken {
        /// `UDP` or `TCP`.
        protocol: &'static str,
        /// The port.
        port: u16,
        /// The process that has the port, if it is visible to us.
        owner: Owner,
    },
    /// The address to listen on belongs to no interface, and this kernel cannot wait for it.
    #[error(
        "no interface has the address {address}: correct it in [listen] or [metrics], or bring its interface up first"
    )]
    NoSuchAddress {
        /// The address.
        address: IpAddr,
    },
    /// The kernel lacks an address family, or the family is switched off.
    #[error(
        "{family} is disabled on this machine: remove its addresses from the configuration, or enable it, for example with `sysctl -w net.ipv6.conf.all.disable_ipv6=0`"
    )]
    NoFamily {
        /// The family.
        family: Family,
    },
    /// The device node is missing.
    #[error(
        "/dev/net/tun is missing: run `modprobe tun`, or start the container with `--device /dev/net/tun`"
    )]
    NoTunDevice,
    /// The process may not open the device node.
    #[error(
        "no permission to open /dev/net/tun: run as root, or give users access with `chmod 666 /dev/net/tun`"
    )]
    NoTunRight,
    /// Another process has the device open.
    #[error(
        "the interface {name} is in use by another process: stop that process, or choose another `name` in [tunnel]"
    )]
    TunBusy {
        /// The interface's name.
        name: String,
    },
    /// Another process holds the claim ([`crate::Claim`]).
    #[error(
        "another {holder} serves this network namespace: stop that process (`systemctl stop stratad` if it is a unit), or run this one in its own network namespace with `ip netns exec NAME stratad`"
    )]
    Claimed {
        /// The holder's description of itself.
        holder: String,
    },
    /// A capability is missing.
    #[error(
        "no permission for {doing}: run as root, or with the capabilities CAP_NET_ADMIN, CAP_NET_BIND_SERVICE, CAP_NET_RAW (for ESP without UDP) and CAP_SYS_ADMIN (for namespaces)"
    )]
    NoRight {
        /// The attempted action.
        doing: String,
    },
    /// The kernel lacks a congestion control, or has not loaded it.
    #[error("this kernel has no congestion control {name}: load it with `modprobe tcp_{name}`")]
    NoCongestionControl {
        /// Name of the congestion control.
        name: String,
    },
    /// Unprivileged users may not create namespaces on this machine.
    #[error(
        "this machine does not let users create namespaces: run as root, or allow it with `sysctl -w {sysctl}`"
    )]
    NoUserNamespaces {
        /// The setting and the value that allow it.
        sysctl: &'static str,
    },
    /// A licensed node runs on a machine that does not forward packets.
    #[error("this machine does not forward {family} packets: turn it on with `sysctl -w {}=1`", .family.forwarding_sysctl())]
    NotForwarding {
        /// The family.
        family: Family,
    },
    /// The peer's outer address is routed into the tunnel, and an interface checks reverse paths.
    #[error(
        "{interface} would drop packets from the peer at {peer}, because its address is inside a tunnelled prefix and reverse paths are checked strictly: run `sysctl -w net.ipv4.conf.{interface}.rp_filter=2`"
    )]
    StrictReversePath {
        /// The interface, or `all`.
        interface: String,
        /// The peer's outer address.
        peer: IpAddr,
    },
    /// Packets arrive on an interface that checks reverse paths, and leave by another.
    #[error(
        "{interface} would drop received packets while another interface sends, because reverse paths are checked strictly: run `sysctl -w net.ipv4.conf.{interface}.rp_filter=2`"
    )]
    StrictSecondWay {
        /// The interface.
        interface: String,
    },
    /// An interface has no Ethernet addresses, which identify neighbours.
    #[error(
        "{interface} has no Ethernet address, and neighbours are found only on Ethernet and Wi-Fi: name another interface"
    )]
    NoEthernet {
        /// The interface.
        interface: String,
    },
    /// The list of name servers cannot be replaced, because it is a mount point.
    #[error(
        "{} is a mount point, as in a container, and cannot be replaced: set `resolver` in [tunnel] to another file, or remove `dns`", file.display()
    )]
    MountedResolver {
        /// The list.
        file: std::path::PathBuf,
    },
    /// The program that filters packets is missing.
    #[error(
        "`leak = \"never\"` needs the program nft: install it, on Debian with `apt-get install nftables`"
    )]
    NoFilter,
    /// A limit on kept objects was exceeded.
    #[error("{what}: the limit of {limit} is reached")]
    Limit {
        /// The kind of object.
        what: &'static str,
        /// Most objects of the kind.
        limit: usize,
    },
    /// Any other error.
    #[error("{doing}: {source}")]
    Os {
        /// The attempted action.
        doing: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl Error {
    /// Converts an error number to an [`Error`] with the attempted action.
    pub(crate) fn os<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        |source| {
            let (doing, source) = (doing.into(), source.into());
            match source.kind() {
                io::ErrorKind::PermissionDenied => Self::NoRight { doing },
                _ => Self::Os { doing, source },
            }
        }
    }

    /// Returns the kernel's error number, if there is one and no variant covers it.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Os { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}
