// SPDX-License-Identifier: GPL-2.0
//! Memory that is set aside before a lock is taken, and freed after it is released.

use core::mem::MaybeUninit;

use kernel::alloc::Flags;
use kernel::prelude::*;

/// Memory for one `T`.
pub(crate) struct Reserved<T>(KBox<MaybeUninit<T>>);

impl<T> Reserved<T> {
    /// Allocates.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(flags: Flags) -> Result<Self> {
        Ok(Reserved(KBox::new_uninit(flags)?))
    }

    /// Uses it.
    pub(crate) fn fill(self, value: T) -> KBox<T> {
        KBox::write(self.0, value)
    }

    /// Drops a value, and keeps the memory.
    pub(crate) fn from_used(value: KBox<T>) -> Self {
        Reserved(KBox::drop_contents(value))
    }
}
