// SPDX-License-Identifier: GPL-2.0
//! Fingerprints of states: 128 bits, so that even among thousands of millions of states no two
//! share one by chance.

use std::hash::BuildHasherDefault;
use std::hash::Hash;
use std::hash::Hasher;

use ib_cm_proto::Mad;

/// A fingerprint under way.
#[derive(Clone, Copy, Default)]
pub struct Digest(u64, u64);

impl Digest {
    /// The fingerprint of one thing.
    pub fn of(thing: impl Hash) -> u128 {
        let mut digest = Digest::default();
        thing.hash(&mut digest);
        digest.sum()
    }

    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
        self.1 = (self.1.rotate_left(23) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
        self.1 ^= self.1 >> 32;
    }

    /// What all that was added comes to.
    pub fn sum(self) -> u128 {
        let mut last = self;
        last.add(0x517c_c1b7_2722_0a95);
        last.add(self.1);
        (u128::from(last.0) << 64) | u128::from(last.1)
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
        self.add(bytes.len() as u64);
    }

    fn write_u8(&mut self, number: u8) {
        self.add(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.add(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    fn finish(&self) -> u64 {
        self.sum() as u64
    }
}

/// A fingerprint as the key of a table, in 16 bytes without padding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u32; 4]);

impl From<u128> for Key {
    fn from(sum: u128) -> Self {
        Key([
            sum as u32,
            (sum >> 32) as u32,
            (sum >> 64) as u32,
            (sum >> 96) as u32,
        ])
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64((u64::from(self.0[0]) << 32) | u64::from(self.0[1]));
    }
}

/// A fingerprint is as good as a hash of itself.
#[derive(Clone, Copy, Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A table by fingerprints.
pub type Table<T> = std::collections::HashMap<Key, T, BuildHasherDefault<AsItIs>>;

/// Our own ID of a message of a connection and its receiver's, as the sender writes them.
pub fn ids_of(mad: &Mad) -> (u32, u32) {
    let word = |at: usize| u32::from_be_bytes([mad[at], mad[at + 1], mad[at + 2], mad[at + 3]]);
    (word(24), word(28))
}

/// A message without its IDs and its transaction, which nobody decides by.
pub fn body_of(mad: &Mad) -> u128 {
    let mut body = *mad;
    body[8..16].fill(0);
    body[24..32].fill(0);
    Digest::of(body)
}

/// Communication IDs by rank: what a host does depends on which are the same and which is newer,
/// not on the numbers.
#[derive(Clone, Debug, Default)]
pub struct Ranks(Vec<u32>);

impl Ranks {
    /// An ID that occurs.
    pub fn add(&mut self, id: u32) {
        if id != 0 {
            self.0.push(id);
        }
    }

    /// No more will be added.
    pub fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup();
    }

    /// The rank of an ID, from 1; 0 for none.
    pub fn of(&self, id: u32) -> u32 {
        self.0.binary_search(&id).map_or(0, |at| at as u32 + 1)
    }
}
