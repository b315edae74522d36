// SPDX-License-Identifier: GPL-2.0
//! What a look-up costs among a thousand identifiers and among a million: the module's own hash
//! table, in as many shards as an index has, and a balanced tree beside it.

// The module's file knows this crate by name; here it is part of `kernel`.
extern crate kernel as pin_init;

#[path = "../../../rust/cm/hash.rs"]
#[allow(dead_code, clippy::all)]
mod hash;
#[path = "../../../rust/cm/memory.rs"]
#[allow(dead_code)]
mod memory;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use hash::mix;
use hash::HashTable;
use hash::Key;
use hash::Reservation;
use kernel::prelude::GFP_KERNEL;

const SHARDS: usize = 64;
const LOOKUPS: usize = 1 << 20;
const ROUNDS: usize = 9;
const SEED: u64 = 0x1234_5678_9abc_def0;

/// How many keys were compared, where that is counted.
static COMPARED: AtomicU64 = AtomicU64::new(0);

/// A peer's ID, as in the index of remote IDs.
#[derive(Clone, Copy)]
struct Id<const COUNTED: bool> {
    ca_guid: u64,
    id: u32,
}

impl<const COUNTED: bool> Ord for Id<COUNTED> {
    fn cmp(&self, other: &Self) -> Ordering {
        if COUNTED {
            COMPARED.fetch_add(1, atomic::Ordering::Relaxed);
        }
        (self.ca_guid, self.id).cmp(&(other.ca_guid, other.id))
    }
}

impl<const COUNTED: bool> PartialOrd for Id<COUNTED> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const COUNTED: bool> PartialEq for Id<COUNTED> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<const COUNTED: bool> Eq for Id<COUNTED> {}

impl<const COUNTED: bool> Key for Id<COUNTED> {
    fn hash(&self, seed: u64) -> u64 {
        mix(mix(self.ca_guid ^ seed) ^ u64::from(self.id))
    }
}

/// The connections of a thousand hosts.
fn key<const COUNTED: bool>(at: usize) -> Id<COUNTED> {
    Id {
        ca_guid: 0x5054_00ff_fe00_0000 + (at % 1000) as u64,
        id: (at / 1000) as u32,
    }
}

fn shard<const COUNTED: bool>(id: &Id<COUNTED>) -> usize {
    (id.hash(SEED) >> 58) as usize
}

/// What a look-up costs: nanoseconds, the median of some rounds; and keys that it compares.
fn cost<const COUNTED: bool>(entries: usize, mut find: impl FnMut(&Id<COUNTED>) -> bool) -> f64 {
    let order: Vec<_> = (0..LOOKUPS as u64)
        .map(|at| key(mix(at) as usize % entries))
        .collect();
    if COUNTED {
        COMPARED.store(0, atomic::Ordering::Relaxed);
        assert!(order.iter().all(&mut find));
        return COMPARED.load(atomic::Ordering::Relaxed) as f64 / LOOKUPS as f64;
    }
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            assert!(order.iter().all(|id| black_box(find(id))));
            began.elapsed().as_nanos() as f64 / LOOKUPS as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn hashed<const COUNTED: bool>(entries: usize) -> f64 {
    let mut tables: Vec<_> = (0..SHARDS).map(|_| HashTable::new(SEED)).collect();
    for at in 0..entries {
        let memory = Reservation::new(GFP_KERNEL).expect("there is memory");
        let id = key::<COUNTED>(at);
        assert!(tables[shard(&id)].insert(id, at, memory).is_ok());
    }
    cost(entries, |id| tables[shard(id)].get(id).is_some())
}

fn balanced<const COUNTED: bool>(entries: usize) -> f64 {
    let mut trees: Vec<_> = (0..SHARDS).map(|_| BTreeMap::new()).collect();
    for at in 0..entries {
        let id = key::<COUNTED>(at);
        trees[shard(&id)].insert(id, at);
    }
    cost(entries, |id| trees[shard(id)].contains_key(id))
}

fn main() {
    println!("A look-up among so many entries, in the shards of one index:");
    println!("entries      hash table              balanced tree");
    for entries in [1_000, 10_000, 100_000, 1_000_000] {
        println!(
            "{entries:>9} {:>6.1} ns {:>4.1} compared {:>6.1} ns {:>4.1} compared",
            hashed::<false>(entries),
            hashed::<true>(entries),
            balanced::<false>(entries),
            balanced::<true>(entries)
        );
    }
}
