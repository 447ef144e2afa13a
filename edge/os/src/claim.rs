//! The claim of one process to the routing of a network namespace.
//!
//! [`crate::routes`], [`crate::divert`] and [`crate::mobile`] use the same tables and priorities in
//! every process. A second process would remove the routes of the first as leftovers, and the
//! traffic of the first would leave in clear. So a process takes the claim before it changes
//! anything, and holds it until it has removed everything.
//!
//! The claim is a TUN device that is down and has no address. A namespace has one device of a name,
//! and only one process can open it. The kernel removes the device with that process, also after
//! `kill -9`. Other locks are weaker:
//!
//! * Any local user can bind an abstract unix socket first, and so keep `stratad` from starting. A
//!   device needs `CAP_NET_ADMIN` in the namespace, as changing its routes does.
//! * A lock on a file holds in one mount namespace. Containers that share a network do not share
//!   their files.
//! * A table of nftables with an owner needs nftables, which is not on every machine.
//!
//! The alias of the device names the holder. Every user can read it, and `ip link` shows it.

use crate::tun::TunName;
use crate::{Error, Netlink};
use nix::errno::Errno;

/// Name of the device.
pub const DEVICE: &str = "strata-daemon";

/// Name of a holder whose device has no alias yet.
const UNNAMED: &str = "process";

/// Longest alias that the kernel keeps, in octets.
const LONGEST: usize = 254;

/// The claim to the network namespace of the thread that took it, until this is dropped.
pub struct Claim {
    _device: TunName,
}

impl Claim {
    /// Takes the claim to the calling thread's network namespace. `holder` describes this process
    /// to others, such as "stratad (process 1234, /etc/strata/strata.toml)".
    ///
    /// # Errors
    /// [`Error::Claimed`] if another process has it; without `/dev/net/tun` or the permission to
    /// create devices, those of [`crate::Tun::open`].
    pub fn take(holder: &str) -> Result<Self, Error> {
        let device = match TunName::reserve(DEVICE) {
            Err(Error::TunBusy { .. }) => {
                let holder = Self::holder()?.unwrap_or_else(|| UNNAMED.to_owned());
                return Err(Error::Claimed { holder });
            }
            device => device?,
        };
        // On a kernel that keeps no alias the holder is anonymous, but the claim is equally valid.
        let _unnamed = Netlink::open()?.set_alias(DEVICE, alias(holder));
        Ok(Self { _device: device })
    }

    /// Returns the process that holds the claim to the calling thread's network namespace. Needs no
    /// privileges.
    pub fn holder() -> Result<Option<String>, Error> {
        match Netlink::open()?.alias(DEVICE) {
            Ok(alias) => Ok(Some(alias.unwrap_or_else(|| UNNAMED.to_owned()))),
            Err(error) if error.raw_os_error() == Some(Errno::ENODEV as i32) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns the part of a text that fits an alias.
fn alias(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_cut_between_characters() {
        assert_eq!(alias("short"), "short");
        let long = "é".repeat(LONGEST);
        assert_eq!(alias(&long).len(), LONGEST);
        let shifted = format!("x{long}");
        assert_eq!(alias(&shifted).len(), LONGEST - 1);
    }
}
