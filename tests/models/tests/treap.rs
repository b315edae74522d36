// SPDX-License-Identifier: GPL-2.0
//! The module's search tree of deadlines beside a set of the host: both are given the same to do.

// The module's files know this crate by name; here it is part of `kernel`.
extern crate kernel as pin_init;

#[path = "../../../rust/cm/memory.rs"]
#[allow(dead_code)]
mod memory;
#[path = "../../../rust/cm/treap.rs"]
#[allow(clippy::all)]
mod treap;

use std::cell::Cell;
use std::collections::BTreeSet;

use kernel::prelude::GFP_KERNEL;
use memory::Reserved;
use proptest::prelude::*;
use treap::Entry;
use treap::Treap;

thread_local! {
    static COMPARED: Cell<usize> = const { Cell::new(0) };
}

/// Several may be due at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: u16,
    who: u8,
}

impl Entry for Due {
    type Key = (u16, u8);

    fn key(&self) -> Self::Key {
        COMPARED.set(COMPARED.get() + 1);
        (self.at, self.who)
    }

    fn rank(&self) -> u64 {
        // The finalizer of splitmix64, as the module's.
        let value =
            ((u64::from(self.at) << 8) | u64::from(self.who)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }
}

#[derive(Clone, Debug)]
enum Do {
    Insert(Due),
    Remove(Due),
    RemoveFirst,
}

fn due() -> impl Strategy<Value = Due> {
    (0..50_u16, 0..4_u8).prop_map(|(at, who)| Due { at, who })
}

fn step() -> impl Strategy<Value = Do> {
    prop_oneof![
        3 => due().prop_map(Do::Insert),
        1 => due().prop_map(Do::Remove),
        1 => Just(Do::RemoveFirst),
    ]
}

#[derive(Default)]
struct Both {
    set: BTreeSet<Due>,
    tree: Option<Treap<Due>>,
}

impl Both {
    fn tree(&mut self) -> &mut Treap<Due> {
        self.tree.get_or_insert(Treap::new())
    }

    fn insert(&mut self, due: Due) {
        if self.set.insert(due) {
            let memory = Reserved::new(GFP_KERNEL).expect("there is memory");
            self.tree().insert(due, memory);
        }
    }

    fn remove(&mut self, due: Due) {
        let was_there = self.set.remove(&due);
        assert_eq!(self.tree().remove(&(due.at, due.who)).is_some(), was_there);
    }

    fn first(&mut self) -> Option<Due> {
        let first = self.tree().first().copied();
        assert_eq!(first, self.set.first().copied());
        first
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_tree_does_as_a_set(steps in prop::collection::vec(step(), 1..400)) {
        let mut both = Both::default();
        for step in steps {
            match step {
                Do::Insert(due) => both.insert(due),
                Do::Remove(due) => both.remove(due),
                Do::RemoveFirst => {
                    if let Some(first) = both.first() {
                        both.remove(first);
                    }
                }
            }
            both.first();
        }
        // They come out in their order.
        while let Some(first) = both.first() {
            both.remove(first);
        }
        assert!(both.set.is_empty());
    }
}

/// Deadlines nearly always come in the order of time, which must not make a list of the tree.
#[test]
fn paths_are_short_whatever_the_order() {
    const MANY: u16 = 50_000;
    // The expected path of a random tree is some 2 ln(n), 22, and twice that is never seen.
    const LONGEST: usize = 2 * 44;

    let mut both = Both::default();
    for at in 0..MANY {
        both.insert(Due { at, who: 0 });
    }
    let mut longest = 0;
    for at in (0..MANY).step_by(7) {
        COMPARED.set(0);
        both.remove(Due { at, who: 0 });
        longest = longest.max(COMPARED.get());
    }
    assert!(longest <= LONGEST, "{longest} keys are looked at");
}
