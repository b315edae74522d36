// SPDX-License-Identifier: GPL-2.0
//! What the lock of an identifier protects.
//!
//! It comes in two parts. One is there as long as the identifier. The other, [`Details`], is there
//! as long as somebody may be told of the connection or something may still be sent: what only
//! waits for the end of TimeWait, perhaps among a hundred thousand others, does without.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::av::Av;
use super::event::Events;
use super::id::Id;
use super::index::{
    Index,
    Key,
    Reservation, //
};
use super::manager::{
    LocalQpn,
    RemoteId,
    RemoteQpn,
    SidrRequest, //
};
use super::memory::Reserved;
use super::port::Port;
use super::send::Record;
use super::timers::Timer;
use ib_cm_proto::connection::Connection;
use ib_cm_proto::state::State;

/// Memory for the place of an identifier in an index, while it is not in use.
pub(crate) type Spare<K> = Option<Reservation<K, Arc<Id>>>;

/// The place of an identifier in one index: whether it is there, and the memory if it is not.
pub(crate) struct Slot<'a, K> {
    entered: &'a mut bool,
    memory: &'a mut Spare<K>,
}

impl<K: Key> Slot<'_, K> {
    /// Enters an index, unless another identifier has the key: then returns that.
    pub(crate) fn enter(
        &mut self,
        index: &Index<K, Arc<Id>>,
        key: K,
        id: &Arc<Id>,
    ) -> Result<(), Arc<Id>> {
        let Some(memory) = self.memory.take() else {
            // It is there already, or never will be: nothing was set aside for it.
            return Ok(());
        };
        match index.insert(key, id.clone(), memory) {
            Ok(()) => {
                *self.entered = true;
                Ok(())
            }
            Err((memory, holder)) => {
                *self.memory = Some(memory);
                Err(holder)
            }
        }
    }

    /// As [`Slot::enter`], and does `then` with the index locked; if that fails, leaves again.
    ///
    /// # Errors
    ///
    /// Who has the key, or what `then` says.
    pub(crate) fn enter_and<E>(
        &mut self,
        index: &Index<K, Arc<Id>>,
        key: K,
        id: &Arc<Id>,
        then: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), Result<Arc<Id>, E>> {
        let mut shard = index.lock(&key);
        let memory = self.memory.take();
        let ours = memory.is_some();
        if let Some(memory) = memory {
            if let Err((memory, holder)) = shard.insert(key, id.clone(), memory) {
                *self.memory = Some(memory);
                return Err(Ok(holder));
            }
            *self.entered = true;
        }
        then().map_err(|error| {
            if ours {
                // The caller holds a reference, so this is not the last.
                *self.memory = shard.remove(&key).map(Reserved::from_used);
                *self.entered = false;
            }
            Err(error)
        })
    }
}

/// The places that a connection takes in the indices.
pub(crate) struct Slots<'a> {
    pub(crate) remote_id: Slot<'a, RemoteId>,
    pub(crate) remote_qpn: Slot<'a, RemoteQpn>,
    pub(crate) local_qpn: Slot<'a, LocalQpn>,
}

/// The indices in which an identifier is.
#[derive(Clone, Copy)]
pub(crate) struct Entered {
    pub(crate) local_id: bool,
    pub(crate) remote_id: bool,
    pub(crate) remote_qpn: bool,
    pub(crate) local_qpn: bool,
}

impl Entered {
    const NOWHERE: Self = Entered {
        local_id: false,
        remote_id: false,
        remote_qpn: false,
        local_qpn: false,
    };
}

/// Leaves an index, where `entered` says that the identifier is there.
pub(crate) fn leave<K: Key>(entered: &mut bool, index: &Index<K, Arc<Id>>, key: K) {
    if core::mem::replace(entered, false) {
        index.remove(&key);
    }
}

/// Memory for the places that a connection takes in the indices.
pub(crate) struct Spares {
    pub(crate) remote_id: Spare<RemoteId>,
    pub(crate) remote_qpn: Spare<RemoteQpn>,
    pub(crate) local_qpn: Spare<LocalQpn>,
}

