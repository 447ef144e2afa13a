//! Descriptors that outlive their process. A copy stands for the service manager's.

use crate::line::{address, await_datagram, await_readable, bind_marked, give, path};
use os::kept::Unfit;
use os::{Bulk, Datagrams, NetNs, Outline};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

const MARK: u32 = 9;

fn copy(descriptor: &impl AsFd) -> OwnedFd {
    descriptor.as_fd().try_clone_to_owned().unwrap()
}

fn open(host: &NetNs, name: &str, queues: bool) -> Bulk {
    let opened = host.enter(|| Bulk::open(name, 1400, true, queues));
    opened.unwrap().unwrap()
}

fn adopt(host: &NetNs, kept: OwnedFd) -> Result<Bulk, Unfit> {
    host.enter(|| Bulk::adopt(kept, "t0", 1300, true, false))
        .unwrap()
}

fn exists(host: &NetNs, name: &str) -> bool {
    let links = host.netlink().unwrap().links().unwrap();
    links.contains(&name.to_owned())
}

#[test]
fn a_device_keeps_its_addresses_and_the_packets_in_its_queue() {
    let host = NetNs::new().unwrap();
    let tun = open(&host, "t0", false);
    give(&host, "t0", &["10.9.0.1/24"]);
    let index = host.netlink().unwrap().running("t0");
    let kept = copy(&tun);
    drop(tun);
    let socket = bind_marked(&host, "10.9.0.1:5000", None);
    let to = path(&socket, "10.9.0.2:5000");
    for number in 0..100_u8 {
        socket.send(to, 0, &[number]).unwrap();
    }
    let mut tun = adopt(&host, kept).unwrap();
    assert_eq!(host.netlink().unwrap().running("t0"), index);
    assert_eq!(host.netlink().unwrap().mtu("t0").unwrap(), 1300);
    let mut packets = vec![[0; 1500]; 256];
    let mut spaces: Vec<_> = packets.iter_mut().map(|space| &mut space[..]).collect();
    let mut outlines = vec![Outline::default(); 256];
    let (count, _) = tun.recv(&mut spaces, &mut outlines);
    let octets = |at: usize| packets[at][outlines[at].len - 1];
    let received: Vec<_> = (0..count).map(octets).collect();
    assert_eq!(received, (0..100).collect::<Vec<_>>());
    // Control: nothing but the copies kept the device.
    drop(tun);
    assert!(!exists(&host, "t0"));
}

#[test]
fn what_is_not_the_device_of_the_configuration_is_refused() {
    let (host, other) = (NetNs::new().unwrap(), NetNs::new().unwrap());
    let file = OwnedFd::from(File::open("/dev/null").unwrap());
    assert!(matches!(adopt(&host, file), Err(Unfit::Namespace)));
    let socket = bind_marked(&host, "127.0.0.1:0", None);
    assert!(matches!(adopt(&host, copy(&socket)), Err(Unfit::Kind)));
    let tun = open(&host, "t1", false);
    let refused = adopt(&host, copy(&tun));
    assert!(matches!(refused, Err(Unfit::Name(name)) if name == "t1"));
    let tun = open(&other, "t0", false);
    assert!(matches!(adopt(&host, copy(&tun)), Err(Unfit::Namespace)));
    let tun = open(&host, "t0", true);
    assert!(matches!(adopt(&host, copy(&tun)), Err(Unfit::Form)));
    drop(tun);
    let tun = open(&host, "t0", false);
    let kept = copy(&tun);
    host.netlink().unwrap().delete_link("t0").unwrap();
    assert!(matches!(adopt(&host, kept), Err(Unfit::Kind)));
}

#[test]
fn a_socket_keeps_its_port_and_the_datagrams_in_its_buffer() {
    let host = NetNs::new().unwrap();
    let socket = bind_marked(&host, "127.0.0.1:500", Some(MARK));
    let kept = copy(&socket);
    drop(socket);
    let sender = bind_marked(&host, "127.0.0.1:0", None);
    let to = path(&sender, "127.0.0.1:500");
    sender.send(to, 0, b"hello").unwrap();
    let mut socket = Datagrams::adopt(kept, address("127.0.0.1:500")).unwrap();
    await_readable(&socket);
    assert_eq!(await_datagram(&mut socket).1, b"hello");
}

#[test]
fn a_socket_of_another_kind_is_no_such_socket() {
    let (host, other) = (NetNs::new().unwrap(), NetNs::new().unwrap());
    let socket = bind_marked(&host, "127.0.0.1:500", Some(MARK));
    let is_such = |host: &NetNs, at: &str, mark, beside| {
        let (kept, at) = (copy(&socket), address(at));
        host.enter(|| Datagrams::is_such(&kept, at, mark, beside))
            .unwrap()
    };
    assert!(is_such(&host, "127.0.0.1:500", MARK, false));
    assert!(!is_such(&host, "127.0.0.1:501", MARK, false));
    assert!(!is_such(&host, "0.0.0.0:500", MARK, false));
    assert!(!is_such(&host, "127.0.0.1:500", MARK + 1, false));
    assert!(!is_such(&host, "127.0.0.1:500", MARK, true));
    assert!(!is_such(&other, "127.0.0.1:500", MARK, false));
    let file = OwnedFd::from(File::open("/dev/null").unwrap());
    let at = address("127.0.0.1:500");
    let is_socket = host.enter(|| Datagrams::is_such(&file, at, MARK, false));
    assert!(!is_socket.unwrap());
}
