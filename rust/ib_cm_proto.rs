// SPDX-License-Identifier: GPL-2.0
//! The protocol of the InfiniBand connection manager: messages, times and decisions, without I/O.

#![cfg_attr(not(any(MODULE, test)), no_std)]
#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

#[path = "proto/connection.rs"]
pub mod connection;
#[path = "proto/incoming.rs"]
mod incoming;
#[path = "proto/lookup.rs"]
pub mod lookup;
#[path = "proto/messages.rs"]
pub mod messages;
#[path = "proto/repeat.rs"]
pub mod repeat;
#[path = "proto/replay.rs"]
pub mod replay;
#[path = "proto/state.rs"]
pub mod state;
#[path = "proto/step.rs"]
pub mod step;
#[path = "proto/time.rs"]
pub mod time;
#[path = "proto/wire/mod.rs"]
pub mod wire;

pub use wire::Mad;
pub use wire::MAD_SIZE;
