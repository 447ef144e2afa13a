use crate::line::{await_datagram, await_readable, bind, give, path};
use os::{Error, NetNs, Tun};
use std::io::ErrorKind;

fn open(namespace: &NetNs) -> Tun {
    namespace.enter(|| Tun::open("t0", 1500)).unwrap().unwrap()
}

#[test]
fn packets_go_into_the_device_and_come_out_of_it() {
    let namespace = NetNs::new().unwrap();
    let tun = open(&namespace);
    give(&namespace, "t0", &["10.9.0.1/24"]);
    let mut socket = bind(&namespace, "10.9.0.1:5000");
    socket
        .send(path(&socket, "10.9.0.2:5000"), 0, b"echo")
        .unwrap();
    await_readable(&tun);
    let mut packet = [0; 1500];
    let length = tun.recv(&mut packet).unwrap();
    let packet = &mut packet[..length];
    assert_eq!((packet[0] >> 4, length), (4, 20 + 8 + 4));
    assert_eq!(
        tun.recv(&mut [0; 1500]).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    // Swapping source and destination keeps both checksums valid.
    packet[12..20].rotate_left(4);
    tun.send(packet).unwrap();
    assert_eq!(await_datagram(&mut socket).1, b"echo");
}

#[test]
fn the_kernel_is_quiet_on_the_device() {
    let namespace = NetNs::new().unwrap();
    namespace
        .sysctl("net.ipv6.conf.all.forwarding", "1")
        .unwrap();
    let tun = open(&namespace);
    let netlink = namespace.netlink().unwrap();
    assert_eq!(netlink.addresses(tun.name()).unwrap(), []);
    // The device's multicast listener report is sent when it comes up, and is dropped.
    assert_eq!(
        tun.recv(&mut [0; 1500]).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
}

#[test]
fn a_device_in_use_cannot_be_opened_again() {
    let namespace = NetNs::new().unwrap();
    let _tun = open(&namespace);
    let second = namespace.enter(|| Tun::open("t0", 1500)).unwrap();
    let error = second.err().unwrap();
    assert!(matches!(error, Error::TunBusy { .. }), "{error}");
    assert!(error.to_string().contains("stop that process"), "{error}");
}

#[test]
fn the_device_goes_with_its_handle() {
    let namespace = NetNs::new().unwrap();
    let netlink = namespace.netlink().unwrap();
    let tun = open(&namespace);
    assert!(netlink.links().unwrap().contains(&"t0".to_owned()));
    drop(tun);
    assert_eq!(netlink.links().unwrap(), ["lo"]);
}
