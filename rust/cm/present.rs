// SPDX-License-Identifier: GPL-2.0
//! Events as consumers see them: `struct ib_cm_event`.

use core::ptr::null_mut;

use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*, //
};

use super::event::Event;
use super::id::Id;
use super::inbox::Arrival;
use super::inner::Inner;
use super::public::Public;
use crate::rdma::{
    bindings,
    events::{
        set_rep_bits,
        set_req_bits,
        RepBits,
        ReqBits, //
    },
};
use ib_cm_proto::connection::QpType;
use ib_cm_proto::step::Report;
use ib_cm_proto::wire::{
    Apr,
    AprView,
    AttrId,
    Drep,
    Dreq,
    Lap,
    Mra,
    MraView,
    Rej,
    RejReason,
    RejView,
    Rep,
    RepView,
    Req,
    ReqView,
    Rtu,
    SidrRep,
    SidrRepView,
    SidrReq,
    SidrReqView, //
};

/// What consumers may read of a REJ that never came in: no information, no private data.
static NO_BYTES: [u8; Rej::PRIVATE_DATA_LEN] = [0; Rej::PRIVATE_DATA_LEN];

/// An event, as long as the [`Event`] that it was made from lives.
pub(crate) struct Presented(bindings::ib_cm_event);

/// Bytes that the consumer may read as long as the event lasts.
fn shared(bytes: &[u8]) -> *mut c_void {
    bytes.as_ptr().cast_mut().cast()
}

impl Presented {
    pub(crate) fn new(id: &Id, event: &mut Event) -> Self {
        let mut shown: bindings::ib_cm_event = pin_init::zeroed();
        match event {
            Event::Arrival(arrival) => present_arrival(&mut shown, id, arrival),
            Event::Note(report, status) => present_note(&mut shown, *report, *status),
        }
        Presented(shown)
    }

    /// Calls the consumer with it.
    pub(crate) fn show(&self, id: &Public) -> c_int {
        id.call(&self.0)
    }
}

fn present_note(shown: &mut bindings::ib_cm_event, report: Report, status: u32) {
    shown.event = match report {
        Report::UserEstablished => bindings::ib_cm_event_type_IB_CM_USER_ESTABLISHED,
        Report::ReqError => bindings::ib_cm_event_type_IB_CM_REQ_ERROR,
        Report::RepError => bindings::ib_cm_event_type_IB_CM_REP_ERROR,
        Report::DreqError => bindings::ib_cm_event_type_IB_CM_DREQ_ERROR,
        Report::SidrReqError => bindings::ib_cm_event_type_IB_CM_SIDR_REQ_ERROR,
        Report::TimewaitExit => bindings::ib_cm_event_type_IB_CM_TIMEWAIT_EXIT,
        Report::Stale | Report::Message => {
            shown.event = bindings::ib_cm_event_type_IB_CM_REJ_RECEIVED;
            shown.param.rej_rcvd = bindings::ib_cm_rej_event_param {
                reason: RejReason::STALE_CONN.0.into(),
                ari: shared(&NO_BYTES),
                ari_length: 0,
            };
            shown.private_data = shared(&NO_BYTES);
            return;
        }
    };
    shown.param.send_status = status;
}

/// What comes with a request besides its MAD, as pointers for the consumer.
struct Asked {
    primary: *mut bindings::sa_path_rec,
    alternate: *mut bindings::sa_path_rec,
    listener: *mut bindings::ib_cm_id,
    bth_pkey: u16,
}

impl Asked {
    fn of(arrival: &mut Pin<KBox<Arrival>>) -> Self {
        let mut asked = Asked {
            primary: null_mut(),
            alternate: null_mut(),
            listener: null_mut(),
            bth_pkey: 0,
        };
        if let Some(request) = arrival.as_mut().project().request {
            asked.primary = request.primary.as_mut_ptr().as_ptr();
            if let Some(alternate) = &mut request.alternate {
                asked.alternate = alternate.as_mut_ptr().as_ptr();
            }
            if let Some(listener) = &request.listener {
                asked.listener = listener.id().public.as_ptr();
            }
            asked.bth_pkey = request.bth_pkey;
        }
        asked
    }
}

