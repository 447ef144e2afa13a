//! A server without free descriptors refuses new clients, does not spin, and serves again later.
//! The test has a binary of its own because the limit applies to the whole process.

use control::Server;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

fn is_ready(server: &Server) -> bool {
    let mut fds = [PollFd::new(server.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).expect("a descriptor can be polled") == 1
}

/// Serves until the descriptor is not readable. Panics if it stays readable, because a daemon would
/// spin.
fn serve(server: &mut Server) {
    for _ in 0..100 {
        if !is_ready(server) {
            return;
        }
        server.handle_ready();
    }
    panic!("the server never rests");
}

#[test]
fn without_descriptors_clients_are_refused_and_the_server_rests() {
    let folder = std::env::temp_dir().join(format!("strata-descriptors-{}", std::process::id()));
    let socket = folder.join("strata.sock");
    let mut server = Server::bind(&socket).unwrap();
    let mut clients: Vec<_> = (0..3)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();

    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let next = File::open("/dev/null").unwrap().as_raw_fd() as u64;
    setrlimit(Resource::RLIMIT_NOFILE, next, hard).unwrap();
    serve(&mut server);
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();

    for client in &mut clients {
        client
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "it was refused");
    }
    let mut later = UnixStream::connect(&socket).unwrap();
    serve(&mut server);
    later.set_nonblocking(true).unwrap();
    let waits = later.read(&mut [0; 1]).unwrap_err();
    assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock, "it was taken");
    fs::remove_dir_all(folder).unwrap();
}
