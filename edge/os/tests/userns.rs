//! `netns::become_root_in_user_namespace` for every kind of caller. It needs a process with a
//! single thread, which the usual test harness does not provide. So this test is a plain program
//! that starts itself once for each case.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_dumpable;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use os::{Claim, Error, NetNs, Netlink, Tun, netns};
use std::process::{Command, ExitCode};

type Case = (&'static str, fn());

const CASES: [Case; 6] = [
    ("root_gets_namespaces_of_its_own", becomes_root),
    ("an_ordinary_user_becomes_root_of_a_user_namespace", || {
        become_nobody();
        becomes_root();
    }),
    (
        "an_ordinary_user_has_no_rights_before_and_is_told_so",
        is_told,
    ),
    (
        "a_process_with_threads_is_told_why_it_cannot",
        cannot_with_threads,
    ),
    (
        "a_missing_or_closed_tun_node_is_told_with_the_fix",
        closed_node,
    ),
    (
        "an_ordinary_user_cannot_claim_a_namespace_and_sees_who_has",
        cannot_claim,
    ),
];

fn main() -> ExitCode {
    if let Some(name) = std::env::args().nth(1)
        && let Some((_, case)) = CASES.iter().find(|(known, _)| *known == name)
    {
        case();
        return ExitCode::SUCCESS;
    }
    let program = std::env::current_exe().unwrap();
    let mut failed = false;
    for (name, _) in CASES {
        let ok = Command::new(&program).arg(name).status().unwrap().success();
        println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
        failed |= !ok;
    }
    ExitCode::from(u8::from(failed))
}

fn becomes_root() {
    netns::become_root_in_user_namespace().unwrap();
    assert!(Uid::effective().is_root());
    assert_eq!(Netlink::open().unwrap().links().unwrap(), ["lo"]);
    let (a, b) = (NetNs::new().unwrap(), NetNs::new().unwrap());
    netns::veth(&a, "va", &b, "vb").unwrap();
    a.sysctl("net.ipv4.ip_forward", "1").unwrap();
    let output = b.command("cat").arg("/proc/net/dev").output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("vb:"));
    match a.enter(|| Tun::open("t0", 1500)).unwrap() {
        // If users may not open the node, the message explains how to allow it.
        Err(error @ (Error::NoTunRight | Error::NoTunDevice)) => println!("{error}"),
        result => assert_eq!(result.unwrap().name(), "t0"),
    }
}

fn is_told() {
    become_nobody();
    if Uid::effective().is_root() {
        return;
    }
    let error = NetNs::new().unwrap_err();
    assert!(matches!(error, Error::NoRight { .. }), "{error:?}");
    assert!(error.to_string().contains("run as root"), "{error}");
}

fn cannot_with_threads() {
    become_nobody();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || wait.recv());
    let result = netns::become_root_in_user_namespace();
    drop(done);
    let _disconnected = other.join().unwrap();
    if !Uid::effective().is_root() {
        let text = result.unwrap_err().to_string();
        assert!(text.contains("one thread"), "{text}");
    }
}

/// Machines without udev restrict the node to root, or have none.
fn closed_node() {
    let closed = || -> nix::Result<()> {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
        let none = MsFlags::empty();
        mount(None::<&str>, "/dev/net", Some("tmpfs"), none, None::<&str>)?;
        let text = Tun::open("t0", 1500).err().unwrap().to_string();
        assert!(text.contains("modprobe tun"), "{text}");
        let device = makedev(10, 200);
        mknod("/dev/net/tun", SFlag::S_IFCHR, Mode::S_IRUSR, device)
    };
    // Root of a user namespace cannot create a device node.
    if closed().is_ok() {
        become_nobody();
        netns::become_root_in_user_namespace().unwrap();
        let text = Tun::open("t0", 1500).err().unwrap().to_string();
        assert!(text.contains("chmod 666 /dev/net/tun"), "{text}");
    }
}

/// A process that may not change routes cannot prevent others from changing them.
fn cannot_claim() {
    netns::become_root_in_user_namespace().unwrap();
    let holder = "stratad (process 1)";
    let claim = Claim::take(holder).unwrap();
    become_nobody();
    if Uid::effective().is_root() {
        return;
    }
    assert_eq!(Claim::holder().unwrap().as_deref(), Some(holder));
    drop(claim);
    match Claim::take("nobody").err() {
        Some(Error::NoRight { .. } | Error::NoTunRight) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(Claim::holder().unwrap(), None);
}

/// Becomes an unprivileged user, or stays root in a user namespace (`unshare -Ur`), which has no
/// other user.
fn become_nobody() {
    let nobody = 65_534;
    if !Uid::effective().is_root() || setgroups(&[]).is_err() {
        return;
    }
    setgid(Gid::from_raw(nobody)).unwrap();
    setuid(Uid::from_raw(nobody)).unwrap();
    // As after a login or an exec; otherwise /proc/self would still belong to root.
    set_dumpable(true).unwrap();
}
