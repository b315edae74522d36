// SPDX-License-Identifier: GPL-2.0
//! Memory.

use core::mem::MaybeUninit;
use core::ops::Deref;
use core::ops::DerefMut;
use core::pin::Pin;

use crate::error::Result;
use crate::init::PinInit;

/// How to allocate.
#[derive(Clone, Copy, Debug)]
pub struct Flags;

/// May sleep.
pub const GFP_KERNEL: Flags = Flags;
/// May not.
pub const GFP_ATOMIC: Flags = Flags;

/// The flags by their module.
pub mod flags {
    pub use super::GFP_ATOMIC;
    pub use super::GFP_KERNEL;

    /// May not sleep, and may fail at once.
    pub const GFP_NOWAIT: super::Flags = super::Flags;
}

/// An owner.
#[derive(Debug)]
pub struct KBox<T>(Box<T>);

impl<T> KBox<T> {
    /// Allocates.
    ///
    /// # Errors
    ///
    /// None here.
    pub fn new(value: T, _flags: Flags) -> Result<Self> {
        Ok(KBox(Box::new(value)))
    }

    /// Allocates and initialises.
    ///
    /// # Errors
    ///
    /// What the initialiser says.
    pub fn pin_init(init: impl PinInit<T>, _flags: Flags) -> Result<Pin<Self>> {
        let this = KBox(Box::new(init.make()?));
        // SAFETY: The box is never moved out of.
        Ok(unsafe { Pin::new_unchecked(this) })
    }
}

impl<T> KBox<T> {
    /// Memory without content.
    ///
    /// # Errors
    ///
    /// None here.
    pub fn new_uninit(_flags: Flags) -> Result<KBox<MaybeUninit<T>>> {
        Ok(KBox(Box::new_uninit()))
    }

    /// Drops the content.
    pub fn drop_contents(this: Self) -> KBox<MaybeUninit<T>> {
        drop(this);
        KBox(Box::new_uninit())
    }
}

impl<T> KBox<MaybeUninit<T>> {
    /// Fills it.
    pub fn write(mut self, value: T) -> KBox<T> {
        self.0.write(value);
        // SAFETY: Just written.
        KBox(unsafe { self.0.assume_init() })
    }
}

impl<T> Deref for KBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for KBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// A vector.
#[derive(Debug)]
pub struct KVec<T>(Vec<T>);

impl<T> KVec<T> {
    /// An empty one.
    pub const fn new() -> Self {
        KVec(Vec::new())
    }

    /// One with room.
    ///
    /// # Errors
    ///
    /// None here.
    pub fn with_capacity(capacity: usize, _flags: Flags) -> Result<Self> {
        Ok(KVec(Vec::with_capacity(capacity)))
    }

    /// Adds one at the end.
    ///
    /// # Errors
    ///
    /// None here.
    pub fn push(&mut self, value: T, _flags: Flags) -> Result {
        self.0.push(value);
        Ok(())
    }

    /// Adds one at the end where there is room.
    ///
    /// # Errors
    ///
    /// The value where there is none.
    pub fn push_within_capacity(&mut self, value: T) -> core::result::Result<(), T> {
        if self.0.len() == self.0.capacity() {
            return Err(value);
        }
        self.0.push(value);
        Ok(())
    }

    /// Takes the last.
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }

    /// Takes one out.
    pub fn remove(&mut self, at: usize) -> T {
        self.0.remove(at)
    }
}

impl<T> Default for KVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for KVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for KVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<'a, T> IntoIterator for &'a KVec<T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut KVec<T> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}
