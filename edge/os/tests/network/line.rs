//! Two hosts joined by a cable, and helpers that wait without sleeping.

use model::{Instant, Path};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use os::{Arrival, Bulk, Datagrams, NetNs, Netlink, netns};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Octets of a TCP transfer.
const OCTETS: usize = 2_000_000;

/// Longest wait of a test for an expected event.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Host `a` with 10.1.0.1 and fd01::1 on `va`, host `b` with 10.1.0.2 and fd01::2 on `vb`.
pub struct Line {
    pub a: NetNs,
    pub b: NetNs,
}

impl Line {
    pub fn new() -> Self {
        let (a, b) = (NetNs::new().unwrap(), NetNs::new().unwrap());
        netns::veth(&a, "va", &b, "vb").unwrap();
        give(&a, "va", &["10.1.0.1/24", "fd01::1/64"]);
        give(&b, "vb", &["10.1.0.2/24", "fd01::2/64"]);
        Self { a, b }
    }
}

pub fn give(host: &NetNs, device: &str, addresses: &[&str]) {
    let netlink = host.netlink().unwrap();
    for address in addresses {
        netlink
            .add_address(device, address.parse().unwrap())
            .unwrap();
    }
}

pub fn bind(host: &NetNs, address: &str) -> Datagrams {
    bind_marked(host, address, None)
}

pub fn bind_marked(host: &NetNs, address: &str, mark: Option<u32>) -> Datagrams {
    let address = address.parse().unwrap();
    host.enter(|| Datagrams::udp(address, mark))
        .unwrap()
        .unwrap()
}

/// Returns the path from a socket's own address to another.
pub fn path(from: &Datagrams, to: &str) -> Path {
    Path::udp(from.local(), to.parse().unwrap())
}

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Waits until a descriptor is readable.
pub fn await_readable(what: &impl AsFd) {
    assert!(readable_within(what, PATIENCE), "nothing came");
}

/// Returns true if a descriptor becomes readable. What `should` come is waited for longer than what
/// should not.
pub fn comes(what: &impl AsFd, should: bool) -> bool {
    let patience = match should {
        true => PATIENCE,
        false => Duration::from_millis(50),
    };
    readable_within(what, patience)
}

pub fn readable_within(what: &impl AsFd, patience: Duration) -> bool {
    let mut fds = [PollFd::new(what.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::try_from(patience).unwrap()).unwrap() > 0
}

/// Returns the next datagrams of one system call.
pub fn await_datagrams(socket: &mut Datagrams) -> Vec<(Arrival, Vec<u8>)> {
    await_readable(socket);
    let mut datagrams = Vec::new();
    let count = socket.recv(|arrival, payload| datagrams.push((arrival, payload.to_vec())));
    assert_eq!(count.unwrap(), datagrams.len());
    datagrams
}

pub fn await_datagram(socket: &mut Datagrams) -> (Arrival, Vec<u8>) {
    let mut datagrams = await_datagrams(socket);
    assert_eq!(datagrams.len(), 1, "{datagrams:?}");
    datagrams.remove(0)
}

/// Polls until `event` is true.
pub fn until(what: &str, mut event: impl FnMut() -> bool) {
    let deadline: Instant = os::clock::now() + PATIENCE;
    while !event() {
        assert!(os::clock::now() < deadline, "waited in vain for {what}");
        thread::yield_now();
    }
}

/// Waits a moment until one of two devices is readable.
pub fn await_either(devices: [&Bulk; 2]) {
    let mut fds = devices.map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN));
    let moment = PollTimeout::try_from(Duration::from_millis(10)).unwrap();
    poll(&mut fds, moment).unwrap();
}

/// Transfers data by the kernel's TCP from one host to an address of another, and calls `carry` all
/// the while.
pub fn transfer(near: &NetNs, far: &NetNs, address: &'static str, mut carry: impl FnMut() + Send) {
    let listener = far.enter(|| TcpListener::bind(address).unwrap()).unwrap();
    let over = AtomicBool::new(false);
    let octets: Vec<u8> = (0..OCTETS).map(|index| (index / 7) as u8).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                carry();
            }
        });
        let reading = scope.spawn(|| {
            let mut stream = listener.accept().unwrap().0;
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut read = Vec::new();
            stream.read_to_end(&mut read).map(|_| read)
        });
        let mut stream = near.enter(|| TcpStream::connect(address).unwrap()).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let written = stream.write_all(&octets);
        drop(stream);
        let read = reading.join().unwrap();
        over.store(true, Ordering::Relaxed);
        written.unwrap();
        assert!(read.unwrap() == octets, "other octets arrived");
    });
}

pub fn rules_and_routes(netlink: &Netlink, table: u32) -> (usize, usize) {
    let rules = netlink.rules().unwrap();
    let rules = rules.iter().filter(|rule| rule.table == table).count();
    (rules, netlink.routes(table).unwrap().len())
}

/// Runs ip(8), which acts for another program, and returns its output.
pub fn run_ip(namespace: &NetNs, arguments: &str) -> String {
    let mut command = namespace.command("ip");
    let output = command.args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
