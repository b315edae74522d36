// SPDX-License-Identifier: GPL-2.0
//! The identifier: the object behind a `struct ib_cm_id`.
//!
//! An identifier has many owners: its consumer, the indices, timers, sends in flight and workers.
//! When the consumer destroys it the connection may have to go on for a while: the DREQ is
//! repeated until the peer knows, and TimeWait has to run its time. It then lives on as an orphan
//! that nobody is told of, and dies when its last entry leaves the indices.

use core::sync::atomic::Ordering;

use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc,
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
    },
};

use super::act::With;
use super::count::Count;
use super::debug::{
    Cause,
    Changed,
    Described, //
};
use super::deliver;
use super::event::{
    Event,
    Events, //
};
use super::index::Reservation;
use super::inner::{
    leave,
    Inner, //
};
use super::manager;
use super::manager::{
    LocalId,
    LocalQpn, //
};
use super::port::Device;
use super::public::{
    Handler,
    Public, //
};
use super::timers::Deadline;
use crate::rdma::{
    bindings,
    log::warn_ratelimited,
    params::HoldPoint,
    spinlock::{
        new_spinlock_irq,
        SpinLockIrq,
        SpinLockIrqGuard, //
    },
    table::ModuleOf,
};
use ib_cm_proto::connection::Connection;
use ib_cm_proto::step::{
    Indices,
    Input, //
};

/// How often the log says that destruction waits for a handler, in milliseconds.
const REPORT_EVERY_MS: u32 = 10_000;

/// An identifier.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct Id {
    // First: consumers hold a pointer to it, and it tells us the identifier.
    pub(crate) public: Public,
    #[pin]
    inner: SpinLockIrq<Inner>,
    #[pin]
    delivery: Work<Id>,
    /// Handlers that destruction has to wait for: the identifier's own, and for a listener those
    /// of requests that name it.
    pub(crate) running: Count,
    /// When the state changed last.
    pub(crate) changed: Changed,
}

impl_has_work! {
    impl HasWork<Self> for Id { self.delivery }
}

// An established end takes two objects of 512 bytes in C. Here it takes this one and its details, of
// 256 each, four index entries and a timer's, of up to 32 each. In TimeWait the details are gone.
#[cfg(not(CONFIG_DEBUG_SPINLOCK))]
kernel::static_assert!(core::mem::size_of::<Id>() <= 256 - core::mem::size_of::<usize>());

impl WorkItem for Id {
    type Pointer = Arc<Id>;

    fn run(id: Arc<Id>) {
        deliver::all(id);
    }
}

/// Whom a message names by our communication ID.
pub(crate) enum Found {
    Id(Arc<Id>),
    /// An identifier of another device: the message is dropped without an answer.
    Elsewhere,
    Nobody,
}

/// The locked content of an identifier.
pub(crate) type Locked<'a> = SpinLockIrqGuard<'a, Inner>;

