//! Fuzzes requests for metrics: a head is no longer than its limit, and more octets do not turn a
//! refusal into a page.

use scrape::{Head, LONGEST_HEAD};

/// Reads octets as they arrive, and all at once.
pub fn run(octets: &[u8]) {
    let whole = Head::read(octets);
    assert!(octets.len() < LONGEST_HEAD || whole != Head::Incomplete);
    let ends = (0..octets.len().min(LONGEST_HEAD)).step_by(1 + octets.len() / 64);
    for end in ends {
        match Head::read(&octets[..end]) {
            Head::Incomplete => {}
            // The rest of a head that is refused may be another reason, but is no page.
            Head::Refused(_) => return assert_ne!(whole, Head::Page),
            Head::Page => return assert_eq!(whole, Head::Page),
        }
    }
}
