//! Headers inside what UDP carries.
//!
//! [`classify`](crate::classify) finds headers that say of themselves what they are. What is inside UDP does
//! not: there both ends agree on how to recognise it, and a zone may ask for what is found.

/// A way to recognise a header at the front of a UDP packet's payload.
pub trait Content: Send + Sync {
    /// Its octets; 0 where there is none. No octet that its standard does not call header, for
    /// whoever has the zone's key reads them.
    fn header_len(&self, ports: [u16; 2], payload: &[u8]) -> usize;
}
