// SPDX-License-Identifier: GPL-2.0
//! Listeners: who answers to a service ID.

use kernel::{
    ffi::c_void,
    prelude::*,
    sync::Arc, //
};

use super::debug::Cause;
use super::id::Id;
use super::index::Reservation;
use super::manager;
use super::manager::{
    Service,
    ASSIGN_SERVICE_ID,
    SERVICE_ID_AGN_MASK, //
};
use super::public::Handler;
use crate::rdma::bindings;
use ib_cm_proto::state::State;
use ib_cm_proto::step::{
    Call,
    Input, //
};

/// A request's hold on its listener. Destroying the listener waits until it is gone.
pub(crate) struct Listener(Arc<Id>);

impl Listener {
    /// The listener of a service on a device.
    pub(crate) fn find(device: usize, service_id: u64) -> Option<Self> {
        let key = Service { device, service_id };
        let services = manager().services.lock(&key);
        let id = services.get(&key)?.clone();
        // Under the lock: once the listener has left the index, nobody takes a hold of it.
        id.running.increment();
        Some(Listener(id))
    }

    pub(crate) fn id(&self) -> &Id {
        &self.0
    }

    /// Whether the listener has been destroyed.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.lock().conn.state != State::Listen
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.running.decrement();
    }
}

/// The service ID to listen on: the one asked for, or one of ours.
fn choose(service_id: u64) -> Result<u64> {
    match service_id {
        ASSIGN_SERVICE_ID => Ok(manager().next_service_id()),
        assigned if assigned & SERVICE_ID_AGN_MASK == ASSIGN_SERVICE_ID => Err(EINVAL),
        other => Ok(other),
    }
}

/// What became of an attempt to listen.
enum Attempt {
    Listening,
    /// Somebody else listens.
    Taken(Arc<Id>),
}

fn attempt(
    id: &Arc<Id>,
    service_id: u64,
    memory: Reservation<Service, Arc<Id>>,
) -> Result<Attempt> {
    let mut inner = id.lock();
    inner.conn.permits(Call::Listen).map_err(super::refused)?;
    let key = Service {
        device: id.public.device_key(),
        service_id,
    };
    id.public.set_service_id(service_id);
    let entered = manager().services.insert(key, id.clone(), memory);
    if let Err((memory, holder)) = entered {
        drop(inner);
        drop(memory);
        return Ok(Attempt::Taken(holder));
    }
    inner.shares = 1;
    inner.conn.step(Input::Call(Call::Listen));
    id.note(&inner.conn, Cause::Input(Input::Call(Call::Listen)));
    id.public.show(&inner.conn);
    Ok(Attempt::Listening)
}

/// `ib_cm_listen`.
///
/// # Errors
///
/// `EINVAL` in another state than idle, or for a service ID that only the manager may hand out;
/// `EBUSY` where somebody listens already; `ENOMEM`.
pub(crate) fn listen(id: &Arc<Id>, service_id: u64) -> Result {
    let memory = Reservation::new(GFP_ATOMIC)?;
    id.lock()
        .conn
        .permits(Call::Listen)
        .map_err(super::refused)?;
    match attempt(id, choose(service_id)?, memory)? {
        Attempt::Listening => Ok(()),
        Attempt::Taken(_) => Err(EBUSY),
    }
}

/// `ib_cm_insert_listen`: a new listener, or a share of the one that is there.
///
/// # Errors
///
/// `EINVAL` where the one that is there has another handler or a context, or for a service ID
/// that only the manager may hand out; `ENOMEM`.
pub(crate) fn insert_listen(
    device: *mut bindings::ib_device,
    handler: Option<Handler>,
    service_id: u64,
) -> Result<Arc<Id>> {
    let service_id = choose(service_id)?;
    let id = Id::new(device, handler, core::ptr::null_mut::<c_void>())?;
    loop {
        match attempt(&id, service_id, Reservation::new(GFP_KERNEL)?)? {
            Attempt::Listening => return Ok(id),
            Attempt::Taken(holder) => {
                let mut inner = holder.lock();
                if inner.conn.state != State::Listen {
                    // It was destroyed this moment.
                    continue;
                }
                let shareable = handler.is_some()
                    && holder.public.handler().map(|h| h as usize) == handler.map(|h| h as usize)
                    && holder.public.context().is_null();
                if !shareable {
                    return Err(EINVAL);
                }
                inner.shares = inner.shares.saturating_add(1);
                drop(inner);
                return Ok(holder);
            }
        }
    }
}

/// Gives up one share of an identifier. If it was the last, the identifier is to be destroyed:
/// returns the state in which it was. An identifier that does not listen has one share.
pub(crate) fn release(id: &Arc<Id>) -> Option<State> {
    let mut inner = id.lock();
    if inner.conn.state != State::Listen {
        return Some(inner.conn.state);
    }
    inner.shares = inner.shares.saturating_sub(1);
    if inner.shares > 0 {
        return None;
    }
    inner.conn.step(Input::Destroy { silent: true });
    let service_id = id.public.service_id();
    let key = Service {
        device: id.public.device_key(),
        service_id,
    };
    manager().services.remove(&key);
    Some(State::Listen)
}
