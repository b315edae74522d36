// SPDX-License-Identifier: GPL-2.0
//! Red-black trees: here maps.

use std::collections::btree_map;
use std::collections::BTreeMap;
use std::ops::Bound;

use crate::alloc::Flags;
use crate::error::Result;

/// A tree.
#[derive(Debug)]
pub struct RBTree<K, V>(BTreeMap<K, V>);

/// Memory for a node.
#[derive(Debug)]
pub struct RBTreeNodeReservation<K, V>(core::marker::PhantomData<(K, V)>);

/// A node in no tree.
#[derive(Debug)]
pub struct RBTreeNode<K, V>(K, V);

impl<K, V> RBTreeNodeReservation<K, V> {
    /// Allocates.
    ///
    /// # Errors
    ///
    /// None here.
    pub fn new(_flags: Flags) -> Result<Self> {
        Ok(Self(core::marker::PhantomData))
    }

    /// Fills it.
    pub fn into_node(self, key: K, value: V) -> RBTreeNode<K, V> {
        RBTreeNode(key, value)
    }
}

impl<K, V> RBTreeNode<K, V> {
    /// Empties it; the value goes.
    pub fn into_reservation(self) -> RBTreeNodeReservation<K, V> {
        RBTreeNodeReservation(core::marker::PhantomData)
    }
}

impl<K: Ord + Clone, V> RBTree<K, V> {
    /// An empty tree.
    pub fn new() -> Self {
        RBTree(BTreeMap::new())
    }

    /// Looks up.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }

    /// Inserts; returns what was there.
    pub fn insert(&mut self, node: RBTreeNode<K, V>) -> Option<RBTreeNode<K, V>> {
        let key = node.0.clone();
        self.0
            .insert(node.0, node.1)
            .map(|old| RBTreeNode(key, old))
    }

    /// Takes a node out.
    pub fn remove_node(&mut self, key: &K) -> Option<RBTreeNode<K, V>> {
        let (key, value) = self.0.remove_entry(key)?;
        Some(RBTreeNode(key, value))
    }

    /// The place of a key.
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        match self.0.entry(key) {
            btree_map::Entry::Occupied(entry) => Entry::Occupied(OccupiedEntry(entry)),
            btree_map::Entry::Vacant(entry) => Entry::Vacant(VacantEntry(entry)),
        }
    }

    /// At the first.
    pub fn cursor_front(&self) -> Option<Cursor<'_, K, V>> {
        let (key, _) = self.0.first_key_value()?;
        Some(Cursor {
            map: &self.0,
            at: key.clone(),
        })
    }

    /// At the first that is not less.
    pub fn cursor_lower_bound(&self, from: &K) -> Option<Cursor<'_, K, V>> {
        let (key, _) = self.0.range(from..).next()?;
        Some(Cursor {
            map: &self.0,
            at: key.clone(),
        })
    }
}

impl<K: Ord + Clone, V> Default for RBTree<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// A place in a tree.
#[derive(Debug)]
pub struct Cursor<'a, K, V> {
    map: &'a BTreeMap<K, V>,
    at: K,
}

impl<'a, K: Ord + Clone, V> Cursor<'a, K, V> {
    /// What is there.
    pub fn current(&self) -> (&'a K, &'a V) {
        match self.map.get_key_value(&self.at) {
            Some(entry) => entry,
            None => unreachable!(),
        }
    }

    /// What comes next.
    pub fn peek_next(&self) -> Option<(&'a K, &'a V)> {
        let after = (Bound::Excluded(self.at.clone()), Bound::Unbounded);
        self.map.range(after).next()
    }
}

/// The place of a key.
pub enum Entry<'a, K, V> {
    /// It is taken.
    Occupied(OccupiedEntry<'a, K, V>),
    /// It is free.
    Vacant(VacantEntry<'a, K, V>),
}

/// A place that is taken.
pub struct OccupiedEntry<'a, K, V>(btree_map::OccupiedEntry<'a, K, V>);

impl<K: Ord, V> OccupiedEntry<'_, K, V> {
    /// What is there.
    pub fn get(&self) -> &V {
        self.0.get()
    }
}

/// A place that is free.
pub struct VacantEntry<'a, K, V>(btree_map::VacantEntry<'a, K, V>);

impl<K: Ord, V> VacantEntry<'_, K, V> {
    /// Takes it.
    pub fn insert(self, value: V, _memory: RBTreeNodeReservation<K, V>) {
        self.0.insert(value);
    }
}
