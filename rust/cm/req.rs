// SPDX-License-Identifier: GPL-2.0
//! Received REQs: from the message to an identifier that a listener is told of.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::av::Av;
use super::debug::Cause;
use super::deliver::{
    discard,
    Delivery, //
};
use super::event::Event;
use super::id::Id;
use super::inbox::{
    Arrival,
    Request, //
};
use super::index::Reservation;
use super::inner::{
    Details,
    Spare,
    Spares, //
};
use super::listen::Listener;
use super::manager;
use super::manager::LocalId;
use super::receive::{
    reject,
    Mail, //
};
use super::rep::{
    carry_out,
    enter_both,
    Holder, //
};
use super::timers::Timer;
use crate::rdma::{
    ah::{
        AhAttr,
        AhType, //
    },
    log::warn_ratelimited,
    path::{
        is_opa_gid,
        opa_lid,
        PathRec,
        PathType, //
    },
    trace,
};
use ib_cm_proto::lookup::{
    self,
    Answer, //
};
use ib_cm_proto::state::State;
use ib_cm_proto::wire::{
    Lap,
    Msg,
    PathFields,
    RejReason,
    Req,
    ReqEdit,
    ReqView,
    LID_PERMISSIVE, //
};

/// `IB_SA_EQ`: a path record's MTU, rate and life time are exactly as stated.
const SELECTOR_EXACTLY: u8 = 2;

pub(crate) fn process(mut arrival: Mail) -> Option<Delivery> {
    let device = arrival.port.device.ib().as_ptr();
    // What fails before the peer is heard is as good as lost: the peer repeats its REQ.
    let attr = arrival.as_mut().project().sender.take()?;
    let id = Id::new(device, None, core::ptr::null_mut()).ok()?;
    let memory = Memory::reserve().ok()?;
    let local_id = Some(Reservation::new(GFP_KERNEL).ok()?);
    // For the paths, which are found with the identifier unlocked.
    let from = attr.copy();
    if let Err(holder) = enter(&arrival, &id, attr, memory) {
        trace::no_listener_err(id.public.raw());
        discard(&id);
        let qpn = ReqView(arrival.mad.mad()).local_qpn();
        let (verdict, known) = match holder {
            // IBA 12.9.8.3
            Holder::OfId(known) => {
                let conn = known.lock().conn;
                (lookup::refuse_req(Some(&conn), qpn), known)
            }
            // IBA 12.9.8.3.1
            Holder::OfQpn(known) => (lookup::refuse_req(None, qpn), known),
        };
        if verdict.duplicate && verdict.answer != Answer::Nothing {
            trace::send_dup_req(known.public.raw());
        }
        carry_out(&arrival, Msg::Req, &verdict, Some(known), None);
        return None;
    }
    let req = ReqView(arrival.mad.mad());
    let Some(listener) = Listener::find(arrival.port.device.key(), req.service_id()) else {
        trace::no_listener_err(id.public.raw());
        carry_out(&arrival, Msg::Req, &lookup::NO_SERVICE, None, None);
        discard(&id);
        return None;
    };
    match complete(arrival, &id, from, listener, local_id) {
        Ok(first) => Delivery::of(id, true, Some(first)),
        Err(_) => {
            discard(&id);
            None
        }
    }
}

/// Memory that a connection will need.
struct Memory {
    details: KBox<Details>,
    spares: Spares,
    timer: Timer,
}

impl Memory {
    fn reserve() -> Result<Self> {
        Ok(Memory {
            details: Details::new()?,
            spares: Spares::reserve()?,
            timer: Timer::reserve()?,
        })
    }
}

/// Notes what the REQ says, and enters the connection in the indices that duplicates and stale
/// connections are found by.
fn enter(
    arrival: &Arrival,
    id: &Arc<Id>,
    attr: AhAttr,
    memory: Memory,
) -> core::result::Result<(), Holder> {
    let mad = arrival.mad.mad();
    let req = ReqView(mad);
    id.public.set_service_id(req.service_id());
    let mut inner = id.lock();
    inner.conn.learn_req(req, req.tid());
    inner.conn.begin_unseen(State::ReqRcvd);
    let mut details = memory.details;
    details.spares = memory.spares;
    details.av = Av {
        port: Some(arrival.port.clone()),
        attr,
        dlid_datapath: 0,
        pkey_index: arrival.mad.pkey_index(),
    };
    inner.details = Some(details);
    inner.timer = memory.timer;
    id.note(&inner.conn, Cause::Request);
    id.public.show(&inner.conn);
    let (remote_id, remote_qpn) = (inner.conn.remote_id_key(), inner.conn.remote_qpn_key());
    enter_both(&mut inner, remote_id, remote_qpn, id)
}

