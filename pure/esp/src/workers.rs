//! Several workers, one per sealing and opening thread: ownership of SAs, and access for control.
//!
//! Every SA, with its sequence numbers and its replay window, belongs to one worker: number SPI
//! modulo the number of workers. Anything that sees a packet, such as a kernel that steers packets,
//! can therefore compute which worker opens it. A duplicate meets the same window on any path. A
//! thread seals a datagram itself if it owns one of the SAs for that traffic, which is the purpose
//! of several child SAs for the same traffic (RFC 9611). Otherwise the owner's worker seals.
//!
//! A worker is behind a lock that is taken once per batch, nearly always by its own thread, so the
//! cost is that of a few octets. Control takes the locks between batches, one after the other. An
//! owner learns of an SA before all other workers, and of its end after them, so an SA that another
//! worker refers to exists at its owner.

use crate::command::{Command, PeerSettings};
use crate::observed::Observed;
use crate::packet::Packet;
use crate::policy::Spd;
use crate::reach::RemoteSa;
use crate::report::{Counters, Report};
use crate::room::PathMtu;
use crate::sync::{Arc, AtomicBool, Mutex, MutexGuard, Ordering};
use crate::worker::{Sink, Worker};
use crate::{DropReason, Unusable};
use crypto::Secret;
use model::{ChildSa, ChildSaId, Instant, Path, PeerId, Spi};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU8;
use std::sync::PoisonError;
use wire::esp::Header;
use wire::probe::Probe;

/// Limit on hand-overs of a datagram between workers before it is dropped. Each one means that
/// control has changed something in between.
const HANDS: usize = 8;

/// All workers of a host, for control.
pub struct Workers(Arc<Shared>);

struct Shared {
    workers: Box<[Mutex<Worker>]>,
    /// True if a worker may have a report. Reading it takes no lock.
    reports: AtomicBool,
}

/// A thread's access to the workers. Its own worker is nearly always free.
pub struct WorkerHandle {
    workers: Workers,
    own: usize,
    handed: Vec<Handed>,
}

/// A datagram that another worker seals: the number of that worker, and the place in the batch.
type Handed = (usize, usize);

impl Workers {
    /// Creates workers with the same policies, and without SAs.
    pub fn new(count: NonZeroU8, spd: &Spd) -> Self {
        let worker = |_| Mutex::new(Worker::new(spd.clone()));
        Self(Arc::new(Shared {
            workers: (0..count.get()).map(worker).collect(),
            reports: AtomicBool::new(false),
        }))
    }

    /// Returns a thread's handle, numbered from 0. Numbers beyond the last get the last handle.
    pub fn handle(&self, number: usize) -> WorkerHandle {
        WorkerHandle {
            workers: Self(Arc::clone(&self.0)),
            own: number.min(self.len() - 1),
            handed: Vec::new(),
        }
    }

    // Commands, passed on to the workers.

    /// Calls [`Worker::install_beside`] on the owner, which the SPI determines. The other workers
    /// then learn of the SA. All companion SAs must have the same owner.
    pub fn install_beside(&self, sa: ChildSa<Secret>) -> Result<(), Unusable> {
        let (spi, owner) = (sa.inbound.spi, self.owner(sa.inbound.spi));
        let mut besides = sa.opaque.iter().chain(&sa.integrity);
        if !besides.all(|beside| self.owner(beside.inbound.spi) == owner) {
            return Err(Unusable::Spi);
        }
        let known = (self.len() > 1).then(|| RemoteSa::new(&sa, owner));
        self.have(owner, |worker| worker.install_beside(sa))?;
        for other in (0..self.len()).filter(|other| *other != owner) {
            let mut other = self.lock(other);
            known
                .iter()
                .for_each(|known| other.learn(spi, known.clone()));
        }
        Ok(())
    }

    /// Carries out a command on the workers. An owner learns of an SA to send on before all other
    /// workers, and of its end after them.
    pub fn apply(&self, command: Command) {
        match command {
            Command::Prefer(id) => self.owner_first(id, Worker::prefer),
            Command::Retire(id) => self.owner_last(id, Worker::retire),
            Command::MakeOpaque(id) => self.each(|worker| worker.make_opaque(id)),
            Command::Remove(id) => self.owner_last(id, Worker::remove),
            Command::Move(id, path) => self.each(|worker| worker.move_path(id, path)),
            Command::Watch(id) => self.each(|worker| worker.watch(id)),
            Command::SkipTo(id, number) => self.each(|worker| worker.skip_to(id, number)),
            Command::Policies(spd) => self.each(|worker| worker.set_policies(spd.clone())),
            Command::Settings(peer, settings) => {
                self.each(|worker| worker.set_peer(peer, settings))
            }
            Command::Level(peer, choice) => self.each(|worker| worker.set_level(peer, choice)),
            Command::Clamp(mtu) => self.each(|worker| worker.set_clamp(mtu)),
        }
    }

