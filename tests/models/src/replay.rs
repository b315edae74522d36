// SPDX-License-Identifier: GPL-2.0
//! No model keeps answers of services.

use kernel::init::from_fn;
use kernel::prelude::*;

/// The table.
pub(crate) struct Replays;

impl Replays {
    pub(crate) fn new() -> impl PinInit<Self> {
        from_fn(|| Ok(Replays))
    }
}
