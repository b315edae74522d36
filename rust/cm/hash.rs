// SPDX-License-Identifier: GPL-2.0
//! A hash table that grows and shrinks by one chain at a time (linear hashing).
//!
//! So a look-up compares as many keys among a million entries as among a thousand, and no operation
//! moves more than the entries of a few chains: all of them may run with interrupts off.

use kernel::alloc::flags::GFP_NOWAIT;
use kernel::prelude::*;

use super::memory::Reserved;

/// Chains of a segment; a power of two. The directory has an entry for each segment.
const SEGMENT: usize = 16;

/// Entries for each chain, from which on the table grows.
const MOST: usize = 2;

/// Chains for each entry, from which on the table shrinks.
const SPARSE: usize = 2;

/// A key of a table.
pub(crate) trait Key: Ord + Copy + Unpin {
    /// A hash whose bits are all well mixed. Where peers choose the key it has to depend on the
    /// table's random `seed`, so that nobody can tell which keys share a chain.
    fn hash(&self, seed: u64) -> u64;
}

/// Mixes a number so that each bit depends on all of it (the finalizer of splitmix64).
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// An entry.
pub(crate) struct Node<K, V> {
    next: Chain<K, V>,
    key: K,
    value: V,
}

type Chain<K, V> = Option<KBox<Node<K, V>>>;

type Segment<K, V> = [Chain<K, V>; SEGMENT];

/// Memory for one entry.
pub(crate) type Reservation<K, V> = Reserved<Node<K, V>>;

/// A table from keys to values.
///
/// With `n` chains, those of the lowest bits of a hash that are less than `n` are in use: the
/// last chain that a growing table has split, it has split by one bit more than the others.
pub(crate) struct HashTable<K, V> {
    seed: u64,
    entries: usize,
    /// Chains in use; never less than those of the first segment.
    chains: usize,
    /// The least power of two that is not less than `chains`, less one.
    mask: usize,
    first: Segment<K, V>,
    more: KVec<KBox<Segment<K, V>>>,
}

impl<K: Key, V> HashTable<K, V> {
    /// An empty table.
    pub(crate) fn new(seed: u64) -> Self {
        HashTable {
            seed,
            entries: 0,
            chains: SEGMENT,
            mask: SEGMENT.wrapping_sub(1),
            first: [const { None }; SEGMENT],
            more: KVec::new(),
        }
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let mut chain = self.chain(self.place(self.hash(key)));
        while let Some(node) = chain {
            if node.key == *key {
                return Some(&node.value);
            }
            chain = &node.next;
        }
        None
    }

    /// Enters a key that is not there.
    fn push(&mut self, mut node: KBox<Node<K, V>>) {
        let at = self.place(self.hash(&node.key));
        let chain = self.chain_mut(at);
        node.next = chain.take();
        *chain = Some(node);
    }

    /// Enters a key, unless it is there.
    ///
    /// # Errors
    ///
    /// The memory and the value that the key has.
    pub(crate) fn insert(
        &mut self,
        key: K,
        value: V,
        memory: Reservation<K, V>,
    ) -> core::result::Result<(), (Reservation<K, V>, V)>
    where
        V: Clone,
    {
        if let Some(holder) = self.get(&key) {
            return Err((memory, holder.clone()));
        }
        let next = None;
        self.push(memory.fill(Node { next, key, value }));
        self.entries = self.entries.saturating_add(1);
        if self.entries / MOST > self.chains {
            self.split();
        }
        Ok(())
    }

    /// Takes a key out.
    pub(crate) fn remove(&mut self, key: &K) -> Option<KBox<Node<K, V>>> {
        let at = self.place(self.hash(key));
        let mut chain = self.chain_mut(at);
        while chain.as_ref().is_some_and(|node| node.key != *key) {
            chain = &mut chain.as_mut()?.next;
        }
        let mut node = chain.take()?;
        *chain = node.next.take();
        self.entries = self.entries.saturating_sub(1);
        while self.chains > SEGMENT && self.entries < self.chains / SPARSE {
            self.merge();
        }
        Some(node)
    }

    /// The entry that follows `last` in an order that does not change when the table grows or
    /// shrinks; the first one after none.
    pub(crate) fn after(&self, last: Option<&K>) -> Option<(&K, &V)> {
        let last = last.map(|key| (self.order(key), key));
        let follows = |node: &&KBox<Node<K, V>>| {
            last.is_none_or(|last| (self.order(&node.key), &node.key) > last)
        };
        let mut from = last.map_or(0, |(order, _)| order);
        loop {
            let at = self.place(from.reverse_bits());
            let met = self.nodes(at).filter(follows);
            if let Some(node) = met.min_by_key(|node| (self.order(&node.key), node.key)) {
                return Some((&node.key, &node.value));
            }
            // The keys of a chain are those whose order begins with the same bits.
            let shift = u64::BITS.wrapping_sub(self.depth(at));
            let next = from.wrapping_shr(shift).wrapping_add(1);
            from = next.wrapping_shl(shift);
            if from.wrapping_shr(shift) != next {
                return None;
            }
        }
    }

    /// The least key that is not less than `from` and has the same hash.
    pub(crate) fn lower_bound(&self, from: &K) -> Option<(&K, &V)> {
        let hash = self.hash(from);
        let alike = |node: &&KBox<Node<K, V>>| node.key >= *from && self.hash(&node.key) == hash;
        let nodes = self.nodes(self.place(hash)).filter(alike);
        let node = nodes.min_by_key(|node| node.key)?;
        Some((&node.key, &node.value))
    }

