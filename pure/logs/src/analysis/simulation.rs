//! The IKE exchanges that remain with a caching strategy, and what the strategy costs.
//!
//! The decisions are those of the gateway, by the same code: [`Strategy`] says whether a session
//! may be resumed, and [`Memory`] has the entries, and evicts them without room. What the log does
//! not say is assumed:
//!
//! * Every session ends in a way that leaves the entry, as in the paper: a client that deletes its
//!   IKE SA cannot resume it (RFC 5723 section 6.2).
//! * Sessions of one user that overlap are those of several clients. A client resumes its own
//!   sessions only: here, the one that ended last.
//! * The gateway is not killed, so that nothing is charged in advance.

use super::{Histogram, bounds};
use crate::Session;
use crypto::{Prf, Secret, UnixTime};
use model::{Group, Identity, Suite};
use resumption::{
    Entry, Handle, Kept, Keys, Memory, Operation, OperationId, Proof, Store, Strategy, Ticket,
    Usage, Way,
};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr};

/// Most samples of the size of the cache. With more, every second one is dropped.
const MOST_SAMPLES: usize = 4096;

/// Clients kept in addition to twice the room of the store, before those that cannot resume are
/// forgotten.
const REMEMBERED: usize = 1 << 17;

const HOUR: u64 = 3600;

/// A gateway with one strategy, which a log is played to. Sessions come in the order of their
/// begins ([`super::Order`]).
pub struct Simulation {
    strategy: Strategy,
    store: Memory,
    /// The clients of each user that have a ticket.
    clients: BTreeMap<User, Vec<Client>>,
    /// Number of all clients, and most of them.
    count: usize,
    most_clients: usize,
    handles: u128,
    next_sample: Option<UnixTime>,
    step: u64,
    outcome: Outcome,
}

/// A user of a gateway, by a hash, as names are slow to compare. In three of a million logs with
/// ten million users each, two users share one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct User(u64);

impl User {
    fn of(session: &Session) -> Self {
        let mut hasher = DefaultHasher::new();
        (&session.gateway, &session.user).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// What a client has after a session.
struct Client {
    handle: Handle,
    /// End of the session, from which the client may resume it.
    free: UnixTime,
    usage: Usage,
    ends: UnixTime,
}

/// What a strategy leads to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The strategy.
    pub strategy: Strategy,
    /// Sessions with a begin.
    pub connections: u64,
    /// Those that need a full IKE exchange. All others are resumed.
    pub exchanges: u64,
    /// Full exchanges because the entry had no room in the store, at least.
    pub evicted: u64,
    /// Most entries in the store at once.
    pub most_entries: usize,
    /// Entries in the store over time.
    pub sizes: Vec<Sample>,
    /// What an attacker gains by one secret.
    pub exposure: Exposure,
}

/// Entries in the store at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time.
    pub at: UnixTime,
    /// Entries that have not ended.
    pub entries: usize,
}

/// Use of the secrets that come of one full exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// Seconds from the exchange until nothing can be resumed any more: to the end of its entry, or
    /// of the last session under it.
    pub seconds: Histogram,
    /// Octets of all sessions under it.
    pub octets: Histogram,
}

impl Outcome {
    /// Returns the part of the connections that need a full exchange, or `None` without any.
    pub fn share(&self) -> Option<f64> {
        let (all, full) = (self.connections, self.exchanges);
        (all > 0).then(|| full as f64 / all as f64)
    }
}

impl Simulation {
    /// Creates a gateway whose store has room for this many entries. Tickets are by reference.
    pub fn new(strategy: Strategy, most: usize) -> Self {
        let strategy = Strategy {
            by_value: false,
            ..strategy
        };
        Self {
            strategy,
            store: Memory::new(most),
            clients: BTreeMap::new(),
            count: 0,
            most_clients: 2 * most + REMEMBERED,
            handles: 0,
            next_sample: None,
            step: HOUR,
            outcome: Outcome {
                strategy,
                connections: 0,
                exchanges: 0,
                evicted: 0,
                most_entries: 0,
                sizes: Vec::new(),
                exposure: Exposure {
                    seconds: Histogram::new(bounds::LIVES),
                    octets: Histogram::new(bounds::BURDENS),
                },
            },
        }
    }

    /// Plays a session. One without a begin is left out.
    pub fn visit(&mut self, session: &Session) {
        let Some(begin) = session.span.begin() else {
            return;
        };
        self.sample(begin);
        self.outcome.connections += 1;
        let user = User::of(session);
        let resumed = self.resume(user, begin);
        if resumed.is_none() {
            self.outcome.exchanges += 1;
        }
        let usage = resumed.unwrap_or(Usage::new(begin));
        self.give_ticket(session, user, usage, begin);
    }

