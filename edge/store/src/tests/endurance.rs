//! Stores of sessions against a plain list, and a file whose process is killed.

use super::Folder;
use super::sessions::{NOW, entry, handles};
use crate::Sessions;
use crypto::{Rng, Secret, UnixTime};
use model::Identity;
use resumption::{
    Entry, Handle, Kept, Memory, Operation, OperationId, Outcome, Store, Ticket, Usage,
};
use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Most entries of a store, and names that are drawn from.
const MOST: usize = 40;
const NAMES: u32 = 60;

/// Most operations in a transaction.
const TOGETHER: u32 = 40;

/// Bit of the number of a ticket by value.
const VALUED: u64 = 1 << 63;

/// The environment variable with the file of the process that is killed.
const FILE: &str = "STRATA_STORE_FILE";

/// Reference model of a store: lists that are searched from their beginning.
#[derive(Default)]
struct Plain {
    entries: Vec<(Handle, Entry)>,
    /// Tickets by value that are void, and when they would have ended.
    void: Vec<(Handle, UnixTime)>,
    /// Revocations, each of an identity or of everybody, with their times.
    revoked: Vec<(Option<Identity>, UnixTime)>,
    /// Latest end of the tickets that are not in the list of those that are void any more.
    forgotten: UnixTime,
}

impl Plain {
    fn perform(&mut self, operation: &Operation, now: UnixTime) -> Option<Outcome> {
        let list = &mut self.entries;
        match operation {
            Operation::Add(kept) => {
                list.retain(|(_, entry)| now < entry.ends);
                list.sort_by_key(|(handle, entry)| (entry.ends, *handle));
                let surplus = (list.len() + 1).saturating_sub(MOST);
                list.drain(..surplus);
                list.retain(|(handle, _)| *handle != kept.handle);
                list.push((kept.handle, kept.entry.clone()));
                None
            }
            Operation::Read(id, Ticket::Value(kept)) => {
                let is_good = self.is_good(kept, now);
                let entry = is_good.then(|| Box::new(kept.entry.clone()));
                Some(Outcome::Read(*id, entry))
            }
            Operation::Take(id, Ticket::Value(kept)) => {
                let is_good =
                    self.is_good(kept, now) && self.make_void(kept.handle, kept.entry.ends, now);
                Some(Outcome::Taken(*id, is_good))
            }
            Operation::Void(handle, ends) => {
                self.make_void(*handle, *ends, now);
                None
            }
            Operation::Keep(_) => None,
            Operation::Read(id, Ticket::Reference(name)) => {
                let found = list.iter().find(|(handle, _)| handle == name);
                let found = found.filter(|(_, entry)| now < entry.ends);
                let found = found.map(|(_, entry)| Box::new(entry.clone()));
                Some(Outcome::Read(*id, found))
            }
            Operation::Take(id, Ticket::Reference(name)) => {
                let at = list.iter().position(|(handle, _)| handle == name);
                let taken = at.map(|at| list.remove(at));
                let is_good = taken.is_some_and(|(_, entry)| now < entry.ends);
                Some(Outcome::Taken(*id, is_good))
            }
            Operation::Charge(charges) => {
                for (name, usage) in charges {
                    let found = list.iter_mut().find(|(handle, _)| handle == name);
                    if let Some((_, entry)) = found {
                        entry.usage = *usage;
                    }
                }
                None
            }
            Operation::Remove(name) => {
                list.retain(|(handle, _)| handle != name);
                None
            }
            Operation::Revoke(whom) => {
                let stays = |entry: &Entry| whom.as_ref().is_some_and(|id| *id != entry.identity);
                list.retain(|(_, entry)| stays(entry));
                self.revoke(whom.clone(), now);
                None
            }
        }
    }

    fn is_good(&self, kept: &Kept, now: UnixTime) -> bool {
        let Kept { handle, entry } = kept;
        let concerns =
            |whom: &Option<Identity>| whom.as_ref().is_none_or(|id| *id == entry.identity);
        let mut revoked = self.revoked.iter();
        let is_revoked = revoked.any(|(whom, at)| concerns(whom) && entry.usage.since <= *at);
        let has_ended = entry.ends <= now.max(self.forgotten);
        !has_ended && !is_revoked && !self.void.iter().any(|(void, _)| void == handle)
    }

