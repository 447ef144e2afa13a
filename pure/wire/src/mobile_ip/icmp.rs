//! Header of an ICMP message: type, code, checksum (RFC 792).

use crate::checksum::Sum;
use crate::codec::{Malformed, Reader};

/// Offset of the checksum.
pub(super) const CHECKSUM: usize = 2;

/// Reads the header of a message, which must have type `kind` and a right checksum. Returns its
/// code.
pub(super) fn read<'a>(
    what: &'static str,
    kind: u8,
    octets: &'a [u8],
) -> Result<(u8, Reader<'a>), Malformed> {
    let mut reader = Reader::new(what, octets);
    let (found, code, _checksum) = (reader.u8()?, reader.u8()?, reader.u16()?);
    if found != kind || Sum::default().with(octets).finish() != 0 {
        return Err(Malformed::Value(what));
    }
    Ok((code, reader))
}

/// Returns the header of a message, with a zero checksum.
pub(super) fn begin(kind: u8, code: u8) -> Vec<u8> {
    vec![kind, code, 0, 0]
}

/// Writes the checksum of the whole message.
pub(super) fn finish(mut message: Vec<u8>) -> Vec<u8> {
    let sum = Sum::default().with(&message).finish();
    message[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    message
}
