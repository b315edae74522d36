// SPDX-License-Identifier: GPL-2.0
//! The module's hash table beside a map of the host: both are given the same to do.

// The module's file knows this crate by name; here it is part of `kernel`.
extern crate kernel as pin_init;

#[path = "../../../rust/cm/hash.rs"]
#[allow(dead_code, clippy::all)]
mod hash;
#[path = "../../../rust/cm/memory.rs"]
#[allow(dead_code)]
mod memory;

use std::collections::BTreeMap;

use hash::mix;
use hash::HashTable;
use hash::Key;
use hash::Reservation;
use kernel::prelude::GFP_KERNEL;
use proptest::prelude::*;

/// Keys of one group have the same hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    group: u16,
    member: u8,
}

impl Key for Number {
    fn hash(&self, seed: u64) -> u64 {
        mix(u64::from(self.group) ^ seed)
    }
}

#[derive(Clone, Debug)]
enum Do {
    Insert(Number),
    Remove(Number),
    /// Many that follow each other.
    InsertFrom(u16),
    RemoveFrom(u16),
    /// So many steps of a walk.
    Walk(u8),
}

const RUN: u16 = 300;

fn number() -> impl Strategy<Value = Number> {
    (0..2000_u16, 0..4_u8).prop_map(|(group, member)| Number { group, member })
}

fn step() -> impl Strategy<Value = Do> {
    prop_oneof![
        number().prop_map(Do::Insert),
        number().prop_map(Do::Remove),
        (0..2000_u16).prop_map(Do::InsertFrom),
        (0..2000_u16).prop_map(Do::RemoveFrom),
        any::<u8>().prop_map(Do::Walk),
    ]
}

/// The table, what is to be in it, and a walk under way: where it is, whom it has met, and who has
/// been there all the time.
struct Both {
    table: HashTable<Number, u32>,
    map: BTreeMap<Number, u32>,
    last: Option<Number>,
    met: Vec<Number>,
    stayed: Vec<Number>,
    next: u32,
}

impl Both {
    fn insert(&mut self, key: Number) {
        let memory = Reservation::new(GFP_KERNEL).expect("there is memory");
        self.next += 1;
        let inserted = self.table.insert(key, self.next, memory);
        match self.map.get(&key) {
            Some(holder) => assert!(inserted.is_err_and(|(_, value)| value == *holder)),
            None => {
                assert!(inserted.is_ok());
                self.map.insert(key, self.next);
            }
        }
    }

    fn remove(&mut self, key: Number) {
        assert_eq!(
            self.table.remove(&key).is_some(),
            self.map.remove(&key).is_some()
        );
        self.stayed.retain(|stayed| *stayed != key);
    }

    /// Walks on; returns whether there is more.
    fn walk(&mut self) -> bool {
        let Some((key, value)) = self.table.after(self.last.as_ref()) else {
            for stayed in &self.stayed {
                let times = self.met.iter().filter(|met| *met == stayed).count();
                assert_eq!(times, 1, "{stayed:?} is met {times} times");
            }
            (self.last, self.met) = (None, Vec::new());
            self.stayed = self.map.keys().copied().collect();
            return false;
        };
        assert_eq!(self.map.get(key), Some(value));
        self.last = Some(*key);
        self.met.push(*key);
        true
    }

    fn check(&self, key: Number) {
        assert_eq!(self.table.get(&key), self.map.get(&key));
        let end = Number {
            member: u8::MAX,
            ..key
        };
        assert_eq!(
            self.table.lower_bound(&key),
            self.map.range(key..=end).next()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_table_does_as_a_map(seed: u64, steps in prop::collection::vec(step(), 1..60)) {
        let mut both = Both {
            table: HashTable::new(seed),
            map: BTreeMap::new(),
            last: None,
            met: Vec::new(),
            stayed: Vec::new(),
            next: 0,
        };
        for step in steps {
            match step {
                Do::Insert(key) => both.insert(key),
                Do::Remove(key) => both.remove(key),
                Do::InsertFrom(from) => {
                    (from..from + RUN).for_each(|group| both.insert(Number { group, member: 1 }));
                }
                Do::RemoveFrom(from) => {
                    (from..from + RUN).for_each(|group| both.remove(Number { group, member: 1 }));
                }
                Do::Walk(steps) => {
                    let _ = (0..steps).all(|_| both.walk());
                }
            }
        }
        // The walk under way ends, and one that nothing disturbs meets all.
        while both.walk() {}
        let all = both.map.len();
        let mut met = 0;
        while both.walk() {
            met += 1;
        }
        assert_eq!(met, all);
        for group in 0..2000 + RUN {
            both.check(Number { group, member: 0 });
            both.check(Number { group, member: 2 });
        }
        let keys: Vec<_> = both.map.keys().copied().collect();
        keys.into_iter().for_each(|key| both.remove(key));
        assert!(both.table.after(None).is_none());
    }
}
