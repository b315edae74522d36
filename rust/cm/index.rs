// SPDX-License-Identifier: GPL-2.0
//! A sharded index: red-black trees under spinlocks, chosen by a hash of the key.
//!
//! Nodes are allocated before a lock is taken ([`Reservation`]) and freed after it is released.
//! No two shards of one index are ever locked together.

use kernel::{
    prelude::*,
    rbtree::{
        Entry,
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::LockClassKey, //
};

use crate::rdma::spinlock::{
    SpinLockIrq,
    SpinLockIrqGuard, //
};

/// Shards of an index; a power of two.
const SHARDS: usize = 64;

/// A key of an index.
pub(crate) trait Key: Ord + Copy + Unpin {
    /// A hash whose low bits are well mixed.
    fn hash(&self) -> u64;
}

/// Mixes a number so that its low bits depend on all of it (the finalizer of splitmix64).
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Memory for one entry.
pub(crate) type Reservation<K, V> = RBTreeNodeReservation<K, V>;

/// The locked shard of a key.
pub(crate) type Shard<'a, K, V> = SpinLockIrqGuard<'a, RBTree<K, V>>;

/// An index from keys to values.
#[pin_data]
pub(crate) struct Index<K, V> {
    #[pin]
    shards: [SpinLockIrq<RBTree<K, V>>; SHARDS],
}

/// Where a walk through an index has got to. It goes on from there whatever happens to the entries
/// meanwhile: those that are there all the time are met once.
pub(crate) struct Place<K> {
    shard: usize,
    last: Option<K>,
}

impl<K> Default for Place<K> {
    fn default() -> Self {
        Place {
            shard: 0,
            last: None,
        }
    }
}

impl<K: Key, V: Clone + Unpin> Index<K, V> {
    /// An empty index. `class` is the lock class of its shards: indices are locked inside each
    /// other, so each has its own.
    pub(crate) fn new(
        name: &'static CStr,
        class: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            shards <- pin_init::pin_init_array_from_fn(move |_| {
                SpinLockIrq::new(RBTree::new(), name, class)
            }),
        })
    }

    /// Locks the shard of a key.
    pub(crate) fn lock(&self, key: &K) -> Shard<'_, K, V> {
        // A remainder by a constant is always in range, and the compiler knows it.
        self.shards[(key.hash() as usize) % SHARDS].lock()
    }

    /// Looks a key up.
    pub(crate) fn find(&self, key: &K) -> Option<V> {
        self.lock(key).get(key).cloned()
    }

    /// Inserts, unless the key is there already: then hands the memory and the holder back.
    pub(crate) fn insert(
        &self,
        key: K,
        value: V,
        memory: Reservation<K, V>,
    ) -> Result<(), (Reservation<K, V>, V)> {
        insert_locked(&mut self.lock(&key), key, value, memory)
    }

    /// Removes a key.
    pub(crate) fn remove(&self, key: &K) {
        let node = self.lock(key).remove_node(key);
        // The lock is released here; the node is freed outside it.
        drop(node);
    }

    /// The entry at or after `from` in one shard, for walks that may not hold the lock long.
    fn next_in_shard(&self, shard: usize, from: Option<&K>) -> Option<(K, V)> {
        let tree = self.shards.get(shard)?.lock();
        let cursor = match from {
            Some(key) => tree.cursor_lower_bound(key)?,
            None => tree.cursor_front()?,
        };
        let (key, value) = cursor.current();
        match from {
            Some(from) if key == from => {
                cursor.peek_next().map(|(key, value)| (*key, value.clone()))
            }
            _ => Some((*key, value.clone())),
        }
    }

    /// The entry after `place` in the order of the walk, which goes there.
    pub(crate) fn next(&self, place: &mut Place<K>) -> Option<(K, V)> {
        while place.shard < SHARDS {
            if let Some((key, value)) = self.next_in_shard(place.shard, place.last.as_ref()) {
                place.last = Some(key);
                return Some((key, value));
            }
            place.shard = place.shard.saturating_add(1);
            place.last = None;
        }
        None
    }

    /// Visits every entry that is there from the beginning to the end of the walk, with no lock
    /// held.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(K, V)) {
        let mut place = Place::default();
        while let Some((key, value)) = self.next(&mut place) {
            visit(key, value);
        }
    }

    /// The first entry that is not less than `from` and lies in its shard.
    pub(crate) fn lower_bound(&self, from: &K) -> Option<(K, V)> {
        let tree = self.lock(from);
        let cursor = tree.cursor_lower_bound(from)?;
        let (key, value) = cursor.current();
        Some((*key, value.clone()))
    }
}

/// [`Index::insert`] into a shard that is locked already.
pub(crate) fn insert_locked<K: Key, V: Clone + Unpin>(
    shard: &mut Shard<'_, K, V>,
    key: K,
    value: V,
    memory: Reservation<K, V>,
) -> Result<(), (Reservation<K, V>, V)> {
    match shard.entry(key) {
        Entry::Occupied(entry) => Err((memory, entry.get().clone())),
        Entry::Vacant(entry) => {
            entry.insert(value, memory);
            Ok(())
        }
    }
}

#[kunit_tests(ib_cm_index)]
mod tests {
    use super::*;
    use kernel::static_lock_class;

    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Number(u32);

    impl Key for Number {
        fn hash(&self) -> u64 {
            // Two numbers of one shard, then one of another.
            u64::from(self.0 / 2)
        }
    }

    fn index() -> Result<Pin<KBox<Index<Number, u32>>>> {
        let class = static_lock_class!();
        KBox::pin_init(Index::new(c"ib_cm test index", class), GFP_KERNEL)
    }

    fn insert(index: &Index<Number, u32>, number: u32) -> Result<Option<u32>> {
        let memory = Reservation::new(GFP_KERNEL)?;
        let inserted = index.insert(Number(number), number, memory);
        Ok(inserted.err().map(|(_, holder)| holder))
    }

    #[test]
    fn a_key_has_one_holder() -> Result {
        let index = index()?;
        assert_eq!(index.find(&Number(7)), None);
        assert_eq!(insert(&index, 7)?, None);
        assert_eq!(insert(&index, 7)?, Some(7));
        assert_eq!(index.find(&Number(7)), Some(7));
        index.remove(&Number(7));
        index.remove(&Number(7));
        assert_eq!(index.find(&Number(7)), None);
        assert_eq!(insert(&index, 7)?, None);
        Ok(())
    }

    #[test]
    fn a_walk_meets_what_stays() -> Result {
        let index = index()?;
        for number in 0..1000 {
            insert(&index, number)?;
        }
        let mut met = 0;
        let mut place = Place::default();
        while let Some((key, _)) = index.next(&mut place) {
            // The one under its feet goes, and so does every third one.
            index.remove(&key);
            index.remove(&Number(key.0 / 3 * 3));
            met += usize::from(key.0 % 3 != 0);
        }
        assert_eq!(met, 666);
        let mut left = 0;
        index.for_each(|_, _| left += 1);
        assert_eq!(left, 0);
        Ok(())
    }

    #[test]
    fn lower_bound_stays_in_its_shard() -> Result {
        let index = index()?;
        insert(&index, 5)?;
        insert(&index, 6)?;
        assert_eq!(
            index.lower_bound(&Number(4)).map(|(_, value)| value),
            Some(5)
        );
        assert_eq!(index.lower_bound(&Number(7)).map(|(_, value)| value), None);
        Ok(())
    }
}
