//! Sessions across restarts, crashes and foreign keys.

use super::Folder;
use crate::{Error, Sessions};
use crypto::{Prf, Rng, Secret, UnixTime};
use model::{Group, Suite};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use resumption::{
    Entry, Handle, Kept, Keys, Operation, OperationId, Outcome, Proof, Ticket, TicketKeys, Usage,
    Way,
};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const NOW: UnixTime = UnixTime(1_796_000_000);

/// The table of the entries, as a program without their key sees it.
const ENTRIES: TableDefinition<'_, [u8; 16], (u64, &[u8])> = TableDefinition::new("entries");

impl Folder {
    pub(super) fn sessions(&self) -> PathBuf {
        self.0.join("sessions.redb")
    }

    fn open_sessions(&self, most: u64) -> Result<Sessions, Error> {
        Sessions::open(&self.sessions(), most, [1; 32]).map(|opened| opened.sessions)
    }
}

fn handle(number: u8) -> Handle {
    Handle::from([number; 16])
}

pub(super) fn entry(identity: &str, ends: u64) -> Entry {
    Entry {
        identity: identity.parse().unwrap(),
        proof: Proof::Psk,
        chain: Vec::new(),
        group: Group::X25519,
        credential: [3; 8],
        keys: Keys {
            way: Way::Ticket,
            suite: Suite::Aes128Gcm16,
            prf: Prf::HmacSha256,
            kems: Vec::new(),
            ppk: false,
            secret: Secret::new(vec![7; 32]),
        },
        usage: Usage::new(NOW),
        ends: UnixTime(NOW.0 + ends),
    }
}

fn add(number: u8, identity: &str, ends: u64) -> Operation {
    Operation::Add(Box::new(Kept {
        handle: handle(number),
        entry: entry(identity, ends),
    }))
}

fn take(number: u8) -> Operation {
    Operation::Take(OperationId(number.into()), handle(number).into())
}

fn taken(number: u8, was_there: bool) -> Outcome {
    Outcome::Taken(OperationId(number.into()), was_there)
}

pub(super) fn handles(sessions: &Sessions) -> Vec<Handle> {
    let listed = sessions.reader().list().unwrap();
    listed.into_iter().map(|listed| listed.handle).collect()
}

// Weakness: 180
#[test]
fn what_was_added_is_there_after_a_restart_and_what_was_taken_is_not() {
    let folder = Folder::new("sessions");
    let mut sessions = folder.open_sessions(9).unwrap();
    let added = [add(1, "a.example", 100), add(2, "b.example", 100)];
    assert_eq!(sessions.perform(&added, NOW).unwrap(), []);
    assert_eq!(sessions.perform(&[take(1)], NOW).unwrap(), [taken(1, true)]);
    drop(sessions);
    let mut sessions = folder.open_sessions(9).unwrap();
    let read = Operation::Read(OperationId(5), handle(2).into());
    let outcomes = sessions.perform(&[take(1), read, take(2), take(2)], NOW);
    let found = Outcome::Read(OperationId(5), Some(Box::new(entry("b.example", 100))));
    assert_eq!(
        outcomes.unwrap(),
        [taken(1, false), found, taken(2, true), taken(2, false)]
    );
}

#[test]
fn the_same_references_are_good_after_a_restart() {
    let folder = Folder::new("references");
    let open = |seed| {
        Sessions::open(&folder.sessions(), 9, [seed; 32])
            .unwrap()
            .references
    };
    let reference = open(1).issue(&handle(3));
    assert_eq!(open(2).read(&reference), Some(handle(3)));
}

