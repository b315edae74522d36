// SPDX-License-Identifier: GPL-2.0

//! Queue pairs of user space.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

use super::{
    bindings,
    device::IbDevice, //
};

/// What the driver says of a queue pair.
#[derive(Clone, Copy)]
pub(crate) struct QpInfo {
    /// `enum ib_qp_type`.
    pub(crate) qp_type: bindings::ib_qp_type,
    /// The queue pair at the other end, of a connected type.
    pub(crate) dest_qp_num: u32,
}

impl QpInfo {
    /// Whether the type is one that a connection is made for.
    pub(crate) fn is_connected_type(&self) -> bool {
        matches!(
            self.qp_type,
            bindings::ib_qp_type_IB_QPT_RC
                | bindings::ib_qp_type_IB_QPT_UC
                | bindings::ib_qp_type_IB_QPT_XRC_INI
                | bindings::ib_qp_type_IB_QPT_XRC_TGT
        )
    }
}

/// A queue pair that a process made, for as long as it cannot be destroyed.
#[repr(transparent)]
pub(crate) struct UserQp(Opaque<bindings::ib_qp>);

impl UserQp {
    /// The queue pair, unless it is a kernel user's, or a handle on a shared one.
    ///
    /// # Safety
    ///
    /// `qp` is null or valid, and not destroyed, for `'a`, in which the caller may sleep.
    pub(super) unsafe fn from_ptr<'a>(qp: *mut bindings::ib_qp) -> Option<&'a Self> {
        // SAFETY: By the contract of this function; the fields never change.
        let own = !qp.is_null() && unsafe { !(*qp).uobject.is_null() && (*qp).real_qp == qp };
        if !own {
            return None;
        }
        // SAFETY: By the contract of this function; the type is transparent.
        Some(unsafe { &*qp.cast() })
    }

    /// The device.
    pub(crate) fn device(&self) -> &IbDevice {
        // SAFETY: A device outlives its queue pairs.
        unsafe { IbDevice::from_ptr((*self.0.get()).device) }
    }

    /// What uverbs knows it by.
    pub(super) fn uobject(&self) -> *mut bindings::ib_uobject {
        // SAFETY: Valid; never changes. Every object of uverbs begins with a `struct ib_uobject`.
        unsafe { (*self.0.get()).uobject.cast() }
    }

    /// The number.
    pub(crate) fn qp_num(&self) -> u32 {
        // SAFETY: Valid; never changes.
        unsafe { (*self.0.get()).qp_num }
    }

    /// Asks the driver (process context).
    pub(crate) fn query(&self) -> Result<QpInfo> {
        let mut attr: bindings::ib_qp_attr = pin_init::zeroed();
        let mut init: bindings::ib_qp_init_attr = pin_init::zeroed();
        let mask = bindings::ib_qp_attr_mask_IB_QP_DEST_QPN;
        // SAFETY: Valid, and not destroyed meanwhile.
        to_result(unsafe {
            bindings::ib_query_qp(self.0.get(), &mut attr, mask as c_int, &mut init)
        })?;
        Ok(QpInfo {
            // SAFETY: Valid; never changes.
            qp_type: unsafe { (*self.0.get()).qp_type },
            dest_qp_num: attr.dest_qp_num,
        })
    }

    /// Moves it to the Error state, in which the adapter discards what arrives (process context).
    pub(crate) fn set_error(&self) -> Result {
        let mut attr: bindings::ib_qp_attr = pin_init::zeroed();
        attr.qp_state = bindings::ib_qp_state_IB_QPS_ERR;
        let mask = bindings::ib_qp_attr_mask_IB_QP_STATE;
        // SAFETY: Valid, and not destroyed meanwhile.
        to_result(unsafe { bindings::ib_modify_qp(self.0.get(), &mut attr, mask as c_int) })
    }
}
