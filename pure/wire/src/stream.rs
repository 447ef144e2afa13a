//! IKE messages and ESP packets in a stream (RFC 9329 sections 3 and 4).
//!
//! ```text
//! IKETCP                                   once, from who connected
//! length(2) 0000 IKE message               the length has its own two octets in it
//! length(2) ESP packet
//! ```
//!
//! The octets behind a length are those of a UDP payload on port 4500, so
//! [`crate::esp::Datagram::parse`] classifies them.

use std::mem;

/// Octets that the originator of the connection sends first.
pub const PREFIX: [u8; 6] = *b"IKETCP";

/// Octets of the length field.
const LENGTH: usize = 2;

/// Longest message: "It is impossible to encapsulate messages greater than 65533 octets in length."
pub const LONGEST: usize = u16::MAX as usize - LENGTH;

/// A fatal error of the stream: "the receiver MUST treat these values as fatal errors and MUST
/// close the TCP connection".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corrupt {
    /// The stream does not start with [`PREFIX`]: another protocol.
    Prefix,
    /// A length is below the size of the length field.
    Length,
}

/// Appends a message to the octets to send. Returns `false`, and appends nothing, if it is too
/// long.
#[must_use = "a message that is too long is not sent"]
pub fn write(message: &[u8], to: &mut Vec<u8>) -> bool {
    let length = u16::try_from(message.len() + LENGTH);
    let Ok(length) = length else {
        return false;
    };
    to.extend(length.to_be_bytes());
    to.extend(message);
    true
}

/// Splits a stream into its messages. It buffers at most one message.
#[derive(Debug)]
pub struct Reader {
    /// Octets of the prefix that are still missing.
    awaited: &'static [u8],
    /// Incomplete message with its length.
    begun: Vec<u8>,
    corrupt: Option<Corrupt>,
}

impl Reader {
    /// Returns a reader for a connection that the peer opened, which starts with [`PREFIX`].
    pub const fn of_responder() -> Self {
        Self {
            awaited: &PREFIX,
            begun: Vec::new(),
            corrupt: None,
        }
    }

    /// Returns a reader for a connection that we opened: the prefix is sent "by the TCP Originator
    /// only".
    pub const fn of_originator() -> Self {
        Self {
            awaited: &[],
            begun: Vec::new(),
            corrupt: None,
        }
    }

    /// Reads the next piece and passes each complete message to `each`. "Empty messages (where the
    /// Length field equals 2) MUST be silently ignored". Nothing is read after an error.
    pub fn read(&mut self, piece: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), Corrupt> {
        if let Some(corrupt) = self.corrupt {
            return Err(corrupt);
        }
        let read = self
            .prefix(piece)
            .and_then(|rest| self.messages(rest, &mut each));
        self.corrupt = read.err();
        read
    }

    /// Returns the number of buffered octets of an incomplete message.
    pub fn held(&self) -> usize {
        self.begun.len()
    }

    /// Consumes the prefix and returns the octets behind it.
    fn prefix<'p>(&mut self, piece: &'p [u8]) -> Result<&'p [u8], Corrupt> {
        let (expected, left) = self.awaited.split_at(self.awaited.len().min(piece.len()));
        let rest = piece.strip_prefix(expected).ok_or(Corrupt::Prefix)?;
        self.awaited = left;
        Ok(rest)
    }

    fn messages(&mut self, mut piece: &[u8], each: &mut impl FnMut(&[u8])) -> Result<(), Corrupt> {
        if !self.begun.is_empty() {
            piece = self.complete(piece, each)?;
        }
        while let Some((message, rest)) = first(piece)? {
            show(message, each);
            piece = rest;
        }
        self.begun.extend(piece);
        Ok(())
    }

    /// Completes the buffered message and returns the octets behind it.
    fn complete<'p>(
        &mut self,
        piece: &'p [u8],
        each: &mut impl FnMut(&[u8]),
    ) -> Result<&'p [u8], Corrupt> {
        let wanted = LENGTH.saturating_sub(self.begun.len());
        let (length, piece) = piece.split_at(wanted.min(piece.len()));
        self.begun.extend(length);
        let Some(whole) = whole(&self.begun)? else {
            return Ok(piece);
        };
        let wanted = whole - self.begun.len();
        let (more, rest) = piece.split_at(wanted.min(piece.len()));
        self.begun.extend(more);
        if self.begun.len() == whole {
            // Take the buffer, so that a long message leaves no large allocation.
            let begun = mem::take(&mut self.begun);
            show(begun.get(LENGTH..).unwrap_or_default(), each);
        }
        Ok(rest)
    }
}

/// A message, and the octets behind it.
type Split<'p> = (&'p [u8], &'p [u8]);

/// Returns the first message of a piece, if it is complete.
fn first(piece: &[u8]) -> Result<Option<Split<'_>>, Corrupt> {
    let Some(whole) = whole(piece)? else {
        return Ok(None);
    };
    let split = piece.split_at_checked(whole);
    Ok(split.map(|(message, rest)| (message.get(LENGTH..).unwrap_or_default(), rest)))
}

