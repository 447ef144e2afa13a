//! Common parts of the kernel's message types.

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
    /// Returns `None` for multicast routing and other families that share the tables.
    pub(super) const fn from_kernel(family: AddressFamily) -> Option<Self> {
        match family {
            AddressFamily::Inet => Some(Self::V4),
            AddressFamily::Inet6 => Some(Self::V6),
            _ => None,
        }
    }
}

/// Returns the table for the header. Numbers above 255 need an attribute, and the header is
/// "unspecified".
pub(super) fn table_in_header(table: u32) -> u8 {
    u8::try_from(table).unwrap_or(0)
}
