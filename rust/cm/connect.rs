// SPDX-License-Identifier: GPL-2.0
//! Calls of consumers that make, confirm, refuse and end connections.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::act::{
    tid_of,
    With, //
};
use super::av::Av;
use super::debug::Cause;
use super::id::Id;
use super::inner::{
    Details,
    Inner,
    Spares, //
};
use super::manager;
use super::manager::LocalQpn;
use super::port::{
    Agents,
    Port, //
};
use super::send::{
    self,
    Begun,
    Flying,
    NotBegun,
    Repeat,
    Way, //
};
use super::timers::Timer;
use crate::rdma::{
    bindings,
    gid::GidAttr,
    log::warn_ratelimited,
    mad::Agent,
    path::PathRec,
    trace, //
};
use ib_cm_proto::connection::{
    Connection,
    QpType, //
};
use ib_cm_proto::step::{
    Call,
    Flight,
    Input, //
};
use ib_cm_proto::time;
use ib_cm_proto::wire::{
    PathFields,
    RejReason,
    Rep,
    Req,
    LID_PERMISSIVE, //
};

/// A queue pair number has 24 bits.
const QPN_MASK: u32 = 0xff_ffff;

/// Upper half of a GID's interface ID that carries a LID of Omni-Path (`OPA_MAKE_ID`).
const OPA_INTERFACE_ID: u64 = 0x0000_066a << 40;

/// What `ib_send_cm_req` gets.
pub(crate) struct Request<'a> {
    pub(crate) param: &'a bindings::ib_cm_req_param,
    pub(crate) qp_type: QpType,
    pub(crate) primary: &'a mut PathRec,
    pub(crate) inbound: Option<&'a PathRec>,
    pub(crate) outbound: Option<&'a PathRec>,
    pub(crate) alternate: Option<&'a mut PathRec>,
    pub(crate) attr: Option<&'a GidAttr>,
    pub(crate) private_data: &'a [u8],
}

/// The queue pair types that can ask for a connection.
pub(crate) fn active_qp_type(raw: bindings::ib_qp_type) -> Option<QpType> {
    [QpType::Rc, QpType::Uc, QpType::XrcIni]
        .into_iter()
        .find(|qp_type| *qp_type as bindings::ib_qp_type == raw)
}

/// `ib_send_cm_req`.
///
/// # Errors
///
/// `EINVAL` in another state than idle, where no port has the path's source GID, or where the
/// alternate path does not fit the primary one; `ENOENT`, `ENOMEM`, and what sending returns.
pub(crate) fn request(id: &Arc<Id>, mut request: Request<'_>) -> Result {
    if let Some(alternate) = &request.alternate {
        if alternate.pkey() != request.primary.pkey() || alternate.mtu() != request.primary.mtu() {
            return Err(EINVAL);
        }
    }
    id.lock()
        .conn
        .permits(Call::SendReq)
        .map_err(super::refused)?;
    let mut fresh = Some(Details::new()?);
    let (mut spares, mut timer) = (Spares::reserve()?, Timer::reserve()?);
    let mut av = Av::from_path(request.primary, request.attr)?;
    if let Some(outbound) = request.outbound {
        av.dlid_datapath = outbound.ib_dlid();
    }
    let alt_av = match &mut request.alternate {
        Some(path) => Some(KBox::new(Av::from_path(path, None)?, GFP_KERNEL)?),
        None => None,
    };
    // A queue pair cannot leave by another adapter.
    if alt_av
        .as_ref()
        .is_some_and(|av| !av.is_of(id.public.device_key()))
    {
        return Err(EINVAL);
    }
    let record = Flying::record(id.clone(), Flight::Req)?;
    let port = av.port.clone().ok_or(EINVAL)?;
    let agents = port.enter().ok_or(EINVAL)?;
    let mut outgoing = send::buffer(&agents.main, &av, id.public.remote_cm_qpn())?;

    // What is replaced is dropped after the guard, which is declared last: GIDs may not be put here.
    let mut old = (av, alt_av);
    let mut inner = id.lock();
    inner.conn.permits(Call::SendReq).map_err(super::refused)?;
    let param = request.param;
    id.public.set_service_id(u64::from_be(param.service_id));
    let details = inner.details_or(&mut fresh).ok_or(ENOMEM)?;
    core::mem::swap(&mut details.av, &mut old.0);
    core::mem::swap(&mut details.alt_av, &mut old.1);
    note_request(&mut inner.conn, &request);
    let tid = tid_of(outgoing.hi_tid(), inner.conn.local_id);
    inner.conn.tid = tid;
    let ack_delay = port.device.ack_delay;
    let message = req_message(&inner.conn, &request, port.device.node_guid, ack_delay);
    message.emit(outgoing.mad_mut(), request.private_data);
    trace::send_req(id.public.raw());
    let (timeout_ms, retries) = (inner.conn.timeout_ms, inner.conn.max_cm_retries);
    outgoing.post_recorded(&record, timeout_ms, retries)?;
    inner.set_record(record);
    core::mem::swap(&mut inner.timer, &mut timer);
    if let Some(details) = &mut inner.details {
        core::mem::swap(&mut details.spares, &mut spares);
    }
    enter_local_qpn(id, &mut inner);
    take_note(id, &mut inner, Call::SendReq);
    Ok(())
}

