//! The security association of two parties to a registration (RFC 5944 section 1.6).

use crate::Psk;
use crate::keys::Key;
use crate::psk::key;
use crate::reader::{Table, Value};
use std::net::Ipv4Addr;

/// Lowest SPI that is not reserved (RFC 5944 section 1.6).
const FIRST_SPI: u32 = 256;

/// `key = { spi = 4097, secret = "home.key" }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// `spi`: number that identifies the association in messages, the same at both ends, 256 or
    /// more.
    pub spi: u32,
    /// `secret`: name of a file in the configuration's folder, mode 0600, with the key.
    pub secret: Psk,
    /// `algorithm`: the algorithm that authenticates messages. Default `hmac-sha256`.
    pub algorithm: Algorithm,
}

/// The algorithm that authenticates messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// `hmac-sha256`.
    #[default]
    HmacSha256,
    /// `hmac-md5`: for interoperability; every implementation has it (RFC 5944 section 3.5.1).
    HmacMd5,
}

impl Algorithm {
    const ALL: [Self; 2] = [Self::HmacSha256, Self::HmacMd5];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::HmacSha256 => "hmac-sha256",
            Self::HmacMd5 => "hmac-md5",
        }
    }
}

/// The replay protection of registrations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replay {
    /// `timestamps`: requires synchronised clocks (RFC 5944 section 5.7.1).
    #[default]
    Timestamps,
    /// `nonces`: each end echoes a random value of the other (section 5.7.2).
    Nonces,
}

impl Replay {
    const ALL: [Self; 2] = [Self::Timestamps, Self::Nonces];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Timestamps => "timestamps",
            Self::Nonces => "nonces",
        }
    }

    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|replay| (replay.word(), replay)))
    }
}

impl Association {
    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        let mut table = value.table()?;
        let spi = table.required("spi", "4097", |value| value.number(FIRST_SPI..=u32::MAX));
        let secret = table.required("secret", "\"home.key\"", |value| {
            key(value, |octets| {
                octets.is_empty().then(|| "the key is empty".to_owned())
            })
        });
        let algorithm = table.optional("algorithm", |value| {
            value.choice(&Algorithm::ALL.map(|algorithm| (algorithm.word(), algorithm)))
        });
        table.finish();
        Some(Self {
            spi: spi?,
            secret: secret?,
            algorithm: algorithm.unwrap_or_default(),
        })
    }

    /// Returns no association, which a table has before it is read.
    pub(super) fn none() -> Self {
        Self {
            spi: 0,
            secret: Psk::default(),
            algorithm: Algorithm::default(),
        }
    }
}

/// An agent with an optional key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The table's name.
    pub name: String,
    /// `address`: the agent's address.
    pub address: Ipv4Addr,
    /// `key`: the association that authenticates messages between the agent and us. Default none.
    pub key: Option<Association>,
}

impl Agent {
    /// Reads the table of an agent by the rows of its kind.
    pub(super) fn read(name: &str, mut table: Table<'_>, keys: &[Key<Self>]) -> Option<Self> {
        let mut agent = Self::new(name);
        let is_whole = table.read(keys, &mut agent);
        table.finish();
        is_whole.then_some(agent)
    }

    /// Creates an agent without an address.
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            address: Ipv4Addr::UNSPECIFIED,
            key: None,
        }
    }

    /// Returns the name and the address, which must both be unique among agents.
    pub(super) fn place(&self) -> (&str, Ipv4Addr) {
        (&self.name, self.address)
    }
}
