// SPDX-License-Identifier: GPL-2.0

//! Addresses of a peer: attributes, and the handles that an adapter makes of them.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::{
        aref::AlwaysRefCounted,
        Arc,
        UniqueArc, //
    },
};

use super::{
    bindings,
    device::IbDevice,
    gid::{
        Gid,
        GidAttr, //
    },
    handles::Handle,
    mad::{
        Agent,
        MadHandler,
        RecvMad, //
    },
    path::PathRec,
};

/// `enum rdma_ah_attr_type`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AhType {
    /// Nothing set.
    Undefined,
    /// InfiniBand.
    Ib,
    /// RoCE.
    Roce,
    /// Omni-Path.
    Opa,
}

/// The address of a peer as seen from one port, `struct rdma_ah_attr`.
///
/// With the local GID entry that it names comes a reference on that and on the device's memory.
/// As with [`GidAttr`], none should be left when the device is unregistered.
///
/// # Invariants
///
/// `attr.grh.sgid_attr` is null, or this value owns a reference on the entry and on the memory of
/// the entry's device.
pub(crate) struct AhAttr {
    attr: bindings::rdma_ah_attr,
}

// SAFETY: Plain data and a reference that may be used and put in any thread.
unsafe impl Send for AhAttr {}
// SAFETY: As above.
unsafe impl Sync for AhAttr {}

impl AhAttr {
    /// No address.
    pub(crate) fn empty() -> Self {
        // INVARIANT: Null.
        Self {
            attr: pin_init::zeroed(),
        }
    }

    /// Takes over what an `ib_init_ah_attr_from_*` function has filled in.
    ///
    /// # Safety
    ///
    /// `attr` holds a reference on the GID entry it names, if any, and the entry's device is
    /// valid.
    unsafe fn from_filled(attr: bindings::rdma_ah_attr) -> Self {
        // SAFETY: By the contract of this function the entry is valid.
        if let Some(gid) = unsafe { GidAttr::from_ptr(attr.grh.sgid_attr) } {
            gid.device().inc_ref();
        }
        // INVARIANT: The entry's reference came along, the device's was taken.
        Self { attr }
    }

    /// The address of the sender of `mad`, which came in at the port of `agent`.
    ///
    /// Process context: on RoCE it may take a second to find the peer's MAC address.
    pub(crate) fn from_mad<H: MadHandler>(agent: &Agent<H>, mad: &RecvMad) -> Result<Self> {
        let mut attr = pin_init::zeroed();
        let wc = mad.raw();
        // SAFETY: The agent keeps device and port, the MAD its completion and the place of its
        // GRH, which is read only if the completion says that there is one.
        to_result(unsafe {
            bindings::ib_init_ah_attr_from_wc(
                agent.device().as_ptr(),
                agent.port_num(),
                (*wc).wc,
                (*wc).recv_buf.grh,
                &mut attr,
            )
        })?;
        // SAFETY: The function succeeded: what it set it holds.
        Ok(unsafe { Self::from_filled(attr) })
    }

    /// The address at the far end of `path`, seen from the port of `agent`.
    ///
    /// On RoCE this resolves the route once and notes that in `path`; process context then.
    pub(crate) fn from_path<H: MadHandler>(
        agent: &Agent<H>,
        path: &mut PathRec,
        sgid_attr: Option<&GidAttr>,
    ) -> Result<Self> {
        if sgid_attr.is_some_and(|gid| gid.device() != agent.device()) {
            return Err(EINVAL);
        }
        let mut attr = pin_init::zeroed();
        // SAFETY: The agent keeps the device registered; the GID entry is null or valid.
        let filled = to_result(unsafe {
            bindings::ib_init_ah_attr_from_path(
                agent.device().as_ptr(),
                agent.port_num(),
                path.raw_mut(),
                &mut attr,
                sgid_attr.map_or(core::ptr::null(), GidAttr::as_ptr),
            )
        });
        // A failure comes before the last step, which takes the reference.
        filled?;
        // SAFETY: The function succeeded: what it set it holds.
        Ok(unsafe { Self::from_filled(attr) })
    }

    /// A second one, with references of its own. Any context.
    pub(crate) fn copy(&self) -> Self {
        let mut attr = pin_init::zeroed();
        // SAFETY: By the type invariant a GID entry in `self` is valid.
        unsafe { bindings::rdma_copy_ah_attr(&mut attr, &self.attr) };
        // SAFETY: The copy took a reference on the entry, and `self` keeps the device.
        unsafe { Self::from_filled(attr) }
    }

    /// Writes the address for a consumer, who gets no reference: valid as long as `self`.
    pub(crate) fn write_unreferenced(&self, to: &mut bindings::rdma_ah_attr) {
        *to = self.attr;
    }

    /// As [`write_unreferenced`](Self::write_unreferenced) with another destination LID.
    pub(crate) fn write_with_ib_dlid(&self, to: &mut bindings::rdma_ah_attr, dlid: u16) {
        self.write_unreferenced(to);
        to.__bindgen_anon_1.ib.dlid = dlid;
    }