/// Notes what the consumer wants.
fn note_request(conn: &mut Connection, request: &Request<'_>) {
    let (param, path) = (request.param, &request.primary);
    let life_time = path.packet_life_time();
    conn.timeout_ms = time::ms_from_iba(life_time)
        .saturating_mul(2)
        .saturating_add(time::ms_from_iba(param.remote_cm_response_timeout));
    conn.max_cm_retries = param.max_cm_retries;
    conn.initiator_depth = param.initiator_depth;
    conn.responder_resources = param.responder_resources;
    conn.retry_count = param.retry_count;
    conn.path_mtu = path.mtu();
    conn.pkey = path.pkey();
    conn.qp_type = request.qp_type;
    conn.ack_timeout = life_time.saturating_add(1);
    conn.alt_ack_timeout = match &request.alternate {
        Some(alternate) => alternate.packet_life_time().saturating_add(1),
        None => 0,
    };
    conn.local_qpn = param.qp_num & QPN_MASK;
    conn.rq_psn = param.starting_psn & QPN_MASK;
}

fn req_message(conn: &Connection, request: &Request<'_>, guid: u64, ack_delay: u8) -> Req {
    let param = request.param;
    let mut message = Req {
        tid: conn.tid,
        attr_mod: param.ece.attr_mod,
        vendor_id: param.ece.vendor_id,
        local_comm_id: conn.local_id,
        service_id: u64::from_be(param.service_id),
        local_ca_guid: guid,
        local_qpn: conn.local_qpn,
        initiator_depth: param.initiator_depth,
        remote_cm_response_timeout: param.remote_cm_response_timeout,
        end_to_end_flow_control: param.flow_control != 0,
        starting_psn: conn.rq_psn,
        local_cm_response_timeout: param.local_cm_response_timeout,
        partition_key: conn.pkey,
        path_packet_payload_mtu: conn.path_mtu,
        max_cm_retries: param.max_cm_retries,
        primary: path_fields(request.primary, request.inbound, ack_delay),
        ..Req::ZERO
    };
    if let Some(transport) = request.qp_type.transport() {
        message.set_transport(transport);
    }
    if request.qp_type != QpType::XrcIni {
        message.responder_resources = param.responder_resources;
        message.retry_count = param.retry_count;
        message.rnr_retry_count = param.rnr_retry_count;
        message.srq = param.srq != 0;
    }
    if let Some(alternate) = &request.alternate {
        message.alternate = path_fields(alternate, None, ack_delay);
    }
    message
}

