// SPDX-License-Identifier: GPL-2.0

//! Sends that expect an answer.
//!
//! Whoever waits for the answer must be able to cancel the send or to give it more time, and the
//! MAD layer frees the buffer whenever it completes. Both meet in a [`SendRecord`]: the address of
//! the buffer is in it, under a lock, from the post until the completion.

use core::{
    ops::Deref,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc,
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
    },
};

use super::{
    bindings,
    mad::{
        MadHandler,
        SendBuf, //
    },
    spinlock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
};

/// What a [`SendRecord`] holds, and what its work item does.
pub(crate) trait RecordPayload: Send + Sync + Sized + 'static {
    /// Runs when the record was queued: `queue.enqueue(record)`.
    fn run(record: Arc<SendRecord<Self>>);
}

/// The address of a buffer that the MAD layer owns.
struct Posted(NonNull<bindings::ib_mad_send_buf>);

// SAFETY: The functions that take a posted buffer may be called from any thread.
unsafe impl Send for Posted {}

/// Whether a record's buffer is with the MAD layer, and is to come back there.
struct State {
    buf: Option<Posted>,
    cancelled: bool,
}

/// Owns a send while it is in flight, and a work item for what follows.
///
/// # Invariants
///
/// `posted.buf` is set exactly while the MAD layer owns a buffer that was posted with this record:
/// set before the post, cleared in the completion before the buffer is freed.
#[pin_data]
pub(crate) struct SendRecord<T: RecordPayload> {
    #[pin]
    posted: SpinLockIrq<State>,
    #[pin]
    work: Work<SendRecord<T>>,
    #[pin]
    payload: T,
}

impl_has_work! {
    impl{T: RecordPayload} HasWork<Self> for SendRecord<T> { self.work }
}

impl<T: RecordPayload> WorkItem for SendRecord<T> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        T::run(this);
    }
}

impl<T: RecordPayload> SendRecord<T> {
    /// An initialiser for a record of which nothing is posted.
    pub(crate) fn new<E>(payload: impl PinInit<T, E>) -> impl PinInit<Self, E>
    where
        E: From<core::convert::Infallible>,
    {
        try_pin_init!(Self {
            posted <- new_spinlock_irq!(
                State { buf: None, cancelled: false },
                "SendRecord::posted"
            ),
            work <- new_work!("SendRecord::work"),
            payload <- payload,
        }? E)
    }

    /// Posts `buf`, whose completion will carry this record. Any context but hard interrupts.
    ///
    /// # Errors
    ///
    /// `EBUSY` when a buffer is posted already, else as [`SendBuf::post`]. The buffer is freed.
    pub(crate) fn post<H>(self: &Arc<Self>, mut buf: SendBuf<H>) -> Result
    where
        H: MadHandler<Payload = T>,
    {
        buf.set_record(self.clone());
        let mut posted = self.posted.lock();
        if posted.buf.is_some() {
            drop(posted);
            return Err(EBUSY);
        }
        // INVARIANT: Set before the post; the completion waits for the lock.
        posted.buf = Some(Posted(buf.as_ptr()));
        match buf.post() {
            Ok(()) => Ok(()),
            Err((error, buf)) => {
                // INVARIANT: The MAD layer did not take it.
                posted.buf = None;
                drop(posted);
                drop(buf);
                Err(error)
            }
        }
    }

    /// Posts a buffer of this record once more that the MAD layer has just given back, to wait
    /// `timeout_ms` for the answer; not after [`cancel`](Self::cancel). Any context but hard
    /// interrupts.
    pub(super) fn post_again<H>(
        &self,
        mut buf: SendBuf<H>,
        timeout_ms: u32,
    ) -> core::result::Result<(), SendBuf<H>>
    where
        H: MadHandler<Payload = T>,
    {
        let posted = self.posted.lock();
        if posted.cancelled {
            return Err(buf);
        }
        buf.set_timeout_ms(timeout_ms);
        buf.set_retries(0);
        // INVARIANT: `buf` is still set in the state; if the MAD layer does not take the buffer,
        // the completion that the caller goes on with clears it.
        let again = buf.post();
        drop(posted);
        again.map_err(|(_, buf)| buf)
    }

    /// Ends a posted send soon; its completion says [`FLUSHED`](super::mad::WcStatus::FLUSHED)
    /// unless it was over already. Any context.
    pub(crate) fn cancel(&self) {
        let mut posted = self.posted.lock();
        posted.cancelled = true;
        // To give it no time is how the MAD layer cancels. It fails when the send is over.
        let _ = Self::modify(&posted, 0);
    }

    /// Waits `timeout_ms` from now for the answer to a posted send. Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` when nothing is posted, or the send is cancelled or over.
    pub(crate) fn modify_timeout(&self, timeout_ms: u32) -> Result {
        Self::modify(&self.posted.lock(), timeout_ms)
    }

    /// [`SendRecord::modify_timeout`], with the record's lock held.
    fn modify(posted: &State, timeout_ms: u32) -> Result {
        let buf = posted.buf.as_ref().ok_or(EINVAL)?;
        // SAFETY: By the type invariant the buffer is not freed as long as the lock is held.
        to_result(unsafe { bindings::ib_modify_mad(buf.0.as_ptr(), timeout_ms) })
    }

    /// The completion has the buffer back and is about to free it. Returns whether it was cancelled
    /// before.
    pub(super) fn completed(&self) -> bool {
        let mut posted = self.posted.lock();
        // INVARIANT: Cleared before the buffer is freed.
        posted.buf = None;
        posted.cancelled
    }
}

impl<T: RecordPayload> Deref for SendRecord<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.payload
    }
}
