// SPDX-License-Identifier: GPL-2.0
//! As much of the kernel crate as the models need. Locks, atomics and the waiting of threads belong
//! to the model checker, which tries all their interleavings; memory never runs out.

pub mod alloc;
pub mod error;
pub mod init;
pub mod sync;
pub mod time;
pub mod types;
pub mod wait;
pub mod workqueue;

pub use core::ffi;
pub use init::pin_init::pin_init_array_from_fn;
pub use init::pin_init::zeroed;

/// What every file uses.
pub mod prelude {
    pub use crate::alloc::Flags;
    pub use crate::alloc::KBox;
    pub use crate::alloc::KVec;
    pub use crate::alloc::GFP_ATOMIC;
    pub use crate::alloc::GFP_KERNEL;
    pub use crate::error::code::*;
    pub use crate::error::Error;
    pub use crate::error::Result;
    pub use crate::init::pin_init;
    pub use crate::init::PinInit;
    pub use crate::init::PinnedDrop;
    pub use crate::pin_init;
    pub use crate::sync::ArcExt;
    pub use crate::try_pin_init;
    pub use core::ffi::c_int;
    pub use core::ffi::c_void;
    pub use core::ffi::CStr;
    pub use core::pin::Pin;
    pub use ib_cm_model_macros::kunit_tests;
    pub use ib_cm_model_macros::pin_data;
    pub use ib_cm_model_macros::pinned_drop;
}

/// Sizes are those of the kernel's types, not of these.
#[macro_export]
macro_rules! static_assert {
    ($($anything:tt)*) => {};
}

/// Nothing is logged.
#[macro_export]
macro_rules! pr_warn {
    ($($arg:tt)*) => {{
        let _ = format_args!($($arg)*);
    }};
}
