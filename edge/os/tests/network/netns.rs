use crate::line::{Line, address, await_datagram, bind, path, until};
use nix::sys::signal::{SigSet, Signal};
use os::{Error, NetNs};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_namespace_starts_empty_but_for_the_loopback() {
    let namespace = NetNs::new().unwrap();
    assert_eq!(namespace.netlink().unwrap().links().unwrap(), ["lo"]);
    let mut here = bind(&namespace, "127.0.0.1:0");
    let itself = here.local();
    here.send(path(&here, &itself.to_string()), 0, b"hello")
        .unwrap();
    assert_eq!(await_datagram(&mut here).1, b"hello");
}

#[test]
fn a_cable_joins_two_namespaces() {
    let line = Line::new();
    for (from, to) in [("10.1.0.1", "10.1.0.2"), ("[fd01::1]", "[fd01::2]")] {
        let (near, mut far) = (
            bind(&line.a, &format!("{from}:5000")),
            bind(&line.b, &format!("{to}:6000")),
        );
        near.send(path(&near, &format!("{to}:6000")), 0, b"over")
            .unwrap();
        let (arrival, payload) = await_datagram(&mut far);
        assert_eq!(payload, b"over");
        assert_eq!(arrival.path.remote, address(&format!("{from}:5000")));
    }
}

#[test]
fn a_setting_changes_inside_and_not_outside() {
    let (one, other) = (NetNs::new().unwrap(), NetNs::new().unwrap());
    one.sysctl("net.ipv4.ip_forward", "1").unwrap();
    let read = |namespace: &NetNs| {
        let value = namespace.enter(|| os::sysctl::get("net.ipv4.ip_forward"));
        value.unwrap().unwrap()
    };
    assert_eq!(read(&one), "1");
    assert_eq!(read(&other), "0");
    let error = one.sysctl("net.ipv4.no_such_thing", "1").unwrap_err();
    assert!(
        error.to_string().contains("net.ipv4.no_such_thing=1"),
        "{error}"
    );
}

#[test]
fn a_panic_inside_goes_on_outside() {
    let namespace = NetNs::new().unwrap();
    let inside = || namespace.enter(|| panic!("within"));
    let cause = std::panic::catch_unwind(inside).unwrap_err();
    assert_eq!(cause.downcast_ref(), Some(&"within"));
}

#[test]
fn a_program_starts_inside_with_no_signal_blocked() {
    let line = Line::new();
    let mut blocked = SigSet::empty();
    blocked.add(Signal::SIGTERM);
    blocked.thread_block().unwrap();
    let script = "grep -o 'va' /proc/net/dev; grep SigBlk /proc/self/status";
    let output = line.a.command("sh").args(["-c", script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    assert_eq!(words, ["va", "SigBlk:", "0000000000000000"]);
}

#[test]
fn a_program_dies_with_the_thread_that_started_it() {
    let namespace = NetNs::new().unwrap();
    let starter = std::thread::spawn(move || {
        let mut command = namespace.command("cat");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        child.spawn().unwrap()
    });
    let mut child = starter.join().unwrap();
    // The program's input is still open, so it ends only if it is killed.
    let mut output = Vec::new();
    let stdout = child.stdout.as_mut().unwrap();
    stdout.read_to_end(&mut output).unwrap();
    let process = format!("/proc/{}", child.id());
    assert!(!child.wait().unwrap().success());
    until("the process to go", || !Path::new(&process).exists());
}

#[test]
fn a_missing_interface_is_named() {
    let netlink = NetNs::new().unwrap().netlink().unwrap();
    let error = netlink.link_up("nowhere0").unwrap_err();
    assert!(matches!(&error, Error::Os { .. }), "{error:?}");
    assert!(error.to_string().contains("nowhere0"), "{error}");
}
