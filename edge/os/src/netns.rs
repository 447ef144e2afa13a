//! Network namespaces: separate networks inside this process, for the demo, the lab and the tests.
//! A namespace lives as long as a reference to it exists: this handle, a process, a socket.
//!
//! Linux keeps the namespace per thread. So code runs in another one on a thread of its own
//! ([`NetNs::enter`]), sockets and devices made there stay there wherever they are used later, and
//! programs enter between fork and exec ([`NetNs::command`]).

use crate::{Error, Family, Netlink, sysctl};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Gid, Uid, getpid, getppid};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::{panic, thread};

/// A handle of a network namespace. Clones share it.
#[derive(Clone, Debug)]
pub struct NetNs(Arc<File>);

impl NetNs {
    /// Creates a namespace with only the loopback interface, which is up.
    pub fn new() -> Result<Self, Error> {
        on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(Error::os("creating a network namespace"))?;
            Netlink::open()?.link_up("lo")?;
            Self::current()
        })
    }

    /// Returns the calling thread's namespace.
    pub fn current() -> Result<Self, Error> {
        File::open("/proc/thread-self/ns/net")
            .map(|file| Self(Arc::new(file)))
            .map_err(Error::os("opening the network namespace"))
    }

    /// Runs `f` inside, on a thread of its own, and waits for it. A panic in `f` is propagated.
    pub fn enter<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, Error> {
        on_a_thread(|| {
            setns(self, CloneFlags::CLONE_NEWNET).map_err(Error::os(ENTERING))?;
            Ok(f())
        })
    }

    /// Prepares a program that runs inside, with no signal blocked. The program is killed when the
    /// *thread* that starts it ends, so that a test or demo that dies leaves no process behind.
    /// Start it from a thread that lives long enough, and not within [`NetNs::enter`].
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let (namespace, parent) = (self.clone(), getpid());
        let mut command = Command::new(program);
        let prepare = move || {
            setns(&namespace, CloneFlags::CLONE_NEWNET)?;
            SigSet::empty().thread_set_mask()?;
            set_pdeathsig(Signal::SIGKILL)?;
            // A parent that died before the call above will never send the signal.
            match getppid() == parent {
                true => Ok(()),
                false => Err(io::Error::from(Errno::ESRCH)),
            }
        };
        #[allow(unsafe_code, reason = "there is no other hook between fork and exec")]
        // SAFETY: `prepare` makes system calls and neither allocates nor takes locks, as required
        // of a child of a process that may have other threads.
        unsafe {
            command.pre_exec(prepare)
        };
        command
    }

    /// Opens the routing configuration inside.
    pub fn netlink(&self) -> Result<Netlink, Error> {
        self.enter(Netlink::open)?
    }

    /// Sets a kernel setting inside, for example `net.ipv4.ip_forward`.
    pub fn sysctl(&self, name: &str, value: &str) -> Result<(), Error> {
        self.enter(|| sysctl::set(name, value))?
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Connects two namespaces with a pair of virtual Ethernet interfaces, both up. IPv6 works at once,
/// because no other node could have the same address.
pub fn veth(a: &NetNs, name_a: &str, b: &NetNs, name_b: &str) -> Result<(), Error> {
    a.netlink()?.add_veth(name_a, name_b, b)?;
    for (namespace, name) in [(a, name_a), (b, name_b)] {
        if sysctl::families().any(|family| family == Family::V6) {
            namespace.sysctl(&format!("net/ipv6/conf/{name}/accept_dad"), "0")?;
        }
        namespace.netlink()?.link_up(name)?;
    }
    Ok(())
}

/// Moves this process into network and mount namespaces of its own, in which it has root's
/// permissions: with its own privileges, or as root of a new user namespace onto which only the
/// caller is mapped. The process must have a single thread; call this first in `main`.
pub fn become_root_in_user_namespace() -> Result<(), Error> {
    let separate = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS;
    let (user, group) = (Uid::effective(), Gid::effective());
    match unshare(separate) {
        Err(Errno::EPERM) => {
            unshare(separate | CloneFlags::CLONE_NEWUSER)
                .map_err(io::Error::from)
                .and_then(|()| map_root_to(user, group))
                .map_err(explain)?;
        }
        result => result.map_err(Error::os(SEPARATING))?,
    }
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
        .map_err(Error::os("making mounts private"))?;
    Netlink::open()?.link_up("lo")
}

const ENTERING: &str = "entering a network namespace";
const SEPARATING: &str = "creating network and mount namespaces";

/// Maps root to the caller. An unprivileged user may map only itself, and its group only after it
/// has given up the ability to drop groups (user_namespaces(7)).
fn map_root_to(user: Uid, group: Gid) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Finds the setting that forbids namespaces. It differs between kernels; some refuse at once and
/// some only at a later step.
fn explain(error: io::Error) -> Error {
    let forbidden = |name, value| sysctl::get(name).is_ok_and(|found| found == value);
    let sysctl = if error.raw_os_error() == Some(Errno::EINVAL as i32) {
        return Error::os("creating namespaces, which requires a process with one thread")(error);
    } else if forbidden("kernel.unprivileged_userns_clone", "0") {
        "kernel.unprivileged_userns_clone=1"
    } else if forbidden("kernel.apparmor_restrict_unprivileged_userns", "1") {
        "kernel.apparmor_restrict_unprivileged_userns=0"
    } else if forbidden("user.max_user_namespaces", "0") {
        "user.max_user_namespaces=10000"
    } else {
        return Error::os(SEPARATING)(error);
    };
    Error::NoUserNamespaces { sysctl }
}

fn on_a_thread<T: Send>(f: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .spawn_scoped(scope, f)
            .map_err(Error::os("starting a thread"))?;
        worker
            .join()
            .unwrap_or_else(|cause| panic::resume_unwind(cause))
    })
}
