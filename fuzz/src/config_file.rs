//! Fuzzes configuration files: any text either loads or gives an error with a message.

use std::fs;

/// Parses octets as a configuration file.
pub fn run(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    let name = format!("strata-fuzz-{}.toml", std::process::id());
    let file = std::env::temp_dir().join(name);
    fs::write(&file, text).expect("a temporary file can be written");
    if let Err(why) = config::load(&file) {
        assert!(!why.to_string().is_empty());
    }
}
