//! Headers in UDP payloads.
//!
//! [`classify`](crate::classify) finds headers that identify themselves. The content of UDP does
//! not: both ends agree on a way to recognise it, and a zone may select the header that is found.

/// A way to recognise a header at the front of a UDP packet's payload.
pub trait Content: Send + Sync {
    /// Returns the length of the header in octets, or 0 if there is none. It counts only octets
    /// that the protocol's standard defines as header, because every holder of the zone's key can
    /// read them.
    fn header_len(&self, ports: [u16; 2], payload: &[u8]) -> usize;
}
