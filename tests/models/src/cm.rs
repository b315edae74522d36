// SPDX-License-Identifier: GPL-2.0
//! The connection manager: the module's files, but for what talks to the IB core.

#[path = "../../../rust/cm/act.rs"]
pub(crate) mod act;
#[path = "../../../rust/cm/av.rs"]
pub(crate) mod av;
#[path = "../../../rust/cm/count.rs"]
pub(crate) mod count;
#[path = "debug.rs"]
pub(crate) mod debug;
#[path = "../../../rust/cm/deliver.rs"]
pub(crate) mod deliver;
#[path = "../../../rust/cm/event.rs"]
pub(crate) mod event;
#[path = "../../../rust/cm/hash.rs"]
pub(crate) mod hash;
#[path = "../../../rust/cm/hold.rs"]
pub(crate) mod hold;
#[path = "../../../rust/cm/id.rs"]
pub(crate) mod id;
#[path = "../../../rust/cm/inbox.rs"]
pub(crate) mod inbox;
#[path = "../../../rust/cm/index.rs"]
pub(crate) mod index;
#[path = "../../../rust/cm/inner.rs"]
pub(crate) mod inner;
#[path = "../../../rust/cm/listen.rs"]
pub(crate) mod listen;
#[path = "../../../rust/cm/manager.rs"]
pub(crate) mod manager;
#[path = "../../../rust/cm/memory.rs"]
pub(crate) mod memory;
#[path = "port.rs"]
pub(crate) mod port;
#[path = "present.rs"]
pub(crate) mod present;
#[path = "../../../rust/cm/public.rs"]
pub(crate) mod public;
#[path = "../../../rust/cm/receive.rs"]
pub(crate) mod receive;
#[path = "../../../rust/cm/rep.rs"]
pub(crate) mod rep;
#[path = "replay.rs"]
pub(crate) mod replay;
#[path = "../../../rust/cm/req.rs"]
pub(crate) mod req;
#[path = "../../../rust/cm/send.rs"]
pub(crate) mod send;
#[path = "sidr.rs"]
pub(crate) mod sidr;
#[path = "../../../rust/cm/timers.rs"]
pub(crate) mod timers;
#[path = "../../../rust/cm/treap.rs"]
pub(crate) mod treap;

use core::cell::Cell;

use ib_cm_proto::step::Refusal;
use kernel::prelude::*;

use self::manager::Manager;

thread_local! {
    /// The one manager, as long as a model runs. All its threads are one thread of the host.
    static MANAGER: Cell<*const Manager> = const { Cell::new(core::ptr::null()) };
}

/// Makes a manager the one.
pub(crate) fn set_manager(manager: *const Manager) {
    MANAGER.with(|place| place.set(manager));
}

/// The one manager.
pub(crate) fn manager() -> &'static Manager {
    // SAFETY: Set before the model's threads begin, and taken away after they have ended.
    unsafe { &*MANAGER.with(Cell::get) }
}

/// The errno of a refused call.
fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::InvalidState => EINVAL,
        Refusal::AlreadyConnected => EISCONN,
    }
}