    fn hash(&self, key: &K) -> u64 {
        key.hash(self.seed)
    }

    /// Which chain a hash leads to.
    fn place(&self, hash: u64) -> usize {
        let at = hash as usize & self.mask;
        if at < self.chains {
            at
        } else {
            at & (self.mask >> 1)
        }
    }

    /// By how many bits of a hash a chain is chosen.
    fn depth(&self, at: usize) -> u32 {
        let half = self.mask >> 1;
        let is_split = at > half || at.wrapping_add(half).wrapping_add(1) < self.chains;
        let bits = self.mask.count_ones();
        if is_split {
            bits
        } else {
            bits.wrapping_sub(1)
        }
    }

    /// Where a key stands in a walk: chains split by higher bits of the hash, so these count less.
    fn order(&self, key: &K) -> u64 {
        self.hash(key).reverse_bits()
    }

    fn segment(at: usize) -> Option<usize> {
        (at / SEGMENT).checked_sub(1)
    }

    fn chain(&self, at: usize) -> &Chain<K, V> {
        let more = Self::segment(at).and_then(|segment| self.more.get(segment));
        &more.map_or(&self.first, |segment| &**segment)[at % SEGMENT]
    }

    fn chain_mut(&mut self, at: usize) -> &mut Chain<K, V> {
        let more = Self::segment(at).and_then(|segment| self.more.get_mut(segment));
        &mut more.map_or(&mut self.first, |segment| &mut **segment)[at % SEGMENT]
    }

    /// The entries of a chain.
    fn nodes(&self, at: usize) -> impl Iterator<Item = &KBox<Node<K, V>>> {
        let mut chain = self.chain(at);
        core::iter::from_fn(move || {
            let node = chain.as_ref()?;
            chain = &node.next;
            Some(node)
        })
    }

    /// Uses one more chain. Without memory the chains become longer, and that is all.
    fn split(&mut self) {
        let new = self.chains;
        if Self::segment(new).is_some_and(|segment| segment >= self.more.len()) {
            let segment = KBox::new([const { None }; SEGMENT], GFP_NOWAIT);
            let pushed = segment.map(|segment| self.more.push(segment, GFP_NOWAIT));
            if !matches!(pushed, Ok(Ok(()))) {
                return;
            }
        }
        if new > self.mask {
            self.mask = (self.mask << 1) | 1;
        }
        self.chains = new.wrapping_add(1);
        self.empty_out(new & (self.mask >> 1));
    }

    /// Uses one chain less.
    fn merge(&mut self) {
        let last = self.chains.wrapping_sub(1);
        self.chains = last;
        if last.is_power_of_two() {
            self.mask = last.wrapping_sub(1);
        }
        self.empty_out(last);
        if last % SEGMENT == 0 {
            self.more.pop();
        }
    }

    /// Puts the entries of a chain where they belong now.
    fn empty_out(&mut self, at: usize) {
        let mut chain = self.chain_mut(at).take();
        while let Some(mut node) = chain {
            chain = node.next.take();
            self.push(node);
        }
    }
}

impl<K, V> Drop for HashTable<K, V> {
    fn drop(&mut self) {
        let drain = |segment: &mut Segment<K, V>| {
            for chain in segment {
                // One by one: a chain that drops itself would need stack for each entry.
                while let Some(mut node) = chain.take() {
                    *chain = node.next.take();
                }
            }
        };
        drain(&mut self.first);
        for segment in &mut self.more {
            drain(segment);
        }
    }
}

#[kunit_tests(ib_cm_hash)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Number(u32);

    impl Key for Number {
        fn hash(&self, seed: u64) -> u64 {
            // Two numbers have the same.
            mix(u64::from(self.0 / 2) ^ seed)
        }
    }

    fn insert(table: &mut HashTable<Number, u32>, number: u32) -> Result<bool> {
        let memory = Reservation::new(GFP_KERNEL)?;
        let inserted = table.insert(Number(number), number, memory);
        Ok(inserted
            .map_err(|(_, holder)| assert_eq!(holder, number))
            .is_ok())
    }

    fn walk(table: &HashTable<Number, u32>) -> u32 {
        let (mut met, mut last) = (0_u32, None);
        while let Some((key, value)) = table.after(last.as_ref()) {
            assert_eq!(key.0, *value);
            (met, last) = (met.wrapping_add(1), Some(*key));
        }
        met
    }

    #[test]
    fn it_grows_and_shrinks() -> Result {
        const MANY: u32 = 5000;

        let mut table = HashTable::new(7);
        for number in 0..MANY {
            assert!(insert(&mut table, number)?);
            assert!(!insert(&mut table, number)?);
            if number % 500 == 0 {
                assert_eq!(walk(&table), number.wrapping_add(1));
            }
        }
        assert!(table.chains > 2000);
        for number in 0..MANY {
            assert_eq!(table.get(&Number(number)), Some(&number));
        }
        for number in 0..MANY {
            assert!(table.remove(&Number(number)).is_some());
            assert!(table.remove(&Number(number)).is_none());
            if number % 500 == 0 {
                assert_eq!(walk(&table), MANY.wrapping_sub(number).wrapping_sub(1));
            }
        }
        assert_eq!(table.chains, SEGMENT);
        assert_eq!(table.more.len(), 0);
        Ok(())
    }
}
