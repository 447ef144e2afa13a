use crate::line::{Line, PATIENCE, address, await_readable, until};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use os::{Error, Listener, NetNs, Stream};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::AsFd;

fn listen(host: &NetNs, at: &str) -> Listener {
    let bound = host.enter(|| Listener::bind(address(at), None));
    bound.unwrap().unwrap()
}

fn dial(host: &NetNs, from: &str, to: SocketAddr) -> Stream {
    let begun = host.enter(|| Stream::connect(address(from), to, None));
    begun.unwrap().unwrap()
}

fn await_writable(what: &impl AsFd) {
    let mut fds = [PollFd::new(what.as_fd(), PollFlags::POLLOUT)];
    let ready = poll(&mut fds, PollTimeout::try_from(PATIENCE).unwrap());
    assert!(ready.unwrap() > 0, "it is not connected");
}

/// Returns both ends of a connection from port 50000.
fn pair(line: &Line) -> (Stream, Stream) {
    let listener = listen(&line.b, "0.0.0.0:4500");
    assert_eq!(
        listener.accept().err().unwrap().kind(),
        ErrorKind::WouldBlock
    );
    let near = dial(&line.a, "0.0.0.0:50000", address("10.1.0.2:4500"));
    await_writable(&near);
    near.outcome().unwrap();
    await_readable(&listener);
    (near, listener.accept().unwrap())
}

#[test]
fn both_ends_know_a_connection_by_the_same_addresses_and_ports() {
    let (near, far) = pair(&Line::new());
    let path = near.path().unwrap();
    assert_eq!(path.local, address("10.1.0.1:50000"));
    assert_eq!(path.remote, address("10.1.0.2:4500"));
    assert_eq!(far.path().unwrap(), path.reversed());
}

#[test]
fn octets_pass_each_way_until_an_end_is_closed() {
    let (near, far) = pair(&Line::new());
    for (from, to) in [(&near, &far), (&far, &near)] {
        assert_eq!(
            to.read(&mut [0; 9]).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        assert_eq!(from.write(b"octets").unwrap(), 6);
        await_readable(to);
        let mut read = [0; 9];
        assert_eq!(to.read(&mut read).unwrap(), 6);
        assert_eq!(&read[..6], b"octets");
    }
    drop(near);
    await_readable(&far);
    assert_eq!(far.read(&mut [0; 9]).unwrap(), 0);
}

#[test]
fn what_nobody_reads_fills_a_stream_and_blocks_nobody() {
    let (near, _far) = pair(&Line::new());
    let mut written = 0;
    until("a full socket", || match near.write(&[7; 1 << 16]) {
        Ok(octets) => {
            written += octets;
            false
        }
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    });
    assert!(written > 1 << 16, "{written}");
}

#[test]
fn where_nobody_listens_the_outcome_says_so() {
    let line = Line::new();
    let near = dial(&line.a, "0.0.0.0:0", address("10.1.0.2:4500"));
    await_writable(&near);
    assert_eq!(
        near.outcome().unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
}

#[test]
fn a_taken_port_is_told_with_who_has_it() {
    let line = Line::new();
    let _first = listen(&line.a, "0.0.0.0:4500");
    let second = line
        .a
        .enter(|| Listener::bind(address("0.0.0.0:4500"), None));
    let error = second.unwrap().err().unwrap();
    assert!(matches!(error, Error::PortTaken { port: 4500, .. }));
    let text = error.to_string();
    assert!(text.contains("TCP port 4500"), "{text}");
    let process = std::process::id().to_string();
    assert!(text.contains(&process), "{text}");
}
