// SPDX-License-Identifier: GPL-2.0
//! A sharded index: hash tables under spinlocks.
//!
//! Entries are allocated before a lock is taken ([`Reservation`]) and freed after it is released.
//! No two shards of one index are ever locked together.

use kernel::{
    prelude::*,
    sync::LockClassKey, //
};

use super::hash::HashTable;
pub(crate) use super::hash::{
    mix,
    Key,
    Reservation, //
};
use crate::rdma::{
    clock::random_u64,
    spinlock::{
        SpinLockIrq,
        SpinLockIrqGuard, //
    },
};

/// Shards of an index; a power of two.
const SHARDS: usize = 64;

/// The locked shard of a key.
pub(crate) type Shard<'a, K, V> = SpinLockIrqGuard<'a, HashTable<K, V>>;

/// An index from keys to values.
#[pin_data]
pub(crate) struct Index<K, V> {
    seed: u64,
    #[pin]
    shards: [SpinLockIrq<HashTable<K, V>>; SHARDS],
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
        let random = random_u64();
        pin_init!(Self {
            seed: random,
            shards <- pin_init::pin_init_array_from_fn(move |_| {
                SpinLockIrq::new(HashTable::new(random), name, class)
            }),
        })
    }

    /// Locks the shard of a key.
    pub(crate) fn lock(&self, key: &K) -> Shard<'_, K, V> {
        // By the highest bits: a table uses the lowest. A remainder by a constant is always in
        // range, and the compiler knows it.
        self.shards[(key.hash(self.seed) >> 58) as usize % SHARDS].lock()
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
        self.lock(&key).insert(key, value, memory)
    }

    /// Removes a key.
    pub(crate) fn remove(&self, key: &K) {
        let node = self.lock(key).remove(key);
        // The lock is released here; the node is freed outside it.
        drop(node);
    }

    /// The entry after `place` in the order of the walk, which goes there.
    pub(crate) fn next(&self, place: &mut Place<K>) -> Option<(K, V)> {
        while let Some(shard) = self.shards.get(place.shard) {
            let table = shard.lock();
            if let Some((key, value)) = table.after(place.last.as_ref()) {
                place.last = Some(*key);
                return Some((*key, value.clone()));
            }
            drop(table);
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

    /// The entry of the least key that is not less than `from` and has the same hash.
    pub(crate) fn lower_bound(&self, from: &K) -> Option<(K, V)> {
        let table = self.lock(from);
        let (key, value) = table.lower_bound(from)?;
        Some((*key, value.clone()))
    }
}

#[kunit_tests(ib_cm_index)]
mod tests {
    use super::*;
    use kernel::static_lock_class;

    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Number(u32);

    impl Key for Number {
        fn hash(&self, seed: u64) -> u64 {
            mix(u64::from(self.0) ^ seed)
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
}
