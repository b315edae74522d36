// SPDX-License-Identifier: GPL-2.0

//! Address handles, shared by all sends of a port to one address.
//!
//! To make a handle costs a sender more than the rest of a message, and peers that connect or part
//! exchange several. So a port keeps those that it has used lately. It keeps them for a few seconds
//! only: each holds the entry of a GID, which may have to go.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::ptr::NonNull;

use kernel::{
    new_delayed_work,
    prelude::*,
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::{
        impl_has_delayed_work,
        DelayedWork,
        WorkItem, //
    },
};

use super::{
    bindings,
    clock::ticks,
    delayed,
    spinlock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
    workqueue::system_dfl,
};

/// Parts of the table that have a lock of their own.
const SHARDS: usize = 64;

/// Handles of a shard. On RoCE the address has a flow label, which each connection has its own of:
/// so this is a matter of how many connections a port makes at the same time.
const SLOTS: usize = 64;

/// How long one is kept after its last use, in milliseconds.
const KEEP_MS: u32 = 4000;

/// A handle. Dropping it destroys it, without sleeping.
///
/// # Invariants
///
/// The pointer is an address handle that belongs to this value. Its protection domain is valid: an
/// agent of the same port lives, or a send buffer that holds one.
pub(super) struct Handle {
    ah: NonNull<bindings::ib_ah>,
    /// What it was made for. Only compared: the handle holds the GID entry that this names.
    attr: bindings::rdma_ah_attr,
}

// SAFETY: Address handles may be used and destroyed in any thread.
unsafe impl Send for Handle {}
// SAFETY: As above; sending by one does not change it.
unsafe impl Sync for Handle {}

impl Handle {
    /// # Safety
    ///
    /// `ah` is a handle for `attr` that the caller gives up, and the value is dropped while its
    /// protection domain is valid.
    pub(super) unsafe fn from_raw(
        ah: NonNull<bindings::ib_ah>,
        attr: &bindings::rdma_ah_attr,
    ) -> Self {
        // INVARIANT: By the contract of this function.
        Handle { ah, attr: *attr }
    }

    /// The C object.
    pub(super) fn as_ptr(&self) -> *mut bindings::ib_ah {
        self.ah.as_ptr()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; a kernel handle has no user data. One that an adapter
        // cannot destroy is lost, as in C.
        let _ =
            unsafe { bindings::rdma_destroy_ah_user(self.ah.as_ptr(), 0, core::ptr::null_mut()) };
    }
}

/// A handle that is kept.
struct Kept {
    handle: Arc<Handle>,
    /// When it was used last, in ticks.
    used: u64,
}

struct Shard {
    /// A place for each address, which it may have to share.
    slots: [Option<Kept>; SLOTS],
    /// The sweep will look here.
    is_swept: bool,
}

/// The handles that a port keeps.
#[pin_data]
pub(crate) struct Handles {
    #[pin]
    shards: [SpinLockIrq<Shard>; SHARDS],
    #[pin]
    sweep: DelayedWork<Handles>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Handles { self.sweep }
}

impl WorkItem for Handles {
    type Pointer = Arc<Handles>;

    fn run(handles: Arc<Handles>) {
        let (now, keep) = (ticks(), msecs_to_jiffies(KEEP_MS));
        if handles.drop_unused(|kept| now.wrapping_sub(kept.used) < keep as u64) {
            let _ = system_dfl().enqueue_delayed(handles, keep);
        }
    }
}