impl Spares {
    const NONE: Self = Spares {
        remote_id: None,
        remote_qpn: None,
        local_qpn: None,
    };

    /// Sets memory aside.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn reserve() -> Result<Self> {
        Ok(Spares {
            remote_id: Some(Reservation::new(GFP_KERNEL)?),
            remote_qpn: Some(Reservation::new(GFP_KERNEL)?),
            local_qpn: Some(Reservation::new(GFP_KERNEL)?),
        })
    }
}

/// What an identifier needs to send and to be told.
pub(crate) struct Details {
    /// The primary path.
    pub(crate) av: Av,
    /// The alternate path.
    pub(crate) alt_av: Option<KBox<Av>>,
    /// The send in flight that waits for an answer.
    pub(crate) record: Option<Arc<Record>>,
    pub(crate) events: Events,
    /// Private data of the last RTU or DREP, to repeat it.
    pub(crate) private_data: KVec<u8>,
    pub(crate) spares: Spares,
    /// The SIDR request that this identifier stands for in the index.
    pub(crate) sidr: Option<SidrRequest>,
}

// With an identifier's own 256 bytes these make the 512 that C's takes.
#[cfg(not(CONFIG_DEBUG_SPINLOCK))]
kernel::static_assert!(core::mem::size_of::<Details>() <= 256);

impl Details {
    /// Those of no connection.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<KBox<Self>> {
        Ok(KBox::new(
            Details {
                av: Av::empty(),
                alt_av: None,
                record: None,
                events: Events::new(),
                private_data: KVec::new(),
                spares: Spares::NONE,
                sidr: None,
            },
            GFP_KERNEL,
        )?)
    }

    /// Whether nothing would be missed of an identifier in TimeWait without these.
    fn are_empty(&self) -> bool {
        self.record.is_none()
            && self.private_data.is_empty()
            && self.sidr.is_none()
            && self.events.is_empty()
            && !self.events.delivering
    }
}

/// The port of a primary path, or what is left of it.
fn port<'a>(
    details: &'a Option<KBox<Details>>,
    left: &'a Option<Arc<Port>>,
) -> Option<&'a Arc<Port>> {
    details
        .as_ref()
        .map_or(left.as_ref(), |details| details.av.port.as_ref())
}

/// What the lock of an identifier protects.
pub(crate) struct Inner {
    pub(crate) conn: Connection,
    pub(crate) timer: Timer,
    pub(crate) entered: Entered,
    /// How many consumers share a listener.
    pub(crate) shares: u32,
    /// From the first connection on, until nobody needs them any more.
    pub(crate) details: Option<KBox<Details>>,
    /// The port of a connection whose details have gone.
    port: Option<Arc<Port>>,
}

impl Inner {
    /// Of an identifier without a connection.
    pub(crate) fn new(local_id: u32) -> Self {
        Inner {
            conn: Connection::new(local_id),
            timer: Timer::None,
            entered: Entered::NOWHERE,
            shares: 0,
            details: None,
            port: None,
        }
    }

