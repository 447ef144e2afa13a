//! What stands around the octets of a text (DESIGN section 3).

/// How long a packet makes a text, and what else it has for it: all that a layout asks about a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Octets of IV on the wire.
    pub iv_len: u8,
    /// Texts are whole blocks of so many octets, with padding and one octet that says how much of it.
    /// 1: they are as long as what is in them.
    pub block_len: u8,
    /// Octets of the ICV.
    pub icv_len: u8,
}

impl Frame {
    /// Octets that `plain` ones become.
    pub const fn text_len(self, plain: usize) -> usize {
        match self.block_len {
            0 | 1 => plain,
            block_len => (plain + 1).next_multiple_of(block_len as usize),
        }
    }

    /// The most octets that a text of this length can hold. `None` if no text is of this length.
    pub const fn plain_len(self, text: usize) -> Option<usize> {
        match self.block_len {
            0 | 1 => Some(text),
            _ if text == 0 => None,
            block_len if text.is_multiple_of(block_len as usize) => Some(text - 1),
            _ => None,
        }
    }

    /// The most octets that it adds to those of a text.
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