/// A path as a REQ names it. `inbound`: the way back of a path that leaves the subnet.
fn path_fields(path: &PathRec, inbound: Option<&PathRec>, ack_delay: u8) -> PathFields {
    let mut fields = PathFields {
        local_port_lid: path.slid() as u16,
        remote_port_lid: path.dlid() as u16,
        local_port_gid: path.sgid(),
        remote_port_gid: path.dgid(),
        flow_label: path.flow_label(),
        packet_rate: path.rate(),
        traffic_class: path.traffic_class(),
        hop_limit: path.hop_limit(),
        sl: path.sl(),
        subnet_local: path.hop_limit() <= 1,
        local_ack_timeout: time::ack_timeout(ack_delay, path.packet_life_time()),
    };
    if path.has_extended_lid() {
        set_interface_id(&mut fields.local_port_gid, path.slid());
        set_interface_id(&mut fields.remote_port_gid, path.dlid());
        fields.local_port_lid = 0;
        fields.remote_port_lid = 0;
    }
    if !fields.subnet_local {
        fields.local_port_lid = inbound.map_or(LID_PERMISSIVE, PathRec::ib_dlid);
        // There is no way to find out the LID at the far end.
        fields.remote_port_lid = LID_PERMISSIVE;
    }
    fields
}

fn set_interface_id(gid: &mut [u8; 16], lid: u32) {
    let id = (OPA_INTERFACE_ID | u64::from(lid)).to_be_bytes();
    for (to, from) in gid.iter_mut().skip(8).zip(id) {
        *to = from;
    }
}

/// Notes that our queue pair may not go away as long as the connection lasts.
fn enter_local_qpn(id: &Arc<Id>, inner: &mut Inner) {
    let key = LocalQpn {
        device: id.public.device_key(),
        qpn: inner.conn.local_qpn,
        local_id: inner.conn.local_id,
    };
    if let Some(mut slots) = inner.slots() {
        // The key carries the local ID, so nobody else has it.
        let _ = slots.local_qpn.enter(&manager().local_qpns, key, id);
    }
}

/// `ib_send_cm_rep`.
///
/// # Errors
///
/// `EINVAL` where no REQ waits for an answer or the device goes away; `ENOMEM`, and what sending
/// returns.
pub(crate) fn accept(
    id: &Arc<Id>,
    param: &bindings::ib_cm_rep_param,
    private_data: &[u8],
) -> Result {
    let mut way = Way::None;
    let begun = send::begin(id, &mut way, rep_agent, Some(Call::SendRep));
    if let Err(NotBegun::Refused(_)) = &begun {
        let conn = id.lock().conn;
        trace::send_rep_err(conn.local_id, conn.state as u32);
    }
    let mut begun = begun?;
    let record = Flying::record(id.clone(), Flight::Rep)?;
    if param.qp_num & !QPN_MASK != 0 {
        warn_ratelimited!(
            "a queue pair number has 24 bits, but a REP names {:#x}\n",
            param.qp_num
        );
    }

    let mut inner = id.lock();
    inner.conn.permits(Call::SendRep).map_err(super::refused)?;
    let mut accepted = inner.conn;
    accepted.local_qpn = param.qp_num & QPN_MASK;
    accepted.rq_psn = param.starting_psn & QPN_MASK;
    accepted.initiator_depth = param.initiator_depth;
    accepted.responder_resources = param.responder_resources;
    let mut message = Rep {
        tid: accepted.tid,
        attr_mod: param.ece.attr_mod,
        vendor_id: param.ece.vendor_id & QPN_MASK,
        local_comm_id: accepted.local_id,
        remote_comm_id: accepted.remote_id,
        starting_psn: accepted.rq_psn,
        responder_resources: param.responder_resources,
        target_ack_delay: begun.port.device.ack_delay,
        failover_accepted: param.failover_accepted,
        rnr_retry_count: param.rnr_retry_count,
        local_ca_guid: begun.port.device.node_guid,
        ..Rep::ZERO
    };
    if accepted.qp_type == QpType::XrcTgt {
        message.srq = true;
        message.local_ee_context_number = accepted.local_qpn;
    } else {
        message.initiator_depth = param.initiator_depth;
        message.end_to_end_flow_control = param.flow_control != 0;
        message.srq = param.srq != 0;
        message.local_qpn = accepted.local_qpn;
    }
    message.emit(begun.outgoing.mad_mut(), private_data);
    trace::send_rep(id.public.raw());
    begun
        .outgoing
        .post_recorded(&record, accepted.timeout_ms, accepted.max_cm_retries)?;
    inner.set_record(record);
    inner.conn = accepted;
    enter_local_qpn(id, &mut inner);
    take_note(id, &mut inner, Call::SendRep);
    Ok(())
}