fn present_arrival(shown: &mut bindings::ib_cm_event, id: &Id, arrival: &mut Pin<KBox<Arrival>>) {
    use bindings as b;

    let request = Asked::of(arrival);
    let mad = arrival.mad.mad();
    let (event, private_data) = match arrival.message {
        AttrId::Req => {
            shown.param.req_rcvd = present_req(id, arrival, &request);
            (
                b::ib_cm_event_type_IB_CM_REQ_RECEIVED,
                shared(Req::private_data(mad)),
            )
        }
        AttrId::Mra => {
            let view = MraView(arrival.mad.mad());
            shown.param.mra_rcvd.service_timeout = view.service_timeout();
            (
                b::ib_cm_event_type_IB_CM_MRA_RECEIVED,
                shared(Mra::private_data(mad)),
            )
        }
        AttrId::Rej => {
            let view = RejView(arrival.mad.mad());
            shown.param.rej_rcvd = b::ib_cm_rej_event_param {
                reason: view.reason().0.into(),
                ari: shared(view.ari()),
                // What consumers copy: never more than there is.
                ari_length: view.ari().len() as u8,
            };
            (
                b::ib_cm_event_type_IB_CM_REJ_RECEIVED,
                shared(Rej::private_data(mad)),
            )
        }
        AttrId::Rep => {
            shown.param.rep_rcvd = present_rep(arrival);
            (
                b::ib_cm_event_type_IB_CM_REP_RECEIVED,
                shared(Rep::private_data(mad)),
            )
        }
        AttrId::Rtu => (
            b::ib_cm_event_type_IB_CM_RTU_RECEIVED,
            shared(Rtu::private_data(mad)),
        ),
        AttrId::Dreq => (
            b::ib_cm_event_type_IB_CM_DREQ_RECEIVED,
            shared(Dreq::private_data(mad)),
        ),
        AttrId::Drep => (
            b::ib_cm_event_type_IB_CM_DREP_RECEIVED,
            shared(Drep::private_data(mad)),
        ),
        AttrId::SidrReq => {
            shown.param.sidr_req_rcvd = present_sidr_req(id, arrival, &request);
            (
                b::ib_cm_event_type_IB_CM_SIDR_REQ_RECEIVED,
                shared(SidrReq::private_data(mad)),
            )
        }
        AttrId::SidrRep => {
            shown.param.sidr_rep_rcvd = present_sidr_rep(id, arrival);
            (
                b::ib_cm_event_type_IB_CM_SIDR_REP_RECEIVED,
                shared(SidrRep::private_data(mad)),
            )
        }
        AttrId::Lap => {
            shown.param.lap_rcvd.alternate_path = request.primary;
            (
                b::ib_cm_event_type_IB_CM_LAP_RECEIVED,
                shared(Lap::private_data(mad)),
            )
        }
        AttrId::Apr => {
            let view = AprView(arrival.mad.mad());
            shown.param.apr_rcvd = b::ib_cm_apr_event_param {
                ap_status: view.ar_status().0.into(),
                apr_info: shared(view.info()),
                info_len: view.info().len() as u8,
            };
            (
                b::ib_cm_event_type_IB_CM_APR_RECEIVED,
                shared(Apr::private_data(mad)),
            )
        }
    };
    shown.event = event;
    shown.private_data = private_data;
}

fn present_req(id: &Id, arrival: &Arrival, request: &Asked) -> bindings::ib_cm_req_event_param {
    let req = ReqView(arrival.mad.mad());
    let mut param: bindings::ib_cm_req_event_param = pin_init::zeroed();
    param.listen_id = request.listener;
    param.primary_path = request.primary;
    param.alternate_path = request.alternate;
    param.bth_pkey = request.bth_pkey;
    {
        let inner = id.lock();
        param.port = inner.port().map_or(0, |port| port.number as u8);
        param.ppath_sgid_attr = sgid_attr_ptr(&inner);
    }
    param.remote_ca_guid = req.local_ca_guid().to_be();
    param.remote_qkey = req.local_q_key();
    param.remote_qpn = req.local_qpn();
    param.qp_type = QpType::of_passive_side(req.transport()) as bindings::ib_qp_type;
    param.starting_psn = req.starting_psn();
    param.responder_resources = req.initiator_depth();
    param.initiator_depth = req.responder_resources();
    let bits = ReqBits {
        // The peer's "remote" is our "local".
        local_cm_response_timeout: req.remote_cm_response_timeout(),
        flow_control: req.end_to_end_flow_control(),
        remote_cm_response_timeout: req.local_cm_response_timeout(),
        retry_count: req.retry_count(),
        rnr_retry_count: req.rnr_retry_count(),
        srq: req.srq(),
    };
    set_req_bits(&mut param, &bits);
    param.ece.vendor_id = req.vendor_id();
    param.ece.attr_mod = req.attr_mod();
    param
}

/// The entry of the local GID; null when there is none.
fn sgid_attr_ptr(inner: &Inner) -> *const bindings::ib_gid_attr {
    inner
        .av()
        .map_or(core::ptr::null(), |av| av.attr.sgid_attr_ptr())
}

fn present_rep(arrival: &Arrival) -> bindings::ib_cm_rep_event_param {
    let rep = RepView(arrival.mad.mad());
    let mut param: bindings::ib_cm_rep_event_param = pin_init::zeroed();
    param.remote_ca_guid = rep.local_ca_guid().to_be();
    param.remote_qkey = rep.local_q_key();
    param.remote_qpn = rep.qpn(arrival.to_xrc_initiator);
    param.starting_psn = rep.starting_psn();
    param.responder_resources = rep.initiator_depth();
    param.initiator_depth = rep.responder_resources();
    let bits = RepBits {
        target_ack_delay: rep.target_ack_delay(),
        failover_accepted: rep.failover_accepted(),
        flow_control: rep.end_to_end_flow_control(),
        rnr_retry_count: rep.rnr_retry_count(),
        srq: rep.srq(),
    };
    set_rep_bits(&mut param, &bits);
    param.ece.vendor_id = rep.vendor_id();
    param.ece.attr_mod = rep.attr_mod();
    param
}

fn present_sidr_req(
    id: &Id,
    arrival: &Arrival,
    request: &Asked,
) -> bindings::ib_cm_sidr_req_event_param {
    let req = SidrReqView(arrival.mad.mad());
    let mut param: bindings::ib_cm_sidr_req_event_param = pin_init::zeroed();
    param.listen_id = request.listener;
    param.bth_pkey = request.bth_pkey;
    param.pkey = req.partition_key();
    param.service_id = req.service_id().to_be();
    param.port = arrival.port.number as u8;
    param.sgid_attr = sgid_attr_ptr(&id.lock());
    param
}

fn present_sidr_rep(id: &Id, arrival: &Arrival) -> bindings::ib_cm_sidr_rep_event_param {
    let rep = SidrRepView(arrival.mad.mad());
    bindings::ib_cm_sidr_rep_event_param {
        status: rep.status().0.into(),
        qkey: rep.q_key(),
        qpn: rep.qpn(),
        info: shared(rep.info()),
        sgid_attr: sgid_attr_ptr(&id.lock()),
        info_len: rep.info().len() as u8,
    }
}
