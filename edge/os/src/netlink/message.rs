//! What the kernel's message types have in common.

use crate::Family;
use rtnetlink::packet_route::AddressFamily;

impl From<Family> for AddressFamily {
    fn from(family: Family) -> Self {
        match family {
            Family::V4 => Self::Inet,
            Family::V6 => Self::Inet6,
        }
    }
}

impl Family {
    /// `None` for multicast routing and other families that share the tables.
    pub(super) const fn from_kernel(family: AddressFamily) -> Option<Self> {
        match family {
            AddressFamily::Inet => Some(Self::V4),
            AddressFamily::Inet6 => Some(Self::V6),
            _ => None,
        }
    }
}

/// Table numbers above 255 do not fit the header and have an attribute: the header then says
/// "unspecified".
pub(super) fn table_in_header(table: u32) -> u8 {
    u8::try_from(table).unwrap_or(0)
}