#[test]
fn what_is_void_stays_so_after_a_restart_and_keys_of_tickets_too() {
    let folder = Folder::new("by-value");
    let open = || Sessions::open(&folder.sessions(), 9, [1; 32]).unwrap();
    let by_value = |number| {
        let kept = Kept {
            handle: handle(number),
            entry: entry("a.example", 100),
        };
        Operation::Take(OperationId(number.into()), Ticket::Value(Box::new(kept)))
    };
    let mut rng = Rng::from_seed([1; 32]);
    let (mut keys, hour) = (TicketKeys::default(), Duration::from_secs(3600));
    keys.turn(hour, &mut rng, NOW);
    let opened = open();
    assert_eq!(opened.tickets, TicketKeys::default());
    let mut sessions = opened.sessions;
    let older = Operation::Keep(keys.clone());
    let done = sessions.perform(&[by_value(1), older], NOW).unwrap();
    assert_eq!(done, [taken(1, true)]);
    let before = fs::read(folder.0.join("sessions.redb.tickets")).unwrap();
    keys.turn(hour, &mut rng, UnixTime(NOW.0 + 7200));
    let newer = Operation::Keep(keys.clone());
    sessions.perform(&[newer], NOW).unwrap();
    drop(sessions);
    let written = fs::read(folder.0.join("sessions.redb.tickets")).unwrap();
    assert_eq!((before.len(), written.len()), (36, 36));
    assert_ne!(before[4..], written[4..], "the older one is gone");
    let mut opened = open();
    assert_eq!(opened.tickets, keys);
    let done = opened.sessions.perform(&[by_value(1), by_value(2)], NOW);
    assert_eq!(done.unwrap(), [taken(1, false), taken(2, true)]);
    opened
        .sessions
        .perform(&[Operation::Revoke(None)], NOW)
        .unwrap();
    drop(opened);
    let done = open().sessions.perform(&[by_value(3)], NOW);
    assert_eq!(done.unwrap(), [taken(3, false)]);
}

#[test]
fn keys_of_tickets_that_are_cut_are_none_and_those_that_others_may_read_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("ticket-key");
    let open = || Sessions::open(&folder.sessions(), 9, [1; 32]);
    let name = folder.0.join("sessions.redb.tickets");
    let mut sessions = open().unwrap().sessions;
    let (mut keys, mut rng) = (TicketKeys::default(), Rng::from_seed([1; 32]));
    for hour in 0..3 {
        keys.turn(
            Duration::from_secs(3 * 3600),
            &mut rng,
            UnixTime(NOW.0 + hour * 3600),
        );
    }
    sessions.perform(&[Operation::Keep(keys)], NOW).unwrap();
    let whole = fs::read(&name).unwrap();
    assert_eq!(whole.len(), 108);
    // Fewer keys leave nothing of more.
    let none = Operation::Keep(TicketKeys::default());
    sessions.perform(&[none], NOW).unwrap();
    assert_eq!(fs::read(&name).unwrap(), [0; 108]);
    drop(sessions);
    for (length, count) in [(0, 0), (35, 0), (36, 1), (107, 2), (108, 3)] {
        fs::write(&name, &whole[..length]).unwrap();
        let read = open().unwrap().tickets.iter().count();
        assert_eq!(read, count, "{length} octets");
    }
    fs::set_permissions(&name, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(open(), Err(Error::ReadByOthers { .. })));
}

#[test]
fn ended_entries_go_and_without_room_the_one_that_ends_first() {
    let folder = Folder::new("room");
    let mut sessions = folder.open_sessions(2).unwrap();
    let later = UnixTime(NOW.0 + 50);
    let fill = [
        add(1, "a.example", 40),
        add(2, "b.example", 90),
        add(3, "c.example", 80),
    ];
    sessions.perform(&fill[..2], NOW).unwrap();
    sessions.perform(&fill[2..], later).unwrap();
    assert_eq!(handles(&sessions), [handle(2), handle(3)]);
    sessions.perform(&[add(4, "d.example", 99)], later).unwrap();
    assert_eq!(handles(&sessions), [handle(2), handle(4)]);
    let ended = UnixTime(NOW.0 + 90);
    let outcomes = sessions.perform(&[take(2), take(4)], ended).unwrap();
    assert_eq!(outcomes, [taken(2, false), taken(4, true)]);
}

