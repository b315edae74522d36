// SPDX-License-Identifier: GPL-2.0
//! Time.

/// Ticks.
pub type Jiffies = u64;

/// Nanoseconds of a millisecond.
pub const NSEC_PER_MSEC: i64 = 1_000_000;

/// A tick is a millisecond.
pub fn msecs_to_jiffies(ms: u32) -> Jiffies {
    ms.into()
}