    fn make_void(&mut self, handle: Handle, ends: UnixTime, now: UnixTime) -> bool {
        let ended = self.void.extract_if(.., |(_, ends)| *ends <= now);
        self.forgotten = ended
            .map(|(_, ends)| ends)
            .fold(self.forgotten, UnixTime::max);
        if let Some((_, end)) = self.void.iter_mut().find(|(void, _)| *void == handle) {
            *end = ends.max(*end);
            return true;
        }
        let has_room = self.void.len() < MOST;
        match has_room {
            true => self.void.push((handle, ends)),
            false => self.revoke(None, now),
        }
        has_room
    }

    /// Of everybody, the sessions that anybody's revocation concerns are revoked.
    fn revoke(&mut self, whom: Option<Identity>, mut now: UnixTime) {
        if whom.is_none() {
            self.void.clear();
            now = self
                .revoked
                .iter()
                .map(|(_, at)| *at)
                .fold(now, UnixTime::max);
        }
        self.revoked.push((whom, now));
    }

    /// Returns the names of the entries that have not ended.
    fn names(&self, now: UnixTime) -> BTreeSet<Handle> {
        let good = self.entries.iter().filter(|(_, entry)| now < entry.ends);
        good.map(|(handle, _)| *handle).collect()
    }
}

/// Draws an operation. Of a hundred, one revokes a peer, and of a thousand one everybody.
fn draw(rng: &mut Rng, number: u64, now: UnixTime) -> Operation {
    let name = |rng: &mut Rng| Handle::from([(rng.u32() % NAMES) as u8; 16]);
    let identity = |rng: &mut Rng| format!("{}.example", rng.u32() % 5);
    let id = OperationId(number);
    match rng.u32() % 1000 {
        0 => Operation::Revoke(None),
        1..10 => Operation::Revoke(Some(identity(rng).parse().unwrap())),
        10..100 => Operation::Remove(name(rng)),
        100..250 => {
            let used = Duration::from_secs(u64::from(rng.u32() % 600));
            let charge = |rng: &mut Rng| (name(rng), Usage::new(NOW).and(used, used.as_secs()));
            Operation::Charge((0..3).map(|_| charge(rng)).collect())
        }
        250..400 => Operation::Take(id, name(rng).into()),
        400..450 => Operation::Take(id, by_value(rng, now)),
        450..600 => Operation::Read(id, name(rng).into()),
        600..640 => Operation::Read(id, by_value(rng, now)),
        640..650 => Operation::Void(name(rng), UnixTime(now.0 + u64::from(rng.u32() % 300))),
        _ => {
            let ends = now.0 - NOW.0 + u64::from(rng.u32() % 300);
            let mut entry = entry(&identity(rng), ends);
            entry.keys.secret = Secret::new(rng.array::<32>().to_vec());
            let handle = name(rng);
            Operation::Add(Box::new(Kept { handle, entry }))
        }
    }
}

/// Draws a ticket by value of a peer that was authenticated lately.
fn by_value(rng: &mut Rng, now: UnixTime) -> Ticket {
    let ends = now.0 - NOW.0 + u64::from(rng.u32() % 300);
    let mut entry = entry(&format!("{}.example", rng.u32() % 5), ends);
    entry.usage = Usage::new(UnixTime(now.0 - u64::from(rng.u32() % 20)));
    let handle = Handle::from([(rng.u32() % NAMES) as u8; 16]);
    Ticket::Value(Box::new(Kept { handle, entry }))
}

/// The file is closed and opened now and then, and time goes on, or back for a while.
#[test]
fn a_million_operations_leave_each_store_with_what_a_plain_list_has() {
    let wanted = effort::count("store operations", 20_000, 1_000_000);
    let folder = Folder::new("operations");
    let open = |seed: [u8; 32]| {
        let opened = Sessions::open(&folder.sessions(), MOST as u64, seed);
        opened.unwrap().sessions
    };
    let mut rng = Rng::from_seed([6; 32]);
    let (mut plain, mut memory) = (Plain::default(), Memory::new(MOST));
    let mut file = open(rng.array());
    let (mut done, mut now, mut found) = (0, NOW, 0);
    while done < wanted {
        let count = u64::from(1 + rng.u32() % TOGETHER);
        let operations: Vec<_> = (done..done + count)
            .map(|number| draw(&mut rng, number, now))
            .collect();
        let all = operations.iter();
        let expected: Vec<_> = all.filter_map(|one| plain.perform(one, now)).collect();
        for operation in &operations {
            memory.submit(operation.clone(), now);
        }
        let in_memory: Vec<_> = std::iter::from_fn(|| memory.poll()).collect();
        assert_eq!(in_memory, expected, "in memory, from {done}");
        assert_eq!(
            file.perform(&operations, now).unwrap(),
            expected,
            "from {done}"
        );
        found += expected.iter().filter(|outcome| is_found(outcome)).count();
        done += count;
        now.0 += u64::from(rng.u32() % 4);
        if rng.u32().is_multiple_of(50) {
            now.0 = NOW.0.max(now.0 - 200);
        }
        if rng.u32().is_multiple_of(100) {
            drop(file);
            file = open(rng.array());
        }
    }
    let names = plain.names(now);
    let good = |listed: &Handle| names.contains(listed);
    assert_eq!(handles(&file).into_iter().filter(good).count(), names.len());
    // Operations that never met an entry would show nothing.
    assert!(found as u64 > wanted / 20, "{found} of {wanted}");
}

