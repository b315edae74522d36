// SPDX-License-Identifier: GPL-2.0
//! What the tests of the state machine share: all inputs, connections in all states, and a short
//! notation for what a step does.

pub mod connections;
pub mod inputs;
pub mod notation;
pub mod witness;
