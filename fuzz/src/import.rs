//! Fuzzes the import of foreign configurations. Any text is converted or refused with a message,
//! and what is written is TOML.

use import::{File, Find};
use std::fs;

/// Takes octets for a file of each format, and for one with secrets.
pub fn run(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    let file = |name: &str, text: &str| File {
        name: name.to_owned(),
        text: text.to_owned().into(),
    };
    let conn = "conn a\n\tleft=192.0.2.1\n\tright=192.0.2.2\n\tauthby=secret\n\tauto=add\n";
    // Every file that is included has the same text.
    let find: &Find<'_> = &|pattern, _| vec![Ok(file(pattern, text))];
    let is_ours: &dyn Fn(std::net::IpAddr) -> bool = &|address| address.is_loopback();
    let (conn, other) = (file("/etc/ipsec.conf", conn), file("/etc/a.conf", text));
    for converted in [
        import::swanctl(&other, "/etc/swanctl", find),
        import::ipsec(&other, None, "/etc", is_ours, find),
        import::ipsec(&conn, Some(&other), "/etc", is_ours, find),
        import::wg(text),
    ] {
        match converted {
            Ok(draft) => check(&draft.finish(&import::Found::default())),
            Err(why) => assert!(!why.to_string().is_empty()),
        }
    }
}

/// A configuration may lack files, and values may be beyond its limits. It is TOML in any case.
fn check(import: &import::Import) {
    let name = format!("strata-fuzz-import-{}.toml", std::process::id());
    let file = std::env::temp_dir().join(name);
    fs::write(&file, &import.toml).expect("a temporary file can be written");
    if let Err(config::Error::Invalid(faults)) = config::load(&file) {
        for fault in &faults.faults {
            assert!(!fault.fix.contains("correct the TOML"), "{}", fault.problem);
            assert!(!fault.problem.contains("duplicate"), "{}", fault.problem);
        }
    }
}