    /// Calls [`Worker::set_peers`] on every worker.
    pub fn set_peers(&self, peers: &BTreeMap<PeerId, PeerSettings>) -> BTreeSet<PeerId> {
        let mut changed = BTreeSet::new();
        self.each(|worker| changed = worker.set_peers(peers.clone()));
        changed
    }

    /// Calls [`Worker::set_path_mtu`] on the owner.
    pub fn set_path_mtu(&self, id: ChildSaId, mtu: PathMtu) -> Option<u16> {
        self.find(|worker| worker.set_path_mtu(id, mtu))
    }

    /// Calls [`Worker::notice`] on the owner.
    pub fn notice(&self, id: ChildSaId, packet: &mut Packet) -> Option<Path> {
        self.find(|worker| worker.notice(id, packet))
    }

    /// Calls [`Worker::probe`] on the owner.
    pub fn probe(&self, id: ChildSaId, probe: Probe, packet: &mut Packet) -> Option<Path> {
        self.find(|worker| worker.probe(id, probe, packet))
    }

    /// Calls [`Worker::cover`] on the owner of the newest SA, if no worker has sealed anything for
    /// the peer.
    pub fn cover(&self, peer: PeerId, packet: &mut Packet) -> Option<Path> {
        let (mut silence, mut newest) = (true, None);
        for owner in 0..self.len() {
            let (silent, covering) = self.lock(owner).silence(peer);
            silence &= silent;
            newest = newest.max(covering.map(|(turn, spi)| (turn, owner, spi)));
        }
        let (_, owner, spi) = newest.filter(|_| silence)?;
        self.lock(owner).dummy(spi, packet)
    }

    // Outputs.

    /// Returns the next report for control.
    pub fn poll_report(&self) -> Option<Report> {
        // Workers set the flag after they queue a report. Cleared before the search, it is set
        // again by a report that is queued during the search.
        if !self.0.reports.swap(false, Ordering::AcqRel) {
            return None;
        }
        let report = self.find(Worker::poll_report)?;
        self.0.reports.store(true, Ordering::Release);
        Some(report)
    }

    /// Returns true if [`Self::poll_report`] may return a report.
    pub fn has_reports(&self) -> bool {
        self.0.reports.load(Ordering::Acquire)
    }

    /// Calls [`Worker::has_sent`] on the owner.
    pub fn has_sent(&self, id: ChildSaId, header: Header) -> bool {
        self.find(|worker| worker.has_sent(id, header))
            .unwrap_or_default()
    }

    /// Returns what the owner has observed of an SA, if the SA exists.
    pub fn observed(&self, id: ChildSaId) -> Option<Observed> {
        self.find(|worker| worker.observed(id))
    }

    /// Returns the sum of all workers' counters.
    pub fn counters(&self) -> Counters {
        let mut all = Counters::new();
        self.each(|worker| all.add(worker.counters()));
        all
    }

    // Inside.

    /// Returns the worker that owns the packets with an SPI.
    fn owner(&self, spi: Spi) -> usize {
        spi.0 as usize % self.len()
    }

    fn len(&self) -> usize {
        self.0.workers.len()
    }

    /// Locks a worker. A panic under the lock at worst leaves an SA with one number spent, so a
    /// poisoned lock is used anyway.
    fn lock(&self, number: usize) -> MutexGuard<'_, Worker> {
        let worker = self.0.workers[number].lock();
        worker.unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a task on a worker, and sets the flag if the worker has a report afterwards.
    fn have<T>(&self, number: usize, task: impl FnOnce(&mut Worker) -> T) -> T {
        let mut worker = self.lock(number);
        let done = task(&mut worker);
        if worker.has_reports() {
            self.0.reports.store(true, Ordering::Release);
        }
        done
    }

    fn each(&self, mut command: impl FnMut(&mut Worker)) {
        (0..self.len()).for_each(|number| self.have(number, &mut command));
    }

    fn find<T>(&self, mut ask: impl FnMut(&mut Worker) -> Option<T>) -> Option<T> {
        (0..self.len()).find_map(|number| ask(&mut self.lock(number)))
    }

    fn owner_first(&self, id: ChildSaId, command: fn(&mut Worker, ChildSaId)) {
        let of = |owned: bool| {
            move |worker: &mut Worker| {
                if worker.owns(id) == owned {
                    command(worker, id);
                }
            }
        };
        self.each(of(true));
        self.each(of(false));
    }

