// SPDX-License-Identifier: GPL-2.0
//! Events as consumers see them: only which event it is.

use ib_cm_proto::step::Report;
use kernel::prelude::*;

use super::event::Event;
use super::id::Id;
use super::public::Public;
use crate::rdma::bindings;

/// An event.
pub(crate) struct Presented(bindings::ib_cm_event);

/// Event numbers: reports of the module itself from here on, messages below.
pub(crate) const NOTE: u32 = 0x100;

/// The number of a report.
pub(crate) fn note(report: Report) -> u32 {
    NOTE + report as u32
}

impl Presented {
    pub(crate) fn new(_id: &Id, event: &mut Event) -> Self {
        Presented(bindings::ib_cm_event {
            event: match event {
                Event::Arrival(arrival) => arrival.message as u32,
                Event::Note(report, _) => note(*report),
            },
        })
    }

    pub(crate) fn show(&self, id: &Public) -> c_int {
        id.call(&self.0)
    }
}
