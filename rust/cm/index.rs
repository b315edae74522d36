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
