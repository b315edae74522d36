// SPDX-License-Identifier: GPL-2.0
//! Delayed work that can be moved to another time, and taken back.
//!
//! The kernel crate's [`DelayedWork`] can only be enqueued. While it is pending, the work queue
//! owns exactly one reference on its object; the functions here keep that count.
//!
//! [`DelayedWork`]: kernel::workqueue::DelayedWork

use kernel::{
    bindings,
    sync::Arc,
    time::Jiffies,
    workqueue::{
        HasDelayedWork,
        Work,
        WorkItem, //
    },
};

use super::workqueue::Workqueue;

/// The raw delayed work of an object.
fn raw<T: HasDelayedWork<T, ID>, const ID: u64>(object: *const T) -> *mut bindings::delayed_work {
    // SAFETY: `object` points at a live object; only an address inside it is computed.
    let work = unsafe { T::raw_get_work(object.cast_mut()) };
    // SAFETY: As above.
    let work = unsafe { Work::raw_get(work) };
    // SAFETY: `HasDelayedWork` promises that this work is the first field of a `delayed_work`'s
    // `work`, so the containing structure is a `delayed_work`.
    unsafe { kernel::container_of!(work, bindings::delayed_work, work) }
}

/// Lets the object's work run after `delay`, counted from now, whether or not it was pending.
pub(crate) fn schedule<T, const ID: u64>(queue: &Workqueue, object: Arc<T>, delay: Jiffies)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    let object = Arc::into_raw(object);
    // SAFETY: The work was initialised by `new_delayed_work!` with the function that takes an
    // `Arc<T>` back; the reference given up above keeps it alive until then. The queue is live.
    let was_pending = unsafe {
        bindings::mod_delayed_work_on(
            bindings::wq_misc_consts_WORK_CPU_UNBOUND as i32,
            queue.as_ptr(),
            raw::<T, ID>(object),
            delay,
        )
    };
    if was_pending {
        // SAFETY: The queue has kept the reference that it was given before, so this one is ours.
        drop(unsafe { Arc::from_raw(object) });
    }
}

/// Takes pending work back and waits for running work. It must not be scheduled any more.
pub(crate) fn cancel<T, const ID: u64>(object: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    let object: *const T = &**object;
    // SAFETY: The work was initialised by `new_delayed_work!`; the caller holds a reference.
    let was_pending = unsafe { bindings::cancel_delayed_work_sync(raw::<T, ID>(object)) };
    if was_pending {
        // SAFETY: The queue owned one reference and has forgotten it.
        drop(unsafe { Arc::from_raw(object) });
    }
}
