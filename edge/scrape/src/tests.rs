//! The server with a collector, and with clients that stop, stall, flood or send nonsense.

use crate::{Head, Listener, MOST_CLIENTS, Refusal, Server};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

/// Time after which a test fails.
const DEADLINE: Duration = Duration::from_secs(30);

/// A server, and the calls of its thread.
struct Bench {
    server: Arc<Server>,
    wanted: Receiver<()>,
    address: SocketAddr,
}

impl Bench {
    fn new() -> Self {
        Self::with_patience(DEADLINE)
    }

    fn with_patience(patience: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (wake, wanted) = channel();
        let wake = move || wake.send(()).unwrap();
        let server = Server::start_with(Listener::Tcp(listener), wake, patience).unwrap();
        Self {
            server: Arc::new(server),
            wanted,
            address,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    fn ask(&self) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(REQUEST).unwrap();
        stream
    }

    /// Writes the next page that is wanted, as the daemon does.
    fn write(&self, text: &str) {
        self.wanted.recv_timeout(DEADLINE).unwrap();
        assert!(self.server.is_wanted());
        self.server.publish(text.to_owned());
    }
}

fn answer(stream: &mut (impl Read + ?Sized)) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_collector_gets_the_page_and_the_next_one_gets_the_same_for_a_second() {
    let bench = Bench::new();
    let mut first = bench.ask();
    bench.write("strata_peers_up 1\n");
    let expected = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
        Content-Length: 18\r\nCache-Control: no-store\r\nConnection: close\r\n\r\nstrata_peers_up 1\n";
    assert_eq!(answer(&mut first), expected);
    assert_eq!(answer(&mut bench.ask()), expected);
    assert!(!bench.server.is_wanted(), "the daemon is not asked again");
}

#[test]
fn a_unix_socket_carries_the_same() {
    let path = std::env::temp_dir().join(format!("strata-scrape-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let (wake, wanted) = channel();
    let wake = move || wake.send(()).unwrap();
    let server = Server::start(Listener::Unix(listener), wake).unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(REQUEST).unwrap();
    wanted.recv_timeout(DEADLINE).unwrap();
    server.publish("x 1\n".to_owned());
    assert!(answer(&mut stream).ends_with("\r\n\r\nx 1\n"));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn what_is_no_request_is_refused_and_asks_the_daemon_for_nothing() {
    let bench = Bench::new();
    let long = format!(
        "GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n",
        "x".repeat(100_000)
    );
    for (sent, status) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "404 Not Found"),
        (
            b"POST /metrics HTTP/1.1\r\n\r\nbody",
            "405 Method Not Allowed",
        ),
        (b"\x16\x03\x01", "400 Bad Request"),
        (long.as_bytes(), "431 Request Header Fields Too Large"),
    ] {
        let mut stream = bench.connect();
        stream.write_all(sent).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let answer = answer(&mut stream);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{answer}"
        );
    }
    assert!(!bench.server.is_wanted());
}

/// A client of each bad kind holds its connection, as often as there is room.
#[test]
fn clients_that_never_send_or_never_read_stop_no_other() {
    let bench = Bench::new();
    let page = "x".repeat(8 << 20);
    let silent: Vec<_> = (0..MOST_CLIENTS).map(|_| bench.connect()).collect();
    let mut deaf = vec![bench.ask()];
    bench.write(&page);
    deaf.extend((1..MOST_CLIENTS).map(|_| bench.ask()));
    let mut slow = bench.connect();
    slow.write_all(&REQUEST[..9]).unwrap();
    let mut good = bench.ask();
    // The page may have become too old meanwhile.
    let server = Arc::clone(&bench.server);
    let reader = std::thread::spawn(move || answer(&mut good));
    while !reader.is_finished() {
        if bench.wanted.recv_timeout(Duration::from_millis(1)).is_ok() && server.is_wanted() {
            server.publish(page.clone());
        }
    }
    assert!(reader.join().unwrap().ends_with(&page));
    drop((silent, deaf, slow));
}

#[test]
fn a_client_that_takes_too_long_is_disconnected() {
    let bench = Bench::with_patience(Duration::from_millis(50));
    let mut silent = bench.connect();
    let mut half = bench.connect();
    half.write_all(&REQUEST[..9]).unwrap();
    assert_eq!(answer(&mut silent), "");
    assert_eq!(answer(&mut half), "");
    // The daemon does not answer.
    assert_eq!(answer(&mut bench.ask()), "");
}

#[test]
fn the_end_of_the_server_closes_its_connections() {
    let bench = Bench::new();
    let mut waits = bench.ask();
    bench.wanted.recv_timeout(DEADLINE).unwrap();
    drop(bench.server);
    assert!(matches!(waits.read(&mut [0]), Ok(0) | Err(_)));
    let refused = TcpStream::connect(bench.address);
    assert!(refused.is_err(), "no listener is left");
}

#[test]
fn the_seeds_of_the_fuzz_target_are_heads() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/http_head");
    let seeds = std::fs::read_dir(seeds).unwrap();
    let heads = seeds.map(|seed| Head::read(&std::fs::read(seed.unwrap().path()).unwrap()));
    let heads: Vec<_> = heads.collect();
    assert!(heads.len() >= 4);
    let bad = [Head::Incomplete, Head::Refused(Refusal::Malformed)];
    assert!(heads.iter().all(|head| !bad.contains(head)), "{heads:?}");
}
