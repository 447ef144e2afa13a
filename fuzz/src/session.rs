//! Fuzzes stored sessions: whatever a store returns is read without a panic, and what is read is
//! written as it can be read again.

use resumption::Entry;

/// Runs on the octets of an entry with identity and certificates.
pub fn run(octets: &[u8]) {
    let Ok(entry) = Entry::decode_whole(octets) else {
        return;
    };
    let written = entry.encode_whole();
    assert_eq!(Entry::decode_whole(written.expose()), Ok(entry));
}