/// Returns the length of a message with its length field, or `None` if the field is incomplete.
fn whole(begun: &[u8]) -> Result<Option<usize>, Corrupt> {
    let Some(length) = begun.first_chunk::<LENGTH>() else {
        return Ok(None);
    };
    match usize::from(u16::from_be_bytes(*length)) {
        0 | 1 => Err(Corrupt::Length),
        length => Ok(Some(length)),
    }
}

fn show(message: &[u8], each: &mut impl FnMut(&[u8])) {
    if !message.is_empty() {
        each(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(reader: &mut Reader, piece: &[u8]) -> Result<Vec<Vec<u8>>, Corrupt> {
        let mut messages = Vec::new();
        let read = reader.read(piece, |message| messages.push(message.to_vec()));
        read.map(|()| messages)
    }

    #[test]
    fn a_stream_is_written_as_the_rfc_draws_it() {
        let mut stream = PREFIX.to_vec();
        assert!(write(b"\0\0\0\0message", &mut stream));
        assert!(write(b"\x12\x34\x56\x78packet", &mut stream));
        let expected = b"IKETCP\0\x0d\0\0\0\0message\0\x0c\x12\x34\x56\x78packet";
        assert_eq!(stream, expected);
    }

    #[test]
    fn a_responder_reads_nothing_before_the_whole_prefix_has_come() {
        let mut reader = Reader::of_responder();
        for octet in PREFIX {
            assert_eq!(read(&mut reader, &[octet]), Ok(Vec::new()));
        }
        assert_eq!(read(&mut reader, b"\0\x05abc"), Ok(vec![b"abc".to_vec()]));
        assert_eq!(reader.held(), 0);
    }

    // Refuses: tcp
    #[test]
    fn a_stream_of_another_protocol_is_not_read() {
        for other in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"IKETCp",
            b"\x16\x03\x01",
            b"\0",
        ] {
            let mut reader = Reader::of_responder();
            assert_eq!(read(&mut reader, other), Err(Corrupt::Prefix));
            assert_eq!(read(&mut reader, b"IKETCP\0\x03a"), Err(Corrupt::Prefix));
        }
    }

    // Refuses: tcp
    #[test]
    fn a_length_of_zero_or_one_is_fatal() {
        for length in [0, 1] {
            let mut reader = Reader::of_originator();
            let piece = [0, 3, 7, 0, length, 9, 9];
            let mut shown = Vec::new();
            let end = reader.read(&piece, |message| shown.push(message.to_vec()));
            assert_eq!((end, shown), (Err(Corrupt::Length), vec![vec![7]]));
            let mut reader = Reader::of_originator();
            assert_eq!(read(&mut reader, &[0]), Ok(Vec::new()));
            assert_eq!(read(&mut reader, &[length]), Err(Corrupt::Length));
        }
    }

    #[test]
    fn an_empty_message_is_silently_ignored() {
        let mut reader = Reader::of_originator();
        let messages = read(&mut reader, &[0, 2, 0, 3, 0xff, 0, 2, 0]);
        assert_eq!(messages, Ok(vec![vec![0xff]]));
        assert_eq!(read(&mut reader, &[2]), Ok(Vec::new()));
        assert_eq!(read(&mut reader, &[0, 3, 7]), Ok(vec![vec![7]]));
    }

    #[test]
    fn a_message_that_does_not_fit_into_a_length_is_not_written() {
        let mut stream = Vec::new();
        assert!(!write(&[0; LONGEST + 1], &mut stream));
        assert!(stream.is_empty());
        assert!(write(&[0; LONGEST], &mut stream));
        assert_eq!(stream.len(), LONGEST + LENGTH);
    }

    proptest! {
        #[test]
        fn whatever_the_pieces_the_messages_are_the_same(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..12),
            cuts in prop::collection::vec(1_usize..200, 1..40),
        ) {
            let mut stream = PREFIX.to_vec();
            for message in &messages {
                prop_assert!(write(message, &mut stream));
            }
            let mut reader = Reader::of_responder();
            let (mut got, mut rest) = (Vec::new(), &stream[..]);
            for cut in cuts.iter().cycle() {
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                got.extend(read(&mut reader, piece).unwrap());
                prop_assert!(reader.held() < 302);
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(got, messages);
            prop_assert_eq!(reader.held(), 0);
        }

        #[test]
        fn no_octets_make_it_hold_more_than_a_message(
            // Each piece repeats one octet, because only the ends of messages matter.
            pieces in prop::collection::vec((any::<u8>(), 0..2000_usize), 0..80),
        ) {
            let mut reader = Reader::of_originator();
            for (octet, len) in pieces {
                let piece = vec![octet; len];
                let read = reader.read(&piece, |message| assert!(message.len() <= LONGEST));
                prop_assert!(reader.held() <= LONGEST + LENGTH);
                if read.is_err() {
                    break;
                }
            }
        }
    }
}
