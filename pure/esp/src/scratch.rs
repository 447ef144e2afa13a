//! Buffers reused for every packet.

/// The longest packet that UDP can carry, in octets, with some to spare.
const LONGEST: usize = 1 << 16;

/// Buffers for data that cannot be processed in place: authenticated data that must be contiguous,
/// and octets that move. Allocated once, so that packets do not allocate.
pub struct Scratch {
    /// Additional authenticated data.
    pub(crate) aad: Vec<u8>,
    /// At an endpoint the runs of a datagram before the last; at a licensed node its copy.
    pub(crate) copy: Vec<u8>,
    /// The data that a GMAC covers, which must be contiguous.
    pub(crate) mac: Vec<u8>,
    /// At a licensed node the reassembled headers.
    pub(crate) headers: Vec<u8>,
}

impl Scratch {
    /// Allocates buffers for packets of any size.
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
