//! Tests of the framing, of the server with good and bad clients, and of the client with bad
//! servers.

use crate::server::MOST_CLIENTS;
use crate::*;
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::num::{NonZeroU16, NonZeroUsize};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A server in a folder of its own.
struct Bench {
    server: Server,
    folder: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let folder = folder();
        Self {
            server: Server::bind(&folder.join("api/strata.sock")).unwrap(),
            folder,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("api/strata.sock")
    }

    /// Connects a client with a read timeout, so that a test never blocks for long.
    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.path()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream
    }

    /// Returns true if the server's descriptor is readable.
    fn is_ready(&self) -> bool {
        let mut fds = [nix::poll::PollFd::new(
            self.server.as_fd(),
            nix::poll::PollFlags::POLLIN,
        )];
        nix::poll::poll(&mut fds, nix::poll::PollTimeout::ZERO).unwrap() == 1
    }

    /// Serves until the descriptor is not readable, sending the answers that `answer` returns.
    /// Panics if the descriptor stays readable, because a daemon would spin.
    fn serve(&mut self, answer: impl Fn(&Request) -> Option<Response>) -> Vec<(ClientId, Request)> {
        let mut seen = Vec::new();
        for _ in 0..1000 {
            if !self.is_ready() {
                return seen;
            }
            for (id, request) in self.server.handle_ready() {
                if let Some(response) = answer(&request) {
                    self.server.answer(id, &response);
                }
                seen.push((id, request));
            }
        }
        panic!("the descriptor is always ready");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let unique = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder =
        std::env::temp_dir().join(format!("strata-control-{}-{unique}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn daemon() -> Response {
    Response::Daemon(Daemon {
        version: "0.1.0".to_owned(),
        pid: 7,
    })
}

fn at_once(_: &Request) -> Option<Response> {
    Some(daemon())
}

fn read_line(stream: &mut UnixStream) -> String {
    let mut line = Vec::new();
    let mut octet = [0];
    while stream.read(&mut octet).unwrap() == 1 && octet != [b'\n'] {
        line.push(octet[0]);
    }
    String::from_utf8(line).unwrap()
}

const VERSION_REQUEST: &[u8] = b"{\"version\":1,\"request\":\"version\"}\n";
const VERSION_ANSWER: &str = "{\"version\":1,\"daemon\":{\"version\":\"0.1.0\",\"pid\":7}}";

#[test]
fn every_request_survives_its_line() {
    for request in [
        Request::Up {
            peer: Some("office".to_owned()),
            child: None,
            wait_seconds: Some(30),
        },
        Request::Up {
            peer: None,
            child: None,
            wait_seconds: None,
        },
        Request::Down {
            peer: None,
            child: None,
        },
        Request::Down {
            peer: Some("office".to_owned()),
            child: Some("voice".to_owned()),
        },
        Request::Status(Selection::default()),
        Request::Status(Selection {
            peers: vec!["u1*".to_owned()],
            state: Some(StateFilter::Up),
            after: Some("u10".to_owned()),
            most: NonZeroUsize::new(500),
        }),
        Request::Ping {
            peer: "office".to_owned(),
            count: NonZeroU16::new(10),
        },
        Request::Zones,
        Request::Flows,
        Request::Keylog {
            directory: Some("/tmp/keys".into()),
        },
        Request::Keylog { directory: None },
        Request::Metrics,
        Request::Version,
    ] {
        let line = request.to_line();
        assert!(line.starts_with("{\"version\":1,\"request\":\""), "{line}");
        assert_eq!(Request::from_line(line.as_bytes()), Ok(request));
    }
}

#[test]
fn every_answer_survives_its_line() {
    for response in [
        Response::Up(Changed::default()),
        Response::Down(Changed::default()),
        Response::Status(Status::default()),
        Response::Ping(Ping::default()),
        Response::Zones(Zones::default()),
        Response::Flows(Flows::default()),
        Response::Keylog(Keylog { directory: None }),
        Response::Metrics("strata_packets_total 1\n# EOF\n".to_owned()),
        daemon(),
        Response::Error(Failure::new("no", "yes")),
    ] {
        let line = response.to_line();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(Response::from_line(line.as_bytes()), Ok(response));
    }
    assert_eq!(
        Response::Error(Failure::new("no", "yes")).to_line(),
        "{\"version\":1,\"error\":{\"message\":\"no\",\"fix\":\"yes\"}}"
    );
}

#[test]
fn an_answer_of_a_newer_release_with_more_fields_is_understood() {
    let line = b"{\"version\":1,\"daemon\":{\"version\":\"0.2.0\",\"pid\":7,\"mood\":\"good\"}}";
    assert!(
        matches!(Response::from_line(line), Ok(Response::Daemon(daemon)) if daemon.version == "0.2.0")
    );
}

#[test]
fn what_is_no_request_is_refused_with_a_reason() {
    for (line, reason) in [
        (&b"hello"[..], "not a JSON object"),
        (b"[]", "missing `version`"),
        (b"{\"request\":\"status\"}", "missing `version`"),
        (
            b"{\"version\":2,\"request\":\"status\"}",
            "unsupported API version 2, expected 1",
        ),
        (
            b"{\"version\":1,\"request\":\"reboot\"}",
            "unknown variant `reboot`",
        ),
        (
            b"{\"version\":1,\"request\":\"up\",\"pier\":\"office\"}",
            "unknown field `pier`",
        ),
        (
            b"{\"version\":1,\"request\":\"up\",\"wait_seconds\":-1}",
            "invalid value",
        ),
        (b"\xff\xfe", "not a JSON object"),
    ] {
        let failure = Request::from_line(line).unwrap_err();
        assert!(failure.message.contains(reason), "{failure:?}");
        assert!(!failure.fix.is_empty(), "{failure:?}");
    }
    let deep = [b"[".repeat(60_000), b"]".repeat(60_000)].concat();
    assert!(
        Request::from_line(&deep).is_err(),
        "no depth overflows the stack"
    );
}

#[test]
fn a_client_gets_an_answer_for_every_request_it_sends() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    for _ in 0..3 {
        client.write_all(VERSION_REQUEST).unwrap();
        bench.serve(at_once);
        assert_eq!(read_line(&mut client), VERSION_ANSWER);
    }
    assert!(!bench.is_ready(), "an idle client costs nothing");
}

#[test]
fn half_a_line_waits_for_the_other_half() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    for octet in VERSION_REQUEST {
        assert_eq!(bench.serve(at_once), []);
        client.write_all(&[*octet]).unwrap();
    }
    assert_eq!(bench.serve(at_once).len(), 1);
    assert_eq!(read_line(&mut client), VERSION_ANSWER);
}

