// SPDX-License-Identifier: GPL-2.0

//! A work queue of one's own. The kernel crate can only use queues that exist.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use core::{
    ops::Deref,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    workqueue::Queue, //
};

use super::bindings;

/// The kernel's queue for what may run on any processor and may take long.
pub(super) fn system_dfl() -> &'static Queue {
    // SAFETY: The kernel makes it before it loads modules, and keeps it.
    unsafe { Queue::from_raw(bindings::system_dfl_wq) }
}

/// A work queue with workers on each processor. Dropping it runs what is queued, then frees it
/// (process context).
///
/// # Invariants
///
/// The pointer is a work queue that belongs to this value.
pub(crate) struct Workqueue(NonNull<bindings::workqueue_struct>);

// SAFETY: The functions of work queues may be called from any thread.
unsafe impl Send for Workqueue {}
// SAFETY: As above.
unsafe impl Sync for Workqueue {}

impl Workqueue {
    /// Makes a queue that runs up to `max_active` items at a time on each processor (0: the
    /// kernel's default).
    pub(crate) fn new(name: &'static CStr, max_active: i32) -> Result<Self> {
        // SAFETY: `name` is a string that ends in a zero byte.
        let queue =
            unsafe { bindings::ib_cm_helper_alloc_workqueue(name.as_char_ptr(), max_active) };
        // INVARIANT: Just allocated for us.
        Ok(Self(NonNull::new(queue).ok_or(ENOMEM)?))
    }

    /// The queue, for the kernel crate's functions.
    pub(crate) fn queue(&self) -> &Queue {
        // SAFETY: By the type invariant it is valid as long as `self`.
        unsafe { Queue::from_raw(self.0.as_ptr()) }
    }

    /// The C object.
    pub(crate) fn as_ptr(&self) -> *mut bindings::workqueue_struct {
        self.0.as_ptr()
    }

    /// Waits until everything that is queued now has run. Process context, not from an item.
    pub(crate) fn flush(&self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::ib_cm_helper_flush_workqueue(self.0.as_ptr()) }
    }
}

impl Deref for Workqueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        self.queue()
    }
}

impl Drop for Workqueue {
    fn drop(&mut self) {
        // SAFETY: By the type invariant it is ours, and it is not used again.
        unsafe { bindings::ib_cm_helper_destroy_workqueue(self.0.as_ptr()) }
    }
}