/// A copy of private data, to repeat the message that carries it. No private data needs no
/// memory, so that the call may come from where nothing may sleep.
fn copy(private_data: &[u8]) -> Result<KVec<u8>> {
    let mut kept = KVec::new();
    if !private_data.is_empty() {
        kept.extend_from_slice(private_data, GFP_KERNEL)?;
    }
    Ok(kept)
}

/// `ib_send_cm_rtu`.
///
/// # Errors
///
/// `EINVAL` where no REP waits for its confirmation or the device goes away; `ENOMEM`, and what
/// sending returns.
pub(crate) fn confirm(id: &Arc<Id>, private_data: &[u8]) -> Result {
    let mut kept = copy(private_data)?;
    let mut way = Way::None;
    let begun = send::begin(id, &mut way, send::main_agent, Some(Call::SendRtu));
    if let Err(NotBegun::Refused(_)) = &begun {
        trace::send_cm_rtu_err(id.public.raw());
    }
    let mut begun = begun?;
    let mut inner = id.lock();
    inner.conn.permits(Call::SendRtu).map_err(super::refused)?;
    inner
        .conn
        .rtu_message()
        .emit(begun.outgoing.mad_mut(), private_data);
    trace::send_rtu(id.public.raw());
    begun.outgoing.post(Repeat::No)?;
    inner.swap_private_data(&mut kept);
    take_note(id, &mut inner, Call::SendRtu);
    drop(inner);
    drop(kept);
    Ok(())
}

/// `ib_send_cm_dreq`. Where the DREQ cannot be sent, TimeWait begins at once.
///
/// # Errors
///
/// `EINVAL` in another state than established or when the device goes away; `ENOMEM`, and what
/// sending returns.
pub(crate) fn disconnect(id: &Arc<Id>, private_data: &[u8]) -> Result {
    let mut way = Way::None;
    let sent = match send::begin(id, &mut way, send::main_agent, Some(Call::SendDreq)) {
        Ok(begun) => post_dreq(id, begun, private_data),
        Err(NotBegun::Refused(refusal)) => {
            trace::dreq_skipped(id.public.raw());
            return Err(super::refused(refusal));
        }
        Err(NotBegun::Failed(error)) => Err(error),
    };
    if sent.is_err() {
        let outcome = id.act(Input::DreqNotSent, &mut With::nothing());
        if outcome.deliver {
            Id::deliver_later(id.clone());
        }
    }
    sent
}

fn post_dreq(id: &Arc<Id>, mut begun: Begun<'_>, private_data: &[u8]) -> Result {
    let record = Flying::record(id.clone(), Flight::Dreq)?;
    let mut inner = id.lock();
    inner.conn.permits(Call::SendDreq).map_err(super::refused)?;
    let conn = &inner.conn;
    let tid = tid_of(begun.outgoing.hi_tid(), conn.local_id);
    conn.dreq_message(tid)
        .emit(begun.outgoing.mad_mut(), private_data);
    trace::send_dreq(id.public.raw());
    begun
        .outgoing
        .post_recorded(&record, conn.timeout_ms, conn.max_cm_retries)?;
    inner.set_record(record);
    take_note(id, &mut inner, Call::SendDreq);
    Ok(())
}

/// The message of a call is on its way.
#[inline(never)]
fn take_note(id: &Id, inner: &mut Inner, call: Call) {
    let input = Input::Call(call);
    inner.conn.step(input);
    id.note(&inner.conn, Cause::Input(input));
    id.public.show(&inner.conn);
}

/// The agent for REPs.
fn rep_agent(agents: &Agents) -> &Agent<Port> {
    &agents.rep
}

