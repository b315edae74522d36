// SPDX-License-Identifier: GPL-2.0
//! Where the models play: a manager, a port, and a consumer that takes notes.

use core::cell::RefCell;
use std::rc::Rc;

use ib_cm_proto::connection::Connection;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Call;
use ib_cm_proto::step::Input;
use ib_cm_proto::wire::AttrId;
use ib_cm_proto::wire::Req;
use ib_cm_proto::wire::Rtu;
use ib_cm_proto::Mad;
use ib_cm_proto::MAD_SIZE;
use kernel::prelude::*;
use kernel::sync::Arc;
use loom::sync::Mutex;

use crate::cm::act::With;
use crate::cm::id;
use crate::cm::id::Id;
use crate::cm::inbox::Arrival;
use crate::cm::listen;
use crate::cm::manager;
use crate::cm::manager::LocalQpn;
use crate::cm::manager::Manager;
use crate::cm::port::Adapter;
use crate::cm::port::Device;
use crate::cm::port::Port;
use crate::cm::set_manager;
use crate::rdma::bindings;
use crate::rdma::clock;
use crate::rdma::mad::RecvMad;

/// The service that is listened to.
pub(crate) const SERVICE: u64 = 7;
/// The peer's communication ID.
pub(crate) const REMOTE_ID: u32 = 0x33;
/// The peer's adapter.
pub(crate) const REMOTE_GUID: u64 = 0x44;
/// The peer's queue pair.
pub(crate) const REMOTE_QPN: u32 = 0x22;
/// Our queue pair.
pub(crate) const LOCAL_QPN: u32 = 0x11;

/// What the consumer has noted.
#[derive(Default)]
pub(crate) struct Notes {
    /// Events that it got, in order.
    pub(crate) events: Vec<(usize, u32)>,
    /// Identifiers whose handler runs.
    running: Vec<usize>,
    /// Identifiers whose destruction has returned.
    destroyed: Vec<usize>,
    /// What is wrong. A handler may not panic.
    wrong: Option<&'static str>,
    /// Events at which the consumer gives its identifier up.
    pub(crate) refuses: Vec<u32>,
}

thread_local! {
    static NOTES: RefCell<Option<Rc<Mutex<Notes>>>> = const { RefCell::new(None) };
}

fn place() -> Rc<Mutex<Notes>> {
    NOTES
        .with(|notes| notes.borrow().clone())
        .expect("a model runs")
}

/// Reads or writes the consumer's notes.
pub(crate) fn notes<T>(with: impl FnOnce(&mut Notes) -> T) -> T {
    let place = place();
    let mut notes = place.lock().expect("no handler panics");
    with(&mut notes)
}

/// The consumer's handler.
unsafe extern "C" fn handler(
    id: *mut bindings::ib_cm_id,
    event: *const bindings::ib_cm_event,
) -> c_int {
    // SAFETY: The event is valid for the call.
    let event = unsafe { (*event).event };
    let id = id as usize;
    notes(|notes| {
        if notes.running.contains(&id) {
            notes.wrong = Some("two handlers of one identifier run");
        }
        if notes.destroyed.contains(&id) {
            notes.wrong = Some("an event comes after destruction");
        }
        notes.running.push(id);
        notes.events.push((id, event));
    });
    notes(|notes| {
        if notes.destroyed.contains(&id) {
            notes.wrong = Some("destruction does not wait for a handler");
        }
        notes.running.retain(|running| *running != id);
        let refuses = notes.refuses.contains(&event);
        if refuses {
            notes.destroyed.push(id);
        }
        c_int::from(refuses)
    })
}

/// A MAD, filled by `emit`.
pub(crate) fn mad(emit: impl FnOnce(&mut Mad)) -> Mad {
    let mut mad = [0; MAD_SIZE];
    emit(&mut mad);
    mad
}

/// The peer's REQ.
pub(crate) fn req() -> Mad {
    req_of(REMOTE_ID)
}

/// The peer's confirmation of a connection.
pub(crate) fn rtu(id: &Arc<Id>) -> Mad {
    mad(|mad| {
        Rtu {
            tid: 0,
            local_comm_id: REMOTE_ID,
            remote_comm_id: id.lock().conn.local_id,
        }
        .emit(mad, &[]);
    })
}

/// A REQ of another connection of the same queue pair.
pub(crate) fn req_of(local_comm_id: u32) -> Mad {
    mad(|mad| {
        Req {
            local_comm_id,
            local_ca_guid: REMOTE_GUID,
            local_qpn: REMOTE_QPN,
            service_id: SERVICE,
            max_cm_retries: 1,
            ..Req::ZERO
        }
        .emit(mad, &[]);
    })
}

/// The identifier behind the pointer that a consumer knows.
pub(crate) fn identify(pointer: usize) -> Arc<Id> {
    let pointer = pointer as *const Id;
    // SAFETY: The consumer's reference keeps it alive.
    unsafe {
        Arc::increment_strong_count(pointer);
        Arc::from_raw(pointer)
    }
}

/// `ib_destroy_cm_id`, as `api.rs` does it.
pub(crate) fn destroy(id: &Arc<Id>) {
    if listen::release(id).is_some() {
        Id::destroy(id, false);
        let pointer = id.public.as_ptr() as usize;
        notes(|notes| notes.destroyed.push(pointer));
        id.disown();
    }
}

/// The stage.
pub(crate) struct Stage {
    manager: Pin<KBox<Manager>>,
    pub(crate) device: Arc<Device>,
    pub(crate) port: Arc<Port>,
}

