//! The socket for the group of [control], whose members may only read.
//!
//! A member may ask as often as it likes, and some answers visit all peers. So the requests wait
//! for a share of the thread's time: packets have the rest of it.

use crate::unproved::Share;
use config::Config;
use control::{Access, CannotListen, ClientId, Request, Response, Server, for_readers};
use model::Instant;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

/// Divisor of the share of time for answers.
const PARTS: u32 = 8;

/// The socket, and the requests that wait: one for each client at most.
pub struct Readers {
    server: Server,
    waiting: VecDeque<(ClientId, Request)>,
    share: Share,
}

impl Readers {
    /// Listens if the configuration names a group.
    pub fn open(config: &Config) -> Result<Option<Self>, CannotListen> {
        let Some(group) = &config.readers else {
            return Ok(None);
        };
        let access = Access::of_group(group)?;
        let server = Server::bind_for_readers(&for_readers(&config.socket), access)?;
        Ok(Some(Self {
            server,
            waiting: VecDeque::new(),
            share: Share::new(PARTS),
        }))
    }

    /// Reads the new requests. Those of clients that have gone are dropped: a member may ask and
    /// close its connection faster than requests are answered.
    pub fn handle_ready(&mut self) {
        self.waiting.extend(self.server.handle_ready());
        let server = &self.server;
        self.waiting.retain(|(client, _)| server.waits(*client));
    }

    /// Returns the time at which the next request may be answered, if any waits.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        (!self.waiting.is_empty()).then(|| self.share.next(now))
    }

    /// Returns the next request, if it may be answered now. [`Self::answer`] has to follow.
    pub fn pop(&mut self, now: Instant) -> Option<(ClientId, Request)> {
        self.next(now).filter(|at| *at <= now)?;
        self.waiting.pop_front()
    }

    /// Answers a request. The answer took from `began` until `ended`.
    pub fn answer(
        &mut self,
        client: ClientId,
        response: &Response,
        began: Instant,
        ended: Instant,
    ) {
        self.server.answer(client, response);
        self.share.took(began, ended);
    }
}

impl AsFd for Readers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.server.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Folder;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    const STATUS: &[u8] = b"{\"version\":1,\"request\":\"status\"}\n";

    /// Listens, for a group that has all of us. Returns the path of the socket as well.
    fn open(folder: &Folder) -> (Readers, PathBuf) {
        let socket = folder.path().join("strata.sock");
        folder.write_key("a.psk", "a key of the usual length, 43 letters or so");
        let text = format!(
            "[node]\nid = \"gw.example.net\"\n[control]\nsocket = \"{}\"\ngroup = \"root\"\n\
             [peer.alice]\nid = \"alice@example.net\"\npsk = \"a.psk\"\n\
             local = [\"10.8.0.0/16\"]\nremote = [\"10.1.0.2/32\"]\n",
            socket.display()
        );
        let readers = Readers::open(&folder.load(&text)).unwrap().unwrap();
        (readers, for_readers(&socket))
    }

    fn ask(socket: &Path) -> UnixStream {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.write_all(STATUS).unwrap();
        stream
    }

    /// Returns the times at which requests of eager clients are answered, if each answer takes 10
    /// ms.
    fn answered(clients: usize) -> Vec<u128> {
        let folder = Folder::new(&format!("readers-{clients}"));
        let (mut readers, socket) = open(&folder);
        let _streams: Vec<_> = (0..clients).map(|_| ask(&socket)).collect();
        readers.handle_ready();
        let took = Duration::from_millis(10);
        let start = Instant::from_origin(Duration::from_secs(9));
        let (mut now, mut times) = (start, Vec::new());
        while let Some(at) = readers.next(now) {
            now = now.max(at);
            let (client, _) = readers.pop(now).unwrap();
            times.push((now - start).as_millis());
            let answer = Response::Metrics(String::new());
            readers.answer(client, &answer, now, now + took);
            now += took;
        }
        times
    }

    #[test]
    fn eager_readers_have_an_eighth_of_the_time() {
        let times = answered(20);
        assert_eq!(times.len(), 20);
        assert!(times[19] >= 19 * 80 - 8, "{times:?}");
        assert_eq!(answered(1), [0], "one reader does not wait");
    }

    #[test]
    fn who_asks_and_goes_leaves_no_request_behind() {
        let folder = Folder::new("readers-gone");
        let (mut readers, socket) = open(&folder);
        let _stays = ask(&socket);
        for _ in 0..100 {
            let goes = ask(&socket);
            readers.handle_ready();
            assert_eq!(readers.waiting.len(), 2);
            drop(goes);
            readers.handle_ready();
            readers.handle_ready();
            assert_eq!(readers.waiting.len(), 1);
        }
    }
}
