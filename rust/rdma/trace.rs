// SPDX-License-Identifier: GPL-2.0

//! The trace events of `include/ib_cm_trace.h`. IDs are in host order unless said otherwise.

use kernel::types::Opaque;

use super::bindings;

/// The part of an id that consumers share.
pub(crate) type RawCmId = Opaque<bindings::ib_cm_id>;

macro_rules! id_events {
    ($($name:ident => $call:ident,)*) => {$(
        #[doc = concat!("Event `icm_", stringify!($name), "`.")]
        // All events of the C module exist, whether or not there is a cause for them here.
        #[allow(dead_code)]
        #[inline]
        pub(crate) fn $name(id: &RawCmId) {
            // SAFETY: A valid id, of which the event reads a few words if it is on.
            unsafe { bindings::$call(id.get()) }
        }
    )*};
}

id_events! {
    send_req => ib_cm_trace_send_req,
    send_rep => ib_cm_trace_send_rep,
    send_dup_req => ib_cm_trace_send_dup_req,
    send_dup_rep => ib_cm_trace_send_dup_rep,
    send_rtu => ib_cm_trace_send_rtu,
    send_mra => ib_cm_trace_send_mra,
    send_sidr_req => ib_cm_trace_send_sidr_req,
    send_sidr_rep => ib_cm_trace_send_sidr_rep,
    send_dreq => ib_cm_trace_send_dreq,
    send_drep => ib_cm_trace_send_drep,
    dreq_skipped => ib_cm_trace_dreq_skipped,
    send_cm_rtu_err => ib_cm_trace_send_cm_rtu_err,
    establish_err => ib_cm_trace_establish_err,
    no_listener_err => ib_cm_trace_no_listener_err,
    send_drep_err => ib_cm_trace_send_drep_err,
    dreq_unknown_err => ib_cm_trace_dreq_unknown_err,
    send_unknown_rej_err => ib_cm_trace_send_unknown_rej_err,
    rej_unknown_err => ib_cm_trace_rej_unknown_err,
    prepare_mra_unknown_err => ib_cm_trace_prepare_mra_unknown_err,
    mra_unknown_err => ib_cm_trace_mra_unknown_err,
    qp_init_err => ib_cm_trace_qp_init_err,
    qp_rtr_err => ib_cm_trace_qp_rtr_err,
    qp_rts_err => ib_cm_trace_qp_rts_err,
}

macro_rules! hold_events {
    ($($name:ident => $call:ident,)*) => {$(
        #[doc = concat!("Event `icm_", stringify!($name), "`; `qpn` is the local queue pair.")]
        #[inline]
        pub(crate) fn $name(id: &RawCmId, qpn: u32) {
            // SAFETY: A valid id, of which the event reads a few words if it is on.
            unsafe { bindings::$call(id.get(), qpn) }
        }
    )*};
}

hold_events! {
    hold => ib_cm_trace_hold,
    release => ib_cm_trace_release,
    hold_expired => ib_cm_trace_hold_expired,
    timewait_exit => ib_cm_trace_timewait_exit,
}

macro_rules! value_events {
    ($($name:ident($($arg:ident: $type:ty),*) => $call:ident,)*) => {$(
        #[doc = concat!("Event `icm_", stringify!($name), "`.")]
        // All events of the C module exist, whether or not there is a cause for them here.
        #[allow(dead_code)]
        #[inline]
        pub(crate) fn $name($($arg: $type),*) {
            // SAFETY: Takes plain values.
            unsafe { bindings::$call($($arg),*) }
        }
    )*};
}

value_events! {
    issue_rej(local_id: u32, remote_id: u32) => ib_cm_trace_issue_rej,
    issue_drep(local_id: u32, remote_id: u32) => ib_cm_trace_issue_drep,
    staleconn_err(local_id: u32, remote_id: u32) => ib_cm_trace_staleconn_err,
    no_priv_err(local_id: u32, remote_id: u32) => ib_cm_trace_no_priv_err,
    remote_no_priv_err(remote_id: u32) => ib_cm_trace_remote_no_priv_err,
    insert_failed_err(remote_id: u32) => ib_cm_trace_insert_failed_err,
    rep_unknown_err(local_id: u32, remote_id: u32, state: bindings::ib_cm_state)
        => ib_cm_trace_rep_unknown_err,
    handler_err(event: bindings::ib_cm_event_type) => ib_cm_trace_handler_err,
    mad_send_err(state: bindings::ib_cm_state, status: bindings::ib_wc_status)
        => ib_cm_trace_mad_send_err,
}

/// Event `icm_send_rej`.
#[inline]
pub(crate) fn send_rej(id: &RawCmId, reason: bindings::ib_cm_rej_reason) {
    // SAFETY: A valid id, of which the event reads a few words if it is on.
    unsafe { bindings::ib_cm_trace_send_rej(id.get(), reason) }
}

/// Event `icm_send_rep_err`.
#[inline]
pub(crate) fn send_rep_err(local_id: u32, state: bindings::ib_cm_state) {
    // SAFETY: Takes plain values.
    unsafe { bindings::ib_cm_trace_send_rep_err(local_id.to_be(), state) }
}
