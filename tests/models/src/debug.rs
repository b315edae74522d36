// SPDX-License-Identifier: GPL-2.0
//! What the module remembers for those who look at it: nothing here.

use ib_cm_proto::connection::Connection;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Input;
use kernel::init::from_fn;
use kernel::prelude::*;

use super::id::Id;

/// Why a state changed.
pub(crate) enum Cause {
    Input(Input),
    Request,
    Other,
}

/// When a state changed.
pub(crate) struct Changed;

impl Changed {
    pub(crate) fn now() -> Self {
        Changed
    }

    pub(crate) fn set_now(&self) {}
}

/// The changes of late.
pub(crate) struct History;

impl History {
    pub(crate) fn new() -> impl PinInit<Self> {
        from_fn(|| Ok(History))
    }

    pub(crate) fn make_room(&self) {}

    pub(crate) fn add(&self, _conn: &Connection, _was: u32, _cause: Cause) {}
}

/// An identifier in words.
pub(crate) struct Described(State);

impl Described {
    pub(crate) fn of(id: &Id) -> Self {
        Described(id.lock().conn.state)
    }

    pub(crate) fn state(&self) -> State {
        self.0
    }
}

impl core::fmt::Display for Described {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
