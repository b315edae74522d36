// SPDX-License-Identifier: GPL-2.0
//! The clock, and random numbers.

/// Nanoseconds since boot, monotonic.
pub(crate) fn now_ns() -> i64 {
    // SAFETY: `ktime_get` may be called in any context.
    unsafe { kernel::bindings::ktime_get() }
}

/// A random number.
pub(crate) fn random_u32() -> u32 {
    // SAFETY: `get_random_u32` may be called in any context.
    unsafe { kernel::bindings::get_random_u32() }
}
