// SPDX-License-Identifier: GPL-2.0

//! What bindgen makes of the RDMA headers, on top of the kernel crate's own bindings.

#![allow(
    clippy::all,
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]

use kernel::ffi;
use pin_init::MaybeZeroable;

include!(concat!(env!("IB_CM_OBJ"), "/rust/bindings_generated.rs"));

// SAFETY: Raw storage, for which all zero is as good as any other value.
unsafe impl<Storage: pin_init::Zeroable> pin_init::Zeroable for __BindgenBitfieldUnit<Storage> {}