    /// Returns what the strategy leads to.
    pub fn finish(mut self) -> Outcome {
        let clients = std::mem::take(&mut self.clients).into_values().flatten();
        clients.for_each(|client| self.expose(&client));
        self.outcome
    }

    /// Presents the ticket of the user's client that ended last. Returns what was used of it, if
    /// the gateway resumes its session.
    fn resume(&mut self, user: User, now: UnixTime) -> Option<Usage> {
        let clients = self.clients.get_mut(&user)?;
        let free = clients.iter().enumerate();
        let free = free.filter(|(_, client)| client.free <= now);
        let (place, _) = free.max_by_key(|(_, client)| client.free)?;
        let client = clients.swap_remove(place);
        if clients.is_empty() {
            self.clients.remove(&user);
        }
        self.count -= 1;
        let left = self.strategy.left(&client.usage, client.ends, now);
        if left.is_zero() {
            self.expose(&client);
            return None;
        }
        let ticket = Ticket::Reference(client.handle);
        let take = Operation::Take(OperationId(0), ticket);
        self.store.submit(take, now);
        let taken = self.store.poll() == Some(resumption::Outcome::Taken(OperationId(0), true));
        if !taken {
            self.outcome.evicted += 1;
            self.expose(&client);
        }
        taken.then_some(client.usage)
    }

    /// Gives the client of a session a ticket, which it has when the session ends.
    fn give_ticket(&mut self, session: &Session, user: User, before: Usage, now: UnixTime) {
        let ends = self.strategy.end(&before);
        self.handles += 1;
        let handle = Handle::from(self.handles.to_be_bytes());
        if self.strategy.admits(&before, now).is_ok() && ends > now {
            let entry = entry(before, ends);
            let kept = Box::new(Kept { handle, entry });
            self.store.submit(Operation::Add(kept), now);
            self.outcome.most_entries = self.outcome.most_entries.max(self.store.len());
        }
        let lasted = session.span.duration();
        let data = session.octets.map_or(0, |octets| octets.total());
        let usage = before.and(lasted.unwrap_or_default(), data);
        let free = UnixTime(now.0.saturating_add(lasted.unwrap_or_default().as_secs()));
        let client = Client {
            handle,
            free,
            usage,
            ends,
        };
        if lasted.is_none() {
            self.expose(&client);
            return;
        }
        let clients = self.clients.entry(user);
        let clients = clients.or_insert_with(|| Vec::with_capacity(1));
        clients.push(client);
        self.count += 1;
        if self.count > self.most_clients {
            self.forget(now);
        }
    }

    /// Forgets the clients that cannot resume anything: as many are left as the store has entries.
    fn forget(&mut self, now: UnixTime) {
        let stored: BTreeSet<_> = self.store.iter().map(|(handle, _)| *handle).collect();
        let strategy = self.strategy;
        let is_good = |client: &Client| {
            let left = strategy.left(&client.usage, client.ends, now);
            !left.is_zero() && stored.contains(&client.handle)
        };
        let mut gone = Vec::new();
        for clients in self.clients.values_mut() {
            gone.extend(clients.extract_if(.., |client| !is_good(client)));
        }
        self.clients.retain(|_, clients| !clients.is_empty());
        self.count -= gone.len();
        for client in gone {
            self.expose(&client);
        }
    }

    /// Adds what was done under one full exchange. An entry that is not used again opens a session
    /// until it ends.
    fn expose(&mut self, client: &Client) {
        let Client {
            free, usage, ends, ..
        } = client;
        let until = match self.strategy.admits(usage, *free) {
            Ok(()) => *ends.max(free),
            Err(_) => *free,
        };
        let exposure = &mut self.outcome.exposure;
        exposure.seconds.add(until.0.saturating_sub(usage.since.0));
        exposure.octets.add(usage.data);
    }

    /// Samples the size of the store up to a time.
    fn sample(&mut self, now: UnixTime) {
        let mut at = self.next_sample.unwrap_or(now);
        while at <= now {
            self.store.expunge(at);
            let entries = self.store.len();
            let sizes = &mut self.outcome.sizes;
            sizes.push(Sample { at, entries });
            if sizes.len() == MOST_SAMPLES {
                let mut keeps = [true, false].into_iter().cycle();
                sizes.retain(|_| keeps.next().unwrap_or_default());
                self.step = self.step.saturating_mul(2);
            }
            let Some(next) = at.0.checked_add(self.step) else {
                break;
            };
            at = UnixTime(next);
        }
        self.next_sample = Some(at);
    }
}

