//! Data of the private notify IP_PARAMETER (DESIGN section 6, MOBIKE-X): an address that a request
//! is about, and its role there.
//!
//! ```text
//!  IP_PARAMETER  Role (1) | Family (1) = 4 or 6 | Address (4 or 16)
//!    role        2: of the sender   3: of the receiver
//! ```

use crate::codec::{Malformed, Reader};
use std::net::IpAddr;

const WHAT: &str = "the IP_PARAMETER notify";

/// An address, and its role in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpParameter {
    /// Role of the address.
    pub role: IpRole,
    /// The address.
    pub address: IpAddr,
}

/// Role of an address in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpRole {
    /// Address of the sender that the request is for.
    Sender = 2,
    /// Address of the receiver that the request is for.
    Receiver = 3,
}

impl IpRole {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        match r.u8()? {
            2 => Ok(Self::Sender),
            3 => Ok(Self::Receiver),
            _ => Err(Malformed::Value(WHAT)),
        }
    }
}

impl IpParameter {
    /// Returns the data of IP_PARAMETER.
    pub fn encode(&self) -> Vec<u8> {
        let (family, octets) = match self.address {
            IpAddr::V4(v4) => (4, v4.octets().to_vec()),
            IpAddr::V6(v6) => (6, v6.octets().to_vec()),
        };
        [vec![self.role as u8, family], octets].concat()
    }

    /// Reads the data of IP_PARAMETER.
    pub fn decode(data: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(WHAT, data);
        let role = IpRole::read(&mut r)?;
        let address = match r.u8()? {
            4 => IpAddr::from(r.array::<4>()?),
            6 => IpAddr::from(r.array::<16>()?),
            _ => return Err(Malformed::Value(WHAT)),
        };
        r.finish().map(|()| Self { role, address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_its_role_and_nothing_else() {
        let named = |role, address: &str| IpParameter {
            role,
            address: address.parse().unwrap(),
        };
        let sender = named(IpRole::Sender, "192.0.2.1");
        assert_eq!(sender.encode(), [2, 4, 192, 0, 2, 1]);
        for one in [
            sender,
            named(IpRole::Sender, "2001:db8::1"),
            named(IpRole::Receiver, "198.51.100.1"),
        ] {
            let octets = one.encode();
            assert_eq!(IpParameter::decode(&octets), Ok(one));
            let shorter = (0..octets.len()).map(|end| &octets[..end]);
            assert!(shorter.map(IpParameter::decode).all(|read| read.is_err()));
            let longer = [&octets[..], &[0]].concat();
            assert!(IpParameter::decode(&longer).is_err());
        }
        for (role, family) in [(0, 4), (1, 4), (4, 4), (2, 0), (2, 5), (2, 6), (255, 255)] {
            assert!(IpParameter::decode(&[role, family, 192, 0, 2, 1]).is_err());
        }
    }
}
