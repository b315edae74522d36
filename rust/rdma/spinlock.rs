// SPDX-License-Identifier: GPL-2.0

//! A spinlock that keeps interrupts off while it is held.
//!
//! The interrupt state of before is in the guard, as `spin_lock_irqsave` has it: guards that are
//! held together go in the reverse order of their coming. A later one that stayed behind would be
//! held with interrupts on.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)

use kernel::{
    ffi::{
        c_char,
        c_ulong, //
    },
    sync::lock::{
        Backend,
        Guard,
        Lock, //
    },
};

use super::bindings;

/// The kernel's `spinlock_t`, with interrupts off.
pub(crate) struct SpinLockIrqBackend;

/// Data behind a spinlock that may be taken in any context.
pub(crate) type SpinLockIrq<T> = Lock<T, SpinLockIrqBackend>;

/// The locked content of a [`SpinLockIrq`].
pub(crate) type SpinLockIrqGuard<'a, T> = Guard<'a, T, SpinLockIrqBackend>;

// SAFETY: `spinlock_t` admits one owner at a time, and `relock` is the default one.
unsafe impl Backend for SpinLockIrqBackend {
    type State = bindings::spinlock_t;
    /// The processor's flags before the lock was taken.
    type GuardState = c_ulong;

    #[inline]
    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: By the contract of this function `ptr` is valid for writes, name and key for ever.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> c_ulong {
        // What the macro of C comes to on these kernels, without a detour through C.
        #[cfg(all(
            CONFIG_SMP,
            not(CONFIG_PREEMPT_RT),
            not(CONFIG_INLINE_SPIN_LOCK_IRQSAVE)
        ))]
        // SAFETY: By the contract of this function the lock is initialised; it begins with its
        // `raw_spinlock_t`.
        return unsafe { bindings::_raw_spin_lock_irqsave(ptr.cast()) };
        #[cfg(not(all(
            CONFIG_SMP,
            not(CONFIG_PREEMPT_RT),
            not(CONFIG_INLINE_SPIN_LOCK_IRQSAVE)
        )))]
        // SAFETY: By the contract of this function the lock is initialised.
        return unsafe { bindings::ib_cm_helper_spin_lock_irqsave(ptr) };
    }

    #[inline]
    unsafe fn try_lock(_ptr: *mut Self::State) -> Option<c_ulong> {
        // Nobody tries; to fail is always allowed.
        None
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, flags: &c_ulong) {
        #[cfg(all(
            CONFIG_SMP,
            not(CONFIG_PREEMPT_RT),
            not(CONFIG_INLINE_SPIN_UNLOCK_IRQRESTORE)
        ))]
        // SAFETY: By the contract of this function the caller owns the lock; the flags are those
        // that taking it returned. The lock begins with its `raw_spinlock_t`.
        unsafe {
            bindings::_raw_spin_unlock_irqrestore(ptr.cast(), *flags);
        }
        #[cfg(not(all(
            CONFIG_SMP,
            not(CONFIG_PREEMPT_RT),
            not(CONFIG_INLINE_SPIN_UNLOCK_IRQRESTORE)
        )))]
        // SAFETY: By the contract of this function the caller owns the lock; the flags are those
        // that taking it returned.
        unsafe {
            bindings::ib_cm_helper_spin_unlock_irqrestore(ptr, *flags);
        }
    }

    #[inline]
    unsafe fn assert_is_held(_ptr: *mut Self::State) {
        #[cfg(CONFIG_LOCKDEP)]
        // SAFETY: By the contract of this function the lock is initialised.
        unsafe {
            bindings::spin_assert_is_held(_ptr)
        }
    }
}

/// An initialiser of a [`SpinLockIrq`], whose lock class is the place of the call.
macro_rules! new_spinlock_irq {
    ($inner:expr, $name:literal $(,)?) => {
        $crate::rdma::spinlock::SpinLockIrq::new(
            $inner,
            kernel::c_str!($name),
            kernel::static_lock_class!(),
        )
    };
}

pub(crate) use new_spinlock_irq;
