//! Fuzzes stream parsing in pieces; the first octet is the length of a piece.

use wire::stream::{LONGEST, Reader};

/// Parses octets as a stream of the originator and of the responder. The messages must not depend
/// on the length of the pieces.
pub fn run(octets: &[u8]) {
    let Some((&size, stream)) = octets.split_first() else {
        return;
    };
    for reader in [Reader::of_responder, Reader::of_originator] {
        let whole = read(reader(), stream, stream.len());
        let pieces = read(reader(), stream, size.into());
        assert_eq!(whole, pieces, "the pieces are no part of the stream");
    }
}

fn read(mut reader: Reader, stream: &[u8], size: usize) -> (Vec<Vec<u8>>, bool) {
    let mut messages = Vec::new();
    for piece in stream.chunks(size.max(1)) {
        let read = reader.read(piece, |message| messages.push(message.to_vec()));
        assert!(reader.held() <= LONGEST + 2);
        if read.is_err() {
            return (messages, false);
        }
    }
    assert!(messages.iter().all(|message| !message.is_empty()));
    (messages, true)
}
