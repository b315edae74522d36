// SPDX-License-Identifier: GPL-2.0

//! GIDs and entries of a port's GID table.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::ptr::NonNull;

use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::aref::{
        ARef,
        AlwaysRefCounted, //
    },
    types::Opaque,
};

use super::{
    bindings,
    device::IbDevice, //
};

/// A global identifier as it is on the wire.
pub(crate) type Gid = [u8; 16];

/// `enum ib_gid_type`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GidType {
    /// InfiniBand.
    Ib,
    /// RoCE, version 1.
    RoceV1,
    /// RoCE, version 2: over UDP.
    RoceV2,
}

impl GidType {
    pub(super) fn from_c(gid_type: bindings::ib_gid_type) -> Self {
        match gid_type {
            bindings::ib_gid_type_IB_GID_TYPE_ROCE => Self::RoceV1,
            bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP => Self::RoceV2,
            _ => Self::Ib,
        }
    }

    pub(super) fn to_c(self) -> bindings::ib_gid_type {
        match self {
            Self::Ib => bindings::ib_gid_type_IB_GID_TYPE_IB,
            Self::RoceV1 => bindings::ib_gid_type_IB_GID_TYPE_ROCE,
            Self::RoceV2 => bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP,
        }
    }
}

/// An entry of a port's GID table. A reference keeps the entry and the memory of its device.
///
/// References should be dropped before the device is unregistered: `ib_core` reports those that
/// are left.
#[repr(transparent)]
pub(crate) struct GidAttr(Opaque<bindings::ib_gid_attr>);

// SAFETY: A reference counted C object that may be used and freed in any thread.
unsafe impl Send for GidAttr {}
// SAFETY: Its fields do not change while it is in use.
unsafe impl Sync for GidAttr {}

// SAFETY: Every `ib_gid_attr` outside ib_core is part of a reference counted table entry.
unsafe impl AlwaysRefCounted for GidAttr {
    fn inc_ref(&self) {
        self.device().inc_ref();
        // SAFETY: A reference implies an entry with a count above zero.
        unsafe { bindings::rdma_hold_gid_attr(self.as_ptr()) }
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller has a reference on the entry and with it on the device.
        let device = NonNull::from(unsafe { obj.as_ref() }.device());
        // SAFETY: The caller gives up the reference.
        unsafe { bindings::rdma_put_gid_attr(obj.as_ptr().cast()) };
        // SAFETY: As taken in `inc_ref`.
        unsafe { IbDevice::dec_ref(device) };
    }
}

impl GidAttr {
    /// An entry that a consumer passed, or `None` for null.
    ///
    /// # Safety
    ///
    /// `attr` is null, or a table entry on which a reference is held for `'a`.
    pub(crate) unsafe fn from_ptr<'a>(attr: *const bindings::ib_gid_attr) -> Option<&'a Self> {
        // SAFETY: By the contract of this function; the type is transparent.
        unsafe { attr.cast::<Self>().as_ref() }
    }

    /// What a search function returned.
    ///
    /// # Safety
    ///
    /// `attr` is an error pointer, or an entry with a reference that the caller hands over and
    /// whose device is valid.
    pub(super) unsafe fn from_find(attr: *const bindings::ib_gid_attr) -> Result<ARef<Self>> {
        let attr = NonNull::new(from_err_ptr(attr.cast_mut())?.cast::<Self>()).ok_or(ENOENT)?;
        // SAFETY: By the contract of this function.
        unsafe { attr.as_ref() }.device().inc_ref();
        // SAFETY: The entry's count came with the pointer, the device's is taken above.
        Ok(unsafe { ARef::from_raw(attr) })
    }

    /// The C object.
    pub(crate) fn as_ptr(&self) -> *const bindings::ib_gid_attr {
        self.0.get()
    }

    /// The device in whose table this is.
    pub(crate) fn device(&self) -> &IbDevice {
        // SAFETY: Never changes. The device outlives the entries of its tables.
        unsafe { IbDevice::from_ptr((*self.as_ptr()).device) }
    }

    /// The port in whose table this is.
    pub(crate) fn port_num(&self) -> u32 {
        // SAFETY: Never changes.
        unsafe { (*self.as_ptr()).port_num }
    }

    /// The type of the GID.
    pub(crate) fn gid_type(&self) -> GidType {
        // SAFETY: Never changes.
        GidType::from_c(unsafe { (*self.as_ptr()).gid_type })
    }
}
