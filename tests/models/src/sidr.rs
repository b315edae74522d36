// SPDX-License-Identifier: GPL-2.0
//! No model resolves services.

use kernel::sync::Arc;

use super::deliver::Delivery;
use super::id::Id;
use super::inbox::Arrival;
use super::receive::Mail;

pub(crate) fn process(_arrival: Mail) -> Option<Delivery> {
    None
}

pub(crate) fn refuse(_arrival: &Arrival) {}

pub(crate) fn refuse_if_asked(_id: &Arc<Id>) {}