#[test]
fn a_charge_is_kept_and_brings_nothing_back() {
    let folder = Folder::new("charge");
    let mut sessions = folder.open_sessions(9).unwrap();
    let usage = Usage::new(NOW).and(Duration::from_secs(60), 9);
    let charge = Operation::Charge(vec![(handle(1), usage)]);
    let operations = [add(1, "a.example", 100), charge.clone()];
    sessions.perform(&operations, NOW).unwrap();
    assert_eq!(sessions.reader().list().unwrap()[0].usage, usage);
    sessions.perform(&[take(1), charge], NOW).unwrap();
    assert!(handles(&sessions).is_empty());
}

#[test]
fn an_identity_or_everybody_is_revoked() {
    let folder = Folder::new("revoked");
    let mut sessions = folder.open_sessions(9).unwrap();
    let all = [
        add(1, "a.example", 90),
        add(2, "b.example", 90),
        add(3, "a.example", 90),
    ];
    sessions.perform(&all, NOW).unwrap();
    let whom = Some("a.example".parse().unwrap());
    sessions.perform(&[Operation::Revoke(whom)], NOW).unwrap();
    assert_eq!(handles(&sessions), [handle(2)]);
    sessions.perform(&[Operation::Revoke(None)], NOW).unwrap();
    assert!(handles(&sessions).is_empty());
}

/// A stolen file opens nothing without its key. Without it nothing is removed either: the file may
/// be something else.
#[test]
fn a_file_without_its_key_opens_nothing_and_stays() {
    let folder = Folder::new("stolen");
    let mut sessions = folder.open_sessions(9).unwrap();
    sessions
        .perform(&[add(1, "alice@example.net", 90)], NOW)
        .unwrap();
    drop(sessions);
    let stored = fs::read(folder.sessions()).unwrap();
    for known in [&b"alice@example.net"[..], &[7; 32]] {
        assert!(!stored.windows(known.len()).any(|window| window == known));
    }
    fs::remove_file(folder.0.join("sessions.redb.key")).unwrap();
    let refused = folder.open_sessions(9).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|why| why.contains("sessions.redb.key, which is missing")));
    assert!(fs::read(folder.sessions()).unwrap() == stored);
}

/// Whoever may write to the file, and lacks the key, can take sessions away and bring old ones back
/// (docs/operate/reconnect.md), and nothing else.
// Weakness: 189
#[test]
fn a_file_in_which_somebody_has_exchanged_or_changed_entries_has_fewer_of_them() {
    let folder = Folder::new("poisoned");
    let mut sessions = folder.open_sessions(9).unwrap();
    let named = |number: u8| format!("{number}.example");
    let added: Vec<_> = (1..=4).map(|n| add(n, &named(n), 100)).collect();
    sessions.perform(&added, NOW).unwrap();
    drop(sessions);
    let database = Database::open(folder.sessions()).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut entries = transaction.open_table(ENTRIES).unwrap();
    let mut stored: Vec<Vec<u8>> = Vec::new();
    for number in 1..=3 {
        let entry = entries.get([number; 16]).unwrap().unwrap();
        stored.push(entry.value().1.to_vec());
    }
    stored.swap(0, 1);
    *stored[2].last_mut().unwrap() ^= 1;
    for (number, stored) in (1..=3).zip(&stored) {
        // It may also say that an entry ends later.
        let value = (NOW.0 + 9999, stored.as_slice());
        entries.insert([number; 16], value).unwrap();
    }
    drop(entries);
    transaction.commit().unwrap();
    drop(database);
    let mut sessions = folder.open_sessions(9).unwrap();
    let read = |number: u8| Operation::Read(OperationId(number.into()), handle(number).into());
    let outcomes = sessions.perform(&[1, 2, 3, 4].map(read), NOW).unwrap();
    let found = |number: u8, entry| Outcome::Read(OperationId(number.into()), entry);
    let good = found(4, Some(Box::new(entry("4.example", 100))));
    let expected = [found(1, None), found(2, None), found(3, None), good];
    assert_eq!(outcomes, expected);
    assert_eq!(handles(&sessions), [handle(4)]);
}

