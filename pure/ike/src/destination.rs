//! A gateway to which a redirect leads (RFC 5685).

use model::is_host_name;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Types of gateway identities (section 9.2).
const IPV4: u8 = 1;
const IPV6: u8 = 2;
const FQDN: u8 = 3;

/// A gateway to which an initiator is redirected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Its address.
    Address(IpAddr),
    /// Its name, complete and without the final dot.
    Name(Box<str>),
}

/// A text that is no IP address and no complete name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no IP address and no complete name")]
pub struct BadDestination;

impl Destination {
    /// Returns the identity of the gateway as a payload has it.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, octets) = match self {
            Self::Address(IpAddr::V4(v4)) => (IPV4, v4.octets().to_vec()),
            Self::Address(IpAddr::V6(v6)) => (IPV6, v6.octets().to_vec()),
            Self::Name(name) => (FQDN, name.as_bytes().to_vec()),
        };
        // A name has at most 253 octets.
        let length = u8::try_from(octets.len()).unwrap_or(u8::MAX);
        [vec![kind, length], octets].concat()
    }

    /// Decodes the identity of a gateway, and returns the rest of the data. What is no address and
    /// no name that can be looked up is returned in printable form.
    pub(crate) fn decode(data: &[u8]) -> Option<(Result<Self, String>, &[u8])> {
        let (&[kind, length], rest) = data.split_first_chunk()?;
        let (octets, rest) = rest.split_at_checked(length.into())?;
        let told = match kind {
            IPV4 => Ok(IpAddr::from(<[u8; 4]>::try_from(octets).ok()?).into()),
            IPV6 => Ok(IpAddr::from(<[u8; 16]>::try_from(octets).ok()?).into()),
            FQDN => {
                let name = std::str::from_utf8(octets).ok();
                let name = name.and_then(|name| name.parse().ok());
                name.ok_or_else(|| octets.escape_ascii().to_string())
            }
            _ => Err(octets.escape_ascii().to_string()),
        };
        Some((told, rest))
    }
}

impl From<IpAddr> for Destination {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl FromStr for Destination {
    type Err = BadDestination;

    fn from_str(text: &str) -> Result<Self, BadDestination> {
        let name = text.strip_suffix('.').unwrap_or(text);
        match text.parse() {
            Ok(address) => Ok(Self::Address(address)),
            Err(_) if is_host_name(name) => Ok(Self::Name(name.to_ascii_lowercase().into())),
            Err(_) => Err(BadDestination),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_are_told_as_they_are_read() {
        for text in ["192.0.2.7", "2001:db8::7", "gw.example.net"] {
            let gateway: Destination = text.parse().expect(text);
            let told = [gateway.encode(), vec![7; 32]].concat();
            assert_eq!(
                Destination::decode(&told),
                Some((Ok(gateway), &[7; 32][..]))
            );
        }
    }

    #[test]
    fn what_cannot_be_looked_up_is_shown_and_what_is_cut_off_is_nothing() {
        let long = [&b"a."[..], &[b'b'; 64], b".net"].concat();
        for (octets, shown) in [
            (&b"gw\x1b[m.net"[..], "gw\\x1b[m.net"),
            (b"gw", "gw"),
            (b"", ""),
            (b"a..net", "a..net"),
            (b"192.0.2.300", "192.0.2.300"),
            (b"-a.net", "-a.net"),
            (b"a.net\0", "a.net\\x00"),
            (b"\xff.net", "\\xff.net"),
            (&long, std::str::from_utf8(&long).unwrap()),
        ] {
            let told = [&[FQDN, octets.len() as u8], octets, b"!"].concat();
            let read = Destination::decode(&told).expect(shown);
            assert_eq!(read, (Err(shown.to_owned()), &b"!"[..]));
        }
        let unknown = [9, 1, b'x'];
        assert_eq!(
            Destination::decode(&unknown),
            Some((Err("x".to_owned()), &[][..]))
        );
        for cut in [
            &[][..],
            &[1],
            &[1, 4, 192, 0, 2],
            &[1, 3, 192, 0, 2],
            &[2, 4, 1, 2, 3, 4],
            &[3, 9, b'a', b'.', b'b'],
        ] {
            assert_eq!(Destination::decode(cut), None);
        }
    }
}
