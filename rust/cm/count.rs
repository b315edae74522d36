// SPDX-License-Identifier: GPL-2.0
//! A count of things under way that somebody may wait for.

use core::ptr::from_ref;

use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
};

use crate::rdma::wait::{
    wait_idle_until,
    wait_until,
    wake_at, //
};

/// A count that can be waited on to become zero.
pub(crate) struct Count(Atomic<i32>);

impl Count {
    pub(crate) const fn zero() -> Self {
        Count(Atomic::new(0))
    }

    /// One more is under way.
    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// One is done. A waiter may free the count before this returns.
    pub(crate) fn decrement(&self) {
        let point = from_ref(self).cast();
        if self.0.fetch_sub(1, Release) == 1 {
            wake_at(point);
        }
    }

    /// How many are under way at this moment.
    pub(crate) fn get(&self) -> i32 {
        self.0.load(Relaxed)
    }

    /// Sleeps until nothing is under way, at most `timeout_ms`. Returns whether that is so.
    pub(crate) fn is_zero_within(&self, timeout_ms: u32) -> bool {
        wait_idle_until(self, timeout_ms, || self.0.load(Acquire) == 0)
    }

    /// Sleeps until nothing is under way.
    pub(crate) fn wait_for_zero(&self) {
        wait_until(self, || self.0.load(Acquire) == 0);
    }
}

#[kunit_tests(ib_cm_count)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_not_waited_for() {
        let count = Count::zero();
        count.wait_for_zero();
        count.increment();
        count.increment();
        assert_eq!(count.get(), 2);
        count.decrement();
        count.decrement();
        count.wait_for_zero();
        assert_eq!(count.get(), 0);
    }
}
