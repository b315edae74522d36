// SPDX-License-Identifier: GPL-2.0
//! What the whole module shares: the indices, the list of adapters, the work queue.

use core::sync::atomic::{
    AtomicU32,
    AtomicU64,
    Ordering, //
};

use kernel::{
    prelude::*,
    static_lock_class,
    sync::Arc, //
};

use super::debug::History;
use super::hold::HoldInProgress;
use super::id::Id;
use super::index::{
    mix,
    Index,
    Key, //
};
use super::port::{
    Adapter,
    Port, //
};
use super::replay::Replays;
use crate::rdma::{
    clock::random_u32,
    gid::GidAttr,
    path::PathRec,
    spinlock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
    workqueue::Workqueue, //
};

/// Handlers that may sleep at the same time before protocol work has to wait for one.
const MAX_ACTIVE: i32 = 2048;

pub(crate) use ib_cm_proto::lookup::{
    RemoteId,
    RemoteQpn, //
};

/// `IB_CM_ASSIGN_SERVICE_ID`: the first of the service IDs that the manager hands out itself.
pub(crate) const ASSIGN_SERVICE_ID: u64 = 0x0200_0000_0000_0000;

/// `IB_SERVICE_ID_AGN_MASK`.
pub(crate) const SERVICE_ID_AGN_MASK: u64 = 0xff00_0000_0000_0000;

/// Our communication ID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LocalId(pub(crate) u32);

impl Key for LocalId {
    fn hash(&self, seed: u64) -> u64 {
        mix(u64::from(self.0) ^ seed)
    }
}

impl Key for RemoteId {
    fn hash(&self, seed: u64) -> u64 {
        mix(mix(self.ca_guid ^ seed) ^ u64::from(self.id))
    }
}

impl Key for RemoteQpn {
    fn hash(&self, seed: u64) -> u64 {
        mix(mix(self.ca_guid ^ seed) ^ u64::from(self.qpn))
    }
}

/// Our queue pair; the local ID tells the connections of one queue pair apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LocalQpn {
    pub(crate) device: usize,
    pub(crate) qpn: u32,
    pub(crate) local_id: u32,
}

impl Key for LocalQpn {
    // All connections of one queue pair have the same hash, so that they can be found by it.
    fn hash(&self, seed: u64) -> u64 {
        mix(mix(self.device as u64 ^ seed) ^ u64::from(self.qpn))
    }
}

/// A service of a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Service {
    pub(crate) device: usize,
    pub(crate) service_id: u64,
}

impl Key for Service {
    fn hash(&self, seed: u64) -> u64 {
        mix(mix(self.device as u64 ^ seed) ^ self.service_id)
    }
}

/// A SIDR request and its source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SidrRequest {
    pub(crate) request_id: u32,
    pub(crate) slid: u32,
    pub(crate) sgid: [u8; 16],
}

impl Key for SidrRequest {
    fn hash(&self, seed: u64) -> u64 {
        let gid = u128::from_be_bytes(self.sgid);
        let gid = mix(mix(gid as u64 ^ seed) ^ (gid >> 64) as u64);
        mix(gid ^ u64::from(self.request_id) ^ (u64::from(self.slid) << 32))
    }
}

/// An index of identifiers.
pub(crate) type Ids<K> = Index<K, Arc<Id>>;

/// What the whole module shares.
#[pin_data]
pub(crate) struct Manager {
    // First, so that it is gone before what work may touch.
    work: Workqueue,
    /// Every identifier that can receive connection messages.
    #[pin]
    pub(crate) local_ids: Ids<LocalId>,
    /// Duplicates of REQ and REP; REJ "timeout".
    #[pin]
    pub(crate) remote_ids: Ids<RemoteId>,
    /// Stale connections.
    #[pin]
    pub(crate) remote_qpns: Ids<RemoteQpn>,
    /// Queue pairs that must not go away yet.
    #[pin]
    pub(crate) local_qpns: Ids<LocalQpn>,
    /// Listeners.
    #[pin]
    pub(crate) services: Ids<Service>,
    /// Duplicates of SIDR_REQ.
    #[pin]
    pub(crate) sidr_requests: Ids<SidrRequest>,
    #[pin]
    adapters: SpinLockIrq<KVec<Arc<Adapter>>>,
    next_local_id: AtomicU32,
    next_service_id: AtomicU64,
    /// Identifiers that exist.
    pub(crate) live: AtomicU32,
    pub(crate) holds: Holds,
    /// The holds in progress.
    #[pin]
    pub(crate) held: Index<LocalId, HoldInProgress>,
    #[pin]
    pub(crate) history: History,
    #[pin]
    pub(crate) replays: Replays,
}

