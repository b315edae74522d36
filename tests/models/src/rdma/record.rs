// SPDX-License-Identifier: GPL-2.0
//! Sends in flight: nothing completes by itself.

use core::ops::Deref;

use kernel::init::from_fn;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::workqueue::HasWork;
use kernel::workqueue::Work;
use kernel::workqueue::WorkItem;

use super::mad::SendBuf;

pub(crate) trait RecordPayload: Sized + 'static {
    fn run(record: Arc<SendRecord<Self>>);
}

pub(crate) struct SendRecord<T> {
    work: Work<SendRecord<T>>,
    payload: T,
}

impl<T: RecordPayload> SendRecord<T> {
    pub(crate) fn new(payload: T) -> impl PinInit<Self> {
        from_fn(move || {
            Ok(SendRecord {
                work: Work::new(),
                payload,
            })
        })
    }

    pub(crate) fn post<H>(self: &Arc<Self>, buf: SendBuf<H>) -> Result {
        buf.post().map_err(|(error, _)| error)
    }

    pub(crate) fn cancel(&self) {}

    pub(crate) fn modify_timeout(&self, _timeout_ms: u32) -> Result {
        Ok(())
    }
}

impl<T: RecordPayload> HasWork<Self> for SendRecord<T> {
    fn work(&self) -> &Work<Self> {
        &self.work
    }
}

impl<T: RecordPayload> WorkItem for SendRecord<T> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        T::run(this);
    }
}

impl<T> Deref for SendRecord<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.payload
    }
}
