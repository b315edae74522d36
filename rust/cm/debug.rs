// SPDX-License-Identifier: GPL-2.0
//! What `/sys/kernel/debug/ib_cm` shows.

use core::sync::atomic::Ordering;

use kernel::{
    debugfs::{
        Dir,
        File, //
    },
    fmt,
    prelude::*, //
};

use super::manager;

/// The directory and its files.
#[pin_data]
pub(crate) struct Debug {
    _dir: Dir,
    /// Identifiers that exist.
    #[pin]
    live: File<()>,
    /// A line for each count: its name, a blank, its value.
    #[pin]
    stats: File<()>,
}

impl Debug {
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        let dir = Dir::new(c"ib_cm");
        try_pin_init!(Debug {
            live <- dir.read_callback_file(c"live", (), &show_live),
            stats <- dir.read_callback_file(c"stats", (), &show_stats),
            _dir: dir,
        }? Error)
    }
}

fn show_live(_: &(), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "{}", manager().live.load(Ordering::Relaxed))
}

fn show_stats(_: &(), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let manager = manager();
    let holds = &manager.holds;
    writeln!(f, "ids {}", manager.live.load(Ordering::Relaxed))?;
    writeln!(f, "holds_taken {}", holds.taken.load(Ordering::Relaxed))?;
    writeln!(
        f,
        "holds_released {}",
        holds.released.load(Ordering::Relaxed)
    )?;
    writeln!(f, "holds_expired {}", holds.expired.load(Ordering::Relaxed))
}
