// SPDX-License-Identifier: GPL-2.0
//! The part of an identifier that consumers see and share: `struct ib_cm_id`.
//!
//! Consumers change `cm_handler`, `context` and `remote_cm_qpn` in it at times of their own
//! choosing, so each use reads them anew. The other fields are ours to keep current; consumers
//! read them without a lock.

use core::ptr::addr_of_mut;

use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    types::Opaque, //
};

use crate::rdma::{
    bindings,
    trace::RawCmId, //
};
use ib_cm_proto::connection::Connection;

/// `ib_cm_handler`.
pub(crate) type Handler =
    unsafe extern "C" fn(*mut bindings::ib_cm_id, *const bindings::ib_cm_event) -> c_int;

/// The queue pair that CM MADs go to unless the peer has redirected them.
const GENERAL_SERVICES_QP: u32 = 1;

/// `struct ib_cm_id`.
#[repr(transparent)]
pub(crate) struct Public(Opaque<bindings::ib_cm_id>);

// SAFETY: The fields are read and written one at a time, by volatile accesses of a machine word or
// less, as C does.
unsafe impl Send for Public {}
// SAFETY: As above.
unsafe impl Sync for Public {}

macro_rules! read {
    ($self:ident . $field:ident) => {
        // SAFETY: The object is live and initialised; the field is aligned and a plain number or
        // pointer.
        unsafe { addr_of_mut!((*$self.as_ptr()).$field).read_volatile() }
    };
}

macro_rules! write {
    ($self:ident . $field:ident = $value:expr) => {
        // SAFETY: The object is live and initialised; the field is aligned and a plain number or
        // pointer.
        unsafe { addr_of_mut!((*$self.as_ptr()).$field).write_volatile($value) }
    };
}

impl Public {
    /// A fresh identifier of `device`.
    pub(crate) fn new(
        device: *mut bindings::ib_device,
        handler: Option<Handler>,
        context: *mut c_void,
        local_id: u32,
    ) -> Self {
        let mut id: bindings::ib_cm_id = pin_init::zeroed();
        id.device = device;
        id.cm_handler = handler;
        id.context = context;
        id.local_id = local_id.to_be();
        id.remote_cm_qpn = GENERAL_SERVICES_QP;
        Public(Opaque::new(id))
    }

    /// The pointer that consumers know.
    pub(crate) fn as_ptr(&self) -> *mut bindings::ib_cm_id {
        self.0.get()
    }

    /// The C object, for trace events.
    pub(crate) fn raw(&self) -> &RawCmId {
        &self.0
    }

    /// The device, as a number that tells devices apart.
    pub(crate) fn device_key(&self) -> usize {
        read!(self.device) as usize
    }

    pub(crate) fn handler(&self) -> Option<Handler> {
        read!(self.cm_handler)
    }

    pub(crate) fn context(&self) -> *mut c_void {
        read!(self.context)
    }

    /// Takes handler and context over from a listener.
    pub(crate) fn inherit(&self, listener: &Public) {
        write!(self.cm_handler = listener.handler());
        write!(self.context = listener.context());
    }

    pub(crate) fn remote_cm_qpn(&self) -> u32 {
        read!(self.remote_cm_qpn)
    }

    pub(crate) fn service_id(&self) -> u64 {
        u64::from_be(read!(self.service_id))
    }

    pub(crate) fn set_service_id(&self, service_id: u64) {
        write!(self.service_id = service_id.to_be());
    }

    /// Shows consumers our communication ID, before they see the identifier.
    pub(crate) fn show_local_id(&self, conn: &Connection) {
        write!(self.local_id = conn.local_id.to_be());
    }

    /// Where the connection stood when it was last shown.
    pub(crate) fn shown_state(&self) -> u32 {
        read!(self.state)
    }

    /// Shows consumers where the connection stands.
    pub(crate) fn show(&self, conn: &Connection) {
        write!(self.state = conn.state as bindings::ib_cm_state);
        write!(self.lap_state = conn.lap as bindings::ib_cm_lap_state);
        write!(self.remote_id = conn.remote_id.to_be());
    }

    /// Calls the consumer. Without a handler there is nobody to tell.
    pub(crate) fn call(&self, event: &bindings::ib_cm_event) -> c_int {
        match self.handler() {
            // SAFETY: The consumer has set this handler for this identifier, which is live until
            // the handler returns because destruction waits for it; so is the event.
            Some(handler) => unsafe { handler(self.as_ptr(), event) },
            None => 0,
        }
    }
}
