// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions over `ib_core` and uverbs: owned values that free themselves.

pub(crate) mod bindings;
mod layout;
