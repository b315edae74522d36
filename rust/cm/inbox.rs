// SPDX-License-Identifier: GPL-2.0
//! Received MADs on their way to a worker: those of one source take effect in the order in which
//! they came, those of different sources in parallel.
//!
//! Sources are hashed into lanes. Those of the first few MADs of a lane that need it are prepared
//! by workers side by side: finding the sender's address may sleep. Then each waits for its turn.
//! The worker whose turn it is does the protocol's part, gives the turn to the next one and only
//! then calls the consumer. So a consumer that sleeps holds up nobody but itself.

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

use super::index::mix;
use super::listen::Listener;
use super::manager;
use super::port::Port;
use super::receive;
use crate::rdma::{
    ah::AhAttr,
    mad::RecvMad,
    path::PathRec,
    spinlock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
    wait::{
        wait_until,
        wake, //
    },
};
use ib_cm_proto::wire::AttrId;

/// Lanes of a port.
const LANES: usize = 64;

/// MADs of a lane that have a place in its order at a time. A sender who cannot be found keeps no
/// more workers than this asleep.
const AT_WORK: usize = 4;

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
    /// Where it came from, once it is prepared; for those that begin something.
    pub(crate) sender: Option<AhAttr>,
    /// Of a REP: it came to the initiator of an XRC connection.
    pub(crate) to_xrc_initiator: bool,
    /// Nothing that may take long is left to be done before its turn.
    prepared: bool,
    /// All that came before it in its lane are done with.
    its_turn: bool,
    lane: usize,
    /// Its place in the lane, from when it has one.
    ticket: usize,
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
        let prepared = !receive::needs_sender(message);
        let lane = (mix(mad.source_key()) as usize) % LANES;
        KBox::pin_init(
            pin_init!(Arrival {
                work <- new_work!("ib_cm arrival"),
                mad,
                port,
                message,
                request: None,
                sender: None,
                to_xrc_initiator: false,
                prepared,
                its_turn: false,
                lane,
                ticket: 0,
                turn: 0,
                next: None,
            }),
            GFP_KERNEL,
        )
    }
}

impl WorkItem for Arrival {
    type Pointer = Pin<KBox<Self>>;

    fn run(mut arrival: Pin<KBox<Self>>) {
        let port = arrival.port.clone();
        let lane = arrival.lane;
        if !arrival.prepared {
            let sender = receive::sender(&arrival);
            let fields = arrival.as_mut().project();
            *fields.sender = sender;
            *fields.prepared = true;
        }
        let Some(arrival) = port.inbox.turn(arrival) else {
            return;
        };
        let delivery = receive::process(arrival);
        port.inbox.finished(lane);
        if let Some(delivery) = delivery {
            delivery.one();
        }
    }
}

/// MADs of one lane.
///
/// New ones are pushed on `newest`; when `oldest` runs dry it gets them in the order in which they
/// came. From there they get tickets that count up, and go to workers when it is their turn, or
/// before if they have to be prepared.
struct Lane {
    oldest: Option<Pin<KBox<Arrival>>>,
    newest: Option<Pin<KBox<Arrival>>>,
    /// Somebody turns `newest` round with interrupts on.
    turning: bool,
    /// The ticket of the next one.
    next: usize,
    /// The ticket whose turn it is.
    serving: usize,
    /// Somebody waits until the lane is empty.
    awaited: bool,
    /// Those that were prepared before their turn, by ticket.
    prepared: [Option<Pin<KBox<Arrival>>>; AT_WORK],
}

impl Lane {
    fn new() -> Self {
        Lane {
            oldest: None,
            newest: None,
            turning: false,
            next: 0,
            serving: 0,
            awaited: false,
            prepared: [const { None }; AT_WORK],
        }
    }

    fn push(&mut self, mut arrival: Pin<KBox<Arrival>>) {
        *arrival.as_mut().project().next = self.newest.take();
        self.newest = Some(arrival);
    }

    /// The next one for a worker, if there may be one more at work.
    fn pop(&mut self) -> Option<Pin<KBox<Arrival>>> {
        while self.has_room() {
            let mut arrival = self.oldest.take()?;
            self.oldest = arrival.as_mut().project().next.take();
            if let Some(arrival) = self.admit(arrival) {
                return Some(arrival);
            }
        }
        None
    }

