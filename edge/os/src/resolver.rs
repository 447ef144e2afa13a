//! The name servers that programs use while a tunnel is up.
//!
//! The manager of that list is asked to change it. systemd-resolved, if it runs, has servers per
//! device and drops them with the device. resolvconf, if it is installed, has servers per name.
//! Otherwise the list is the file `/etc/resolv.conf`, which has no manager.
//!
//! The file is exchanged with ours in one step, so every program sees one or the other. The former
//! file (which may be a link) stays in the same folder under another name until it is restored. Our
//! file begins with a line that identifies it. So after a crash at any moment the two files
//! determine the next step, which [`Resolver::restore`] takes; the next start calls it first. A
//! file that another program has written in the meantime is newer than the one put aside, and
//! stays.

use crate::{Error, Netlink, crash, program};
use nix::errno::Errno;
use nix::{NixPath, libc};
use std::ffi::CStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Default path of the list.
pub const FILE: &str = "/etc/resolv.conf";

/// The machine's list of hosts.
const HOSTS: &str = "/etc/hosts";

/// The folder of systemd-resolved, which exists while it runs.
const RESOLVED: &str = "/run/systemd/resolve";

/// First line of a file of ours.
const OURS: &str =
    "# Written by stratad: the former file is beside this one until the tunnel is down.";

/// Returns the name servers that programs of this host use, and those that systemd-resolved uses
/// for them; empty if no list can be read.
pub fn servers() -> Vec<IpAddr> {
    let files = [FILE.to_owned(), format!("{RESOLVED}/resolv.conf")];
    let lists = files
        .into_iter()
        .filter_map(|file| fs::read_to_string(file).ok());
    lists.flat_map(|list| listed(&list)).collect()
}

/// Returns the name servers of the network outside of all tunnels: those of `file`, or of the
/// former file while ours is in its place, and those that systemd-resolved uses. A server of this
/// machine itself comes last, as it may ask others through a tunnel.
pub fn servers_outside(file: &Path) -> Vec<IpAddr> {
    let file = match is_ours(file) {
        true => aside(file),
        false => file.to_owned(),
    };
    let files = [file, PathBuf::from(format!("{RESOLVED}/resolv.conf"))];
    let lists = files.into_iter();
    let lists = lists.filter_map(|file| fs::read_to_string(file).ok());
    let mut servers = Vec::new();
    for server in lists.flat_map(|list| listed(&list)) {
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers.sort_by_key(IpAddr::is_loopback);
    servers
}

/// Returns the addresses of a name in the machine's list of hosts (hosts(5)).
pub fn addresses_in_hosts(name: &str) -> Vec<IpAddr> {
    let list = fs::read_to_string(HOSTS).unwrap_or_default();
    in_hosts(&list, name)
}

fn in_hosts(list: &str, name: &str) -> Vec<IpAddr> {
    let lines = list.lines().filter_map(|line| line.split('#').next());
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let address: IpAddr = words.next()?.parse().ok()?;
        let is_it = words.any(|word| word.eq_ignore_ascii_case(name));
        is_it.then_some(address)
    };
    lines.filter_map(of_line).collect()
}

fn listed(list: &str) -> Vec<IpAddr> {
    let servers = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver"));
    servers
        .filter_map(|server| server.trim().parse().ok())
        .collect()
}

/// The list of name servers, for one tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolver {
    device: String,
    manager: ResolverManager,
}

/// The manager of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolverManager {
    /// systemd-resolved.
    Resolved,
    /// resolvconf or openresolv.
    Resolvconf,
    /// No manager: the list is this file.
    File(PathBuf),
}

impl ResolverManager {
    /// Returns the manager on this machine.
    pub fn of_this_machine() -> Self {
        if Path::new(RESOLVED).exists() && program::exists("resolvectl") {
            Self::Resolved
        } else if program::exists("resolvconf") {
            Self::Resolvconf
        } else {
            Self::File(FILE.into())
        }
    }
}

impl Resolver {
    /// Prepares the list for the tunnel of this device.
    pub const fn new(device: String, manager: ResolverManager) -> Self {
        Self { device, manager }
    }

