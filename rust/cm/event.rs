// SPDX-License-Identifier: GPL-2.0
//! The events of an identifier: queued in order, delivered one at a time.
//!
//! An event is either a received MAD or something that the module itself found out. The first
//! kind is queued as it came; the second is noted in place, so that no report depends on memory.

use kernel::prelude::*;

use super::inbox::Arrival;
use ib_cm_proto::step::Report;

/// Events that the module itself finds out and that may wait at the same time: "established",
/// one error or staleness, the end of TimeWait.
const NOTES: usize = 3;

#[derive(Clone, Copy)]
struct Note {
    turn: u32,
    report: Report,
    status: u32,
}

/// What a consumer is told.
pub(crate) enum Event {
    /// A message came in.
    Arrival(Pin<KBox<Arrival>>),
    /// The module found something out; for an error with the status of the send.
    Note(Report, u32),
}

/// The events that wait for delivery.
pub(crate) struct Events {
    arrivals: Option<Pin<KBox<Arrival>>>,
    notes: [Option<Note>; NOTES],
    next_turn: u32,
    /// Somebody delivers, or has been asked to.
    pub(crate) delivering: bool,
}

impl Events {
    pub(crate) fn new() -> Self {
        Events {
            arrivals: None,
            notes: [None; NOTES],
            next_turn: 0,
            delivering: false,
        }
    }

    fn take_turn(&mut self) -> u32 {
        let turn = self.next_turn;
        self.next_turn = turn.wrapping_add(1);
        turn
    }

    /// Queues a received message.
    pub(crate) fn push_arrival(&mut self, mut arrival: Pin<KBox<Arrival>>) {
        *arrival.as_mut().project().turn = self.take_turn();
        // The protocol keeps this list short: each event needs a step of the state machine.
        let mut end = &mut self.arrivals;
        while let Some(queued) = end {
            end = queued.as_mut().project().next;
        }
        *end = Some(arrival);
    }

    /// Queues what the module found out.
    pub(crate) fn push_note(&mut self, report: Report, status: u32) {
        let turn = self.take_turn();
        if let Some(free) = self.notes.iter_mut().find(|note| note.is_none()) {
            *free = Some(Note {
                turn,
                report,
                status,
            });
        }
    }

    /// Takes the event whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        let next_turn = self.next_turn;
        let age = |turn: u32| next_turn.wrapping_sub(turn);
        let oldest = self
            .notes
            .iter_mut()
            .filter(|note| note.is_some())
            .max_by_key(|note| note.map_or(0, |note| age(note.turn)));
        if let Some(slot) = oldest {
            let arrival_age = self.arrivals.as_ref().map(|arrival| age(arrival.turn));
            if let Some(note) = *slot {
                if arrival_age.is_none_or(|arrival_age| arrival_age < age(note.turn)) {
                    *slot = None;
                    return Some(Event::Note(note.report, note.status));
                }
            }
        }
        let mut arrival = self.arrivals.take()?;
        self.arrivals = arrival.as_mut().project().next.take();
        Some(Event::Arrival(arrival))
    }

    /// Whether something waits and nobody delivers: then the caller has to see to it.
    pub(crate) fn begin_delivery(&mut self) -> bool {
        let begins = !self.is_empty() && !self.delivering;
        self.delivering |= begins;
        begins
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.arrivals.is_none() && self.notes.iter().all(|note| note.is_none())
    }
}