/// How many holds there were.
pub(crate) struct Holds {
    /// Begun.
    pub(crate) taken: AtomicU64,
    /// Ended as they should, with TimeWait.
    pub(crate) released: AtomicU64,
    /// Given up before.
    pub(crate) expired: AtomicU64,
}

impl Manager {
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            work: Workqueue::new(c"ib_cm", MAX_ACTIVE)?,
            local_ids <- Index::new(c"ib_cm local ID", static_lock_class!()),
            remote_ids <- Index::new(c"ib_cm remote ID", static_lock_class!()),
            remote_qpns <- Index::new(c"ib_cm remote QPN", static_lock_class!()),
            local_qpns <- Index::new(c"ib_cm local QPN", static_lock_class!()),
            services <- Index::new(c"ib_cm service", static_lock_class!()),
            sidr_requests <- Index::new(c"ib_cm SIDR", static_lock_class!()),
            adapters <- new_spinlock_irq!(KVec::new(), "ib_cm adapters"),
            // A late message of an earlier life of the module should meet no ID of this one.
            next_local_id: AtomicU32::new(random_u32()),
            next_service_id: AtomicU64::new(ASSIGN_SERVICE_ID),
            live: AtomicU32::new(0),
            holds: Holds {
                taken: AtomicU64::new(0),
                released: AtomicU64::new(0),
                expired: AtomicU64::new(0),
            },
            held <- Index::new(c"ib_cm held", static_lock_class!()),
            history <- History::new(),
            replays <- Replays::new(),
        }? Error)
    }

    /// The queue that all work of the module runs on.
    pub(crate) fn work(&self) -> &Workqueue {
        &self.work
    }

    /// A local communication ID that may be in use; never 0.
    pub(crate) fn next_local_id(&self) -> u32 {
        loop {
            let id = self.next_local_id.fetch_add(1, Ordering::Relaxed);
            if id != 0 {
                return id;
            }
        }
    }

    /// A service ID for a listener that leaves the choice to us.
    pub(crate) fn next_service_id(&self) -> u64 {
        self.next_service_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes an adapter known.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn add_adapter(&self, adapter: Arc<Adapter>) -> Result {
        // Room is made outside the lock, where allocation may sleep.
        loop {
            let have = self.adapters.lock().len();
            let mut larger = KVec::with_capacity(have.saturating_add(1), GFP_KERNEL)?;
            let mut adapters = self.adapters.lock();
            if adapters.len() != have {
                continue;
            }
            for known in adapters.iter() {
                larger
                    .push_within_capacity(known.clone())
                    .map_err(|_| ENOMEM)?;
            }
            larger.push_within_capacity(adapter).map_err(|_| ENOMEM)?;
            let smaller = core::mem::replace(&mut *adapters, larger);
            drop(adapters);
            drop(smaller);
            return Ok(());
        }
    }

    /// Forgets an adapter.
    pub(crate) fn remove_adapter(&self, adapter: &Arc<Adapter>) {
        let mut adapters = self.adapters.lock();
        let at = adapters
            .iter()
            .position(|known| Arc::ptr_eq(known, adapter));
        let removed = at.map(|at| adapters.remove(at));
        drop(adapters);
        drop(removed);
    }

    /// The adapter of an `ib_device`, if it is still there.
    pub(crate) fn adapter(&self, device: usize) -> Option<Arc<Adapter>> {
        let adapters = self.adapters.lock();
        adapters
            .iter()
            .find(|adapter| adapter.device.key() == device)
            .cloned()
    }

    /// The port that a path leaves by: that of its GID attribute, else that of any device which
    /// has its source GID (alternate paths, and IB paths without a GRH, come without attribute).
    pub(crate) fn port_of_path(&self, path: &PathRec, attr: Option<&GidAttr>) -> Option<Arc<Port>> {
        if let Some(attr) = attr {
            let device = attr.device().as_ptr() as usize;
            let adapters = self.adapters.lock();
            return adapters
                .iter()
                .find(|adapter| adapter.device.key() == device)?
                .port(attr.port_num());
        }
        let adapters = self.adapters.lock();
        for adapter in adapters.iter() {
            if let Ok(attr) = adapter.device.ib().find_gid(&path.sgid(), path.gid_type()) {
                let port = adapter.port(attr.port_num());
                drop(adapters);
                // Putting a GID attribute may sleep no more than finding it: outside the lock.
                drop(attr);
                return port;
            }
        }
        None
    }
}
