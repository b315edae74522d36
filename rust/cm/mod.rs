// SPDX-License-Identifier: GPL-2.0
//! The connection manager: identifiers and what happens to them.
//!
//! ```text
//!  MAD layer --> port --> inbox --> receive, req, rep, sidr --.
//!                                                              v
//!  consumers --> api --> connect, listen, sidr ------------> act <-- timers
//!      ^                                                       |
//!      '------------- deliver <-- event <----------------------+--> send --> MAD layer
//! ```
//!
//! `act` is where an identifier meets the protocol: everything that happens is an input to its
//! state machine, and everything the machine says is carried out there.
//!
//! Locks are taken in this order: identifier, remote ID, remote QPN, local QPN, service, SIDR and
//! local ID shards, SIDR replies, timers of a device, record of a send; never two of one kind.
//! Nothing sleeps and no consumer is called under a lock.

mod act;
mod api;
mod av;
mod connect;
mod count;
mod debug;
mod deliver;
mod event;
mod hash;
mod hold;
mod id;
mod inbox;
mod index;
mod inner;
mod listen;
mod manager;
mod memory;
mod port;
mod present;
mod public;
mod qp_attr;
mod receive;
mod rep;
mod replay;
mod req;
mod send;
mod sidr;
mod timers;
mod treap;

use core::sync::atomic::{
    AtomicPtr,
    Ordering, //
};

use kernel::{
    ffi::c_int,
    prelude::*, //
};

use self::debug::Debug;
use self::manager::Manager;
use self::port::Cm;
use crate::rdma::{
    bindings,
    client::Registration, //
};
use ib_cm_proto::step::Refusal;

/// The one manager: set while the module is loaded.
static MANAGER: AtomicPtr<Manager> = AtomicPtr::new(core::ptr::null_mut());

/// The one manager.
fn manager() -> &'static Manager {
    // SAFETY: Set before the first device or consumer is heard of, and valid until the module has
    // gone: consumers hold the module, devices and work are gone before `Module` is dropped.
    unsafe { &*MANAGER.load(Ordering::Relaxed) }
}

/// The errno of a refused call.
fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::InvalidState => EINVAL,
        Refusal::AlreadyConnected => Error::from_errno(-(bindings::EISCONN as c_int)),
    }
}

/// The running connection manager.
pub(crate) struct Module {
    client: Option<Registration<Cm>>,
    debug: Option<Debug>,
    manager: Pin<KBox<Manager>>,
}

impl Module {
    /// Starts: sets the manager up and takes the devices that exist.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what the IB core says.
    pub(crate) fn start() -> Result<Self> {
        let manager = KBox::pin_init(Manager::new(), GFP_KERNEL)?;
        MANAGER.store((&raw const *manager).cast_mut(), Ordering::Release);
        let debug = Some(Debug::new());
        let client = Some(Registration::new()?);
        Ok(Module {
            client,
            debug,
            manager,
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Devices go first, and with them sends, timers and received MADs; then their work.
        self.client = None;
        self.debug = None;
        self.manager.work().flush();
        let live = self.manager.live.load(Ordering::Relaxed);
        if live != 0 {
            pr_err!(
                "{live} identifiers are still live at unload: a consumer has not destroyed them\n"
            );
        }
    }
}