/// Finds the paths and makes the identifier visible. Returns its first event, which the caller has
/// to deliver.
fn complete(
    mut arrival: Mail,
    id: &Arc<Id>,
    from: AhAttr,
    listener: Listener,
    mut local_id: Spare<LocalId>,
) -> Result<Event> {
    let mut request = paths_of_req(&mut arrival, &from);
    request.listener = Some(listener);
    let (av, alt_av) = address_vectors(&arrival, id, &from, &mut request)?;
    id.public
        .inherit(&request.listener.as_ref().ok_or(EINVAL)?.id().public);
    *arrival.as_mut().project().request = Some(KBox::new(request, GFP_KERNEL)?);

    let mut old_av = av;
    let mut inner = id.lock();
    let lives = |path: u8| path.saturating_sub(u8::from(path > 0)).saturating_add(1);
    let req = ReqView(arrival.mad.mad());
    // As the peer waits for acknowledgements, so do we; and so long lasts TimeWait.
    inner.conn.ack_timeout = lives(req.primary_local_ack_timeout());
    inner.conn.alt_ack_timeout = match &alt_av {
        Some(_) => lives(req.alternate_local_ack_timeout()),
        None => 0,
    };
    if let Some(details) = &mut inner.details {
        core::mem::swap(&mut details.av, &mut old_av);
        details.alt_av = alt_av;
    }
    if !inner.conn.show() {
        // The peer has given up meanwhile, or has lost this connection too.
        return Err(EPIPE);
    }
    while let Some(memory) = local_id {
        let key = LocalId(inner.conn.local_id);
        let entered = manager().local_ids.insert(key, id.clone(), memory);
        inner.entered.local_id = entered.is_ok();
        local_id = entered.err().map(|(memory, _)| memory);
        if local_id.is_some() {
            // After 2^32 identifiers the number may still be in use: take the next one.
            inner.conn.local_id = manager().next_local_id();
        }
    }
    id.public.show_local_id(&inner.conn);
    id.public.show(&inner.conn);
    // The consumer's reference.
    let _ = id.clone().own();
    if let Some(events) = inner.events() {
        events.delivering = true;
    }
    id.running.increment();
    drop(inner);
    drop(old_av);
    Ok(Event::Arrival(arrival))
}

/// The address vectors of the paths. Rejects the REQ where there is no way to the peer.
fn address_vectors(
    arrival: &Arrival,
    id: &Id,
    from: &AhAttr,
    request: &mut Request,
) -> Result<(Av, Option<KBox<Av>>)> {
    let mut av = match Av::from_path(&mut request.primary, from.sgid_attr()) {
        Ok(av) => av,
        Err(error) => {
            // IBA 12.6.7.2: the additional information is a GID that would do.
            let ib = arrival.port.device.ib();
            match ib.query_gid(arrival.port.number, 0) {
                Ok(gid) => reject(arrival, Msg::Req, RejReason::INVALID_GID, &gid),
                Err(_) => reject(arrival, Msg::Req, RejReason::INVALID_GID, &[]),
            }
            return Err(error);
        }
    };
    if from.ah_type() == AhType::Ib {
        av.dlid_datapath = ReqView(arrival.mad.mad()).primary_local_port_lid();
    }
    let alt_av = match &mut request.alternate {
        None => None,
        Some(path) => match Av::from_path(path, None) {
            // A queue pair cannot leave by another adapter.
            Ok(av) if av.is_of(id.public.device_key()) => Some(KBox::new(av, GFP_KERNEL)?),
            found => {
                let error = found.err().unwrap_or(EINVAL);
                let gid = request.primary.sgid();
                reject(arrival, Msg::Req, RejReason::INVALID_ALT_GID, &gid);
                return Err(error);
            }
        },
    };
    Ok((av, alt_av))
}

/// The paths that a REQ names, seen from our side.
fn paths_of_req(arrival: &mut Mail, from: &AhAttr) -> Request {
    let roce = from.ah_type() == AhType::Roce;
    if !roce {
        fill_in_routed_lids(arrival);
    }
    let req = Req::parse(arrival.mad.mad());
    let mut primary = PathRec::new();
    match (roce, from.sgid_attr()) {
        (true, Some(gid)) => primary.set_path_type_of_gid(gid.gid_type()),
        _ => set_path_type(&mut primary, arrival, &req.primary.local_port_gid),
    }
    fill_path(&mut primary, &req.primary);
    primary.set_service_id(req.service_id);
    primary.set_pkey(req.partition_key);
    primary.set_mtu(req.path_packet_payload_mtu);
    if primary.path_type() == PathType::Opa {
        set_opa_lids(&mut primary, &req.primary);
    } else {
        primary.set_dlid(arrival.mad.slid());
        primary.set_slid(req.primary.remote_port_lid.into());
    }
    let mut alternate = None;
    if req.has_alternate_path() {
        let mut path = PathRec::new();
        path.set_path_type(primary.path_type());
        fill_path(&mut path, &req.alternate);
        path.set_service_id(req.service_id);
        path.set_pkey(req.partition_key);
        path.set_mtu(req.path_packet_payload_mtu);
        set_lids(&mut path, &req.alternate);
        show_ib_gid(arrival, &mut path);
        alternate = Some(path);
    }
    if let Some(dmac) = from.dmac() {
        primary.set_dmac(dmac);
    }
    primary.set_hop_limit(from.hop_limit());
    show_ib_gid(arrival, &mut primary);
    let port = &arrival.port;
    let pkey = port
        .device
        .ib()
        .cached_pkey(port.number, arrival.mad.pkey_index());
    let bth_pkey = pkey.unwrap_or_else(|error| {
        warn_ratelimited!(
            "port {} has no partition key with index {} of a request ({})\n",
            port.number,
            arrival.mad.pkey_index(),
            error.to_errno()
        );
        0
    });
    Request {
        primary,
        alternate,
        bth_pkey,
        listener: None,
    }
}

