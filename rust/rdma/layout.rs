// SPDX-License-Identifier: GPL-2.0

//! The C compiler and bindgen agree on every struct that passes between the two languages.
//!
//! Bindgen reads the headers with libclang and may be given other flags than the compiler of the
//! kernel. The numbers below come from `rust/helpers/layout.c` as that compiler translated it.

macro_rules! assert_size {
    ($type:ident, $size:literal) => {
        kernel::static_assert!(core::mem::size_of::<super::bindings::$type>() == $size);
    };
}

macro_rules! assert_offset {
    ($type:ident, $field:ident, $offset:literal) => {
        kernel::static_assert!(core::mem::offset_of!(super::bindings::$type, $field) == $offset);
    };
}

include!(concat!(env!("IB_CM_OBJ"), "/rust/layout_generated.rs"));
