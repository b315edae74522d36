// SPDX-License-Identifier: GPL-2.0
//! `ib_cm_init_qp_attr`: how a queue pair has to be set to carry a connection.

use kernel::{
    ffi::c_int,
    prelude::*, //
};

use super::id::Id;
use super::inner::Inner;
use crate::rdma::{
    ah::AhType,
    bindings as b,
    trace, //
};
use ib_cm_proto::connection::QpType;
use ib_cm_proto::state::{
    LapState,
    State, //
};

/// Fills `attr` for the transition to the state that it names; returns which fields are set.
///
/// # Errors
///
/// `EINVAL` where the connection does not know enough yet, or for another state of a queue pair.
pub(crate) fn init(id: &Id, attr: &mut b::ib_qp_attr) -> Result<c_int> {
    let inner = id.lock();
    match attr.qp_state {
        b::ib_qp_state_IB_QPS_INIT => to_init(id, &inner, attr),
        b::ib_qp_state_IB_QPS_RTR => to_rtr(id, &inner, attr),
        b::ib_qp_state_IB_QPS_RTS => to_rts(id, &inner, attr),
        _ => Err(EINVAL),
    }
}

/// Whether the peer's side of the connection is known.
fn knows_peer(state: State) -> bool {
    use State::*;

    matches!(
        state,
        ReqRcvd | MraReqSent | RepRcvd | MraRepSent | RepSent | MraRepRcvd | Established
    )
}

/// The address of the alternate path is written to `attr`, if there is one.
fn alternate_path(inner: &Inner, attr: &mut b::ib_qp_attr) {
    match inner.alt_av() {
        Some(alt_av) => {
            if let Some(port) = &alt_av.port {
                attr.alt_port_num = port.number;
            }
            attr.alt_pkey_index = alt_av.pkey_index;
            alt_av.attr.write_unreferenced(&mut attr.alt_ah_attr);
        }
        None => {
            attr.alt_pkey_index = 0;
            attr.alt_ah_attr = pin_init::zeroed();
        }
    }
    attr.alt_timeout = inner.conn.alt_ack_timeout;
}

/// Whether there is an alternate path that can be used.
fn has_alternate_path(inner: &Inner) -> bool {
    inner.alt_av().is_some_and(|av| av.attr.dlid() != 0)
}

fn to_init(id: &Id, inner: &Inner, attr: &mut b::ib_qp_attr) -> Result<c_int> {
    let conn = &inner.conn;
    if !knows_peer(conn.state) && !matches!(conn.state, State::ReqSent | State::MraReqRcvd) {
        trace::qp_init_err(id.public.raw());
        return Err(EINVAL);
    }
    let mut access = b::ib_access_flags_IB_ACCESS_REMOTE_WRITE;
    if conn.responder_resources != 0 {
        access |=
            b::ib_access_flags_IB_ACCESS_REMOTE_READ | b::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC;
        let flush = (b::ib_device_cap_flags_IB_DEVICE_FLUSH_GLOBAL
            | b::ib_device_cap_flags_IB_DEVICE_FLUSH_PERSISTENT) as u64;
        let device = inner.port().map(|port| port.device.ib());
        if device.is_some_and(|device| device.device_cap_flags() & flush != 0) {
            access |= b::ib_access_flags_IB_ACCESS_FLUSH_GLOBAL
                | b::ib_access_flags_IB_ACCESS_FLUSH_PERSISTENT;
        }
    }
    attr.qp_access_flags = access as c_int;
    let av = inner.av().ok_or(EINVAL)?;
    attr.pkey_index = av.pkey_index;
    if let Some(port) = &av.port {
        attr.port_num = port.number;
    }
    Ok((b::ib_qp_attr_mask_IB_QP_STATE
        | b::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS
        | b::ib_qp_attr_mask_IB_QP_PKEY_INDEX
        | b::ib_qp_attr_mask_IB_QP_PORT) as c_int)
}

fn to_rtr(id: &Id, inner: &Inner, attr: &mut b::ib_qp_attr) -> Result<c_int> {
    let conn = &inner.conn;
    if !knows_peer(conn.state) {
        trace::qp_rtr_err(id.public.raw());
        return Err(EINVAL);
    }
    let mut mask = b::ib_qp_attr_mask_IB_QP_STATE
        | b::ib_qp_attr_mask_IB_QP_AV
        | b::ib_qp_attr_mask_IB_QP_PATH_MTU
        | b::ib_qp_attr_mask_IB_QP_DEST_QPN
        | b::ib_qp_attr_mask_IB_QP_RQ_PSN;
    let av = inner.av().ok_or(EINVAL)?;
    match av.datapath_dlid() {
        Some(dlid) if av.attr.ah_type() == AhType::Ib => {
            av.attr.write_with_ib_dlid(&mut attr.ah_attr, dlid);
        }
        _ => av.attr.write_unreferenced(&mut attr.ah_attr),
    }
    attr.path_mtu = conn.path_mtu.into();
    attr.dest_qp_num = conn.remote_qpn;
    attr.rq_psn = conn.rq_psn;
    if matches!(conn.qp_type, QpType::Rc | QpType::XrcTgt) {
        mask |=
            b::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC | b::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER;
        attr.max_dest_rd_atomic = conn.responder_resources;
        attr.min_rnr_timer = 0;
    }
    if has_alternate_path(inner) {
        mask |= b::ib_qp_attr_mask_IB_QP_ALT_PATH;
        alternate_path(inner, attr);
    }
    Ok(mask as c_int)
}

fn to_rts(id: &Id, inner: &Inner, attr: &mut b::ib_qp_attr) -> Result<c_int> {
    let conn = &inner.conn;
    if !knows_peer(conn.state) {
        trace::qp_rts_err(id.public.raw());
        return Err(EINVAL);
    }
    if conn.lap != LapState::Uninit {
        alternate_path(inner, attr);
        attr.path_mig_state = b::ib_mig_state_IB_MIG_REARM;
        return Ok(
            (b::ib_qp_attr_mask_IB_QP_ALT_PATH | b::ib_qp_attr_mask_IB_QP_PATH_MIG_STATE) as c_int,
        );
    }
    let mut mask = b::ib_qp_attr_mask_IB_QP_STATE | b::ib_qp_attr_mask_IB_QP_SQ_PSN;
    attr.sq_psn = conn.sq_psn;
    if matches!(conn.qp_type, QpType::Rc | QpType::XrcIni) {
        mask |= b::ib_qp_attr_mask_IB_QP_RETRY_CNT
            | b::ib_qp_attr_mask_IB_QP_RNR_RETRY
            | b::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC;
        attr.retry_cnt = conn.retry_count;
        attr.rnr_retry = conn.rnr_retry_count;
        attr.max_rd_atomic = conn.initiator_depth;
    }
    if matches!(conn.qp_type, QpType::Rc | QpType::XrcIni | QpType::XrcTgt) {
        mask |= b::ib_qp_attr_mask_IB_QP_TIMEOUT;
        attr.timeout = conn.ack_timeout;
    }
    if has_alternate_path(inner) {
        mask |= b::ib_qp_attr_mask_IB_QP_PATH_MIG_STATE;
        attr.path_mig_state = b::ib_mig_state_IB_MIG_REARM;
    }
    Ok(mask as c_int)
}
