// SPDX-License-Identifier: GPL-2.0
//! Devices: one, whose GID everybody has.

use kernel::prelude::*;

use super::bindings;
use super::path::GidType;

pub(crate) struct IbDevice(u8);

impl IbDevice {
    pub(crate) fn new() -> Self {
        IbDevice(0)
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::ib_device {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    pub(crate) fn find_gid(&self, _gid: &[u8; 16], _kind: GidType) -> Result<GidAttr> {
        Ok(GidAttr {
            device: core::ptr::from_ref(self),
        })
    }

    pub(crate) fn find_cached_pkey(&self, _port: u32, _pkey: u16) -> Result<u16> {
        Ok(0)
    }

    pub(crate) fn cached_pkey(&self, _port: u32, _index: u16) -> Result<u16> {
        Ok(0)
    }

    pub(crate) fn query_gid(&self, _port: u32, _index: u32) -> Result<[u8; 16]> {
        Ok([0; 16])
    }

    pub(crate) fn cap_opa_ah(&self, _port: u32) -> bool {
        false
    }

    pub(crate) fn is_roce(&self, _port: u32) -> bool {
        true
    }
}

pub(crate) struct GidAttr {
    device: *const IbDevice,
}

impl GidAttr {
    pub(crate) fn device(&self) -> &IbDevice {
        // SAFETY: The device is there until the model ends.
        unsafe { &*self.device }
    }

    pub(crate) fn port_num(&self) -> u32 {
        1
    }

    pub(crate) fn gid_type(&self) -> GidType {
        GidType
    }
}