impl Stage {
    /// Sets everything up.
    pub(crate) fn set() -> Rc<Self> {
        kernel::wait::set_up();
        clock::set(0);
        NOTES.with(|notes| *notes.borrow_mut() = Some(Rc::new(Mutex::new(Notes::default()))));
        let manager = Manager::new();
        let manager: core::result::Result<Manager, Error> =
            PinInit::<Manager, Error>::make(manager);
        let manager = KBox::new(manager.expect("there is memory"), GFP_KERNEL);
        let manager = manager.expect("there is memory");
        set_manager(&raw const *manager);
        let device = Device::new();
        let port = Port::new(device.clone());
        let adapter = Arc::new(Adapter {
            device: device.clone(),
            port: port.clone(),
        });
        manager.add_adapter(adapter).expect("there is memory");
        Rc::new(Stage {
            // SAFETY: It is not moved out of its box.
            manager: unsafe { Pin::new_unchecked(manager) },
            device,
            port,
        })
    }

    /// A listener.
    pub(crate) fn listener(&self) -> Arc<Id> {
        let device = self.device.ib().as_ptr();
        let id = Id::new(device, Some(handler), core::ptr::null_mut()).expect("there is memory");
        listen::listen(&id, SERVICE).expect("nobody else listens");
        let _ = id.clone().own();
        id
    }

    /// A MAD comes in, from one of several sources.
    pub(crate) fn receive(&self, source: u64, mad: Mad) {
        let message = AttrId::of(&mad).expect("it is a message");
        let arrival = Arrival::new(RecvMad(mad, source), self.port.clone(), message);
        self.port.inbox.push(arrival.expect("there is memory"));
    }

    /// Works as long as there is work.
    pub(crate) fn work(&self) {
        while self.manager.work().queue().run_one() {}
    }

    /// Serves expired timers, as the work of the device does.
    pub(crate) fn timers(&self) {
        while let Some((deadline, id)) = self.device.timers.expired() {
            id::timer_expired(&self.device, &id, deadline);
        }
    }

    /// What is set so far will expire now, and nothing that is set later.
    pub(crate) fn late(&self) {
        clock::set(clock::now_ns() + 1_000_000_000_000_000);
    }

    /// The identifier of the latest REQ event.
    pub(crate) fn asked(&self) -> Option<Arc<Id>> {
        let is_req = |event: &&(usize, u32)| event.1 == AttrId::Req as u32;
        let last = notes(|notes| notes.events.iter().rev().find(is_req).copied());
        last.map(|(pointer, _)| identify(pointer))
    }

    /// A connection whose REQ the consumer has got.
    pub(crate) fn requested(&self) -> Arc<Id> {
        let listener = self.listener();
        self.receive(1, req());
        self.work();
        destroy(&listener);
        self.asked().expect("the consumer was asked")
    }

    /// A connection whose consumer has replied.
    pub(crate) fn replied(&self) -> Arc<Id> {
        let id = self.requested();
        {
            let mut inner = id.lock();
            inner.conn.local_qpn = LOCAL_QPN;
            let key = LocalQpn {
                device: id.public.device_key(),
                qpn: LOCAL_QPN,
                local_id: inner.conn.local_id,
            };
            let mut slots = inner.slots().expect("it has a connection");
            let entered = slots.local_qpn.enter(&manager().local_qpns, key, &id);
            assert!(entered.is_ok());
            inner.conn.step(Input::Call(Call::SendRep));
        }
        id
    }

    /// An established connection.
    pub(crate) fn established(&self) -> Arc<Id> {
        let id = self.replied();
        self.receive(1, rtu(&id));
        self.work();
        assert_eq!(id.lock().conn.state, State::Established);
        id
    }

    /// A connection in TIMEWAIT, whose time is up.
    pub(crate) fn in_timewait(&self) -> Arc<Id> {
        let id = self.established();
        id.act(Input::DreqNotSent, &mut With::nothing());
        assert_eq!(id.lock().conn.state, State::Timewait);
        self.late();
        id
    }

    /// How often the consumer got an event of an identifier.
    pub(crate) fn count(&self, id: &Arc<Id>, event: u32) -> usize {
        let pointer = id.public.as_ptr() as usize;
        notes(|notes| {
            let same = |noted: &&(usize, u32)| **noted == (pointer, event);
            notes.events.iter().filter(same).count()
        })
    }

    /// What is left to do is done; then nothing may be left. All identifiers are destroyed.
    pub(crate) fn strike(self: Rc<Self>) {
        self.work();
        // A DREQ may have to be repeated, and then there is TimeWait.
        for _ in 0..4 {
            self.late();
            self.timers();
            self.work();
        }
        notes(|notes| assert_eq!(notes.wrong, None));
        let manager = manager();
        let mut entries = 0;
        manager.local_ids.for_each(|_, _| entries += 1);
        manager.remote_ids.for_each(|_, _| entries += 1);
        manager.remote_qpns.for_each(|_, _| entries += 1);
        manager.local_qpns.for_each(|_, _| entries += 1);
        manager.services.for_each(|_, _| entries += 1);
        manager.held.for_each(|_, _| entries += 1);
        assert_eq!(entries, 0, "indices are not empty");
        assert!(self.device.timers.first().is_none(), "a timer is set");
        let live = manager.live.load(core::sync::atomic::Ordering::Relaxed);
        assert_eq!(live, 0, "identifiers live on");
        NOTES.with(|notes| notes.borrow_mut().take());
        kernel::wait::tear_down();
    }
}