#[test]
fn lines_sent_together_are_answered_one_after_the_other() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    client
        .write_all(&[VERSION_REQUEST, b"\n\nnonsense\n", VERSION_REQUEST].concat())
        .unwrap();
    assert_eq!(bench.serve(at_once).len(), 2);
    assert_eq!(read_line(&mut client), VERSION_ANSWER);
    assert!(read_line(&mut client).contains("not a JSON object"));
    assert_eq!(read_line(&mut client), VERSION_ANSWER);
}

#[test]
fn lines_sent_before_closing_are_still_answered() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    client.write_all(&VERSION_REQUEST.repeat(3)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(bench.serve(at_once).len(), 3);
    let mut all = String::new();
    client.read_to_string(&mut all).unwrap();
    assert_eq!(all, format!("{VERSION_ANSWER}\n").repeat(3));
}

#[test]
fn an_oversized_line_is_refused_and_ends_the_connection() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    client.set_nonblocking(true).unwrap();
    let mut sent = 0;
    while sent <= LONGEST_REQUEST + 1 {
        sent += client.write(&[b'x'; 10_000]).unwrap_or(0);
        assert_eq!(bench.serve(at_once), []);
    }
    client.set_nonblocking(false).unwrap();
    assert!(read_line(&mut client).contains("a line has more than 65536 octets"));
    // Unread octets of the line turn the close into a reset.
    assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn a_line_of_exactly_the_longest_size_is_read() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    let mut line = VERSION_REQUEST[..VERSION_REQUEST.len() - 1].to_vec();
    line.resize(LONGEST_REQUEST, b' ');
    line.push(b'\n');
    for part in line.chunks(8192) {
        client.write_all(part).unwrap();
        bench.serve(at_once);
    }
    assert_eq!(read_line(&mut client), VERSION_ANSWER);
}

