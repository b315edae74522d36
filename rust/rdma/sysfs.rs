// SPDX-License-Identifier: GPL-2.0

//! The message counters of a port, under `/sys/class/infiniband/<device>/ports/<port>/cm_*`.

use core::ptr::NonNull;

use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
    },
};

use super::{
    bindings,
    device::{
        Lease,
        LiveDevice, //
    },
};

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CounterGroup {
    /// `cm_tx_msgs`: messages sent, repeats included.
    TxMsgs = 0,
    /// `cm_tx_retries`: of these, the repeats.
    TxRetries = 1,
    /// `cm_rx_msgs`: messages received.
    RxMsgs = 2,
    /// `cm_rx_duplicates`: of these, those that were known already.
    RxDuplicates = 3,
}

const GROUPS: usize = bindings::IB_CM_COUNTER_GROUPS as usize;
const MESSAGES: usize = bindings::IB_CM_COUNTERS as usize;

/// The attribute ID of the first message, REQ. The others follow in the order of their IDs.
const FIRST_ATTR_ID: u16 = 0x10;

/// A count for each group and message.
pub(crate) struct Counters([[Atomic<isize>; MESSAGES]; GROUPS]);

impl Counters {
    /// All zero.
    pub(crate) fn new() -> Self {
        Self(core::array::from_fn(|_| {
            core::array::from_fn(|_| Atomic::new(0))
        }))
    }

    /// Adds `count` for the message with this attribute ID; nothing for an ID that is none.
    pub(crate) fn add(&self, group: CounterGroup, attr_id: u16, count: u32) {
        if let Some(counter) = self.counter(group, attr_id) {
            counter.add(count as isize, Relaxed);
        }
    }

    fn counter(&self, group: CounterGroup, attr_id: u16) -> Option<&Atomic<isize>> {
        let message = usize::from(attr_id.checked_sub(FIRST_ATTR_ID)?);
        self.0.get(group as usize)?.get(message)
    }
}

/// The files that show a port's counters. Dropping it removes them (process context).
///
/// # Invariants
///
/// The pointer is a registration that belongs to this value and reads `counters`.
pub(crate) struct CounterGroups<T: AsRef<Counters> + Send + Sync> {
    files: NonNull<bindings::ib_cm_port_counters>,
    _counters: Arc<T>,
    _lease: Lease,
}

// SAFETY: The files may be removed in any thread.
unsafe impl<T: AsRef<Counters> + Send + Sync> Send for CounterGroups<T> {}
// SAFETY: There is nothing to call on a shared one.
unsafe impl<T: AsRef<Counters> + Send + Sync> Sync for CounterGroups<T> {}

impl<T: AsRef<Counters> + Send + Sync> CounterGroups<T> {
    /// Makes the files of `port`. What `counters` refers to must always be the same.
    pub(crate) fn register(device: &LiveDevice<'_>, port: u32, counters: Arc<T>) -> Result<Self> {
        let values: *const Counters = (*counters).as_ref();
        // SAFETY: The lease keeps the device registered until the files are gone. The values are
        // `long`s that live as long as `counters`, which outlives the files.
        let files = unsafe {
            bindings::ib_cm_helper_register_counters(
                device.as_ptr(),
                port,
                values.cast_mut().cast(),
            )
        };
        // INVARIANT: Registered for us.
        Ok(Self {
            files: NonNull::new(from_err_ptr(files)?).ok_or(ENOMEM)?,
            _counters: counters,
            _lease: device.lease(),
        })
    }
}

impl<T: AsRef<Counters> + Send + Sync> Drop for CounterGroups<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; when it returns nobody reads the counters through it.
        unsafe { bindings::ib_cm_helper_unregister_counters(self.files.as_ptr()) }
    }
}
