// SPDX-License-Identifier: GPL-2.0
//! The clock, and random numbers.

/// Nanoseconds since boot, monotonic.
pub(crate) fn now_ns() -> i64 {
    // SAFETY: `ktime_get` may be called in any context.
    unsafe { kernel::bindings::ktime_get() }
}

/// The kernel's count of ticks, monotonic: coarse, but no dearer than a look at memory.
pub(crate) fn ticks() -> u64 {
    // SAFETY: A number that is always there; the kernel changes it as we do not care when.
    let jiffies = unsafe { (&raw const kernel::bindings::jiffies).read_volatile() };
    jiffies as u64
}

/// So many ticks in milliseconds.
pub(crate) fn ticks_to_ms(ticks: u64) -> u64 {
    // SAFETY: Converts a number.
    unsafe { kernel::bindings::jiffies64_to_msecs(ticks) }
}

/// A random number.
pub(crate) fn random_u32() -> u32 {
    // SAFETY: `get_random_u32` may be called in any context.
    unsafe { kernel::bindings::get_random_u32() }
}

/// A random number.
pub(crate) fn random_u64() -> u64 {
    // SAFETY: `get_random_u64` may be called in any context.
    unsafe { kernel::bindings::get_random_u64() }
}
