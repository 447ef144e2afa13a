//! Netlink messages in their datagrams.

/// Returns the messages of one datagram. Each begins with its length, at a multiple of 4 octets
/// (RFC 3549 section 2.3.2). The last may be truncated.
pub(crate) fn messages(datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let len = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        let message = rest.get(..len).unwrap_or(rest);
        rest = rest
            .get(len.next_multiple_of(4).max(4)..)
            .unwrap_or_default();
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_has_many_messages_and_ends_somewhere() {
        let message = |len: u32, octets: usize| {
            let mut message = vec![0; octets];
            message[..4].copy_from_slice(&len.to_ne_bytes());
            message
        };
        let lens = |datagram: &[u8]| messages(datagram).map(<[u8]>::len).collect::<Vec<_>>();
        assert_eq!(lens(&[message(18, 20), message(16, 16)].concat()), [18, 16]);
        assert_eq!(lens(&message(400, 16)), [16]);
        assert_eq!(lens(&message(u32::MAX, 16)), [16]);
        assert_eq!(lens(&message(0, 8)), [0, 0]);
        assert_eq!(lens(&[1, 2]), [0; 0]);
    }
}