    /// The details; `fresh` ones if there are none.
    pub(crate) fn details_or<'a>(
        &'a mut self,
        fresh: &mut Option<KBox<Details>>,
    ) -> Option<&'a mut Details> {
        if self.details.is_none() {
            self.details = fresh.take();
        }
        self.details.as_deref_mut()
    }

    /// The places in the indices of a connection.
    pub(crate) fn slots(&mut self) -> Option<Slots<'_>> {
        let spares = &mut self.details.as_mut()?.spares;
        Some(Slots {
            remote_id: Slot {
                entered: &mut self.entered.remote_id,
                memory: &mut spares.remote_id,
            },
            remote_qpn: Slot {
                entered: &mut self.entered.remote_qpn,
                memory: &mut spares.remote_qpn,
            },
            local_qpn: Slot {
                entered: &mut self.entered.local_qpn,
                memory: &mut spares.local_qpn,
            },
        })
    }

    /// The primary path.
    pub(crate) fn av(&self) -> Option<&Av> {
        self.details.as_ref().map(|details| &details.av)
    }

    /// The alternate path.
    pub(crate) fn alt_av(&self) -> Option<&Av> {
        self.details.as_ref()?.alt_av.as_deref()
    }

    /// Takes new paths over, and leaves the old ones in their place.
    pub(crate) fn swap_paths(&mut self, paths: &mut Option<(Av, KBox<Av>)>) {
        let (Some(details), Some((av, alt_av))) = (&mut self.details, paths.as_mut()) else {
            return;
        };
        core::mem::swap(&mut details.av, av);
        match &mut details.alt_av {
            Some(old) => core::mem::swap(old, alt_av),
            none => *none = paths.take().map(|(_, alt_av)| alt_av),
        }
    }

    /// The port of the primary path.
    pub(crate) fn port(&self) -> Option<&Arc<Port>> {
        port(&self.details, &self.port)
    }

    /// The port of the primary path, by whose device the timer is served, and the timer.
    pub(crate) fn port_and_timer(&mut self) -> (Option<&Arc<Port>>, &mut Timer) {
        (port(&self.details, &self.port), &mut self.timer)
    }

    /// The send in flight that waits for an answer.
    pub(crate) fn record(&self) -> Option<&Arc<Record>> {
        self.details.as_ref()?.record.as_ref()
    }

    /// Notes the send that is in flight now.
    pub(crate) fn set_record(&mut self, record: Arc<Record>) {
        if let Some(details) = &mut self.details {
            details.record = Some(record);
        }
    }

    /// Takes the send in flight out.
    pub(crate) fn take_record(&mut self) -> Option<Arc<Record>> {
        self.details.as_mut()?.record.take()
    }

    /// The SIDR request that the identifier stands for in the index.
    pub(crate) fn sidr(&self) -> Option<SidrRequest> {
        self.details.as_ref()?.sidr
    }

    /// Notes the SIDR request that the identifier stands for in the index.
    pub(crate) fn set_sidr(&mut self, request: SidrRequest) {
        if let Some(details) = &mut self.details {
            details.sidr = Some(request);
        }
    }

    /// Takes the SIDR request out that the identifier stands for in the index.
    pub(crate) fn take_sidr(&mut self) -> Option<SidrRequest> {
        self.details.as_mut()?.sidr.take()
    }

    /// Private data of the last RTU or DREP.
    pub(crate) fn private_data(&self) -> &[u8] {
        self.details
            .as_ref()
            .map_or(&[], |details| &details.private_data)
    }

    /// Keeps other private data, and leaves what was kept in its place.
    pub(crate) fn swap_private_data(&mut self, other: &mut KVec<u8>) {
        if let Some(details) = &mut self.details {
            core::mem::swap(&mut details.private_data, other);
        }
    }

    /// The events that wait for delivery.
    pub(crate) fn events(&mut self) -> Option<&mut Events> {
        Some(&mut self.details.as_mut()?.events)
    }

    /// Whether somebody delivers, or has been asked to.
    pub(crate) fn is_delivering(&self) -> bool {
        self.details
            .as_ref()
            .is_some_and(|details| details.events.delivering)
    }

    /// Whether the connection only waits for the end of TimeWait, with nobody to be told.
    fn only_waits(&self) -> bool {
        self.conn.state == State::Timewait && self.conn.is_orphan() && !self.entered.remote_qpn
    }

    /// Gives up what nobody will need any more. The caller drops it with the lock released.
    pub(crate) fn shed(&mut self) -> Option<KBox<Details>> {
        if !self.only_waits() || !self.details.as_ref()?.are_empty() {
            return None;
        }
        let mut details = self.details.take()?;
        self.port = details.av.port.take();
        Some(details)
    }

    /// The device goes: gives up what refers to it. The caller drops it with the lock released.
    pub(crate) fn leave_device(&mut self) -> (Option<Av>, Option<KBox<Av>>, Option<Arc<Port>>) {
        let port = self.port.take();
        match &mut self.details {
            Some(details) => {
                let av = core::mem::replace(&mut details.av, Av::empty());
                (Some(av), details.alt_av.take(), port)
            }
            None => (None, None, port),
        }
    }
}
