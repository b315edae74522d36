// SPDX-License-Identifier: GPL-2.0
//! What C shares.

use core::cell::UnsafeCell;

/// A structure that C changes as well.
#[derive(Debug)]
#[repr(transparent)]
pub struct Opaque<T>(UnsafeCell<T>);

impl<T> Opaque<T> {
    /// Holds a value.
    pub const fn new(value: T) -> Self {
        Opaque(UnsafeCell::new(value))
    }

    /// Where it is.
    pub const fn get(&self) -> *mut T {
        self.0.get()
    }
}