fn is_found(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Read(_, Some(_)) | Outcome::Taken(_, true))
}

fn numbered(number: u64) -> Handle {
    let mut octets = [0; 16];
    octets[..8].copy_from_slice(&number.to_be_bytes());
    Handle::from(octets)
}

/// Returns a ticket by value with this number, which is never in the store.
fn valued(number: u64) -> Ticket {
    let kept = Kept {
        handle: numbered(number),
        entry: entry("a.example", 1000),
    };
    Ticket::Value(Box::new(kept))
}

/// The process that is killed: it adds entries and takes each again, by reference or, of every
/// third, a ticket by value instead, and says what it is about to do and what is done.
#[test]
#[ignore = "another test starts it"]
fn a_process_that_is_killed() {
    let Some(file) = env::var_os(FILE) else {
        return;
    };
    let (first, out) = (u64::from(std::process::id()) << 32, &mut std::io::stdout());
    let opened = Sessions::open(Path::new(&file), 1_000_000, [1; 32]);
    let mut sessions = opened.unwrap().sessions;
    for number in first.. {
        let handle = numbered(number);
        let entry = entry("a.example", 1000);
        let add = Operation::Add(Box::new(Kept { handle, entry }));
        sessions.perform(&[add], NOW).unwrap();
        writeln!(out, "\nadded {number}").unwrap();
        if number % 3 > 0 {
            let taken = number - number % 3;
            writeln!(out, "takes {taken}").unwrap();
            let take = Operation::Take(OperationId(number), numbered(taken).into());
            sessions.perform(&[take], NOW).unwrap();
            writeln!(out, "taken {taken}").unwrap();
        } else {
            let take = Operation::Take(OperationId(number), valued(number | VALUED));
            sessions.perform(&[take], NOW).unwrap();
            writeln!(out, "used {number}").unwrap();
        }
    }
}

fn start(file: &Path) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    let test = "tests::endurance::a_process_that_is_killed";
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command.env(FILE, file).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// An entry that was taken stays so, and one that was added is there, as soon as the process has
/// said so. What it was about to do may be done or not.
// Weakness: 180
#[test]
fn after_a_thousand_kills_what_was_taken_is_gone_and_what_was_added_is_there() {
    let folder = Folder::new("kills");
    let mut rng = Rng::from_seed([8; 32]);
    let (mut added, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let mut used = BTreeSet::new();
    for _ in 0..effort::count("store kills", 25, 1000) {
        let mut child = start(&folder.sessions());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (mut heard, most) = (0, 1 + rng.u32() % 60);
        let mut begun = BTreeSet::new();
        for line in lines {
            let line = line.unwrap();
            let Some((what, number)) = line.split_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match what {
                "added" => drop(added.insert(number)),
                "takes" => drop(begun.insert(number)),
                "taken" => drop(taken.insert(number)),
                "used" => drop(used.insert(number)),
                _ => continue,
            }
            heard += 1;
            if heard == most {
                // Lines that it has written until then are still read.
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(heard >= most, "it ended by itself");
        let opened = Sessions::open(&folder.sessions(), 1_000_000, [2; 32]);
        let mut sessions = opened.unwrap().sessions;
        let there: BTreeSet<_> = handles(&sessions).into_iter().collect();
        let read = |number: &u64| Operation::Read(OperationId(*number), valued(number | VALUED));
        let reads: Vec<_> = used.iter().map(read).collect();
        let outcomes = sessions.perform(&reads, NOW).unwrap();
        assert!(!outcomes.iter().any(is_found), "used twice");
        for number in &added {
            let is_there = there.contains(&numbered(*number));
            let is_open = begun.contains(number) && !taken.contains(number);
            assert!(is_open || is_there != taken.contains(number), "{number}");
        }
        // The file tells which of these were taken.
        begun.retain(|number| !there.contains(&numbered(*number)));
        taken.extend(begun);
    }
    assert!(taken.len() > 25, "{} were taken", taken.len());
    assert!(used.len() > 25, "{} were used", used.len());
}