#[test]
fn an_answer_may_come_later_and_others_are_served_meanwhile() {
    let mut bench = Bench::new();
    let (mut patient, mut quick) = (bench.connect(), bench.connect());
    patient
        .write_all(b"{\"version\":1,\"request\":\"up\",\"wait_seconds\":9}\n")
        .unwrap();
    patient.write_all(VERSION_REQUEST).unwrap();
    let waiting = bench.serve(|_| None);
    let [
        (
            id,
            Request::Up {
                peer: None,
                child: None,
                wait_seconds: Some(9),
            },
        ),
    ] = waiting[..]
    else {
        panic!("{waiting:?}");
    };
    quick.write_all(VERSION_REQUEST).unwrap();
    assert_eq!(
        bench.serve(at_once).len(),
        1,
        "the second line of the first client has to wait"
    );
    assert_eq!(read_line(&mut quick), VERSION_ANSWER);
    assert!(bench.server.waits(id) && !bench.is_ready());

    bench.server.answer(id, &Response::Up(Changed::default()));
    bench.server.answer(id, &Response::Up(Changed::default()));
    assert_eq!(bench.serve(at_once).len(), 1);
    assert_eq!(
        read_line(&mut patient),
        "{\"version\":1,\"up\":{\"peers\":[]}}"
    );
    assert_eq!(
        read_line(&mut patient),
        VERSION_ANSWER,
        "an answer is given once"
    );
}

#[test]
fn closing_the_connection_takes_a_waiting_question_back() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    client
        .write_all(b"{\"version\":1,\"request\":\"up\",\"wait_seconds\":9}\n")
        .unwrap();
    let (id, _) = bench.serve(|_| None)[0];
    assert!(bench.server.waits(id));
    drop(client);
    assert_eq!(bench.serve(|_| None), []);
    assert!(!bench.server.waits(id));
    bench.server.answer(id, &daemon());
}

#[test]
fn an_answer_larger_than_the_sockets_buffer_arrives_whole() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    let large = Response::Metrics("x".repeat(3 << 20));
    client
        .write_all(b"{\"version\":1,\"request\":\"metrics\"}\n")
        .unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    bench.serve(|_| Some(large.clone()));
    client.set_nonblocking(true).unwrap();
    let (mut received, mut buffer) = (Vec::new(), [0; 65_536]);
    while !received.ends_with(b"\n") {
        if let Ok(count) = client.read(&mut buffer) {
            received.extend_from_slice(&buffer[..count]);
        }
        bench.serve(|_| None);
    }
    received.pop();
    assert_eq!(Response::from_line(&received), Ok(large));
}

#[test]
fn a_crowd_is_served_and_the_oldest_idle_client_makes_room() {
    let mut bench = Bench::new();
    let mut first = bench.connect();
    bench.serve(at_once);
    let mut crowd: Vec<_> = (0..MOST_CLIENTS).map(|_| bench.connect()).collect();
    bench.serve(at_once);
    assert_eq!(
        first.read(&mut [0]).unwrap(),
        0,
        "it was idle for the longest"
    );
    for client in &mut crowd {
        client.write_all(VERSION_REQUEST).unwrap();
    }
    assert_eq!(bench.serve(|_| None).len(), MOST_CLIENTS);
    let mut late = bench.connect();
    bench.serve(|_| None);
    assert!(read_line(&mut late).contains("too many clients: 32 are waiting"));
}

#[test]
fn garbage_ends_in_refusals_and_never_in_a_panic_or_a_spin() {
    let mut bench = Bench::new();
    // A linear congruential generator: any sequence will do, the same on every run.
    let mut state = 1u32;
    for _ in 0..50 {
        let mut client = bench.connect();
        let garbage: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(2000)
        .collect();
        client.write_all(&garbage).unwrap();
        assert_eq!(bench.serve(at_once), []);
    }
}

#[test]
fn the_socket_is_for_its_owner_and_goes_with_the_server() {
    let folder = folder();
    let path = folder.join("strata.sock");
    let server = Server::bind(&path).unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(server);
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        0,
        "nothing is left behind"
    );
    fs::remove_dir_all(folder).unwrap();
}

/// Serves one request at a time, and returns true if the caller was given it.
fn is_given(bench: &mut Bench, client: &mut UnixStream, request: &Request) -> bool {
    let line = request.to_line() + "\n";
    client.write_all(line.as_bytes()).unwrap();
    let given = bench.serve(at_once);
    let answer = read_line(client);
    assert_eq!(
        given.is_empty(),
        answer.contains("may only read"),
        "{answer}"
    );
    given.iter().any(|(_, given)| given == request)
}