    /// Makes programs use these servers, and no others.
    pub fn set(&self, servers: &[IpAddr]) -> Result<(), Error> {
        let lines = servers
            .iter()
            .map(|server| format!("nameserver {server}\n"));
        let lines: String = lines.collect();
        match &self.manager {
            ResolverManager::Resolved => {
                let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
                let servers = servers.iter().map(String::as_str);
                let dns: Vec<_> = ["dns", &self.device].into_iter().chain(servers).collect();
                program::run("resolvectl", &dns, "")?;
                // All names are resolved there, whatever other devices offer.
                program::run("resolvectl", &["domain", &self.device, "~."], "").map(drop)
            }
            ResolverManager::Resolvconf => {
                program::run("resolvconf", &["-a", &self.record()], &lines).map(drop)
            }
            ResolverManager::File(file) => replace(file, &lines).map_err(explain(file)),
        }
    }

    /// Makes programs use the former servers again, if they do not already.
    pub fn restore(&self) -> Result<(), Error> {
        match &self.manager {
            ResolverManager::Resolved if !self.has_device()? => Ok(()),
            ResolverManager::Resolved => {
                program::run("resolvectl", &["revert", &self.device], "").map(drop)
            }
            ResolverManager::Resolvconf => {
                program::run("resolvconf", &["-d", &self.record()], "").map(drop)
            }
            ResolverManager::File(file) => restore(file).map_err(explain(file)),
        }
    }

    fn has_device(&self) -> Result<bool, Error> {
        Ok(Netlink::open()?.links()?.contains(&self.device))
    }

    /// Returns the name of our resolvconf record: a device and a provider.
    fn record(&self) -> String {
        format!("{}.strata", self.device)
    }
}

/// Returns true if the file exists and is a list of ours.
pub fn is_ours(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.starts_with(OURS))
}

/// Returns the path of the former file while ours is in its place.
pub fn aside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".before-strata");
    file.with_file_name(name)
}

fn replace(file: &Path, servers: &str) -> io::Result<()> {
    restore(file)?;
    let former = match fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // Search lists and options are independent of the servers, so they stay.
    let others = former.iter().flat_map(|text| text.lines());
    let others = others.filter(|line| !line.starts_with("nameserver"));
    let others: String = others.map(|line| format!("{line}\n")).collect();
    let aside = aside(file);
    fs::write(&aside, format!("{OURS}\n{servers}{others}"))?;
    // Every program reads the list, whatever the umask of this process.
    fs::set_permissions(&aside, fs::Permissions::from_mode(0o644))?;
    crash::point("resolver-written");
    // A dangling link counts as a file.
    match fs::symlink_metadata(file) {
        Ok(_) => exchange(&aside, file)?,
        Err(_) => fs::rename(&aside, file)?,
    }
    crash::point("resolver-swapped");
    Ok(())
}

/// Exchanges two files, so that neither name is missing at any time.
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    #![allow(unsafe_code, reason = "nix has this call with glibc only")]
    let here = libc::AT_FDCWD;
    let how = libc::RENAME_EXCHANGE;
    let call = |one: &CStr, other: &CStr| {
        let (one, other) = (one.as_ptr(), other.as_ptr());
        // SAFETY: both pointers are to strings that outlive the call.
        unsafe { libc::syscall(libc::SYS_renameat2, here, one, here, other, how) }
    };
    let result = one.with_nix_path(|one| other.with_nix_path(|other| call(one, other)))??;
    Ok(Errno::result(result).map(drop)?)
}

fn restore(file: &Path) -> io::Result<()> {
    let aside = aside(file);
    let has_former = fs::symlink_metadata(&aside).is_ok();
    match (is_ours(file), has_former) {
        (true, true) => fs::rename(aside, file),
        (true, false) => fs::remove_file(file),
        // Never exchanged, or replaced by another program's file.
        (false, true) => fs::remove_file(aside),
        (false, false) => Ok(()),
    }
}

