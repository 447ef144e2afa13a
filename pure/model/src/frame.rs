//! Octets around a ciphertext: IV, padding and ICV (DESIGN section 3).

/// Lengths that a cipher suite adds to a plaintext. A packet layout needs nothing else of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Octets of IV on the wire.
    pub iv_len: u8,
    /// Block length in octets. Plaintexts are padded to whole blocks, and the last octet holds the
    /// length of the padding. With 0 or 1, the ciphertext is as long as the plaintext.
    pub block_len: u8,
    /// Octets of the ICV.
    pub icv_len: u8,
}

impl Frame {
    /// Returns the length of the ciphertext of `plain` octets.
    pub const fn text_len(self, plain: usize) -> usize {
        match self.block_len {
            0 | 1 => plain,
            block_len => (plain + 1).next_multiple_of(block_len as usize),
        }
    }

    /// Returns the most octets of plaintext in a ciphertext of `text` octets, or `None` if no
    /// ciphertext has this length.
    pub const fn plain_len(self, text: usize) -> Option<usize> {
        match self.block_len {
            0 | 1 => Some(text),
            _ if text == 0 => None,
            block_len if text.is_multiple_of(block_len as usize) => Some(text - 1),
            _ => None,
        }
    }

    /// Returns the most octets that IV, padding and ICV add to a plaintext.
    pub const fn overhead(self) -> usize {
        let padding = match self.block_len {
            0 | 1 => 0,
            block_len => block_len as usize,
        };
        self.iv_len as usize + padding + self.icv_len as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn frame(block_len: u8) -> Frame {
        Frame {
            iv_len: 8,
            block_len,
            icv_len: 12,
        }
    }

    #[test]
    fn only_blocks_are_padded() {
        let blocks = frame(8);
        let texts = [0, 1, 7, 8, 15].map(|plain| blocks.text_len(plain));
        assert_eq!(texts, [8, 8, 8, 16, 16]);
        let plain = [0, 7, 8, 16].map(|text| blocks.plain_len(text));
        assert_eq!(plain, [None, None, Some(7), Some(15)]);
        assert_eq!(blocks.overhead(), 8 + 8 + 12);
        for stream in [frame(1), frame(0)] {
            assert_eq!((stream.text_len(33), stream.plain_len(33)), (33, Some(33)));
            assert_eq!(stream.overhead(), 8 + 12);
        }
    }
}
