// SPDX-License-Identifier: GPL-2.0
//! Calling consumers: one event of an identifier at a time, in order, with no lock held.
//!
//! Whoever queues an event while nobody delivers sets `delivering` and becomes, or asks for, the
//! one who does. The flag is given back under the identifier's lock when nothing is left.

use kernel::sync::Arc;

use super::act::With;
use super::event::Event;
use super::id::{
    Id,
    Locked,
    HANDLER_OUT_OF_MEMORY, //
};
use super::inbox::Arrival;
use super::inner::Inner;
use super::listen;
use super::present::Presented;
use super::receive;
use super::sidr;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Input;

/// Whether there may be more to deliver.
#[derive(PartialEq, Eq)]
enum More {
    Perhaps,
    No,
}

/// What the worker of a MAD or of a failed send has to deliver: it has set `delivering`.
pub(crate) struct Delivery {
    id: Arc<Id>,
    /// From [`take`]; else what waits longest.
    first: Option<Event>,
}

impl Delivery {
    /// Something, if there is anything to `deliver`.
    pub(crate) fn of(id: Arc<Id>, deliver: bool, first: Option<Event>) -> Option<Self> {
        deliver.then_some(Delivery { id, first })
    }

    /// Delivers one event, and leaves the rest to a worker of its own.
    ///
    /// The caller is the worker of the MAD that is delivered. It may not go on with other events:
    /// the MAD's memory can come back as another MAD, which would then wait for this worker.
    pub(crate) fn one(self) {
        let Delivery { id, first } = self;
        let more = match first {
            Some(event) => tell(&id, event),
            None => next(&id),
        };
        if more == More::No {
            return;
        }
        let mut inner = id.lock();
        let waits = inner.events().is_some_and(|events| !events.is_empty());
        if !waits || inner.conn.is_orphan() {
            end(inner);
            return;
        }
        drop(inner);
        Id::deliver_later(id);
    }
}

/// Delivers all that waits.
pub(crate) fn all(id: Arc<Id>) {
    while next(&id) == More::Perhaps {}
}

/// Takes what waits longest, unless nobody is to be told any more. A consumer that destroys the
/// identifier from here on waits until it is delivered.
pub(crate) fn take(id: &Id, inner: &mut Inner) -> Option<Event> {
    if inner.conn.is_orphan() {
        return None;
    }
    let event = inner.events()?.pop()?;
    id.running.increment();
    Some(event)
}

/// Delivers what waits longest.
fn next(id: &Arc<Id>) -> More {
    let mut inner = id.lock();
    match take(id, &mut inner) {
        Some(event) => {
            drop(inner);
            tell(id, event)
        }
        None => {
            end(inner);
            More::No
        }
    }
}

/// Nobody delivers any more.
fn end(mut inner: Locked<'_>) {
    if let Some(events) = inner.events() {
        events.delivering = false;
    }
    let not_needed = inner.shed();
    drop(inner);
    drop(not_needed);
}

/// Calls the consumer with an event that was taken.
fn tell(id: &Arc<Id>, mut event: Event) -> More {
    if let Event::Arrival(arrival) = &event {
        if withdrawn(arrival) {
            receive::reject_withdrawn(arrival);
            drop(event);
            id.running.decrement();
            give_up(id, true);
            return More::No;
        }
    }
    let returned = Presented::new(id, &mut event).show(&id.public);
    // The message goes first, and with it the request's hold on its listener.
    drop(event);
    id.running.decrement();
    if returned == 0 {
        return More::Perhaps;
    }
    if id.lock().conn.state == State::SidrReqRcvd {
        sidr::refuse_if_asked(id);
    }
    give_up(id, returned == HANDLER_OUT_OF_MEMORY);
    More::No
}

/// Whether the listener that a request came for has been destroyed.
fn withdrawn(arrival: &Arrival) -> bool {
    let listener = arrival
        .request
        .as_ref()
        .and_then(|request| request.listener.as_ref());
    listener.is_some_and(|listener| listener.is_closed())
}

/// Destroys an identifier whose consumer does not want it.
fn give_up(id: &Arc<Id>, silent: bool) {
    // Told of its earlier life late, it may listen again; and others may share that.
    if listen::release(id).is_some() {
        id.abandon(silent);
    }
    end(id.lock());
    id.disown();
}

/// Ends a connection whose identifier nobody has seen yet.
pub(crate) fn discard(id: &Arc<Id>) {
    id.act(Input::Destroy { silent: true }, &mut With::nothing());
}
