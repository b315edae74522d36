// SPDX-License-Identifier: GPL-2.0
//! Locks and references. Counting references is not what the models are about: that is std's.

use core::pin::Pin;

use crate::alloc::Flags;
use crate::error::Result;
use crate::init::PinInit;

pub use std::sync::Arc;

pub mod atomic;
pub mod lock;

/// A lock class.
#[derive(Debug)]
pub struct LockClassKey;

/// The kernel's ways to make an `Arc`.
pub trait ArcExt<T>: Sized {
    /// Allocates and initialises.
    ///
    /// # Errors
    ///
    /// What the initialiser says.
    fn pin_init(init: impl PinInit<T>, flags: Flags) -> Result<Self>;
}

impl<T> ArcExt<T> for Arc<T> {
    fn pin_init(init: impl PinInit<T>, _flags: Flags) -> Result<Self> {
        Ok(Arc::new(init.make()?))
    }
}

/// A value that is set once.
#[derive(Debug)]
pub struct SetOnce<T>(std::sync::OnceLock<T>);

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> SetOnce<T> {
    /// One that is not set.
    pub const fn new() -> Self {
        SetOnce(std::sync::OnceLock::new())
    }

    /// The value.
    pub fn as_ref(&self) -> Option<&T> {
        self.0.get()
    }

    /// Sets it, unless it is set.
    pub fn populate(&self, value: T) -> bool {
        self.0.set(value).is_ok()
    }
}

/// A borrowed reference.
#[derive(Debug)]
pub struct ArcBorrow<'a, T>(
    /// The owner.
    pub &'a Arc<T>,
);

impl<T> Clone for ArcBorrow<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ArcBorrow<'_, T> {}

impl<T> core::ops::Deref for ArcBorrow<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

impl<T> From<ArcBorrow<'_, T>> for Arc<T> {
    fn from(borrowed: ArcBorrow<'_, T>) -> Self {
        borrowed.0.clone()
    }
}

/// A class of its own.
pub fn class() -> Pin<&'static LockClassKey> {
    static CLASS: LockClassKey = LockClassKey;
    Pin::static_ref(&CLASS)
}

/// A lock class.
#[macro_export]
macro_rules! static_lock_class {
    () => {
        $crate::sync::class()
    };
}

/// A spin lock.
#[macro_export]
macro_rules! new_spinlock_irq {
    ($value:expr, $name:literal $(,)?) => {
        $crate::sync::lock::Lock::new($value, c"", $crate::sync::class())
    };
}
