//! One lookup of a name: questions for both kinds of addresses to one name server after another.

use crypto::Rng;
use model::Instant;
use std::net::IpAddr;
use std::time::Duration;
use wire::dns::{Answer, Kind, Question};

/// Time after which the next server is asked: at first, and once all have been asked.
const PATIENCE: Duration = Duration::from_secs(1);
const LONG_PATIENCE: Duration = Duration::from_secs(2);

/// Time for a lookup. Later answers are ignored.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// Time that the addresses of one kind wait for the other ("Resolution Delay", RFC 8305 section 3).
const DELAY: Duration = Duration::from_millis(50);

/// Most servers that are asked, as in resolvers of the C library, and most queries.
const MOST_SERVERS: usize = 3;
const MOST_QUERIES: usize = 8;

/// What a driver knows of a name and of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Addresses of the name in the machine's list of hosts. With any, no server is asked.
    pub listed: Vec<IpAddr>,
    /// The name servers of the network outside of all tunnels, the preferred one first.
    pub servers: Vec<IpAddr>,
}

/// The addresses of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The addresses.
    pub addresses: Vec<IpAddr>,
    /// The name server that told them; `None` for the machine's list of hosts.
    pub by: Option<IpAddr>,
}

/// The reason why a name has no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// The network has no name server.
    #[error("this network has no name server")]
    NoServer,
    /// No server answered.
    #[error("no answer from name server {}", list(.servers))]
    NoAnswer {
        /// The servers.
        servers: Vec<IpAddr>,
    },
    /// A query could not be sent.
    #[error("cannot ask name server {server}: {why}")]
    NotSent {
        /// The server.
        server: IpAddr,
        /// The reason that the system gives.
        why: String,
    },
    /// The name does not exist.
    #[error("name server {server} knows no such name")]
    NoSuchName {
        /// The server.
        server: IpAddr,
    },
    /// The name exists and has no address.
    #[error("name server {server} knows no address of that name")]
    NoAddress {
        /// The server.
        server: IpAddr,
    },
    /// A server does not answer the question.
    #[error("name server {server} fails with code {code}")]
    Failed {
        /// The server.
        server: IpAddr,
        /// The code of its answer (RFC 1035 section 4.1.1).
        code: u8,
    },
    /// The answer is malformed.
    #[error("the answer of name server {server} is malformed")]
    Malformed {
        /// The server.
        server: IpAddr,
    },
    /// A gateway redirected us to the name, and may redirect us to none of its addresses.
    #[error("{} is not listed in `redirect`", list(.addresses))]
    NotListed {
        /// The addresses.
        addresses: Vec<IpAddr>,
    },
    /// The addresses belong inside a tunnel.
    #[error("{} is inside a tunnel, where no peer can be", list(.addresses))]
    Inside {
        /// The addresses.
        addresses: Vec<IpAddr>,
    },
}

fn list(addresses: &[IpAddr]) -> String {
    let addresses = addresses.iter().map(ToString::to_string);
    addresses.collect::<Vec<_>>().join(", ")
}

/// What a lookup has come to.
pub(super) enum Progress {
    /// These messages go to a server.
    Ask {
        server: IpAddr,
        messages: Vec<Vec<u8>>,
    },
    /// Addresses of one kind. Others may follow.
    Found(Found),
    /// The lookup has ended.
    Done(Result<Found, NotFound>),
}

/// A lookup.
pub(super) struct Lookup {
    began: Instant,
    listed: Vec<IpAddr>,
    servers: Vec<IpAddr>,
    /// One question for each kind, with the addresses once they are known.
    questions: Vec<(Question, Option<Vec<IpAddr>>)>,
    /// The server that answered last.
    by: Option<IpAddr>,
    /// Number of queries so far.
    asked: usize,
    /// Time of the next query.
    next_at: Instant,
    /// Time from which on the addresses of one kind are good enough; `None` if they were told.
    told_at: Option<Instant>,
    /// The reason to end without waiting for other servers.
    refused: Option<NotFound>,
    /// The last reason for which a server was of no use.
    problem: Option<NotFound>,
}

impl Lookup {
    pub(super) fn begin(name: &str, sources: Sources, rng: &mut Rng, now: Instant) -> Self {
        let mut servers = sources.servers;
        servers.truncate(MOST_SERVERS);
        let question = |kind| Question {
            id: rng.u16(),
            name: name.to_owned(),
            kind,
        };
        Self {
            began: now,
            listed: sources.listed,
            servers,
            questions: Kind::ALL.map(question).map(|asked| (asked, None)).into(),
            by: None,
            asked: 0,
            next_at: now,
            told_at: Some(now + LIMIT),
            refused: None,
            problem: None,
        }
    }

