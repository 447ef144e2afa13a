//! Fuzzes `classify`: any datagram is read without a panic, only headers become visible, and an
//! omitted checksum is restored.

use wire::checksum::{Checksum, restore};
use wire::classify::{Clear, Extents, classify};
use wire::ip::{self, Header};
use wire::mss;

/// Runs on octets as an IP datagram.
pub fn run(octets: &[u8]) {
    let mut datagram = octets.to_vec();
    let _ = ip::flow(octets);
    let _ = Header::parse_front(octets);
    ip::restore_hop(&mut datagram);
    mss::clamp(&mut datagram, 1380);
    assert!(!mss::clamp(&mut datagram, 1380), "it offers what fits");
    datagram.copy_from_slice(octets);
    // Random octets hardly ever have valid checksums. Mending them lets more headers pass as clear.
    mend(&mut datagram);
    if let Extents::Clear(clear) = classify(&datagram, Checksum::Made) {
        check(&clear, &mut datagram);
    }
    let _ = classify(octets, Checksum::Left);
}

fn mend(datagram: &mut [u8]) {
    let len = Header::parse(datagram).map(|header| (header.version(), header.header_len()));
    if let Ok((4, len)) = len {
        datagram[10..12].fill(0);
        let sum = wire::checksum::Sum::default()
            .with(&datagram[..len])
            .finish();
        datagram[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    let _ = restore(datagram);
}

fn check(clear: &Clear, datagram: &mut [u8]) {
    let whole = datagram.to_vec();
    assert_eq!(clear.ip.end, clear.transport.start);
    assert!(clear.transport.end <= datagram.len() && clear.transport.len() <= 60);
    let mut end = clear.transport.start;
    for secret in clear.secret.iter() {
        assert!(secret.start > end && secret.end <= clear.transport.end);
        end = secret.end;
    }
    if let Some(at) = clear.checksum_at {
        datagram[at..at + 2].fill(0);
        assert!(restore(datagram));
        assert_eq!(datagram, whole);
    }
}
