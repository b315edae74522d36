// SPDX-License-Identifier: GPL-2.0
//! Trace events: nobody looks. What is sent is counted.

use core::cell::Cell;

use ib_cm_proto::wire::AttrId;
use kernel::types::Opaque;

use super::bindings;

pub(crate) type RawCmId = Opaque<bindings::ib_cm_id>;

thread_local! {
    static REJS: Cell<u32> = const { Cell::new(0) };
}

/// Something is sent.
pub(crate) fn sent(message: Option<AttrId>) {
    if message == Some(AttrId::Rej) {
        REJS.with(|rejs| rejs.set(rejs.get() + 1));
    }
}

/// How many REJs were sent since this was last asked.
pub(crate) fn rejs() -> u32 {
    REJS.with(|rejs| rejs.replace(0))
}

macro_rules! events {
    ($($name:ident($($type:ty),*),)*) => {$(
        pub(crate) fn $name($(_: $type),*) {}
    )*};
}

events! {
    send_dup_req(&RawCmId),
    send_dup_rep(&RawCmId),
    send_dreq(&RawCmId),
    send_drep(&RawCmId),
    no_listener_err(&RawCmId),
    rej_unknown_err(&RawCmId),
    dreq_unknown_err(&RawCmId),
    mra_unknown_err(&RawCmId),
    send_rej(&RawCmId, u32),
    hold(&RawCmId, u32),
    release(&RawCmId, u32),
    hold_expired(&RawCmId, u32),
    timewait_exit(&RawCmId, u32),
}

macro_rules! numbers {
    ($($name:ident($($arg:ident),*),)*) => {$(
        pub(crate) fn $name($($arg: u32),*) {
            $( let _ = $arg; )*
        }
    )*};
}

numbers! {
    issue_rej(local, remote),
    issue_drep(local, remote),
    staleconn_err(local, remote),
    no_priv_err(local, remote),
    remote_no_priv_err(remote),
    insert_failed_err(remote),
    rep_unknown_err(local, remote, state),
    mad_send_err(state, status),
}