    /// Handles an answer of a server.
    pub(super) fn handle_reply(&mut self, server: IpAddr, message: &[u8], now: Instant) {
        for (question, addresses) in self
            .questions
            .iter_mut()
            .filter(|(_, known)| known.is_none())
        {
            match question.read(message) {
                Ok(None) => continue,
                Ok(Some(Answer::Addresses(told))) => {
                    if !told.is_empty() {
                        self.told_at = self.told_at.map(|at| at.min(now + DELAY));
                    }
                    *addresses = Some(told);
                    self.by = Some(server);
                }
                Ok(Some(Answer::NoSuchName)) => {
                    self.refused = Some(NotFound::NoSuchName { server });
                }
                Ok(Some(Answer::Failed(code))) => {
                    self.problem = Some(NotFound::Failed { server, code });
                    return self.skip(server, now);
                }
                Err(_) => self.problem = Some(NotFound::Malformed { server }),
            }
            return;
        }
    }

    /// Handles a query that could not be sent.
    pub(super) fn handle_unsent(&mut self, server: IpAddr, why: String, now: Instant) {
        self.problem = Some(NotFound::NotSent { server, why });
        self.skip(server, now);
    }

    /// Returns the next step; `None` until the next input or [`Self::deadline`].
    pub(super) fn poll(&mut self, now: Instant) -> Option<Progress> {
        if !self.listed.is_empty() {
            let addresses = std::mem::take(&mut self.listed);
            let found = Found {
                addresses,
                by: None,
            };
            return Some(Progress::Done(Ok(found)));
        }
        if self.is_over(now) {
            return Some(Progress::Done(self.outcome()));
        }
        if self.told_at.is_some_and(|at| at <= now) {
            self.told_at = None;
            return self.found().map(Progress::Found);
        }
        if self.next_at > now {
            return None;
        }
        self.ask(now)
    }

    pub(super) fn deadline(&self) -> Instant {
        let limit = self.began + LIMIT;
        let told = self.told_at.unwrap_or(limit);
        limit.min(self.next_at).min(told)
    }

    fn is_over(&self, now: Instant) -> bool {
        let complete = self.questions.iter().all(|(_, known)| known.is_some());
        let spent = self.asked >= MOST_QUERIES || self.found().is_some() || self.servers.is_empty();
        let late = now >= self.began + LIMIT || self.next_at <= now && spent;
        complete || late || self.refused.is_some()
    }

    fn ask(&mut self, now: Instant) -> Option<Progress> {
        let server = *self.servers.get(self.asked % self.servers.len().max(1))?;
        let patience = match self.asked < self.servers.len() {
            true => PATIENCE,
            false => LONG_PATIENCE,
        };
        self.asked += 1;
        self.next_at = now + patience;
        let open = self.questions.iter().filter(|(_, known)| known.is_none());
        let messages = open.filter_map(|(question, _)| question.encode());
        Some(Progress::Ask {
            server,
            messages: messages.collect(),
        })
    }

    /// Goes on to the next server, if this one was asked last. The first round is quick, and
    /// further ones wait: the network may be coming up.
    fn skip(&mut self, server: IpAddr, now: Instant) {
        let last = self.asked.checked_sub(1);
        let is_last = last.and_then(|last| self.servers.get(last)) == Some(&server);
        if is_last && self.asked < self.servers.len() {
            self.next_at = now;
        }
    }

    fn found(&self) -> Option<Found> {
        let known = self.questions.iter().filter_map(|(_, known)| known.clone());
        let addresses: Vec<_> = known.flatten().collect();
        (!addresses.is_empty()).then_some(Found {
            addresses,
            by: self.by,
        })
    }

    fn outcome(&mut self) -> Result<Found, NotFound> {
        if let Some(found) = self.found() {
            return Ok(found);
        }
        let answered = self.questions.iter().all(|(_, known)| known.is_some());
        let empty = self.by.filter(|_| answered);
        let empty = empty.map(|server| NotFound::NoAddress { server });
        let why = self.refused.take().or(empty).or(self.problem.take());
        Err(why.unwrap_or_else(|| match self.servers.is_empty() {
            true => NotFound::NoServer,
            false => NotFound::NoAnswer {
                servers: self.servers.clone(),
            },
        }))
    }
}