/// Returns an entry. Who it is of makes no difference to a store.
fn entry(usage: Usage, ends: UnixTime) -> Entry {
    Entry {
        identity: Identity::Address(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        proof: Proof::Certificate,
        chain: Vec::new(),
        group: Group::X25519,
        credential: [0; 8],
        keys: Keys {
            way: Way::Skid3,
            suite: Suite::Aes128Gcm16,
            prf: Prf::HmacSha256,
            kems: Vec::new(),
            ppk: false,
            secret: Secret::new(Vec::new()),
        },
        usage,
        ends,
    }
}

#[cfg(test)]
mod tests {
    use super::{Strategy, *};
    use crate::{Octets, Span};
    use proptest::prelude::*;
    use proptest::strategy::Strategy as _;
    use std::time::Duration;

    const CLOCKED: Strategy = Strategy {
        clocked: Duration::from_secs(8 * HOUR),
        established: None,
        data: None,
        by_value: false,
    };

    fn session(user: &str, begin: u64, end: u64, sent: u64) -> Session {
        Session {
            user: user.into(),
            gateway: "".into(),
            address: None,
            span: Span::Whole {
                begin: UnixTime(begin),
                end: UnixTime(end),
            },
            octets: Some(Octets { received: 0, sent }),
        }
    }

    fn play(strategy: Strategy, most: usize, sessions: &[Session]) -> Outcome {
        let mut simulation = Simulation::new(strategy, most);
        sessions
            .iter()
            .for_each(|session| simulation.visit(session));
        simulation.finish()
    }

    /// Plays sessions of one user from and to these hours.
    fn exchanges(strategy: Strategy, hours: &[[u64; 2]]) -> u64 {
        let session = |[begin, end]: &[u64; 2]| session("ann", begin * HOUR, end * HOUR, 30);
        let sessions: Vec<_> = hours.iter().map(session).collect();
        play(strategy, 100, &sessions).exchanges
    }

    /// The paper's examples (section IV-B).
    #[test]
    fn the_strategies_of_the_paper() {
        assert_eq!(exchanges(CLOCKED, &[[0, 2], [5, 6]]), 1);
        assert_eq!(exchanges(CLOCKED, &[[0, 2], [9, 10]]), 2);
        let established = Strategy {
            clocked: Strategy::LONGEST,
            established: Some(Duration::from_secs(8 * HOUR)),
            ..CLOCKED
        };
        assert_eq!(exchanges(established, &[[0, 2], [22, 23]]), 1);
        assert_eq!(exchanges(established, &[[0, 8], [22, 23]]), 2);
        let data = Strategy {
            established: None,
            data: Some(50),
            ..established
        };
        assert_eq!(exchanges(data, &[[0, 2], [3, 4], [5, 6]]), 2);
    }

    #[test]
    fn sessions_that_overlap_are_of_several_clients() {
        assert_eq!(
            exchanges(CLOCKED, &[[0, 3], [1, 2], [4, 5], [4, 6], [5, 7]]),
            2
        );
    }

    #[test]
    fn a_session_without_an_end_is_not_resumed_and_one_without_a_begin_is_left_out() {
        let (begin, end) = (UnixTime(HOUR), UnixTime(HOUR));
        let unended = Session {
            span: Span::NotEnded { begin },
            ..session("ann", 0, 0, 1)
        };
        let before = Session {
            span: Span::BeganBefore { end },
            ..unended.clone()
        };
        let later = session("ann", 2 * HOUR, 3 * HOUR, 1);
        let outcome = play(CLOCKED, 100, &[unended, before, later]);
        assert_eq!((outcome.connections, outcome.exchanges), (2, 2));
        assert_eq!(outcome.share(), Some(1.0));
    }

    #[test]
    fn without_room_the_entry_that_ends_first_is_missing_later() {
        let sessions: Vec<_> = (0..3)
            .chain(0..3)
            .zip(0..)
            .map(|(user, minute)| {
                let user = user.to_string();
                session(&user, minute * 60, minute * 60 + 30, 1)
            })
            .collect();
        let with = |most| {
            let outcome = play(CLOCKED, most, &sessions);
            (outcome.exchanges, outcome.evicted)
        };
        assert_eq!([with(3), with(2)], [(3, 0), (6, 3)]);
    }

    #[test]
    fn the_size_of_the_cache_rises_and_falls() {
        let visits =
            (0..4).map(|user| session(&user.to_string(), user * 2 * HOUR, user * 2 * HOUR, 1));
        let late = session("9", 30 * HOUR, 31 * HOUR, 1);
        let sessions: Vec<_> = visits.chain([late]).collect();
        let outcome = play(CLOCKED, 100, &sessions);
        let at = |hour: usize| outcome.sizes[hour].entries;
        assert_eq!([at(1), at(3), at(7), at(9), at(20)], [1, 2, 4, 3, 0]);
        assert_eq!((outcome.most_entries, outcome.sizes.len()), (4, 31));
    }

    /// A hostile time must not cost a sample for each hour up to it.
    #[test]
    fn samples_are_bounded() {
        let far = [
            session("ann", 0, 1, 1),
            session("ann", 250_000_000_000, 250_000_000_001, 1),
        ];
        let outcome = play(CLOCKED, 100, &far);
        assert!(outcome.sizes.len() < MOST_SAMPLES);
        assert_eq!(outcome.exchanges, 2);
    }

    #[test]
    fn an_exposure_is_that_of_a_full_exchange_with_all_that_it_resumes() {
        let sessions = [[0, 2], [5, 6], [9, 10]]
            .map(|[begin, end]| session("ann", begin * HOUR, end * HOUR, 1_000_000));
        let Exposure { seconds, octets } = play(CLOCKED, 100, &sessions).exposure;
        // The first entry is spent at its end, the second one is not.
        assert_eq!((seconds.count(), seconds.sum()), (2, 16 * 3600));
        assert_eq!((octets.count(), octets.sum()), (2, 3_000_000));
    }

    /// The strategies as the paper's text says them, for one user whose sessions do not overlap.
    fn model(strategy: Strategy, sessions: &[Session]) -> u64 {
        let mut exchanges = 0;
        let mut last: Option<(u64, u64, u64)> = None;
        for session in sessions {
            let begin = session.span.begin().unwrap().0;
            let lasted = session.span.duration().unwrap().as_secs();
            let data = session.octets.unwrap().total();
            let is_good = |(since, up, carried): &(u64, u64, u64)| {
                let established = strategy.established.map(|most| most.as_secs());
                begin - since < strategy.clocked.as_secs()
                    && established.is_none_or(|most| *up < most)
                    && strategy.data.is_none_or(|most| *carried < most)
            };
            let before = last.filter(is_good).unwrap_or_else(|| {
                exchanges += 1;
                (begin, 0, 0)
            });
            last = Some((before.0, before.1 + lasted, before.2 + data));
        }
        exchanges
    }

    /// Sessions of one user, each after the other.
    fn visits() -> impl proptest::strategy::Strategy<Value = Vec<Session>> {
        let visit = (0..20 * HOUR, 0..5 * HOUR, 0..100_u64);
        proptest::collection::vec(visit, 0..60).prop_map(|visits| {
            let mut now = 0;
            let visits = visits.into_iter().map(|(pause, lasted, data)| {
                let begin = now + pause;
                now = begin + lasted;
                session("ann", begin, now, data)
            });
            visits.collect()
        })
    }

    proptest! {
        #[test]
        fn the_gateway_decides_as_the_paper_says(
            visits in visits(),
            clocked in 1..100 * HOUR,
            established in proptest::option::of(1..50 * HOUR),
            data in proptest::option::of(1..500_u64),
        ) {
            let strategy = Strategy {
                clocked: Duration::from_secs(clocked),
                established: established.map(Duration::from_secs),
                data,
                by_value: false,
            };
            let outcome = play(strategy, 1000, &visits);
            prop_assert_eq!(outcome.exchanges, model(strategy, &visits));
            prop_assert_eq!(outcome.exposure.octets.count(), outcome.exchanges);
            let carried = visits.iter().map(|visit| visit.octets.unwrap().total());
            prop_assert_eq!(outcome.exposure.octets.sum(), carried.map(u128::from).sum::<u128>());
        }

        /// Whatever the order and the overlaps: the state keeps its limits.
        #[test]
        fn any_sessions_keep_the_limits(visits in proptest::collection::vec(
            (0..200_u64, 0..90 * HOUR, 0..9 * HOUR), 0..300)
        ) {
            let mut simulation = Simulation::new(CLOCKED, 20);
            simulation.most_clients = 40;
            for (user, begin, lasted) in visits {
                simulation.visit(&session(&user.to_string(), begin, begin + lasted, 1));
                prop_assert!(simulation.count <= 40);
                let clients = simulation.clients.values().map(Vec::len).sum::<usize>();
                prop_assert_eq!(clients, simulation.count);
                prop_assert!(simulation.clients.len() <= clients);
            }
            let outcome = simulation.finish();
            prop_assert!(outcome.exchanges <= outcome.connections && outcome.most_entries <= 20);
        }
    }
}