    /// The kind of network.
    pub(crate) fn ah_type(&self) -> AhType {
        match self.attr.type_ {
            bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB => AhType::Ib,
            bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE => AhType::Roce,
            bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_OPA => AhType::Opa,
            _ => AhType::Undefined,
        }
    }

    /// The destination LID; 0 on RoCE and when there is no address.
    pub(crate) fn dlid(&self) -> u32 {
        // SAFETY: Reads one address attribute.
        unsafe { bindings::ib_cm_helper_ah_dlid(&self.attr) }
    }

    /// The destination MAC address on RoCE.
    pub(crate) fn dmac(&self) -> Option<[u8; 6]> {
        if self.ah_type() != AhType::Roce {
            return None;
        }
        // SAFETY: Any bytes are a MAC address.
        Some(unsafe { self.attr.__bindgen_anon_1.roce.dmac })
    }

    /// The hop limit.
    pub(crate) fn hop_limit(&self) -> u8 {
        self.attr.grh.hop_limit
    }

    /// The peer's GID; zero when packets carry no GRH.
    pub(crate) fn dgid(&self) -> Gid {
        // SAFETY: Any bytes are a GID.
        unsafe { self.attr.grh.dgid.raw }
    }

    /// The entry of the local GID.
    pub(crate) fn sgid_attr(&self) -> Option<&GidAttr> {
        // SAFETY: By the type invariant.
        unsafe { GidAttr::from_ptr(self.attr.grh.sgid_attr) }
    }

    /// The entry of the local GID, for an event; null when there is none.
    pub(crate) fn sgid_attr_ptr(&self) -> *const bindings::ib_gid_attr {
        self.attr.grh.sgid_attr
    }
}

impl Drop for AhAttr {
    fn drop(&mut self) {
        let device = self.sgid_attr().map(|gid| NonNull::from(gid.device()));
        // SAFETY: By the type invariant the reference on the entry, if any, is ours.
        unsafe { bindings::rdma_destroy_ah_attr(&mut self.attr) };
        if let Some(device) = device {
            // SAFETY: By the type invariant so is one on its device.
            unsafe { IbDevice::dec_ref(device) };
        }
    }
}

/// What an adapter needs to send to an address. Made for one agent's port.
///
/// # Invariants
///
/// The handle is of the protection domain of an agent that lives during `'a`.
pub(crate) struct AddressHandle<'a> {
    handle: Arc<Handle>,
    _agent: PhantomData<&'a ()>,
}

impl<'a> AddressHandle<'a> {
    /// A handle for `attr` that was made lately, if there is one. Any context.
    pub(crate) fn find<H: MadHandler>(agent: &'a Agent<H>, attr: &AhAttr) -> Option<Self> {
        // INVARIANT: What an agent keeps it has made.
        Some(Self {
            handle: agent.handles().find(&attr.attr)?,
            _agent: PhantomData,
        })
    }

    /// A handle for `attr`. Any context, unless `sleepable`, which some adapters do better with.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the address is none, or not one of the agent's device or port; `ENOMEM`, and
    /// what the adapter says.
    pub(crate) fn create<H: MadHandler>(
        agent: &'a Agent<H>,
        attr: &AhAttr,
        sleepable: bool,
    ) -> Result<Self> {
        if let Some(found) = Self::find(agent, attr) {
            return Ok(found);
        }
        if attr
            .sgid_attr()
            .is_some_and(|gid| gid.device() != agent.device())
            || attr.attr.port_num != agent.port_num()
        {
            return Err(EINVAL);
        }
        let (flags, gfp) = if sleepable {
            (
                bindings::rdma_create_ah_flags_RDMA_CREATE_AH_SLEEPABLE,
                GFP_KERNEL,
            )
        } else {
            (0, GFP_ATOMIC)
        };
        let memory = UniqueArc::new_uninit(gfp)?;
        // The function may fill in a GID entry for its own use, and takes it out again.
        let mut filled = attr.attr;
        // SAFETY: The agent keeps the protection domain; a GID entry in `filled` is valid.
        let ah = unsafe { bindings::rdma_create_ah(agent.pd(), &mut filled, flags) };
        let ah = NonNull::new(from_err_ptr(ah)?).ok_or(ENOMEM)?;
        // SAFETY: It is new, and goes no farther than to the agent, which drops it when it goes, and
        // to send buffers, which hold an agent of the port.
        let handle = Arc::from(memory.write(unsafe { Handle::from_raw(ah, &attr.attr) }));
        agent.handles().keep(&handle);
        // INVARIANT: Made in the agent's domain.
        Ok(Self {
            handle,
            _agent: PhantomData,
        })
    }

    /// The protection domain for which the handle was made.
    pub(super) fn pd(&self) -> *mut bindings::ib_pd {
        // SAFETY: A valid handle's never changes.
        unsafe { (*self.handle.as_ptr()).pd }
    }

    /// The handle, for one who holds an agent of the port.
    pub(super) fn into_inner(self) -> Arc<Handle> {
        self.handle
    }
}
