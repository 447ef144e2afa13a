//! Encoding of a lease. The identity's type is its number in IKE, so the key of a lease does not
//! depend on the text that shows it.

use model::{Identity, InnerAddresses, Lease};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Name of the pool, ID type of the identity (RFC 7296 section 3.5) and identification data.
pub type Key<'a> = (&'a str, u8, &'a [u8]);

/// IPv4 and IPv6 address as numbers, and the time from which they are free.
pub type Value = (Option<u32>, Option<u128>, Option<u64>);

const IPV4: u8 = 1;
const FQDN: u8 = 2;
const EMAIL: u8 = 3;
const IPV6: u8 = 5;

/// A key that owns its data.
pub struct OwnedKey(String, u8, Vec<u8>);

impl OwnedKey {
    /// Returns the key of an identity's lease from a pool.
    pub fn new(pool: &str, identity: &Identity) -> Self {
        let (kind, data) = match &identity.canonical() {
            Identity::Address(IpAddr::V4(address)) => (IPV4, address.octets().to_vec()),
            Identity::Address(IpAddr::V6(address)) => (IPV6, address.octets().to_vec()),
            Identity::Fqdn(name) => (FQDN, name.as_bytes().to_vec()),
            Identity::Email(name) => (EMAIL, name.as_bytes().to_vec()),
            Identity::Opaque { kind, data } => (*kind, data.clone()),
        };
        Self(pool.to_owned(), kind, data)
    }

    /// Borrows the key.
    pub fn lent(&self) -> Key<'_> {
        (&self.0, self.1, &self.2)
    }
}

/// Returns the value that is stored for a lease.
pub fn value(lease: &Lease) -> Value {
    let InnerAddresses { v4, v6 } = lease.addresses;
    (
        v4.map(Ipv4Addr::to_bits),
        v6.map(Ipv6Addr::to_bits),
        lease.free_from,
    )
}

/// Decodes a lease. Returns `None` if the identity is invalid.
pub fn read(key: Key<'_>, value: Value) -> Option<Lease> {
    let (pool, kind, data) = key;
    let (v4, v6, free_from) = value;
    let text = || String::from_utf8(data.to_vec()).ok();
    let identity = match kind {
        IPV4 => Identity::Address(<[u8; 4]>::try_from(data).ok()?.into()),
        IPV6 => Identity::Address(<[u8; 16]>::try_from(data).ok()?.into()),
        FQDN => Identity::Fqdn(text()?),
        EMAIL => Identity::Email(text()?),
        kind => Identity::Opaque {
            kind,
            data: data.to_vec(),
        },
    };
    Some(Lease {
        pool: pool.to_owned(),
        identity,
        addresses: InnerAddresses {
            v4: v4.map(Ipv4Addr::from_bits),
            v6: v6.map(Ipv6Addr::from_bits),
        },
        free_from,
    })
}