    fn owner_last(&self, id: ChildSaId, command: fn(&mut Worker, ChildSaId)) {
        let other = |worker: &mut Worker| {
            if !worker.owns(id) {
                command(worker, id);
            }
        };
        self.each(other);
        self.each(|worker| command(worker, id));
    }
}

impl WorkerHandle {
    /// Seals a batch as [`Worker::seal`] does, here or at the SA's owner. Packets of one flow keep
    /// their order.
    pub fn seal(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        let Self {
            workers,
            own,
            handed,
        } = self;
        handed.clear();
        let hand = |place, owner| handed.push((owner, place));
        workers.have(*own, |worker| {
            worker.seal_own(batch, sink, now, hand);
            sink.flush();
        });
        for _ in 0..HANDS {
            if handed.is_empty() {
                return;
            }
            hand_on(workers, handed, batch, sink, now);
        }
        let mut own = workers.lock(*own);
        for &(_, place) in &*handed {
            own.dropped(&mut batch[place], DropReason::NoSa, sink);
        }
    }

    /// Opens a batch as [`Worker::open`] does, each packet at its SA's owner.
    pub fn open(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        let Self { workers, own, .. } = self;
        if workers.len() == 1 {
            return workers.have(*own, |worker| worker.open(batch, sink, now));
        }
        let owner = |packet: &Packet| {
            let header = Header::parse(packet.octets());
            header.map_or(*own, |header| workers.owner(header.spi))
        };
        for of_one in batch.chunk_by_mut(|packet, next| owner(packet) == owner(next)) {
            let owner = of_one.first().map_or(*own, owner);
            workers.have(owner, |worker| worker.open(of_one, sink, now));
        }
    }

    /// Returns true if control may have to act on a report ([`Workers::poll_report`]).
    pub fn has_reports(&self) -> bool {
        self.workers.has_reports()
    }
}

