// SPDX-License-Identifier: GPL-2.0
//! Events as consumers see them: only which event it is.

use ib_cm_proto::step::Report;
use kernel::prelude::*;

use super::event::Event;
use super::id::Id;
use super::public::Public;
use crate::rdma::bindings;

/// An event.
pub(crate) struct Presented<'a> {
    event: bindings::ib_cm_event,
    id: &'a Id,
}

/// Event numbers: reports of the module itself from here on, messages below.
pub(crate) const NOTE: u32 = 0x100;

/// The number of a report.
pub(crate) fn note(report: Report) -> u32 {
    NOTE + report as u32
}

impl<'a> Presented<'a> {
    pub(crate) fn new(id: &'a Id, event: &mut Event) -> Self {
        let event = bindings::ib_cm_event {
            event: match event {
                Event::Arrival(arrival) => arrival.message as u32,
                Event::Note(report, _) => note(*report),
            },
        };
        Presented { event, id }
    }

    pub(crate) fn show(&self, id: &Public) -> c_int {
        let returned = id.call(&self.event);
        let kept = self.id.lock().details.is_some();
        assert!(kept, "what an event names has gone under its handler");
        returned
    }
}
