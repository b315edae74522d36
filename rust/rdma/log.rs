// SPDX-License-Identifier: GPL-2.0

//! Messages in the kernel's log that the wire or a consumer can cause, limited in rate.

use super::bindings;

/// Whether one more message may be written now.
pub(crate) fn may_log() -> bool {
    // SAFETY: Any context.
    unsafe { bindings::ib_cm_helper_may_log() }
}

/// As `pr_warn!`, unless too many were written lately.
#[allow(unused_macros)]
macro_rules! warn_ratelimited {
    ($($arg:tt)*) => {
        if $crate::rdma::log::may_log() {
            kernel::pr_warn!($($arg)*);
        }
    };
}

#[allow(unused_imports)]
pub(crate) use warn_ratelimited;