impl Id {
    /// A fresh identifier, in no index.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(
        device: *mut bindings::ib_device,
        handler: Option<Handler>,
        context: *mut c_void,
    ) -> Result<Arc<Self>> {
        manager().history.make_room();
        let local_id = manager().next_local_id();
        let id = Arc::pin_init(
            pin_init!(Id {
                public: Public::new(device, handler, context, local_id),
                inner <- new_spinlock_irq!(Inner::new(local_id), "ib_cm id"),
                delivery <- new_work!("ib_cm delivery"),
                running: Count::zero(),
                changed: Changed::now(),
            }),
            GFP_KERNEL,
        )?;
        manager().live.fetch_add(1, Ordering::Relaxed);
        Ok(id)
    }

    /// A fresh identifier that can receive messages.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new_receiver(
        device: *mut bindings::ib_device,
        handler: Option<Handler>,
        context: *mut c_void,
    ) -> Result<Arc<Self>> {
        loop {
            let id = Self::new(device, handler, context)?;
            let memory = Reservation::new(GFP_KERNEL)?;
            let mut inner = id.lock();
            let key = LocalId(inner.conn.local_id);
            let entered = manager().local_ids.insert(key, id.clone(), memory);
            inner.entered.local_id = entered.is_ok();
            drop(inner);
            if entered.is_ok() {
                return Ok(id);
            }
            // After 2^32 identifiers the number may still be in use: take the next one.
        }
    }

    /// Locks the identifier.
    pub(crate) fn lock(&self) -> Locked<'_> {
        self.inner.lock()
    }

    /// The identifier that a message names by our communication ID. It belongs to the device that
    /// the message came in by; else nobody is meant.
    pub(crate) fn find(local_id: u32, device: usize) -> Found {
        match manager().local_ids.find(&LocalId(local_id)) {
            None => Found::Nobody,
            Some(id) if id.public.device_key() == device => Found::Id(id),
            Some(_) => Found::Elsewhere,
        }
    }

    /// Asks a worker to deliver. The caller has set `delivering`.
    pub(crate) fn deliver_later(id: Arc<Id>) {
        // Only one delivery is ever asked for at a time, so the work cannot be queued already.
        let _ = manager().work().queue().enqueue(id);
    }

    /// Hands the identifier to a consumer, who holds a reference on it from now on.
    pub(crate) fn own(self: Arc<Self>) -> *mut bindings::ib_cm_id {
        let id = self.public.as_ptr();
        let _ = Arc::into_raw(self);
        id
    }

    /// Takes back the reference of a consumer who may not use the identifier any more.
    pub(crate) fn disown(&self) {
        // SAFETY: `own` made the reference that is taken back; destruction happens once.
        drop(unsafe { Arc::from_raw(core::ptr::from_ref(self)) });
    }

    /// Takes note of a change of state, before it is shown to consumers.
    pub(crate) fn note(&self, conn: &Connection, cause: Cause) {
        let was = self.public.shown_state();
        if was != conn.state as u32 {
            self.changed.set_now();
            manager().history.add(conn, was, cause);
        }
    }

    /// Gives the identifier up on behalf of its consumer, who may not use it any more, and waits
    /// for a running handler, with a line in the log where that takes long. `silent`: see
    /// [`Input::Destroy`].
    pub(crate) fn destroy(id: &Arc<Id>, silent: bool) {
        id.abandon(silent);
        let mut waited_ms = 0_u64;
        while !id.running.is_zero_within(REPORT_EVERY_MS) {
            waited_ms = waited_ms.saturating_add(REPORT_EVERY_MS.into());
            let handler = id.public.handler().map_or(0, |handler| handler as usize);
            warn_ratelimited!(
                "{}: to be destroyed, but a handler in {} has not returned for {} s; look what that module waits for\n",
                Described::of(id),
                ModuleOf(handler),
                waited_ms / 1000
            );
        }
    }

    /// [`Id::destroy`] without the wait, for a handler's own identifier.
    pub(crate) fn abandon(self: &Arc<Self>, silent: bool) {
        let mut undelivered = Events::new();
        let mut with = With {
            undelivered: Some(&mut undelivered),
            ..With::nothing()
        };
        self.act(Input::Destroy { silent }, &mut with);
        while let Some(event) = undelivered.pop() {
            if let Event::Arrival(arrival) = event {
                drop(arrival);
            }
        }
    }

    /// The device has gone: nothing can be sent any more, and nothing of it may be held.
    pub(crate) fn lose_device(self: &Arc<Self>, device: &Device) {
        let mut deliver = false;
        loop {
            let outcome = self.act(Input::DeviceGone, &mut With::nothing());
            deliver |= outcome.deliver;
            if outcome.step.is_none_or(|step| step.timer.is_none()) {
                break;
            }
        }
        let mut inner = self.lock();
        device.timers.stop(&mut inner.timer, self);
        let gone = inner.leave_device();
        drop(inner);
        // References on GIDs are put outside the lock.
        drop(gone);
        if deliver {
            Self::deliver_later(self.clone());
        }
    }

    /// Leaves the indices that the connection has no more business in.
    pub(crate) fn leave_indices(&self, inner: &mut Inner, which: Indices) {
        let leaves = inner.conn.leaves(which);
        if leaves.remote_qpn {
            let key = inner.conn.remote_qpn_key();
            leave(&mut inner.entered.remote_qpn, &manager().remote_qpns, key);
        }
        if leaves.remote_id {
            let key = inner.conn.remote_id_key();
            leave(&mut inner.entered.remote_id, &manager().remote_ids, key);
        }
        if leaves.local_qpn {
            self.leave_local_qpn(inner);
            if let Some(request) = inner.take_sidr() {
                manager().sidr_requests.remove(&request);
            }
        }
        if leaves.local_id {
            let key = LocalId(inner.conn.local_id);
            leave(&mut inner.entered.local_id, &manager().local_ids, key);
        }
    }

    /// The queue pair may go: those who hold it are told. Returns whether it could not before.
    pub(crate) fn leave_local_qpn(&self, inner: &mut Inner) -> bool {
        if !inner.entered.local_qpn {
            return false;
        }
        let key = LocalQpn {
            device: self.public.device_key(),
            qpn: inner.conn.local_qpn,
            local_id: inner.conn.local_id,
        };
        leave(&mut inner.entered.local_qpn, &manager().local_qpns, key);
        HoldPoint.wake();
        true
    }
}

#[pinned_drop]
impl PinnedDrop for Id {
    fn drop(self: Pin<&mut Self>) {
        manager().live.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The timer of `id` that was set for `deadline` has run out.
pub(crate) fn timer_expired(device: &Arc<Device>, id: &Arc<Id>, deadline: Deadline) {
    let mut with = With {
        deadline: Some((deadline, device)),
        ..With::nothing()
    };
    let outcome = id.act(Input::Timer, &mut with);
    if outcome.deliver {
        Id::deliver_later(id.clone());
    }
}

/// What a handler returned, as the kernel's error numbers.
pub(crate) const HANDLER_OUT_OF_MEMORY: c_int = -(bindings::ENOMEM as c_int);
