// SPDX-License-Identifier: GPL-2.0

//! The bit fields of events, which only the C compiler knows the places of.

use super::bindings;

/// The bit fields of `struct ib_cm_req_event_param`.
pub(crate) struct ReqBits {
    /// 5 bits, IBA time.
    pub(crate) local_cm_response_timeout: u8,
    pub(crate) flow_control: bool,
    /// 5 bits, IBA time.
    pub(crate) remote_cm_response_timeout: u8,
    /// 3 bits.
    pub(crate) retry_count: u8,
    /// 3 bits.
    pub(crate) rnr_retry_count: u8,
    pub(crate) srq: bool,
}

/// Sets the bit fields of a REQ's event.
pub(crate) fn set_req_bits(param: &mut bindings::ib_cm_req_event_param, bits: &ReqBits) {
    // SAFETY: Writes fields of a parameter that is ours.
    unsafe {
        bindings::ib_cm_helper_req_event_bits(
            param,
            bits.local_cm_response_timeout,
            bits.flow_control,
            bits.remote_cm_response_timeout,
            bits.retry_count,
            bits.rnr_retry_count,
            bits.srq,
        )
    }
}

/// The bit fields of `struct ib_cm_rep_event_param`.
pub(crate) struct RepBits {
    /// 5 bits, IBA time.
    pub(crate) target_ack_delay: u8,
    /// 2 bits.
    pub(crate) failover_accepted: u8,
    pub(crate) flow_control: bool,
    /// 3 bits.
    pub(crate) rnr_retry_count: u8,
    pub(crate) srq: bool,
}

/// Sets the bit fields of a REP's event.
pub(crate) fn set_rep_bits(param: &mut bindings::ib_cm_rep_event_param, bits: &RepBits) {
    // SAFETY: Writes fields of a parameter that is ours.
    unsafe {
        bindings::ib_cm_helper_rep_event_bits(
            param,
            bits.target_ack_delay,
            bits.failover_accepted,
            bits.flow_control,
            bits.rnr_retry_count,
            bits.srq,
        )
    }
}