fn explain(file: &Path) -> impl FnOnce(io::Error) -> Error {
    let file = file.to_owned();
    move |error| match error.kind() {
        ErrorKind::ResourceBusy => Error::MountedResolver { file },
        _ => Error::os(format!("changing {}", file.display()))(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const FORMER: &str = "nameserver 192.0.2.53\nsearch example.net\n";

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let unique = format!("strata-resolver-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(unique);
            fs::create_dir(&folder).unwrap();
            Self(folder)
        }

        fn file(&self) -> PathBuf {
            self.0.join("resolv.conf")
        }

        fn resolver(&self) -> Resolver {
            Resolver::new("strata0".into(), ResolverManager::File(self.file()))
        }

        fn set(&self) {
            let servers = ["10.8.0.53".parse().unwrap(), "fd00:8::53".parse().unwrap()];
            self.resolver().set(&servers).unwrap();
        }

        fn text(&self) -> String {
            fs::read_to_string(self.file()).unwrap()
        }

        fn entries(&self) -> usize {
            fs::read_dir(&self.0).unwrap().count()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn name_servers_are_read_from_a_list() {
        let list = format!("{FORMER}nameserver\tfd00::53\n# nameserver 192.0.2.1\nnameserver x\n");
        let expected: [IpAddr; 2] = ["192.0.2.53".parse().unwrap(), "fd00::53".parse().unwrap()];
        assert_eq!(listed(&list), expected);
    }

    #[test]
    fn the_servers_of_the_network_are_those_of_the_former_file() {
        let folder = Folder::new("outside");
        fs::write(
            folder.file(),
            "nameserver 127.0.0.1\nnameserver 192.0.2.53\n",
        )
        .unwrap();
        let outside = || {
            let mut servers = servers_outside(&folder.file());
            // systemd-resolved may run on the machine of the test.
            servers.retain(|server| server.is_loopback() || server.to_string() == "192.0.2.53");
            servers.dedup();
            servers.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(outside(), ["192.0.2.53", "127.0.0.1"]);
        folder.set();
        assert_eq!(outside(), ["192.0.2.53", "127.0.0.1"]);
    }

    #[test]
    fn addresses_are_read_from_a_list_of_hosts() {
        let list = "192.0.2.1 gw.example.net gw # comment\n# 192.0.2.2 gw\n2001:db8::1\tGW\nx gw\n";
        let read = |name| {
            let found = in_hosts(list, name).into_iter();
            found.map(|address| address.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(read("gw"), ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(read("gw.example.net"), ["192.0.2.1"]);
        assert_eq!(read("comment").len(), 0);
    }

    #[test]
    fn servers_are_replaced_and_everything_else_is_kept() {
        let folder = Folder::new("replaced");
        fs::write(folder.file(), FORMER).unwrap();
        folder.set();
        let expected = "nameserver 10.8.0.53\nnameserver fd00:8::53\nsearch example.net\n";
        assert_eq!(folder.text(), format!("{OURS}\n{expected}"));
        folder.resolver().restore().unwrap();
        assert_eq!((folder.text().as_str(), folder.entries()), (FORMER, 1));
    }

    #[test]
    fn a_link_comes_back_as_a_link() {
        let folder = Folder::new("link");
        fs::write(folder.0.join("stub"), FORMER).unwrap();
        symlink("stub", folder.file()).unwrap();
        folder.set();
        assert_eq!(fs::read_to_string(folder.0.join("stub")).unwrap(), FORMER);
        folder.resolver().restore().unwrap();
        assert_eq!(fs::read_link(folder.file()).unwrap(), Path::new("stub"));
    }

    #[test]
    fn where_there_was_no_file_there_is_none_afterwards() {
        let folder = Folder::new("none");
        folder.set();
        assert!(is_ours(&folder.file()));
        folder.resolver().restore().unwrap();
        assert_eq!(folder.entries(), 0);
    }

    #[test]
    fn what_somebody_else_wrote_in_the_meantime_stays() {
        let folder = Folder::new("meantime");
        fs::write(folder.file(), FORMER).unwrap();
        folder.set();
        fs::write(folder.file(), "nameserver 198.51.100.53\n").unwrap();
        folder.resolver().restore().unwrap();
        assert_eq!(folder.text(), "nameserver 198.51.100.53\n");
        assert_eq!(folder.entries(), 1);
    }

    #[test]
    fn a_crash_before_the_exchange_leaves_nothing_after_the_next_start() {
        let folder = Folder::new("crash");
        fs::write(folder.file(), FORMER).unwrap();
        fs::write(aside(&folder.file()), OURS).unwrap();
        folder.resolver().restore().unwrap();
        assert_eq!((folder.text().as_str(), folder.entries()), (FORMER, 1));
    }

    #[test]
    fn restoring_what_was_never_changed_does_nothing() {
        let folder = Folder::new("nothing");
        fs::write(folder.file(), FORMER).unwrap();
        folder.resolver().restore().unwrap();
        assert_eq!((folder.text().as_str(), folder.entries()), (FORMER, 1));
    }

    #[test]
    fn a_second_set_keeps_the_first_former_file() {
        let folder = Folder::new("twice");
        fs::write(folder.file(), FORMER).unwrap();
        folder.set();
        folder.set();
        folder.resolver().restore().unwrap();
        assert_eq!((folder.text().as_str(), folder.entries()), (FORMER, 1));
    }
}
