//! Files that include others.

use super::{file, finished, rows};
use crate::Weight::{Lost, Remark};
use crate::{File, Find, Import, Missing, Unreadable, ipsec, swanctl};

/// The files of a machine: name and text. A pattern that ends with `*` stands for all that begin
/// like it.
struct Disk(Vec<(&'static str, String)>);

impl Disk {
    fn find(&self, pattern: &str, by: &str) -> Vec<Result<File, Missing>> {
        let folder = by.rsplit_once('/').map_or("", |(folder, _)| folder);
        let whole = match pattern.starts_with('/') {
            true => pattern.to_owned(),
            false => format!("{folder}/{pattern}"),
        };
        let matches = |name: &str| match whole.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == whole,
        };
        let found = self.0.iter().filter(|(name, _)| matches(name));
        let found: Vec<_> = found.map(|(name, text)| Ok(file(name, text))).collect();
        if found.is_empty() && !pattern.ends_with('*') {
            let (name, why) = (whole, "no such file".to_owned());
            return vec![Err(Missing { name, why })];
        }
        found
    }

    fn swanctl(&self) -> Result<Import, Unreadable> {
        let (name, text) = &self.0[0];
        let find: &Find<'_> = &|pattern, by| self.find(pattern, by);
        swanctl(&file(name, text), "/etc/swanctl", find).map(finished)
    }
}

fn disk(files: &[(&'static str, &str)]) -> Disk {
    Disk(
        files
            .iter()
            .map(|(name, text)| (*name, (*text).to_owned()))
            .collect(),
    )
}

/// Returns the notes about includes: file, line and weight.
fn places(import: &Import) -> Vec<(Option<&str>, usize, crate::Weight)> {
    let notes = import.notes.iter();
    let notes = notes.filter(|note| note.what.starts_with("include"));
    notes
        .map(|note| (note.file.as_deref(), note.line, note.weight))
        .collect()
}

const MAIN: &str = "/etc/swanctl/swanctl.conf";
const ONE: &str = "connections {
  one {
    remote_addrs = 192.0.2.1
    local { auth = psk
      id = us.example }
    remote { auth = psk
      id = one.example }
    children { one { updown = x
      local_ts = 10.9.0.0/16
      remote_ts = 10.1.0.0/16 } }
  }
}
";
const SECRET: &str = "secrets { ike { secret = \"a secret of some length\" } }\n";

#[test]
fn the_files_of_a_folder_are_one_configuration() {
    let two = ONE.replace("one", "two").replace("10.1", "10.2");
    let import = disk(&[
        (MAIN, "# empty\n\ninclude conf.d/*\n"),
        ("/etc/swanctl/conf.d/a.conf", ONE),
        ("/etc/swanctl/conf.d/b.conf", &two),
        ("/etc/swanctl/conf.d/c.conf", "secrets { include ../keys }"),
        (
            "/etc/swanctl/conf.d/../keys",
            "ike { secret = \"a secret of some length\" }",
        ),
    ]);
    let import = import.swanctl().expect("it is a swanctl.conf");
    let rows = rows(&import);
    for row in [
        "[peer.one]",
        "psk = \"one.psk\"",
        "[peer.two]",
        "psk = \"two.psk\"",
    ] {
        assert!(rows.contains(row), "{row}: {}", import.toml);
    }
    assert_eq!(places(&import), []);
    let updown = import
        .notes
        .iter()
        .filter(|note| note.what.starts_with("updown"));
    let updown: Vec<_> = updown.map(|note| note.place().expect("a line")).collect();
    let lines = ["a", "b"].map(|name| format!("/etc/swanctl/conf.d/{name}.conf, line 8"));
    assert_eq!(updown, lines);
    let comment = "updown = x (/etc/swanctl/conf.d/b.conf, line 8)";
    assert!(import.toml.contains(comment), "{}", import.toml);
}

#[test]
fn a_section_includes_its_content() {
    let text = "connections {\n include one\n}\nsecrets { ike { secret = \"of some length\" } }\n";
    let inner = ONE
        .strip_prefix("connections {\n")
        .and_then(|rest| rest.strip_suffix("}\n"));
    let import = disk(&[(MAIN, text), ("/etc/swanctl/one", inner.unwrap())]);
    assert_eq!(import.swanctl().unwrap().peers, 1);
    let unclosed = disk(&[(MAIN, text), ("/etc/swanctl/one", "\n one {\n")]);
    let error = unclosed.swanctl().unwrap_err();
    assert_eq!(
        error.to_string(),
        "/etc/swanctl/one, line 3: a section is not closed by `}`"
    );
    let closes = disk(&[(MAIN, text), ("/etc/swanctl/one", "}\n")]);
    let error = closes.swanctl().unwrap_err();
    assert_eq!(
        error.to_string(),
        "/etc/swanctl/one, line 1: `}` closes no section"
    );
}

#[test]
fn what_cannot_be_read_is_left_out_and_an_empty_folder_is_not() {
    let text = format!("{ONE}include conf.d/*\ninclude other\n");
    let import = disk(&[(MAIN, &text)]).swanctl().unwrap();
    assert_eq!(places(&import), [(None, 13, Remark), (None, 14, Lost)]);
    assert!(
        import.toml.contains("cannot read /etc/swanctl/other"),
        "{}",
        import.toml
    );
}

#[test]
fn loops_and_floods_of_files_end() {
    let import = disk(&[
        (MAIN, &format!("{ONE}{SECRET}include other\n")),
        ("/etc/swanctl/other", "\ninclude swanctl.conf\n"),
    ]);
    let import = import.swanctl().unwrap();
    assert_eq!(places(&import), [(Some("/etc/swanctl/other"), 2, Lost)]);
    assert_eq!(import.peers, 1);
    // Each file includes all that follow, twice.
    const NAMES: [&str; 26] = [
        "/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i", "/j", "/k", "/l", "/m", "/n", "/o",
        "/p", "/q", "/r", "/s", "/t", "/u", "/v", "/w", "/x", "/y", "/z",
    ];
    let twice = |at: usize| {
        let next = NAMES.get(at + 1).copied().unwrap_or("/a");
        format!("include {next}\ninclude {next}\n")
    };
    let many = NAMES
        .iter()
        .enumerate()
        .map(|(at, name)| (*name, twice(at)));
    let import = Disk(many.collect()).swanctl().unwrap();
    assert!(places(&import).iter().all(|(.., weight)| *weight == Lost));
    assert!(
        import.toml.contains("at most 1000 files"),
        "{}",
        import.toml
    );
}

#[test]
fn an_ipsec_conf_and_its_secrets_include_others() {
    let disk = disk(&[
        (
            "/etc/ipsec.conf",
            "include ipsec.d/*\nconn one\n\talso=base\n\tright=192.0.2.2\n\tauto=start\n",
        ),
        (
            "/etc/ipsec.d/base.conf",
            "conn base\n\tleft=192.0.2.1\n\tauthby=secret\n\tleftupdown=x\n",
        ),
        ("/etc/ipsec.secrets", "include /var/secrets.inc\n"),
        (
            "/var/secrets.inc",
            ": PSK \"a secret of some length\"\n@a : EAP \"hidden\"\n",
        ),
    ]);
    let [conf, secrets] = [0, 2].map(|at| file(disk.0[at].0, &disk.0[at].1));
    let find: &Find<'_> = &|pattern, by| disk.find(pattern, by);
    let draft = ipsec(&conf, Some(&secrets), "/etc", &|_| false, find);
    let import = finished(draft.expect("it is an ipsec.conf"));
    assert_eq!((import.peers, import.secrets.len()), (1, 1));
    let place = |what: &str| {
        let mut notes = import.notes.iter();
        notes
            .find(|note| note.what.starts_with(what))
            .and_then(crate::Note::place)
    };
    assert_eq!(
        place("leftupdown").as_deref(),
        Some("/etc/ipsec.d/base.conf, line 4")
    );
    assert_eq!(
        place("a secret in").as_deref(),
        Some("/var/secrets.inc, line 2")
    );
    assert!(!import.toml.contains("hidden"), "{}", import.toml);
}
