// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions over `ib_core` and uverbs: owned values that free themselves.
//!
//! Knows no connection manager.

pub(crate) mod ah;
pub(crate) mod bindings;
pub(crate) mod client;
pub(crate) mod clock;
pub(crate) mod delayed;
pub(crate) mod device;
pub(crate) mod events;
pub(crate) mod gate;
pub(crate) mod gid;
pub(crate) mod handles;
mod layout;
pub(crate) mod log;
pub(crate) mod mad;
pub(crate) mod params;
pub(crate) mod path;
pub(crate) mod qp;
pub(crate) mod record;
mod recv;
pub(crate) mod spinlock;
pub(crate) mod sysfs;
pub(crate) mod table;
pub(crate) mod task;
pub(crate) mod trace;
pub(crate) mod ufile;
pub(crate) mod wait;
pub(crate) mod workqueue;
