//! Memory that is used again for every packet.

/// Octets of the longest packet that UDP can carry, with some to spare.
const LONGEST: usize = 1 << 16;

/// Room for what cannot be worked on in place: authenticated data that must stand together, and
/// octets that change places. Taken once, so that a packet allocates nothing.
pub struct Scratch {
    /// Additional authenticated data.
    pub(crate) aad: Vec<u8>,
    /// At an endpoint the runs of a datagram before the last; at a licensed node its copy.
    pub(crate) copy: Vec<u8>,
    /// What a GMAC covers, which must stand together with the rest.
    pub(crate) mac: Vec<u8>,
    /// At a licensed node the headers put together.
    pub(crate) headers: Vec<u8>,
}

impl Scratch {
    /// Room for any packet.
    pub fn new() -> Self {
        Self {
            aad: Vec::with_capacity(LONGEST),
            copy: Vec::with_capacity(LONGEST),
            mac: Vec::with_capacity(2 * LONGEST),
            headers: Vec::with_capacity(256),
        }
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}
