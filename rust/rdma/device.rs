// SPDX-License-Identifier: GPL-2.0

//! RDMA devices.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::{
    ops::{
        Deref,
        RangeInclusive, //
    },
    ptr::NonNull,
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        aref::{
            ARef,
            AlwaysRefCounted, //
        },
        atomic::{
            ordering,
            Acquire,
            Atomic,
            Relaxed, //
        },
        Arc,
    },
    types::Opaque,
};

use super::{
    bindings,
    gid::{
        Gid,
        GidAttr,
        GidType, //
    },
    wait,
};

/// An RDMA device, registered or already gone: its memory, its capabilities, its cached tables.
///
/// What needs the driver is in [`LiveDevice`].
#[repr(transparent)]
pub(crate) struct IbDevice(Opaque<bindings::ib_device>);

// SAFETY: A reference counted C object that may be used and freed in any thread.
unsafe impl Send for IbDevice {}
// SAFETY: Its functions lock what they need.
unsafe impl Sync for IbDevice {}

// SAFETY: Every `ib_device` embeds a `struct device`, whose reference count keeps the memory.
unsafe impl AlwaysRefCounted for IbDevice {
    fn inc_ref(&self) {
        // SAFETY: A reference implies a valid device with a count above zero.
        unsafe { bindings::ib_cm_helper_get_device(self.as_ptr()) }
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller gives up a reference.
        unsafe { bindings::ib_cm_helper_put_device(obj.as_ptr().cast()) }
    }
}

/// A reference on a device's memory.
pub(crate) type DeviceRef = ARef<IbDevice>;

impl PartialEq for IbDevice {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

impl Eq for IbDevice {}

impl IbDevice {
    /// # Safety
    ///
    /// `device` is valid, and a reference on it is held, for `'a`.
    pub(crate) unsafe fn from_ptr<'a>(device: *mut bindings::ib_device) -> &'a Self {
        // SAFETY: By the contract of this function; the type is transparent.
        unsafe { &*device.cast() }
    }

    /// The C object. Equal pointers are the same device while a reference is held.
    pub(crate) fn as_ptr(&self) -> *mut bindings::ib_device {
        self.0.get()
    }

    /// The GUID of the node, in host order.
    pub(crate) fn node_guid(&self) -> u64 {
        // SAFETY: Valid, and set before the device is registered.
        u64::from_be(unsafe { (*self.as_ptr()).node_guid })
    }

    /// The numbers of the ports.
    pub(crate) fn ports(&self) -> RangeInclusive<u32> {
        // SAFETY: Valid.
        let (start, end) = unsafe {
            (
                bindings::ib_cm_helper_start_port(self.as_ptr()),
                bindings::ib_cm_helper_end_port(self.as_ptr()),
            )
        };
        start..=end
    }

    /// Whether connections are managed by this protocol at `port`.
    pub(crate) fn cap_ib_cm(&self, port: u32) -> bool {
        // SAFETY: Valid; the function checks the port.
        unsafe { bindings::ib_cm_helper_cap_ib_cm(self.as_ptr(), port) }
    }

    /// Whether `port` takes address handles of Omni-Path.
    pub(crate) fn cap_opa_ah(&self, port: u32) -> bool {
        // SAFETY: Valid; the function checks the port.
        unsafe { bindings::ib_cm_helper_cap_opa_ah(self.as_ptr(), port) }
    }

    /// Whether `port` is RDMA over Converged Ethernet.
    pub(crate) fn is_roce(&self, port: u32) -> bool {
        // SAFETY: Valid; the function checks the port.
        unsafe { bindings::ib_cm_helper_protocol_roce(self.as_ptr(), port) }
    }

    /// How long the device takes to answer, as an exponent (IBA 12.7.34, CA ack delay).
    pub(crate) fn local_ca_ack_delay(&self) -> u8 {
        // SAFETY: Valid, and set before the device is registered.
        unsafe { (*self.as_ptr()).attrs.local_ca_ack_delay }
    }

    /// `IB_DEVICE_*` flags.
    pub(crate) fn device_cap_flags(&self) -> u64 {
        // SAFETY: Valid, and set before the device is registered.
        unsafe { (*self.as_ptr()).attrs.device_cap_flags }
    }