/// Does what a call says, which sends so many messages, and returns what the consumer gets.
fn call(id: &Arc<Id>, call: Call, with: &mut With<'_>, sends: usize) -> Result {
    let outcome = id.act_and_send(Input::Call(call), with, sends);
    if outcome.deliver {
        Id::deliver_later(id.clone());
    }
    match outcome.step.and_then(|step| step.refused) {
        Some(refusal) => Err(super::refused(refusal)),
        None => outcome.sent,
    }
}

/// `ib_send_cm_drep`. TimeWait begins whether or not the DREP can be sent.
///
/// # Errors
///
/// `EINVAL` where no DREQ waits for an answer; `ENOMEM`, and what sending returns.
pub(crate) fn confirm_disconnect(id: &Arc<Id>, private_data: &[u8]) -> Result {
    let mut with = With {
        keep: Some(copy(private_data)?),
        ..With::nothing()
    };
    let permitted = id.lock().conn.permits(Call::SendDrep);
    if let Err(refusal) = permitted {
        trace::send_drep_err(id.public.raw());
        return Err(super::refused(refusal));
    }
    call(id, Call::SendDrep, &mut with, 1)
}

/// `ib_send_cm_rej`. The attempt to connect is over whether or not the REJ can be sent.
///
/// # Errors
///
/// `EINVAL` where nothing can be rejected; `ENOMEM`, and what sending returns.
pub(crate) fn reject(id: &Arc<Id>, reason: RejReason, ari: &[u8], private_data: &[u8]) -> Result {
    let mut with = With {
        ari,
        private_data,
        ..With::nothing()
    };
    let permitted = id.lock().conn.permits(Call::SendRej(reason));
    if let Err(refusal) = permitted {
        trace::send_rej(id.public.raw(), reason.0.into());
        trace::send_unknown_rej_err(id.public.raw());
        return Err(super::refused(refusal));
    }
    call(id, Call::SendRej(reason), &mut with, 1)
}

/// `ib_prepare_cm_mra`.
///
/// # Errors
///
/// `EINVAL` where no message waits for an answer.
pub(crate) fn prepare_mra(id: &Arc<Id>) -> Result {
    let mut with = With {
        keep: Some(KVec::new()),
        ..With::nothing()
    };
    let permitted = id.lock().conn.permits(Call::PrepareMra);
    if let Err(refusal) = permitted {
        trace::prepare_mra_unknown_err(id.public.raw());
        return Err(super::refused(refusal));
    }
    call(id, Call::PrepareMra, &mut with, 0)
}

/// `ib_cm_notify` with `IB_EVENT_COMM_EST`: data has come in, so the RTU must be lost or late. May
/// be called in hard interrupts.
///
/// # Errors
///
/// `ENODEV` when the device goes away; `EISCONN` when the connection is established; `EINVAL`
/// where no RTU is expected.
pub(crate) fn established(id: &Arc<Id>) -> Result {
    manager().adapter(id.public.device_key()).ok_or(ENODEV)?;
    let done = call(id, Call::Established, &mut With::nothing(), 0);
    if done == Err(EINVAL) {
        trace::establish_err(id.public.raw());
    }
    done
}

/// `ib_cm_notify` with `IB_EVENT_PATH_MIG`: the alternate path is the primary one now.
///
/// # Errors
///
/// `EINVAL` where there is nothing to migrate.
pub(crate) fn path_migrated(id: &Arc<Id>) -> Result {
    let mut inner = id.lock();
    let mut old = inner.alt_av().ok_or(EINVAL)?.duplicate();
    let step = inner.conn.step(Input::Call(Call::PathMigrated));
    if let Some(refusal) = step.refused {
        return Err(super::refused(refusal));
    }
    if let Some(details) = &mut inner.details {
        core::mem::swap(&mut details.av, &mut old);
    }
    inner.conn.ack_timeout = inner.conn.alt_ack_timeout;
    id.public.show(&inner.conn);
    drop(inner);
    drop(old);
    Ok(())
}
