// SPDX-License-Identifier: GPL-2.0
//! A search tree whose order is kept by keys and whose shape is that of random numbers (a treap).
//!
//! Nothing is balanced, so an entry has two links and no more: it takes half of the memory that one
//! of the kernel's red-black trees would. A path is about twice as long as the shortest that is
//! possible, whatever the order in which entries come.

use kernel::prelude::*;

use super::memory::Reserved;

/// What a tree consists of.
pub(crate) trait Entry {
    /// What it is found by; no two entries have the same.
    type Key: Ord;

    /// Its key, which does not change.
    fn key(&self) -> Self::Key;

    /// A number whose bits are all well mixed, and which does not depend on where the key stands
    /// among others.
    fn rank(&self) -> u64;
}

/// An entry with its links.
pub(crate) struct Node<E> {
    left: Link<E>,
    right: Link<E>,
    entry: E,
}

type Link<E> = Option<KBox<Node<E>>>;

/// A tree of entries, in the order of their keys.
pub(crate) struct Treap<E> {
    root: Link<E>,
}

impl<E: Entry> Treap<E> {
    /// An empty tree.
    pub(crate) const fn new() -> Self {
        Treap { root: None }
    }

    /// Enters an entry whose key is not there.
    pub(crate) fn insert(&mut self, entry: E, memory: Reserved<Node<E>>) {
        let (key, rank) = (entry.key(), entry.rank());
        let mut link = &mut self.root;
        // Those of a higher rank stay above it.
        while link.as_ref().is_some_and(|node| node.entry.rank() > rank) {
            let Some(node) = link.as_mut() else {
                return;
            };
            link = node.towards(&key);
        }
        let (left, right) = split(link.take(), &key);
        *link = Some(memory.fill(Node { left, right, entry }));
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, key: &E::Key) -> Option<KBox<Node<E>>> {
        let mut link = &mut self.root;
        while link.as_ref().is_some_and(|node| node.entry.key() != *key) {
            link = link.as_mut()?.towards(key);
        }
        let mut node = link.take()?;
        *link = merge(node.left.take(), node.right.take());
        Some(node)
    }

    /// The entry of the least key.
    pub(crate) fn first(&self) -> Option<&E> {
        let mut node = self.root.as_ref()?;
        while let Some(less) = &node.left {
            node = less;
        }
        Some(&node.entry)
    }
}

impl<E: Entry> Node<E> {
    /// Where a key that is not the node's own stands below it.
    fn towards(&mut self, key: &E::Key) -> &mut Link<E> {
        if *key < self.entry.key() {
            &mut self.left
        } else {
            &mut self.right
        }
    }
}

/// Parts the entries before a key from those after it.
fn split<E: Entry>(mut tree: Link<E>, key: &E::Key) -> (Link<E>, Link<E>) {
    let (mut before, mut after) = (None, None);
    let (mut before_end, mut after_end) = (&mut before, &mut after);
    while let Some(mut node) = tree {
        if node.entry.key() < *key {
            tree = node.right.take();
            before_end = &mut before_end.insert(node).right;
        } else {
            tree = node.left.take();
            after_end = &mut after_end.insert(node).left;
        }
    }
    (before, after)
}

/// Joins two trees, of which one ends before the other begins.
fn merge<E: Entry>(mut before: Link<E>, mut after: Link<E>) -> Link<E> {
    let mut merged = None;
    let mut end = &mut merged;
    loop {
        match (before.take(), after.take()) {
            (Some(mut first), Some(second)) if first.entry.rank() > second.entry.rank() => {
                before = first.right.take();
                after = Some(second);
                end = &mut end.insert(first).right;
            }
            (Some(first), Some(mut second)) => {
                before = Some(first);
                after = second.left.take();
                end = &mut end.insert(second).left;
            }
            (rest, None) | (None, rest) => {
                *end = rest;
                return merged;
            }
        }
    }
}