    /// The GID at `index` of `port`'s table. Any context.
    pub(crate) fn query_gid(&self, port: u32, index: i32) -> Result<Gid> {
        let mut gid = bindings::ib_gid { raw: [0; 16] };
        // SAFETY: Valid; the function checks port and index, and writes one GID.
        to_result(unsafe { bindings::rdma_query_gid(self.as_ptr(), port, index, &mut gid) })?;
        // SAFETY: Any bytes are a GID.
        Ok(unsafe { gid.raw })
    }

    /// Where `gid` is found in the tables of the device's ports. Any context.
    pub(crate) fn find_gid(&self, gid: &Gid, gid_type: GidType) -> Result<ARef<GidAttr>> {
        let gid = bindings::ib_gid { raw: *gid };
        // SAFETY: Valid; a null network device means any. The function returns an error pointer or
        // an entry with a reference on it.
        unsafe {
            GidAttr::from_find(bindings::rdma_find_gid(
                self.as_ptr(),
                &gid,
                gid_type.to_c(),
                core::ptr::null_mut(),
            ))
        }
    }

    /// The index of `pkey` (host order) in `port`'s table. Any context.
    pub(crate) fn find_cached_pkey(&self, port: u32, pkey: u16) -> Result<u16> {
        let mut index = 0;
        // SAFETY: Valid; the function checks the port and writes one index.
        to_result(unsafe { bindings::ib_find_cached_pkey(self.as_ptr(), port, pkey, &mut index) })?;
        Ok(index)
    }

    /// The P_Key (host order) at `index` of `port`'s table. Any context.
    pub(crate) fn cached_pkey(&self, port: u32, index: u16) -> Result<u16> {
        let mut pkey = 0;
        // SAFETY: Valid; the function checks port and index, and writes one P_Key.
        to_result(unsafe {
            bindings::ib_get_cached_pkey(self.as_ptr(), port, index.into(), &mut pkey)
        })?;
        Ok(pkey)
    }
}

/// Counts what must be gone before a device may go.
pub(super) struct Tally(Atomic<u32>);

impl Tally {
    pub(super) fn new() -> Self {
        Self(Atomic::new(0))
    }

    pub(super) fn wait(&self) {
        wait::wait_until(&self.0, || self.0.load(Acquire) == 0);
    }
}

/// Keeps a device registered: `remove` of the client ends when the last one is dropped.
pub(super) struct Lease(Arc<Tally>);

impl Lease {
    fn new(tally: &Arc<Tally>) -> Self {
        tally.0.add(1, Relaxed);
        Self(tally.clone())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.0 .0.fetch_sub(1, ordering::Full) == 1 {
            wait::wake(&self.0 .0);
        }
    }
}

/// A device that is registered with this client: between the start of `add` and the end of
/// `remove`.
///
/// What is made from it ([`Agent`](super::mad::Agent), [`CounterGroups`](super::sysfs)) keeps it
/// so: `remove` does not end before all of that is dropped.
pub(crate) struct LiveDevice<'a> {
    device: &'a IbDevice,
    tally: &'a Arc<Tally>,
}

impl<'a> LiveDevice<'a> {
    /// # Safety
    ///
    /// The device stays registered during `'a`, and after it until `tally` is zero.
    pub(super) unsafe fn new(device: &'a IbDevice, tally: &'a Arc<Tally>) -> Self {
        Self { device, tally }
    }

    pub(super) fn lease(&self) -> Lease {
        Lease::new(self.tally)
    }

    /// Tells the subnet whether a connection manager listens at `port` (process context).
    pub(crate) fn advertise_cm(&self, port: u32, present: bool) -> Result {
        let mut modify = bindings::ib_port_modify {
            set_port_cap_mask: 0,
            clr_port_cap_mask: 0,
            init_type: 0,
        };
        let capability = bindings::ib_port_capability_mask_bits_IB_PORT_CM_SUP;
        if present {
            modify.set_port_cap_mask = capability;
        } else {
            modify.clr_port_cap_mask = capability;
        }
        // SAFETY: Registered; the function checks the port.
        to_result(unsafe { bindings::ib_modify_port(self.as_ptr(), port, 0, &mut modify) })
    }
}

impl Deref for LiveDevice<'_> {
    type Target = IbDevice;

    fn deref(&self) -> &IbDevice {
        self.device
    }
}