/// Lets each owner seal its datagrams. Datagrams whose SA has changed in the meantime remain in
/// `handed`.
fn hand_on(
    workers: &Workers,
    handed: &mut Vec<Handed>,
    batch: &mut [Packet],
    sink: &mut impl Sink,
    now: Instant,
) {
    handed.sort_unstable();
    let mut again = Vec::new();
    let is_next = |one: &Handed, next: &Handed| one.0 == next.0 && one.1 + 1 == next.1;
    for run in handed.chunk_by(is_next) {
        let Some(&(owner, first)) = run.first() else {
            continue;
        };
        let theirs = &mut batch[first..][..run.len()];
        let hand = |place, owner| again.push((owner, first + place));
        workers.have(owner, |worker| {
            worker.seal_own(theirs, sink, now, hand);
            sink.flush();
        });
    }
    *handed = again;
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Exchanges, Half, IkeSaId, Keys, Mode, Sizes, Suite, TrafficSelector};
    use shuttle::thread;
    use std::collections::BTreeSet;
    use std::net::{IpAddr, SocketAddr};

    const NOW: Instant = Instant::ZERO;

    /// Thread interleavings tried per test.
    const ORDERS: usize = 500;

    /// From 10.0.0.1 to 10.0.0.2.
    const DATAGRAM: [u8; 20] = [
        0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];

    /// The results of a thread's packets.
    #[derive(Default)]
    struct Seen {
        sent: Vec<Header>,
        delivered: usize,
        dropped: Vec<DropReason>,
    }

    impl Sink for Seen {
        fn transmit(&mut self, packet: &mut Packet, _: Path) {
            self.sent.extend(Header::parse(packet.octets()));
        }

        fn deliver(&mut self, _: &mut Packet) {
            self.delivered += 1;
        }

        fn dropped(&mut self, _: &mut Packet, why: DropReason) {
            self.dropped.push(why);
        }
    }

    /// Two workers, and for each of these SPIs a tunnel between 10.0.0.1 and 10.0.0.2, the last one
    /// newest. Outbound packets have the same SPI and key, so sealed packets can be opened again.
    fn two(spis: &[u32]) -> Workers {
        let workers = Workers::new(NonZeroU8::MIN.saturating_add(1), &Spd::default());
        for spi in spis {
            workers.install_beside(sa(*spi, None)).unwrap();
            workers.apply(Command::Prefer(ChildSaId(u64::from(*spi))));
        }
        workers
    }

    fn sa(spi: u32, resource: Option<u8>) -> ChildSa<Secret> {
        let half = || Half {
            spi: Spi(spi),
            keys: Keys::Plain {
                suite: Suite::Aes128Gcm16.into(),
                implicit_iv: false,
                esn: false,
                key: Secret::new(vec![7; 20]),
            },
            writers: None,
            injectors: None,
        };
        let end = SocketAddr::from(([192, 0, 2, 1], 4500));
        let all = TrafficSelector::from_prefix(IpAddr::from([10, 0, 0, 0]), 8);
        ChildSa {
            id: ChildSaId(spi.into()),
            ike: IkeSaId(1),
            peer: PeerId(0),
            name: None,
            resource,
            narrowed: false,
            mode: Mode::Tunnel,
            path: Path::udp(end, end),
            local: all.clone().into_iter().collect(),
            remote: all.into_iter().collect(),
            inbound: half(),
            outbound: half(),
            agreement: None,
            opaque: None,
            integrity: None,
            tokens: None,
            takes_padding: true,
            allowance: None,
            exchanges: Exchanges::default(),
            initiator: true,
        }
    }

    fn seal(mut worker: WorkerHandle, count: usize) -> Seen {
        let mut seen = Seen::default();
        for _ in 0..count {
            let mut batch = [Packet::with_capacity(200)];
            batch[0].fill(&DATAGRAM);
            worker.seal(&mut batch, &mut seen, NOW);
        }
        seen
    }

    fn open(mut worker: WorkerHandle, packets: &[Packet]) -> Seen {
        let mut seen = Seen::default();
        worker.open(&mut packets.to_vec(), &mut seen, NOW);
        seen
    }

    // Refuses: threads
    #[test]
    fn a_packet_that_comes_on_two_threads_is_delivered_once() {
        let order = || {
            let workers = two(&[0x1000]);
            let mut packets = vec![Packet::from_slice(&DATAGRAM); 3];
            let mut worker = workers.handle(1);
            worker.seal(&mut packets, &mut Seen::default(), NOW);
            let threads = [0, 1].map(|number| {
                let (worker, packets) = (workers.handle(number), packets.clone());
                thread::spawn(move || open(worker, &packets))
            });
            let seen = threads.map(|thread| thread.join().unwrap());
            let delivered: usize = seen.iter().map(|seen| seen.delivered).sum();
            assert_eq!(delivered, 3);
            assert_eq!(workers.counters().dropped(DropReason::Replayed), 3);
        };
        shuttle::check_random(order, ORDERS);
    }

    // Refuses: threads
    #[test]
    fn threads_that_seal_on_one_sa_give_no_number_twice() {
        let order = || {
            let workers = two(&[0x1000]);
            let threads = [0, 1].map(|number| {
                let worker = workers.handle(number);
                thread::spawn(move || seal(worker, 3))
            });
            let seen = threads.map(|thread| thread.join().unwrap());
            let sent = seen.iter().flat_map(|seen| &seen.sent);
            let numbers: BTreeSet<_> = sent.map(|header| header.seq).collect();
            assert_eq!(numbers, (1..=6).collect());
        };
        shuttle::check_random(order, ORDERS);
    }

    /// Successive rekeys, each to an SA of the other worker. A thread that has already looked up
    /// the old owner may be late, and its datagram is handed on.
    // Recovers: threads
    #[test]
    fn while_there_are_new_keys_no_datagram_is_lost() {
        let order = || {
            let workers = two(&[0x1000]);
            let threads = [0, 1].map(|number| {
                let worker = workers.handle(number);
                thread::spawn(move || seal(worker, 3))
            });
            for (old, new) in [(0x1000_u32, 0x1001), (0x1001, 0x1002)] {
                workers.install_beside(sa(new, None)).unwrap();
                workers.apply(Command::Prefer(ChildSaId(new.into())));
                workers.apply(Command::Retire(ChildSaId(old.into())));
                workers.apply(Command::Remove(ChildSaId(old.into())));
            }
            for thread in threads {
                let seen = thread.join().unwrap();
                assert_eq!((seen.sent.len(), seen.dropped), (3, vec![]));
            }
        };
        shuttle::check_random(order, ORDERS);
    }

    /// Without another SA, datagrams sealed after the end of the only one are dropped and counted.
    #[test]
    fn what_finds_no_sa_any_more_is_dropped_with_a_count() {
        let order = || {
            let workers = two(&[0x1000]);
            let worker = workers.handle(1);
            let thread = thread::spawn(move || seal(worker, 3));
            workers.apply(Command::Retire(ChildSaId(0x1000)));
            workers.apply(Command::Remove(ChildSaId(0x1000)));
            let seen = thread.join().unwrap();
            assert_eq!(seen.sent.len() + seen.dropped.len(), 3);
            let counters = workers.counters();
            assert_eq!(counters.sealed.packets, seen.sent.len() as u64);
            let dropped: u64 = counters.drops().map(|(_, count)| count).sum();
            assert_eq!(dropped, seen.dropped.len() as u64);
        };
        shuttle::check_random(order, ORDERS);
    }

    /// A report queued while control polls is found too.
    #[test]
    fn no_report_is_overlooked() {
        let order = || {
            let workers = two(&[]);
            for spi in [0x1000, 0x1001] {
                workers.install_beside(sa(spi, None)).unwrap();
            }
            let packets = [0x1000, 0x1001].map(sealed);
            let threads = [0, 1].map(|number| {
                let (worker, packet) = (workers.handle(number), packets[number].clone());
                thread::spawn(move || open(worker, &[packet]))
            });
            let mut found = 0;
            while found < 2 {
                match workers.poll_report() {
                    Some(_) => found += 1,
                    None => thread::yield_now(),
                }
            }
            threads
                .into_iter()
                .for_each(|thread| drop(thread.join().unwrap()));
        };
        shuttle::check_random(order, ORDERS);
    }

    /// The first packet on an SA.
    fn sealed(spi: u32) -> Packet {
        let mut packet = Packet::from_slice(&DATAGRAM);
        let batch = std::slice::from_mut(&mut packet);
        two(&[spi]).handle(0).seal(batch, &mut Seen::default(), NOW);
        packet
    }

    /// Runs a test under shuttle, which its locks require.
    fn once(run: impl Fn() + Send + Sync + 'static) {
        shuttle::check_random(run, 1);
    }

    #[test]
    fn of_children_for_the_same_traffic_a_thread_takes_its_own() {
        once(|| {
            let workers = two(&[]);
            for (resource, spi) in [(0, 0x1000), (1, 0x1001)] {
                workers.install_beside(sa(spi, Some(resource))).unwrap();
                workers.apply(Command::Prefer(ChildSaId(spi.into())));
            }
            for (number, spi) in [(0, 0x1000), (1, 0x1001)] {
                let sent = seal(workers.handle(number), 4).sent;
                assert_eq!(sent.len(), 4);
                assert!(sent.iter().all(|header| header.spi == Spi(spi)));
            }
        });
    }

    /// A thread stops using its own SA once another worker's SA has replaced it.
    #[test]
    fn an_own_lane_that_was_replaced_is_not_taken_before_its_successor() {
        once(|| {
            let workers = two(&[]);
            for (resource, spi) in [(0, 0x1000), (0, 0x1003)] {
                workers.install_beside(sa(spi, Some(resource))).unwrap();
                workers.apply(Command::Prefer(ChildSaId(spi.into())));
            }
            for number in [0, 1] {
                assert_eq!(seal(workers.handle(number), 1).sent[0].spi, Spi(0x1003));
            }
        });
    }

    #[test]
    fn where_a_thread_has_none_of_its_own_the_owners_is_taken() {
        once(|| {
            let sent = seal(two(&[0x1001]).handle(0), 4).sent;
            let numbers = sent.iter().map(|header| (header.spi, header.seq));
            assert!(numbers.eq((1..=4).map(|number| (Spi(0x1001), number))));
        });
    }

    /// The newest SA for a peer is preferred, even if another worker owns it.
    #[test]
    fn the_newest_sa_protects_whosever_it_is() {
        once(|| {
            for number in [0, 1] {
                let sent = seal(two(&[0x1000, 0x1001]).handle(number), 1).sent;
                assert_eq!(sent[0].spi, Spi(0x1001));
            }
        });
    }

    #[test]
    fn silence_is_that_of_all_workers() {
        once(|| {
            let workers = two(&[0x1000, 0x1001]);
            let settings = PeerSettings {
                sizes: Some(Sizes::one(100)),
                ..PeerSettings::default()
            };
            workers.set_peers(&[(PeerId(0), settings)].into());
            let mut packet = Packet::with_capacity(1000);
            let mut cover = || workers.cover(PeerId(0), &mut packet).is_some();
            assert!(cover());
            assert_eq!(seal(workers.handle(0), 1).sent.len(), 1);
            assert!(!cover());
            assert!(cover());
        });
    }

    /// The SPI of a packet would lead to a worker without the SA.
    #[test]
    fn an_sa_whose_spis_are_of_several_workers_is_refused() {
        once(|| {
            let mut torn = sa(0x1000, None);
            let beside = sa(0x1001, None);
            torn.opaque = Some(model::BesideSa {
                inbound: beside.inbound,
                outbound: beside.outbound,
            });
            assert_eq!(two(&[]).install_beside(torn), Err(Unusable::Spi));
        });
    }
}
