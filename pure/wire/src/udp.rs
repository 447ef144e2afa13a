//! UDP headers (RFC 768).

/// Octets of the header.
pub const HEADER_LEN: usize = 8;
/// Offset of the checksum in the header.
pub const CHECKSUM_OFFSET: usize = 6;
/// The IP protocol number.
pub const PROTOCOL: u8 = 17;

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Octets of header and payload, according to the header.
    pub len: u16,
    /// Checksum; 0 over IPv4 means that there is none.
    pub checksum: u16,
}

impl Header {
    /// Reads the header at the front of `octets`. `None` if it is truncated. The caller checks the
    /// length, which never matches in a fragment.
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let &[a, b, c, d, e, f, g, h] = octets.first_chunk()?;
        Some(Self {
            source_port: u16::from_be_bytes([a, b]),
            destination_port: u16::from_be_bytes([c, d]),
            len: u16::from_be_bytes([e, f]),
            checksum: u16::from_be_bytes([g, h]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_where_rfc_768_draws_them() {
        let header = Header::parse(&[0x11, 0x94, 0, 53, 0, 9, 0xab, 0xcd, 7]);
        let expected = Header {
            source_port: 4500,
            destination_port: 53,
            len: 9,
            checksum: 0xabcd,
        };
        assert_eq!(header, Some(expected));
        assert_eq!(Header::parse(&[0; 7]), None);
    }
}