/// The paper (004, section V) computes 5 MB for 50,000 records of 100 octets.
#[test]
fn fifty_thousand_sessions_take_as_little_as_the_paper_says() {
    const COUNT: u32 = 50_000;
    let folder = Folder::new("many");
    let mut sessions = folder.open_sessions(COUNT.into()).unwrap();
    let entry = entry("000000.example", 100);
    let kept = |number: u32| {
        let mut octets = [0; 16];
        octets[..4].copy_from_slice(&number.to_be_bytes());
        Kept {
            handle: Handle::from(octets),
            entry: entry.clone(),
        }
    };
    let all: Vec<_> = (0..COUNT)
        .map(|number| Operation::Add(Box::new(kept(number))))
        .collect();
    sessions.perform(&all, NOW).unwrap();
    assert_eq!(handles(&sessions).len(), COUNT as usize);
    drop(sessions);
    let database = Database::open(folder.sessions()).unwrap();
    let transaction = database.begin_read().unwrap();
    let table = transaction.open_table(ENTRIES).unwrap();
    let rows = table.iter().unwrap();
    let values = rows.map(|row| row.unwrap().1.value().1.len());
    let identity = 4 + "000000.example".len() + 2;
    let octets: usize = values.map(|length| length - identity).sum();
    let file = fs::metadata(folder.sessions()).unwrap().len();
    println!("{COUNT} sessions: {octets} octets without identities, {file} in the file");
    assert!(octets <= 5_000_000, "{octets}");
    assert!(file <= 40_000_000, "{file}");
}

#[test]
fn a_file_of_leases_is_no_file_of_sessions() {
    let folder = Folder::new("leases");
    drop(crate::Store::open(&folder.0.join("leases.redb")).unwrap());
    fs::rename(folder.0.join("leases.redb"), folder.sessions()).unwrap();
    fs::write(folder.0.join("sessions.redb.key"), [1; 32]).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(folder.0.join("sessions.redb.key"), mode).unwrap();
    let refused = folder.open_sessions(9).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|why| why.contains("it has something else")));
    fs::rename(folder.sessions(), folder.0.join("leases.redb")).unwrap();
    crate::Store::open(&folder.0.join("leases.redb")).unwrap();
}

/// Presenting a ticket again and again costs no disk time.
#[test]
fn reads_alone_write_nothing() {
    let folder = Folder::new("reads");
    let mut sessions = folder.open_sessions(9).unwrap();
    sessions.perform(&[add(1, "a.example", 90)], NOW).unwrap();
    let written = || fs::read(folder.sessions()).unwrap();
    let before = written();
    let read = |number| Operation::Read(OperationId(number), handle(1).into());
    let outcomes = sessions.perform(&[read(4), read(5)], NOW).unwrap();
    let found = |number| {
        let entry = Box::new(entry("a.example", 90));
        Outcome::Read(OperationId(number), Some(entry))
    };
    assert_eq!(outcomes, [found(4), found(5)]);
    assert!(written() == before);
    sessions.perform(&[read(4), take(1)], NOW).unwrap();
    assert!(written() != before, "the control");
}

#[test]
fn a_key_that_others_can_read_or_that_is_cut_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("key");
    drop(folder.open_sessions(9).unwrap());
    let key = folder.0.join("sessions.redb.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = folder.open_sessions(9).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|why| why.contains("chmod 600")));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&key, [1; 31]).unwrap();
    let refused = folder.open_sessions(9).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|why| why.contains("32 octets")));
}
