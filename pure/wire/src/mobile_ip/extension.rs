//! Extensions (RFC 5944 sections 1.8 and 1.9), among them authentication extensions (section 3.5).
//!
//! ```text
//!  Type (1) | Length (1) | Data         but type 0, which is a single octet
//!  authentication: Type (1) | Length (1) | SPI (4) | Authenticator
//! ```

use super::UdpTunnelReply;
use crate::codec::{Malformed, Reader};

/// Numbers of extensions.
pub mod kind {
    /// One octet of padding.
    pub const PADDING: u8 = 0;
    /// Mobility Agent Advertisement (section 2.1.1), in router advertisements.
    pub const AGENT: u8 = 16;
    /// Prefix-Lengths (section 2.1.2), in router advertisements.
    pub const PREFIX_LENGTHS: u8 = 19;
    /// Mobile-Home Authentication (section 3.5.2), in registrations like the next two.
    pub const MOBILE_HOME: u8 = 32;
    /// Mobile-Foreign Authentication (section 3.5.3).
    pub const MOBILE_FOREIGN: u8 = 33;
    /// Foreign-Home Authentication (section 3.5.4).
    pub const FOREIGN_HOME: u8 = 34;
    /// UDP Tunnel Reply (RFC 3519 section 3.2).
    pub const UDP_TUNNEL_REPLY: u8 = 44;
    /// Encapsulating Delivery Style (RFC 3024 section 3.3).
    pub const ENCAPSULATING_DELIVERY: u8 = 130;
    /// UDP Tunnel Request (RFC 3519 section 3.1).
    pub const UDP_TUNNEL_REQUEST: u8 = 144;
    /// Experimental (RFC 4064): see [`Note`](super::super::Note) and
    /// [`Enclosure`](super::super::Enclosure).
    pub const EXPERIMENT: u8 = 255;
}

const AUTHENTICATION: &str = "an authentication extension";
/// Octets of type, length and SPI of an authentication extension.
const AUTHENTICATION_HEADER_LEN: usize = 6;

/// The two parties of an authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Between {
    /// Mobile node and home agent.
    MobileHome,
    /// Mobile node and foreign agent.
    MobileForeign,
    /// Foreign agent and home agent; in a notice, two foreign agents.
    ForeignHome,
}

impl Between {
    /// Returns the number of the extension.
    pub const fn kind(self) -> u8 {
        match self {
            Self::MobileHome => kind::MOBILE_HOME,
            Self::MobileForeign => kind::MOBILE_FOREIGN,
            Self::ForeignHome => kind::FOREIGN_HOME,
        }
    }
}

/// An extension of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// Number of the extension.
    pub kind: u8,
    /// Offset of the extension in the message.
    pub start: usize,
    /// Octets behind the length field.
    pub body: &'a [u8],
}

/// An extension that authenticates all octets before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authentication<'a> {
    /// SPI: selects the shared key and its algorithm.
    pub spi: u32,
    /// The octets of the message that are authenticated (section 3.5.1).
    pub covered: &'a [u8],
    /// Authenticator over the covered octets.
    pub authenticator: &'a [u8],
}

impl Authentication<'_> {
    /// Returns the offset of the extension in the message.
    const fn start(&self) -> usize {
        self.covered.len() - AUTHENTICATION_HEADER_LEN
    }

    /// Returns the end of the extension in the message.
    pub const fn end(&self) -> usize {
        self.covered.len() + self.authenticator.len()
    }
}

/// The extensions of a registration message, all of them well-formed.
#[derive(Clone, Copy, Debug)]
pub struct Extensions<'a> {
    message: &'a [u8],
    from: usize,
}

impl<'a> Extensions<'a> {
    /// Parses the extensions from an offset in a message. An unknown one "within the range 0
    /// through 127" makes the message unreadable; those above are ignored (section 1.8).
    pub(super) fn parse(
        what: &'static str,
        message: &'a [u8],
        from: usize,
    ) -> Result<Self, Malformed> {
        for extension in Walk::new(what, message, from) {
            let extension = extension?;
            match extension.kind {
                kind::MOBILE_HOME | kind::MOBILE_FOREIGN | kind::FOREIGN_HOME => {
                    Reader::new(AUTHENTICATION, extension.body).u32()?;
                }
                kind::UDP_TUNNEL_REPLY => {
                    UdpTunnelReply::read(extension.body)?;
                }
                kind => skip(what, kind)?,
            }
        }
        Ok(Self { message, from })
    }

    /// Iterates over the extensions in their order.
    pub fn iter(self) -> impl Iterator<Item = Extension<'a>> {
        Walk::new(AUTHENTICATION, self.message, self.from).map_while(Result::ok)
    }

    /// Returns the extensions in front of an authentication extension.
    #[must_use]
    pub fn before(self, authentication: &Authentication<'a>) -> Self {
        Self {
            message: &authentication.covered[..authentication.start()],
            ..self
        }
    }

    /// Returns the extensions behind an authentication extension.
    #[must_use]
    pub const fn after(self, authentication: &Authentication<'a>) -> Self {
        Self {
            from: authentication.end(),
            ..self
        }
    }

    /// Returns true if there is an extension with this number.
    pub fn has(self, kind: u8) -> bool {
        self.iter().any(|extension| extension.kind == kind)
    }

    /// Returns the authentication between two parties, if there is exactly one.
    pub fn only(self, between: Between) -> Option<Authentication<'a>> {
        let mut all = self.iter().filter(|one| one.kind == between.kind());
        let (extension, None) = (all.next()?, all.next()) else {
            return None;
        };
        let (spi, authenticator) = extension.body.split_first_chunk()?;
        Some(Authentication {
            spi: u32::from_be_bytes(*spi),
            covered: &self.message[..extension.start + AUTHENTICATION_HEADER_LEN],
            authenticator,
        })
    }
}

/// Appends an authentication extension to a message. `sign` returns the authenticator of the octets
/// that it covers, with the announced length.
pub fn append_authentication(
    message: &mut Vec<u8>,
    between: Between,
    (spi, len): (u32, u8),
    sign: impl FnOnce(&[u8]) -> Vec<u8>,
) {
    message.extend([between.kind(), len.saturating_add(4)]);
    message.extend(spi.to_be_bytes());
    let authenticator = sign(message);
    debug_assert_eq!(authenticator.len(), len.into(), "as announced");
    message.extend(authenticator);
}

/// Skips an unknown extension, or refuses the message.
pub(super) const fn skip(what: &'static str, kind: u8) -> Result<(), Malformed> {
    match kind {
        128.. => Ok(()),
        _ => Err(Malformed::Value(what)),
    }
}

/// Iterates over extensions, without padding. It ends after the first malformed one.
pub(super) struct Walk<'a> {
    what: &'static str,
    message: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    pub(super) const fn new(what: &'static str, message: &'a [u8], at: usize) -> Self {
        Self { what, message, at }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Result<Extension<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.message.get(self.at) == Some(&kind::PADDING) {
            self.at += 1;
        }
        let start = self.at;
        let mut reader = Reader::new(self.what, self.message.get(start..)?);
        if reader.is_empty() {
            return None;
        }
        let read = (|| {
            let (kind, len) = (reader.u8()?, reader.u8()?);
            let body = reader.take(len.into())?;
            Ok(Extension { kind, start, body })
        })();
        self.at = match read {
            Ok(_) => self.message.len() - reader.left(),
            Err(_) => self.message.len(),
        };
        Some(read)
    }
}
