// SPDX-License-Identifier: GPL-2.0
//! See `src/host.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ib_cm_fuzz::host::check(data));
