//! The addresses at which peers were last up whose address is a name, in a text file beside that of
//! the leases: one line for each name, with its address.
//!
//! They are hints, so a line that cannot be read counts as none, and nothing waits for the disk.

use crate::error::{Content, Doing, Error};
use crate::make_folder;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Longest file that is read, in octets, and most names in it.
const MOST_OCTETS: u64 = 1 << 20;
const MOST_NAMES: usize = 4096;

/// The addresses.
#[derive(Debug)]
pub struct Addresses {
    file: PathBuf,
    known: BTreeMap<String, IpAddr>,
}

impl Addresses {
    /// Reads the file beside that of the leases. Without one, no address is known.
    pub fn open(leases: &Path) -> Self {
        let mut name = leases.as_os_str().to_owned();
        name.push(".addresses");
        let file = PathBuf::from(name);
        let known = read(&file).unwrap_or_default();
        Self { file, known }
    }

    /// Returns the names with their addresses.
    pub fn iter(&self) -> impl Iterator<Item = (&str, IpAddr)> {
        let known = self.known.iter();
        known.map(|(name, address)| (name.as_str(), *address))
    }

    /// Keeps the address of a name. The file is whole at every moment.
    pub fn keep(&mut self, name: &str, address: IpAddr) -> Result<(), Error> {
        if self.known.len() >= MOST_NAMES {
            self.known.clear();
        }
        if self.known.insert(name.to_owned(), address) == Some(address) {
            return Ok(());
        }
        let failed = Doing::new("writing", &self.file, Content::Addresses);
        self.write().map_err(|source| {
            self.known.remove(name);
            failed.io(source)
        })
    }

    fn write(&self) -> io::Result<()> {
        if let Some(folder) = self.file.parent().filter(|folder| !folder.is_dir()) {
            make_folder(folder)?;
        }
        let mut new = self.file.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        if fs::symlink_metadata(&new).is_ok() {
            fs::remove_file(&new)?;
        }
        let mut options = OpenOptions::new();
        let mut opened = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        for (name, address) in &self.known {
            writeln!(opened, "{name} {address}")?;
        }
        fs::rename(new, &self.file)
    }
}

fn read(file: &Path) -> io::Result<BTreeMap<String, IpAddr>> {
    let mut text = String::new();
    File::open(file)?
        .take(MOST_OCTETS)
        .read_to_string(&mut text)?;
    let entry = |line: &str| {
        let (name, address) = line.split_once(' ')?;
        Some((name.to_owned(), address.parse().ok()?))
    };
    Ok(text.lines().filter_map(entry).take(MOST_NAMES).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let unique = format!("strata-addresses-{}-{name}", std::process::id());
            Self(std::env::temp_dir().join(unique))
        }

        fn open(&self) -> Addresses {
            Addresses::open(&self.0.join("leases"))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn known(addresses: &Addresses) -> Vec<(String, String)> {
        let known = addresses.iter();
        let known = known.map(|(name, address)| (name.to_owned(), address.to_string()));
        known.collect()
    }

    fn pair(name: &str, address: &str) -> (String, String) {
        (name.to_owned(), address.to_owned())
    }

    #[test]
    fn what_is_kept_is_there_after_a_restart() {
        let folder = Folder::new("kept");
        let mut addresses = folder.open();
        assert_eq!(known(&addresses), []);
        for (name, address) in [("a.example", "192.0.2.1"), ("b.example", "2001:db8::1")] {
            addresses.keep(name, address.parse().unwrap()).unwrap();
        }
        addresses
            .keep("a.example", "192.0.2.9".parse().unwrap())
            .unwrap();
        let expected = [
            pair("a.example", "192.0.2.9"),
            pair("b.example", "2001:db8::1"),
        ];
        assert_eq!(known(&folder.open()), expected);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_left_out() {
        let folder = Folder::new("faulty");
        let mut addresses = folder.open();
        addresses
            .keep("a.example", "192.0.2.1".parse().unwrap())
            .unwrap();
        let file = folder.0.join("leases.addresses");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("b.example\nc.example x\n{text}\n")).unwrap();
        assert_eq!(known(&folder.open()), [pair("a.example", "192.0.2.1")]);
        fs::write(&file, [0xff; 100]).unwrap();
        assert_eq!(known(&folder.open()), []);
    }
}
