// SPDX-License-Identifier: GPL-2.0
//! A count of things under way that somebody may wait for.

use core::ptr::from_ref;

use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Full,
        Relaxed, //
    },
};

use crate::rdma::wait::{
    wait_idle_until,
    wake_at, //
};

/// Set once somebody waits; the other bits count.
const AWAITED: i32 = 1 << 30;

/// A count that can be waited on to become zero.
pub(crate) struct Count(Atomic<i32>);

impl Count {
    pub(crate) const fn zero() -> Self {
        Count(Atomic::new(0))
    }

    /// One more is under way.
    pub(crate) fn increment(&self) {
        self.0.add(1, Relaxed);
    }

    /// One is done. A waiter may free the count before this returns.
    pub(crate) fn decrement(&self) {
        let point = from_ref(self).cast();
        // Nearly always nobody waits, and to look for waiters would cost more than the rest.
        if self.0.fetch_sub(1, Full) == AWAITED.wrapping_add(1) {
            wake_at(point);
        }
    }

    /// How many are under way at this moment.
    pub(crate) fn get(&self) -> i32 {
        self.0.load(Relaxed) & !AWAITED
    }

    fn is_zero(&self) -> bool {
        self.0.load(Acquire) & !AWAITED == 0
    }

    /// Whoever ends the last one from here on wakes the waiters.
    fn await_zero(&self) {
        let mut seen = self.0.load(Relaxed);
        while seen & AWAITED == 0 {
            match self.0.cmpxchg(seen, seen | AWAITED, Full) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Sleeps until nothing is under way, at most `timeout_ms`. Returns whether that is so.
    pub(crate) fn is_zero_within(&self, timeout_ms: u32) -> bool {
        if self.is_zero() {
            return true;
        }
        self.await_zero();
        wait_idle_until(self, timeout_ms, || self.is_zero())
    }
}

#[kunit_tests(ib_cm_count)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_not_waited_for() {
        let count = Count::zero();
        assert!(count.is_zero_within(1));
        count.increment();
        count.increment();
        assert!(!count.is_zero_within(1));
        assert_eq!(count.get(), 2);
        count.decrement();
        count.decrement();
        assert!(count.is_zero_within(1));
        assert_eq!(count.get(), 0);
    }
}