impl Handles {
    /// None yet.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Handles {
                shards <- pin_init::pin_init_array_from_fn(|_| {
                    let empty = Shard { slots: [const { None }; SLOTS], is_swept: false };
                    new_spinlock_irq!(empty, "ib_cm handles")
                }),
                sweep <- new_delayed_work!("ib_cm handles"),
            }),
            GFP_KERNEL,
        )
    }

    /// The handle for an address, if there is one. Any context.
    pub(super) fn find(&self, attr: &bindings::rdma_ah_attr) -> Option<Arc<Handle>> {
        let (shard, slot) = place(attr);
        let mut shard = self.shards[shard].lock();
        let kept = shard.slots[slot].as_mut()?;
        if !is_same(&kept.handle.attr, attr) {
            return None;
        }
        kept.used = ticks();
        Some(kept.handle.clone())
    }

    /// Keeps a handle. Any context.
    pub(super) fn keep(self: &Arc<Self>, handle: &Arc<Handle>) {
        let (shard, slot) = place(&handle.attr);
        let kept = Kept {
            handle: handle.clone(),
            used: ticks(),
        };
        let mut shard = self.shards[shard].lock();
        let old = shard.slots[slot].replace(kept);
        let is_swept = core::mem::replace(&mut shard.is_swept, true);
        drop(shard);
        // What was there before is destroyed with the lock released.
        drop(old);
        if !is_swept {
            // Where that is going to happen anyway, nothing has to be done.
            let _ = system_dfl().enqueue_delayed(self.clone(), msecs_to_jiffies(KEEP_MS));
        }
    }

    /// Drops those that are not used any more. Returns whether any is left. Process context.
    fn drop_unused(&self, is_used: impl Fn(&Kept) -> bool) -> bool {
        let mut left = false;
        for shard in &self.shards {
            let mut unused = [const { None }; SLOTS];
            let mut shard = shard.lock();
            if !shard.is_swept {
                continue;
            }
            for (slot, unused) in shard.slots.iter_mut().zip(&mut unused) {
                *unused = slot.take_if(|kept| !is_used(kept));
            }
            // Whoever keeps one in a shard with none left asks for the next sweep.
            shard.is_swept = shard.slots.iter().any(|slot| slot.is_some());
            left |= shard.is_swept;
            drop(shard);
            drop(unused);
        }
        left
    }

    /// Drops all; nobody may call [`keep`](Self::keep) from here on. Process context.
    pub(super) fn close(self: &Arc<Self>) {
        delayed::cancel(self);
        self.drop_unused(|_| false);
    }
}

/// The bytes of an address that depend on the kind of network, which all are set.
fn link(attr: &bindings::rdma_ah_attr) -> u64 {
    let link = attr.__bindgen_anon_1;
    match attr.type_ {
        bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE => {
            // SAFETY: The kind that is set.
            let mac = unsafe { link.roce.dmac };
            u64::from_be_bytes([0, 0, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]])
        }
        bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_OPA => {
            // SAFETY: The kind that is set.
            let opa = unsafe { link.opa };
            u64::from(opa.dlid) | u64::from(opa.src_path_bits) << 32 | u64::from(opa.make_grd) << 40
        }
        _ => {
            // SAFETY: The kind that is set, or none, and then all is zero.
            let ib = unsafe { link.ib };
            u64::from(ib.dlid) | u64::from(ib.src_path_bits) << 32
        }
    }
}

/// The peer's GID as two numbers, as they lie in memory.
fn dgid(attr: &bindings::rdma_ah_attr) -> (u64, u64) {
    // SAFETY: Any bytes are a GID.
    let gid = unsafe { attr.grh.dgid.global };
    (gid.subnet_prefix, gid.interface_id)
}

/// Where the handle of an address is kept: in which shard, and where in it.
fn place(attr: &bindings::rdma_ah_attr) -> (usize, usize) {
    let (prefix, id) = dgid(attr);
    let route = prefix ^ id ^ u64::from(attr.grh.flow_label) << 40;
    let mixed = (route ^ link(attr)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The high bits depend on all of them.
    let place = (mixed >> 48) as usize;
    (place % SHARDS, place / SHARDS % SLOTS)
}

/// Whether one handle is right for both.
fn is_same(one: &bindings::rdma_ah_attr, other: &bindings::rdma_ah_attr) -> bool {
    let route = |attr: &bindings::rdma_ah_attr| {
        let grh = attr.grh;
        (
            (dgid(attr), grh.sgid_attr, grh.flow_label),
            (grh.sgid_index, grh.hop_limit, grh.traffic_class),
        )
    };
    let port = |attr: &bindings::rdma_ah_attr| {
        (
            (attr.type_, attr.port_num, attr.ah_flags),
            (attr.sl, attr.static_rate, link(attr)),
        )
    };
    port(one) == port(other) && route(one) == route(other)
}
