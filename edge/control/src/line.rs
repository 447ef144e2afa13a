//! Lines out of a stream of octets, within bounds.

/// Longest request in octets, without the line's end.
pub const LONGEST_REQUEST: usize = 64 << 10;

/// Octets that have come and are not yet a whole line.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    longest: usize,
}

/// A line is longer than allowed. What follows it cannot be told from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    pub fn new(longest: usize) -> Self {
        Self {
            buffer: Vec::new(),
            longest,
        }
    }

    /// Takes what was read. Errors if more is waiting than the longest line, which is the bound
    /// on memory: whoever sends lines faster than they are taken gets it too.
    pub fn push(&mut self, octets: &[u8]) -> Result<(), TooLong> {
        self.buffer.extend_from_slice(octets);
        // One more for the line's end.
        if self.buffer.len() > self.longest + 1 {
            return Err(TooLong);
        }
        Ok(())
    }

    /// Whether [`Lines::pop`] has something to give, be it an empty line.
    pub fn has_line(&self) -> bool {
        self.buffer.contains(&b'\n')
    }

    /// The next whole line, without its end. Empty lines are skipped.
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
