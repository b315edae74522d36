// SPDX-License-Identifier: GPL-2.0

//! Received management datagrams.
//!
//! C header: [`include/rdma/ib_mad.h`](srctree/include/rdma/ib_mad.h)

use core::ptr::NonNull;

use super::{
    bindings,
    mad::{
        attr_id,
        Mad, //
    },
};

/// A received MAD. Dropping it frees it; any context. Does not depend on its agent or device.
///
/// # Invariants
///
/// The pointer is a received MAD that belongs to this value, of at least 256 bytes.
pub(crate) struct RecvMad(NonNull<bindings::ib_mad_recv_wc>);

// SAFETY: Plain memory that may be read and freed in any thread.
unsafe impl Send for RecvMad {}
// SAFETY: Plain memory.
unsafe impl Sync for RecvMad {}

impl RecvMad {
    /// # Safety
    ///
    /// `mad` comes from the MAD layer, and the caller hands it over.
    pub(super) unsafe fn from_raw(mad: *mut bindings::ib_mad_recv_wc) -> Option<Self> {
        // INVARIANT: The MAD layer's buffers hold a whole MAD whatever arrived.
        NonNull::new(mad).map(Self)
    }

    /// The C object.
    pub(crate) fn raw(&self) -> *const bindings::ib_mad_recv_wc {
        self.0.as_ptr()
    }

    fn wc(&self) -> &bindings::ib_wc {
        // SAFETY: By the type invariant; the completion is part of it.
        unsafe { &*(*self.raw()).wc }
    }

    /// The message.
    pub(crate) fn mad(&self) -> &Mad {
        // SAFETY: By the type invariant.
        unsafe { &*(*self.raw()).recv_buf.__bindgen_anon_1.mad.cast() }
    }

    /// The message.
    pub(crate) fn mad_mut(&mut self) -> &mut Mad {
        // SAFETY: By the type invariant.
        unsafe { &mut *(*self.raw()).recv_buf.__bindgen_anon_1.mad.cast() }
    }

    /// The attribute ID.
    pub(crate) fn attr_id(&self) -> u16 {
        attr_id(self.mad())
    }

    /// The sender's LID.
    pub(crate) fn slid(&self) -> u32 {
        self.wc().slid
    }

    /// The service level.
    pub(crate) fn sl(&self) -> u8 {
        self.wc().sl
    }

    /// Which of the port's LIDs it was sent to.
    pub(crate) fn dlid_path_bits(&self) -> u8 {
        self.wc().dlid_path_bits
    }

    /// The index of its P_Key.
    pub(crate) fn pkey_index(&self) -> u16 {
        self.wc().pkey_index
    }

    /// Made of the sender's LID and GID, and not mixed: equal for all MADs of one sender to one port.
    pub(crate) fn source_key(&self) -> u64 {
        // SAFETY: By the type invariant; the function reads the GRH only if there is one.
        unsafe { bindings::ib_cm_helper_mad_source(self.raw()) }
    }
}

impl Drop for RecvMad {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::ib_free_recv_mad(self.0.as_ptr()) }
    }
}
