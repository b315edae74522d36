// SPDX-License-Identifier: GPL-2.0

//! Waiting for a condition without a wait queue in the object that is waited for.
//!
//! Waiter and waker meet at an address, the *point*: usually that of the atomic which holds the
//! condition. Only its value is used, never what lies there.
//!
//! C header: [`include/linux/wait_bit.h`](srctree/include/linux/wait_bit.h)

use kernel::{
    prelude::*,
    time::msecs_to_jiffies, //
};

use super::bindings;

/// Calls the closure of type `F` at `arg`.
///
/// # Safety
///
/// `arg` points to a live `F` that nobody else uses during the call.
unsafe extern "C" fn call<F: FnMut() -> bool>(arg: *mut c_void) -> bool {
    // SAFETY: By the contract of this function.
    let condition = unsafe { &mut *arg.cast::<F>() };
    condition()
}

/// Sleeps until `condition` holds. Process context, cannot be interrupted.
///
/// The condition is looked at now and after each [`wake`] of the same point, also by a task that
/// is about to sleep: it must not sleep itself.
pub(crate) fn wait_until<P: ?Sized, F: FnMut() -> bool>(point: &P, mut condition: F) {
    // SAFETY: The point is only an address. `call::<F>` gets a pointer to an `F` that lives and is
    // ours until the function returns.
    unsafe {
        bindings::ib_cm_helper_wait(
            core::ptr::from_ref(point).cast::<c_void>().cast_mut(),
            Some(call::<F>),
            core::ptr::from_mut(&mut condition).cast(),
        )
    }
}

/// As [`wait_until`], but gives up after `timeout_ms`; true when the condition held in time.
///
/// The task counts as idle meanwhile: it adds nothing to the load and is not reported as hung.
pub(crate) fn wait_idle_until<P: ?Sized, F: FnMut() -> bool>(
    point: &P,
    timeout_ms: u32,
    mut condition: F,
) -> bool {
    // SAFETY: As in `wait_until`.
    unsafe {
        bindings::ib_cm_helper_wait_idle(
            core::ptr::from_ref(point).cast::<c_void>().cast_mut(),
            Some(call::<F>),
            core::ptr::from_mut(&mut condition).cast(),
            msecs_to_jiffies(timeout_ms),
        )
    }
}

/// Lets everyone who waits at `point` look at its condition again. Any context.
pub(crate) fn wake<P: ?Sized>(point: &P) {
    wake_at(core::ptr::from_ref(point).cast());
}

/// As [`wake`], for an object that a waiter may free before this returns.
pub(crate) fn wake_at(point: *const c_void) {
    // SAFETY: The point is only an address.
    unsafe { bindings::ib_cm_helper_wake(point.cast_mut()) }
}
