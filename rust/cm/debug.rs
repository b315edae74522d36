// SPDX-License-Identifier: GPL-2.0
//! What `/sys/kernel/debug/ib_cm` shows: Documentation/debugfs.rst describes each column.
//!
//! `tools/cmstat` reads these files by the names of their columns: one may be added at the end of a
//! line, none is renamed or moved.

mod connections;
mod describe;
mod history;
mod tables;

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use self::connections::Connections;
use self::history::Changes;
use self::tables::{
    HoldsTable,
    Listeners,
    Live,
    Stats,
    Timewaits, //
};
use crate::rdma::{
    clock::{
        ticks,
        ticks_to_ms, //
    },
    table::TableDir, //
};

pub(crate) use self::describe::Described;
pub(crate) use self::history::{
    Cause,
    History, //
};

/// The directory and its files.
pub(crate) struct Debug {
    _dir: Option<TableDir>,
}

impl Debug {
    pub(crate) fn new() -> Self {
        let dir = TableDir::new(c"ib_cm");
        if let Some(dir) = &dir {
            dir.add::<Connections>(c"connections");
            dir.add::<Timewaits>(c"timewait");
            dir.add::<HoldsTable>(c"holds");
            dir.add::<Listeners>(c"listeners");
            dir.add::<Changes>(c"history");
            dir.add::<Live>(c"live");
            dir.add::<Stats>(c"stats");
        }
        Debug { _dir: dir }
    }
}

/// Entries that are looked at before a walk makes room for other work.
const LOOK_AT_MOST: usize = 1024;

/// A time in units of 16 ticks: 32 bits last two years at least.
pub(crate) struct Changed(AtomicU32);

impl Changed {
    const UNIT_SHIFT: u32 = 4;

    fn clock() -> u32 {
        (ticks() >> Self::UNIT_SHIFT) as u32
    }

    pub(crate) fn now() -> Self {
        Changed(AtomicU32::new(Self::clock()))
    }

    pub(crate) fn set_now(&self) {
        self.0.store(Self::clock(), Ordering::Relaxed);
    }

    /// How long ago that was.
    pub(crate) fn age_ms(&self) -> u64 {
        let ago = Self::clock().wrapping_sub(self.0.load(Ordering::Relaxed));
        ticks_to_ms(u64::from(ago) << Self::UNIT_SHIFT)
    }
}
