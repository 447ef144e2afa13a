//! Tests with files left by an earlier process, another daemon, a newer release or a bad disk.

use super::*;
use model::{Identity, InnerAddresses};
use redb::Database;
use std::fs;
use std::panic::catch_unwind;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let unique = format!("strata-store-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(unique);
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("strata.redb")
    }

    fn open(&self) -> Result<(Store, Vec<Lease>), Error> {
        Store::open(&self.file())
    }

    /// Writes a file with two leases.
    fn fill(&self) {
        let changes = [lease("alice@example.net", 2), lease("bob.example.net", 3)];
        let (store, _) = self.open().unwrap();
        store.keep(&changes.map(LeaseChange::Kept)).unwrap();
    }

    fn complaint(&self) -> String {
        match self.open() {
            Ok((_, leases)) => panic!("nothing is wrong: {leases:?}"),
            Err(error) => error.to_string(),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn lease(identity: &str, last: u8) -> Lease {
    Lease {
        pool: "office".to_owned(),
        identity: identity.parse().unwrap(),
        addresses: InnerAddresses {
            v4: Some([10, 9, 0, last].into()),
            v6: Some([0x2001, 0xdb8, 9, 0, 0, 0, 0, last.into()].into()),
        },
        free_from: None,
    }
}

#[test]
fn what_was_kept_is_there_after_the_next_opening() {
    let folder = Folder::new("kept");
    folder.fill();
    let alice = Lease {
        free_from: Some(1_800_000_000),
        ..lease("alice@example.net", 2)
    };
    let mut opaque = lease("nobody", 4);
    opaque.addresses.v6 = None;
    opaque.identity = Identity::Opaque {
        kind: 11,
        data: vec![0, 255],
    };
    let changes = [
        LeaseChange::Kept(alice.clone()),
        LeaseChange::Kept(opaque.clone()),
        LeaseChange::Kept(lease("192.0.2.7", 5)),
        LeaseChange::Kept(lease("2001:db8::7", 6)),
        LeaseChange::Forgotten {
            pool: "office".to_owned(),
            identity: "bob.example.net".parse().unwrap(),
        },
    ];
    let (store, _) = folder.open().unwrap();
    store.keep(&changes).unwrap();
    drop(store);
    let (_, kept) = folder.open().unwrap();
    assert_eq!(kept.len(), 4, "{kept:?}");
    for lease in [
        alice,
        opaque,
        lease("192.0.2.7", 5),
        lease("2001:db8::7", 6),
    ] {
        assert!(kept.contains(&lease), "{lease:?} is not in {kept:?}");
    }
}

#[test]
fn a_new_file_and_its_folder_are_nobody_elses() {
    let folder = Folder::new("mode");
    let file = folder.0.join("state/strata.redb");
    drop(Store::open(&file).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(&folder.0.join("state")), 0o700);
}

#[test]
fn a_file_that_others_can_read_is_refused() {
    let folder = Folder::new("others");
    folder.fill();
    fs::set_permissions(folder.file(), fs::Permissions::from_mode(0o640)).unwrap();
    assert!(folder.complaint().contains("chmod 600"));
}

#[test]
fn two_daemons_cannot_have_the_same_file() {
    let folder = Folder::new("two");
    let _first = folder.open().unwrap();
    let complaint = folder.complaint();
    assert!(
        complaint.contains("in use by another stratad"),
        "{complaint}"
    );
}

#[test]
fn a_file_of_a_newer_release_is_left_alone() {
    let folder = Folder::new("newer");
    folder.fill();
    let database = Database::open(folder.file()).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut format = transaction.open_table(FORMAT).unwrap();
    format.insert("version", VERSION + 1).unwrap();
    drop(format);
    transaction.commit().unwrap();
    drop(database);
    let complaint = folder.complaint();
    assert!(complaint.contains("has format 2"), "{complaint}");
}

#[test]
fn what_is_no_database_is_told_with_the_fix() {
    let folder = Folder::new("text");
    fs::write(folder.file(), "nameserver 192.0.2.53\n".repeat(1000)).unwrap();
    fs::set_permissions(folder.file(), fs::Permissions::from_mode(0o600)).unwrap();
    let complaint = folder.complaint();
    assert!(complaint.contains("move it away"), "{complaint}");
}

/// A file damaged by a bad disk is repaired, or refused with a reason, also where `redb` panics.
// Recovers: pools
#[test]
fn a_damaged_file_is_repaired_or_refused() {
    let folder = Folder::new("damaged");
    folder.fill();
    let good = fs::read(folder.file()).unwrap();
    let step = good.len() / 97;
    let (mut refused, mut repaired) = (0, 0);
    let mut look = |octets: &[u8]| {
        fs::write(folder.file(), octets).unwrap();
        let opened = catch_unwind(|| folder.open());
        match opened.unwrap_or_else(|_| Err(damaged().expect("redb panics, and nothing else"))) {
            Ok(_) => repaired += 1,
            Err(Error::Damaged { .. } | Error::OtherVersion { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    };
    look(&good[..good.len() / 2]);
    for at in (0..good.len()).step_by(step.max(1)) {
        let mut bad = good.clone();
        bad[at..]
            .iter_mut()
            .take(step)
            .for_each(|octet| *octet ^= 0xff);
        look(&bad);
    }
    assert!(refused > 0 && repaired > 0, "{refused} {repaired}");
    assert!(damaged().is_none(), "no file is read");
}

mod endurance;
mod sessions;