// Refuses: readers
#[test]
fn a_group_that_does_not_exist_is_refused_with_the_command_that_creates_it() {
    let error = Access::of_group("no-such-group").unwrap_err().to_string();
    assert!(
        error.starts_with("this machine has no group no-such-group\n"),
        "{error}"
    );
    assert!(error.contains("groupadd --system no-such-group"), "{error}");
    assert_eq!(Access::of_group("root").unwrap(), Access::Group(0));
}

/// Every kind of request, on the socket for readers and on that of the owner.
#[test]
fn readers_are_given_no_request_that_changes_something() {
    let folder = folder();
    let group = Access::Group(nix::unistd::getgid().as_raw());
    let server = Server::bind_for_readers(&folder.join("api/strata.sock"), group).unwrap();
    let mut readers = Bench { server, folder };
    let mode = fs::metadata(readers.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let mut owner = Bench::new();
    let mut clients = (readers.connect(), owner.connect());
    for (request, right) in right::tests::all() {
        let read = is_given(&mut readers, &mut clients.0, &request);
        assert_eq!(read, right == Right::Read, "{request:?}");
        assert!(is_given(&mut owner, &mut clients.1, &request));
    }
}

#[test]
fn a_second_server_is_refused_while_the_first_one_lives() {
    let bench = Bench::new();
    let error = Server::bind(&bench.path()).unwrap_err();
    assert!(matches!(&error, CannotListen::Running(path) if *path == bench.path()));
    assert!(
        error
            .to_string()
            .starts_with("a stratad in another network namespace listens on")
    );
    let folder = bench.folder.join("api");
    assert!(matches!(
        Server::bind(&folder),
        Err(CannotListen::InTheWay(_))
    ));
}

#[test]
fn a_socket_left_behind_is_replaced() {
    let folder = folder();
    let path = folder.join("strata.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists() && UnixStream::connect(&path).is_err());
    let server = Server::bind(&path).unwrap();
    assert!(UnixStream::connect(&path).is_ok());
    // A server does not remove its successor's file.
    fs::remove_file(&path).unwrap();
    let _successor = UnixListener::bind(&path).unwrap();
    drop(server);
    assert!(path.exists());
    fs::remove_dir_all(folder).unwrap();
}

/// Starts a scripted server for one connection.
fn played_by(
    play: impl FnOnce(UnixStream) + Send + 'static,
) -> (PathBuf, std::thread::JoinHandle<()>) {
    let folder = folder();
    let listener = UnixListener::bind(folder.join("sock")).unwrap();
    let player = std::thread::spawn(move || play(listener.accept().unwrap().0));
    (folder, player)
}

fn ask(path: &Path, patience: Duration) -> Result<Response, NoAnswer> {
    Client::connect(path)?.ask(&Request::Version, patience)
}

#[test]
fn the_client_tells_why_there_is_no_answer() {
    let long = Duration::from_secs(10);
    let folder = folder();
    assert!(matches!(
        ask(&folder.join("none"), long),
        Err(NoAnswer::NotRunning(_))
    ));
    fs::remove_dir_all(folder).unwrap();

    let (folder, player) = played_by(|mut stream| assert_eq!(read_line(&mut stream).len(), 33));
    assert!(matches!(
        ask(&folder.join("sock"), long),
        Err(NoAnswer::Closed)
    ));
    player.join().unwrap();
    fs::remove_dir_all(folder).unwrap();

    let (folder, player) = played_by(|mut stream| {
        read_line(&mut stream);
        stream.write_all(b"{\"version\":9}\n").unwrap();
    });
    assert!(
        matches!(ask(&folder.join("sock"), long), Err(NoAnswer::Garbled(why)) if why.contains("version 9"))
    );
    player.join().unwrap();
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_client_never_waits_beyond_its_deadline() {
    let (folder, player) = played_by(|mut stream| {
        read_line(&mut stream);
        // Returns once the client has given up.
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    });
    let patience = Duration::from_millis(20);
    assert!(matches!(
        ask(&folder.join("sock"), patience),
        Err(NoAnswer::TooLate(_))
    ));
    player.join().unwrap();
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn client_and_server_understand_each_other() {
    let mut bench = Bench::new();
    let path = bench.path();
    let asker = std::thread::spawn(move || {
        let mut client = Client::connect(&path).unwrap();
        let patience = Duration::from_secs(10);
        let all = Request::Status(Selection::default());
        let first = client.ask(&Request::Version, patience).unwrap();
        (first, client.ask(&all, patience).unwrap())
    });
    while !asker.is_finished() {
        bench.serve(at_once);
    }
    assert_eq!(asker.join().unwrap(), (daemon(), daemon()));
}