    fn has_room(&self) -> bool {
        self.next.wrapping_sub(self.serving) < AT_WORK
    }

    /// Gives out the next ticket. Returns the MAD if it is something for a worker; else it waits
    /// for its turn.
    fn admit(&mut self, mut arrival: Pin<KBox<Arrival>>) -> Option<Pin<KBox<Arrival>>> {
        let ticket = self.next;
        let fields = arrival.as_mut().project();
        *fields.ticket = ticket;
        *fields.its_turn = ticket == self.serving;
        self.next = ticket.wrapping_add(1);
        if arrival.its_turn || !arrival.prepared {
            return Some(arrival);
        }
        *self.place(ticket) = Some(arrival);
        None
    }

    /// Whether all that came in are done with.
    fn is_empty(&self) -> bool {
        self.next == self.serving && self.has_nobody_waiting()
    }

    /// Whether none waits for a worker.
    fn has_nobody_waiting(&self) -> bool {
        self.oldest.is_none() && self.newest.is_none() && !self.turning
    }

    /// Where one with this ticket waits for its turn.
    fn place(&mut self, ticket: usize) -> &mut Option<Pin<KBox<Arrival>>> {
        // A remainder by a constant is always in range, and the compiler knows it.
        &mut self.prepared[ticket % AT_WORK]
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
}

impl Inbox {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            lanes <- pin_init::pin_init_array_from_fn(|_| {
                new_spinlock_irq!(Lane::new(), "ib_cm inbox")
            }),
        })
    }

    fn lane(&self, lane: usize) -> &SpinLockIrq<Lane> {
        // A remainder by a constant is always in range, and the compiler knows it.
        &self.lanes[lane % LANES]
    }

    /// Takes a MAD in.
    pub(crate) fn push(&self, arrival: Pin<KBox<Arrival>>) {
        let mut lane = self.lane(arrival.lane).lock();
        if !(lane.has_nobody_waiting() && lane.has_room()) {
            lane.push(arrival);
            return;
        }
        let arrival = lane.admit(arrival);
        drop(lane);
        if let Some(arrival) = arrival {
            manager().work().queue().enqueue(arrival);
        }
    }

    /// Whether it is the turn of a prepared MAD; else it will come to a worker again when it is.
    fn turn(&self, arrival: Pin<KBox<Arrival>>) -> Option<Pin<KBox<Arrival>>> {
        if arrival.its_turn {
            return Some(arrival);
        }
        let mut lane = self.lane(arrival.lane).lock();
        if lane.serving == arrival.ticket {
            return Some(arrival);
        }
        let ticket = arrival.ticket;
        *lane.place(ticket) = Some(arrival);
        None
    }

    /// A worker has done the protocol's part of the MAD whose turn it was.
    fn finished(&self, at: usize) {
        let at = self.lane(at);
        let mut lane = at.lock();
        lane.serving = lane.serving.wrapping_add(1);
        if lane.is_empty() {
            let awaited = lane.awaited;
            drop(lane);
            if awaited {
                wake(at);
            }
            return;
        }
        let mut ready = [const { None }; AT_WORK];
        let serving = lane.serving;
        let mut prepared = lane.place(serving).take();
        if let Some(arrival) = &mut prepared {
            *arrival.as_mut().project().its_turn = true;
        }
        if lane.oldest.is_none() && lane.newest.is_some() && !lane.turning {
            // Nobody else takes from the lane meanwhile, so that a long queue can be turned round
            // with interrupts on.
            lane.turning = true;
            let newest = lane.newest.take();
            drop(lane);
            let oldest = reversed(newest);
            lane = at.lock();
            lane.oldest = oldest;
            lane.turning = false;
        }
        for place in &mut ready {
            *place = lane.pop();
        }
        drop(lane);
        let queue = manager().work().queue();
        if let Some(arrival) = prepared {
            queue.enqueue(arrival);
        }
        for arrival in ready.into_iter().flatten() {
            queue.enqueue(arrival);
        }
    }

    /// Waits until all MADs have been processed. No new ones may come in.
    pub(crate) fn drain(&self) {
        for at in &self.lanes {
            wait_until(at, || {
                let mut lane = at.lock();
                lane.awaited = true;
                lane.is_empty()
            });
        }
    }
}
