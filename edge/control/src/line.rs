//! Splits a stream of octets into lines, with bounded memory.

/// Limit on a request, in octets without the newline.
pub const LONGEST_REQUEST: usize = 64 << 10;

/// Received octets that were not returned as lines yet.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    longest: usize,
}

/// A line exceeds the limit. The stream cannot be resynchronised after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    pub fn new(longest: usize) -> Self {
        Self {
            buffer: Vec::new(),
            longest,
        }
    }

    /// Appends received octets. Returns an error if the buffer holds more than the longest line.
    /// That bounds the memory, and also stops a client that sends lines faster than they are
    /// processed.
    pub fn push(&mut self, octets: &[u8]) -> Result<(), TooLong> {
        self.buffer.extend_from_slice(octets);
        // One octet more for the newline.
        if self.buffer.len() > self.longest + 1 {
            return Err(TooLong);
        }
        Ok(())
    }

    /// Returns true if the buffer holds a line end, also that of an empty line.
    pub fn has_line(&self) -> bool {
        self.buffer.contains(&b'\n')
    }

    /// Returns the next complete line without its newline. Skips empty lines.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        loop {
            let end = self.buffer.iter().position(|&octet| octet == b'\n')?;
            let rest = self.buffer.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.buffer, rest);
            line.pop();
            if !line.is_empty() {
                return Some(line);
            }
        }
    }
}
