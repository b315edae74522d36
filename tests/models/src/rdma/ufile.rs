// SPDX-License-Identifier: GPL-2.0
//! A file of uverbs with one queue pair. Time does not pass while a hold waits: only what it waits
//! for can end it.

use super::device::IbDevice;
use super::qp::UserQp;

pub(crate) trait TeardownObserver {
    fn file_closing(&self, file: &ClosingFile<'_>);
    fn qp_destroying(&self, qp: &DestroyedQp<'_>);
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldEnd {
    Done,
    TimedOut,
    Stopped,
}

pub(crate) struct ClosingFile<'a>(pub(crate) &'a UserQp);

impl ClosingFile<'_> {
    pub(crate) fn device(&self) -> &IbDevice {
        self.0.device()
    }

    pub(crate) fn is_removal(&self) -> bool {
        false
    }

    pub(crate) fn for_each_qp(&self, mut each: impl FnMut(&UserQp)) {
        each(self.0);
    }

    pub(crate) fn hold(&self, _timeout_ms: u32, done: impl FnMut() -> bool) -> HoldEnd {
        kernel::wait::until(done);
        HoldEnd::Done
    }
}

pub(crate) struct DestroyedQp<'a> {
    pub(crate) qp: &'a UserQp,
}

impl DestroyedQp<'_> {
    pub(crate) fn is_removal(&self) -> bool {
        false
    }

    pub(crate) fn hold(&self, _timeout_ms: u32, done: impl FnMut() -> bool) -> HoldEnd {
        kernel::wait::until(done);
        HoldEnd::Done
    }
}
