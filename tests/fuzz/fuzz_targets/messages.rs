// SPDX-License-Identifier: GPL-2.0
//! See `src/messages.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ib_cm_fuzz::messages::check(data));
