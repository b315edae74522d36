// SPDX-License-Identifier: GPL-2.0
//! Decisions, read from the fuzzer's bytes.

/// The bytes that are left. When there are none, all decisions are 0.
#[derive(Debug)]
pub struct Bytes<'a>(
    /// What is left.
    pub &'a [u8],
);

impl Bytes<'_> {
    /// Whether all is decided.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// The next four bytes.
    pub fn word(&mut self) -> u32 {
        u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() {
            return None;
        }
        let at = self.below(from.len());
        from.get(at).copied()
    }
}