/// Connections between subnets: where the sender could not know a LID, the MAD's own will do.
fn fill_in_routed_lids(arrival: &mut Mail) {
    let (slid, sl) = (arrival.mad.slid() as u16, arrival.mad.sl());
    let path_bits = arrival.mad.dlid_path_bits().into();
    let mad = arrival.as_mut().project().mad.mad_mut();
    let Req {
        primary, alternate, ..
    } = Req::parse(mad);
    let mut edit = ReqEdit(mad);
    if !primary.subnet_local {
        if primary.local_port_lid == LID_PERMISSIVE {
            edit.primary_local_port_lid(slid);
            edit.primary_sl(sl);
        }
        if primary.remote_port_lid == LID_PERMISSIVE {
            edit.primary_remote_port_lid(path_bits);
        }
    }
    if !alternate.subnet_local {
        if alternate.local_port_lid == LID_PERMISSIVE {
            edit.alternate_local_port_lid(slid);
            edit.alternate_sl(sl);
        }
        if alternate.remote_port_lid == LID_PERMISSIVE {
            edit.alternate_remote_port_lid(path_bits);
        }
    }
}

/// The path that a LAP names, seen from our side.
pub(crate) fn path_of_lap(arrival: &Arrival, id: &Arc<Id>) -> PathRec {
    let lap = Lap::parse(arrival.mad.mad());
    let conn = id.lock().conn;
    let mut path = PathRec::new();
    set_path_type(&mut path, arrival, &lap.alternate.local_port_gid);
    fill_path(&mut path, &lap.alternate);
    path.set_pkey(conn.pkey);
    path.set_mtu(conn.path_mtu);
    set_lids(&mut path, &lap.alternate);
    path
}

fn set_path_type(path: &mut PathRec, arrival: &Arrival, gid: &[u8; 16]) {
    let port = &arrival.port;
    let opa = is_opa_gid(gid) && port.device.ib().cap_opa_ah(port.number);
    path.set_path_type(if opa { PathType::Opa } else { PathType::Ib });
}

/// What does not depend on the kind of network. The sender's "local" is our "remote".
fn fill_path(path: &mut PathRec, fields: &PathFields) {
    path.set_dgid(fields.local_port_gid);
    path.set_sgid(fields.remote_port_gid);
    path.set_flow_label(fields.flow_label);
    path.set_hop_limit(fields.hop_limit);
    path.set_traffic_class(fields.traffic_class);
    path.set_reversible(1);
    path.set_sl(fields.sl);
    path.set_mtu_selector(SELECTOR_EXACTLY);
    path.set_rate_selector(SELECTOR_EXACTLY);
    path.set_rate(fields.packet_rate);
    path.set_packet_life_time_selector(SELECTOR_EXACTLY);
    path.set_packet_life_time(fields.local_ack_timeout.saturating_sub(1));
    if path.is_roce() {
        path.forget_route();
    }
}

fn set_lids(path: &mut PathRec, fields: &PathFields) {
    if path.path_type() == PathType::Opa {
        set_opa_lids(path, fields);
    } else {
        path.set_dlid(fields.local_port_lid.into());
        path.set_slid(fields.remote_port_lid.into());
    }
}

fn set_opa_lids(path: &mut PathRec, fields: &PathFields) {
    path.set_dlid(opa_lid(&fields.local_port_gid));
    path.set_slid(opa_lid(&fields.remote_port_gid));
}

/// Consumers such as IPoIB do not understand the GIDs of Omni-Path: shows them the IB one.
fn show_ib_gid(arrival: &Arrival, path: &mut PathRec) {
    let port = &arrival.port;
    let ib = port.device.ib();
    if !ib.cap_opa_ah(port.number) || !is_opa_gid(&path.sgid()) {
        return;
    }
    match ib.query_gid(port.number, 0) {
        Ok(gid) => path.set_sgid(gid),
        Err(error) => warn_ratelimited!(
            "port {} has no IB GID to show for a request ({})\n",
            port.number,
            error.to_errno()
        ),
    }
}
