// SPDX-License-Identifier: GPL-2.0

//! The module's parameters, as they are now.

use super::bindings;

/// The value of a parameter, which may be written at the same time.
macro_rules! read {
    ($parameter:ident) => {
        // SAFETY: A plain number of the module that is there as long as the module.
        unsafe { (&raw const bindings::$parameter).read_volatile() }
    };
}

/// `hold_max_ms`: the longest hold, in ms; 0 for none.
pub(crate) fn hold_max_ms() -> u32 {
    read!(ib_cm_hold_max_ms)
}

/// `hold_explicit`: whether a live process's own destruction of a QP is held up too.
pub(crate) fn hold_explicit() -> bool {
    read!(ib_cm_hold_explicit)
}

/// `history`: the number of identifiers whose last changes of state are remembered.
pub(crate) fn history() -> u32 {
    read!(ib_cm_history)
}

/// `first_retry_ms`: the wait before a message is sent again for the first time, in ms; 0 for what
/// the consumer asks for.
pub(crate) fn first_retry_ms() -> u32 {
    read!(ib_cm_first_retry_ms)
}

/// `mra_once`: whether an MRA lengthens one wait only.
pub(crate) fn mra_once() -> bool {
    read!(ib_cm_mra_once)
}

/// `sidr_replay`: the number of SIDR_REPs that are kept to be said again.
pub(crate) fn sidr_replay() -> u32 {
    read!(ib_cm_sidr_replay)
}

/// Where holds wait: woken when `hold_max_ms` is written, and by whoever has news for them.
pub(crate) struct HoldPoint;

impl HoldPoint {
    fn point() -> *const u32 {
        &raw const bindings::ib_cm_hold_point
    }

    /// Lets all holds look at their conditions.
    pub(crate) fn wake(&self) {
        super::wait::wake_at(Self::point().cast());
    }

    /// Waits as [`wait_idle_until`](super::wait::wait_idle_until).
    pub(crate) fn wait_idle_until(&self, timeout_ms: u32, condition: impl FnMut() -> bool) -> bool {
        // SAFETY: A static of the module, which nobody writes.
        super::wait::wait_idle_until(unsafe { &*Self::point() }, timeout_ms, condition)
    }
}
