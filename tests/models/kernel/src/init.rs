// SPDX-License-Identifier: GPL-2.0
//! Initialisers: here they return what they make.

use core::convert::Infallible;
use core::pin::Pin;

use crate::error::Error;
use crate::error::Result;

/// An initialiser.
pub trait PinInit<T, E = Infallible>: Sized {
    /// Makes the value.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    fn make(self) -> Result<T, Error>;
}

/// An initialiser that is a function.
#[derive(Debug)]
pub struct FromFn<F>(F);

impl<T, E, F: FnOnce() -> Result<T, Error>> PinInit<T, E> for FromFn<F> {
    fn make(self) -> Result<T, Error> {
        (self.0)()
    }
}

/// An initialiser that is a function.
pub fn from_fn<T, F: FnOnce() -> Result<T, Error>>(make: F) -> FromFn<F> {
    FromFn(make)
}

/// Runs an initialiser that fails in no way of its own.
///
/// # Errors
///
/// Why it cannot.
pub fn make<T>(init: impl PinInit<T>) -> Result<T, Error> {
    init.make()
}

/// A destructor.
pub trait PinnedDrop {
    /// Drops.
    fn drop(self: Pin<&mut Self>);
}

/// Functions of the crate `pin_init`.
pub mod pin_init {
    use super::from_fn;
    use super::make;
    use super::PinInit;

    /// An array, made one by one.
    pub fn pin_init_array_from_fn<const N: usize, T, I: PinInit<T>>(
        mut each: impl FnMut(usize) -> I,
    ) -> impl PinInit<[T; N]> {
        from_fn(move || {
            let mut all = Vec::with_capacity(N);
            for at in 0..N {
                all.push(make(each(at))?);
            }
            match all.try_into() {
                Ok(all) => Ok(all),
                Err(_) => unreachable!(),
            }
        })
    }

    /// A value of zeroes, for the plain structures of C.
    pub fn zeroed<T>() -> T {
        // SAFETY: Used for C structures of numbers, pointers and optional functions only.
        unsafe { core::mem::MaybeUninit::zeroed().assume_init() }
    }
}

/// Makes a structure.
#[macro_export]
macro_rules! pin_init {
    ($type:ident { $($body:tt)* }) => {
        $crate::init::from_fn(move || $crate::fields!($type [] $($body)*))
    };
}

/// Makes a structure, or fails.
#[macro_export]
macro_rules! try_pin_init {
    ($type:ident { $($body:tt)* } ? $error:ty) => {
        $crate::init::from_fn(move || $crate::fields!($type [] $($body)*))
    };
}

/// The fields of a structure, one after the other.
#[macro_export]
macro_rules! fields {
    ($type:ident [$($done:tt)*]) => {
        Ok::<_, $crate::error::Error>($type { $($done)* })
    };
    ($type:ident [$($done:tt)*] $name:ident <- $init:expr $(, $($rest:tt)*)?) => {
        $crate::fields!($type [$($done)* $name: $crate::init::make($init)?,] $($($rest)*)?)
    };
    ($type:ident [$($done:tt)*] $name:ident : $value:expr $(, $($rest:tt)*)?) => {
        $crate::fields!($type [$($done)* $name: $value,] $($($rest)*)?)
    };
    ($type:ident [$($done:tt)*] $name:ident $(, $($rest:tt)*)?) => {
        $crate::fields!($type [$($done)* $name: $name,] $($($rest)*)?)
    };
}
