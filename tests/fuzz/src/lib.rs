// SPDX-License-Identifier: GPL-2.0
//! What is fuzzed: every message, one connection, and a whole host.
//!
//! Each module has a function `check`, which takes any bytes and panics when something is wrong.
//! The fuzzer looks for such bytes; `tests/corpus.rs` tries those that it found interesting.

pub mod bytes;
pub mod connection;
pub mod host;
pub mod messages;
pub mod mint;
