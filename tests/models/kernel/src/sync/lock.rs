// SPDX-License-Identifier: GPL-2.0
//! Spin locks: the model checker's mutexes.

use core::ffi::CStr;
use core::ops::Deref;
use core::ops::DerefMut;
use core::pin::Pin;

use loom::sync::Mutex;
use loom::sync::MutexGuard;

use super::LockClassKey;
use crate::init::from_fn;
use crate::init::PinInit;

/// A lock.
#[derive(Debug)]
pub struct Lock<T>(Mutex<T>);

/// Access to what is locked.
#[derive(Debug)]
pub struct Guard<'a, T>(MutexGuard<'a, T>);

impl<T> Lock<T> {
    /// An initialiser.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(
        value: T,
        _name: &'static CStr,
        _class: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        from_fn(move || Ok(Lock(Mutex::new(value))))
    }

    /// Locks.
    pub fn lock(&self) -> Guard<'_, T> {
        match self.0.lock() {
            Ok(guard) => Guard(guard),
            Err(poisoned) => Guard(poisoned.into_inner()),
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
