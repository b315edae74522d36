// SPDX-License-Identifier: GPL-2.0
//! Received MADs on their way to a worker: those of one source in the order in which they came,
//! those of different sources in parallel.
//!
//! Sources are hashed into lanes. A lane has at most one MAD with a worker; when the worker has
//! done the protocol's part it sends the next one off, and only then calls the consumer. So a
//! consumer that sleeps holds up nobody but itself.

use kernel::{
    prelude::*,
    sync::Arc,
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
    },
};

use super::count::Count;
use super::id::Id;
use super::listen::Listener;
use super::manager;
use super::port::Port;
use super::receive;
use crate::rdma::{
    mad::RecvMad,
    path::PathRec,
    spinlock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
};
use ib_cm_proto::wire::AttrId;

/// Lanes of a port.
const LANES: usize = 64;

/// What comes with a request besides its MAD.
pub(crate) struct Request {
    /// The primary path of a REQ, or the path of a LAP.
    pub(crate) primary: PathRec,
    /// The alternate path of a REQ.
    pub(crate) alternate: Option<PathRec>,
    /// The partition key in the packet that brought the request.
    pub(crate) bth_pkey: u16,
    /// Who listens.
    pub(crate) listener: Option<Listener>,
}

/// A received MAD.
#[pin_data]
pub(crate) struct Arrival {
    #[pin]
    work: Work<Arrival>,
    pub(crate) mad: RecvMad,
    pub(crate) port: Arc<Port>,
    pub(crate) message: AttrId,
    pub(crate) request: Option<KBox<Request>>,
    lane: usize,
    /// Its place among the events of an identifier.
    pub(crate) turn: u32,
    /// The next one in a queue.
    pub(crate) next: Option<Pin<KBox<Arrival>>>,
}

impl_has_work! {
    impl HasWork<Self> for Arrival { self.work }
}

impl Arrival {
    /// Wraps a MAD.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(mad: RecvMad, port: Arc<Port>, message: AttrId) -> Result<Pin<KBox<Self>>> {
        let lane = (mad.source_key() as usize) % LANES;
        KBox::pin_init(
            pin_init!(Arrival {
                work <- new_work!("ib_cm arrival"),
                mad,
                port,
                message,
                request: None,
                lane,
                turn: 0,
                next: None,
            }),
            GFP_KERNEL,
        )
    }
}

impl WorkItem for Arrival {
    type Pointer = Pin<KBox<Self>>;

    fn run(arrival: Pin<KBox<Self>>) {
        let port = arrival.port.clone();
        let lane = arrival.lane;
        let deliver = receive::process(arrival);
        port.inbox.finished(lane);
        if let Some(id) = deliver {
            Id::deliver_now(id);
        }
    }
}

/// MADs of one lane. New ones are pushed on `newest`; when `oldest` runs dry it gets them in the
/// order in which they came.
struct Lane {
    oldest: Option<Pin<KBox<Arrival>>>,
    newest: Option<Pin<KBox<Arrival>>>,
    busy: bool,
}

impl Lane {
    fn push(&mut self, mut arrival: Pin<KBox<Arrival>>) {
        *arrival.as_mut().project().next = self.newest.take();
        self.newest = Some(arrival);
    }

    fn pop(&mut self) -> Option<Pin<KBox<Arrival>>> {
        let mut arrival = self.oldest.take()?;
        self.oldest = arrival.as_mut().project().next.take();
        Some(arrival)
    }
}

/// Turns a queue round.
fn reversed(mut queue: Option<Pin<KBox<Arrival>>>) -> Option<Pin<KBox<Arrival>>> {
    let mut turned = None;
    while let Some(mut arrival) = queue {
        let next = arrival.as_mut().project().next;
        queue = core::mem::replace(next, turned.take());
        turned = Some(arrival);
    }
    turned
}

/// The received MADs of a port.
#[pin_data]
pub(crate) struct Inbox {
    #[pin]
    lanes: [SpinLockIrq<Lane>; LANES],
    /// MADs that have not been processed yet.
    waiting: Count,
}

impl Inbox {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            lanes <- pin_init::pin_init_array_from_fn(|_| {
                new_spinlock_irq!(
                    Lane { oldest: None, newest: None, busy: false },
                    "ib_cm inbox"
                )
            }),
            waiting: Count::zero(),
        })
    }

    fn lane(&self, lane: usize) -> &SpinLockIrq<Lane> {
        // A remainder by a constant is always in range, and the compiler knows it.
        &self.lanes[lane % LANES]
    }

    /// Takes a MAD in.
    pub(crate) fn push(&self, arrival: Pin<KBox<Arrival>>) {
        self.waiting.increment();
        let mut lane = self.lane(arrival.lane).lock();
        if lane.busy {
            lane.push(arrival);
            return;
        }
        lane.busy = true;
        drop(lane);
        manager().work().queue().enqueue(arrival);
    }

    /// A worker has done the protocol's part of a MAD.
    fn finished(&self, at: usize) {
        let next = {
            let mut lane = self.lane(at).lock();
            if lane.oldest.is_none() && lane.newest.is_some() {
                // As long as the lane is busy nobody else takes from it, so that a long queue can
                // be turned round with interrupts on.
                let newest = lane.newest.take();
                drop(lane);
                let oldest = reversed(newest);
                lane = self.lane(at).lock();
                lane.oldest = oldest;
            }
            let next = lane.pop();
            lane.busy = next.is_some();
            next
        };
        if let Some(arrival) = next {
            manager().work().queue().enqueue(arrival);
        }
        self.waiting.decrement();
    }

    /// Waits until all MADs have been processed. No new ones may come in.
    pub(crate) fn drain(&self) {
        self.waiting.wait_for_zero();
    }
}
