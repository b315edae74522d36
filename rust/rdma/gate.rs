// SPDX-License-Identifier: GPL-2.0

//! A value that many use until one takes it away.

use core::{
    cell::UnsafeCell,
    ops::Deref, //
};

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering,
        Acquire,
        Atomic,
        Relaxed, //
    },
};

use super::wait;

/// Set once the value is taken; the other bits count the guards.
const CLOSED: u32 = 1 << 31;

/// Owns a value that anyone may use through a guard, until [`close`](Gate::close) takes it out.
///
/// Entering is one atomic operation and works in any context; closing waits for the guards.
///
/// # Invariants
///
/// * `state` is the number of guards and of those who are about to be refused, plus [`CLOSED`]
///   after the first call of `close`.
/// * `value` is changed only by the call of `close` that set [`CLOSED`], and only once no guard is
///   left.
pub(crate) struct Gate<T> {
    state: Atomic<u32>,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: The gate hands `&T` to any thread (`T: Sync`) and moves the `T` out in any (`T: Send`).
unsafe impl<T: Send + Sync> Sync for Gate<T> {}

impl<T> Gate<T> {
    /// Opens a gate to `value`.
    pub(crate) fn new(value: T) -> Self {
        // INVARIANT: No guard, not closed.
        Self {
            state: Atomic::new(0),
            value: UnsafeCell::new(Some(value)),
        }
    }

    /// Access to the value, or `None` when the gate is closed. Any context.
    pub(crate) fn enter(&self) -> Option<GateGuard<'_, T>> {
        let before = self.state.fetch_add(1, Acquire);
        // From here on the guard gives the count back.
        let count = Count { state: &self.state };
        if before & CLOSED != 0 {
            return None;
        }
        // SAFETY: Counted in before CLOSED, so by the type invariant nobody changes the value
        // until the count is given back, which the guard's lifetime outlasts.
        let value = unsafe { &*self.value.get() }.as_ref()?;
        Some(GateGuard {
            value,
            _count: count,
        })
    }

    /// Refuses new guards, waits for those that exist, and returns the value. Only the first call
    /// gets it, and only the first waits.
    ///
    /// Process context. The caller must hold no guard of this gate, and nothing that a holder of
    /// one may wait for.
    pub(crate) fn close(&self) -> Option<T> {
        let mut state = self.state.load(Relaxed);
        loop {
            if state & CLOSED != 0 {
                return None;
            }
            match self.state.cmpxchg(state, state | CLOSED, ordering::Full) {
                Ok(_) => break,
                Err(seen) => state = seen,
            }
        }
        wait::wait_until(&self.state, || self.state.load(Acquire) == CLOSED);
        // SAFETY: This call set CLOSED and no guard is left, so by the type invariant nobody else
        // touches the value, now or later.
        unsafe { &mut *self.value.get() }.take()
    }
}

/// One unit of a gate's count.
struct Count<'a> {
    state: &'a Atomic<u32>,
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        let point: *const c_void = core::ptr::from_ref(self.state).cast();
        // The gate may be freed as soon as the last guard is counted out of a closed one.
        if self.state.fetch_sub(1, ordering::Full) == CLOSED.wrapping_add(1) {
            wait::wake_at(point);
        }
    }
}

/// Access to what a [`Gate`] owns.
pub(crate) struct GateGuard<'a, T> {
    value: &'a T,
    _count: Count<'a>,
}

impl<T> Deref for GateGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

#[kunit_tests(ib_cm_gate)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_gate_lets_nobody_in() -> Result {
        let gate = Gate::new(KBox::new(7, GFP_KERNEL)?);
        {
            let (one, two) = (gate.enter(), gate.enter());
            assert!(one.is_some_and(|value| **value == 7));
            assert!(two.is_some());
        }
        assert!(gate.close().is_some_and(|value| *value == 7));
        assert!(gate.enter().is_none());
        assert!(gate.close().is_none());
        Ok(())
    }
}
