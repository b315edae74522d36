// SPDX-License-Identifier: GPL-2.0
//! Received messages: whom each is for, and what becomes of it.
//!
//! Everything here runs in a worker and before any lock is taken, so it may sleep, which finding
//! the MAC address of a RoCE peer does. It returns the identifier that has an event to deliver.

use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
};

use super::act::With;
use super::av::Av;
use super::id::{
    Found,
    Id, //
};
use super::inbox::{
    Arrival,
    Request, //
};
use super::manager;
use super::manager::RemoteId;
use super::port::Port;
use super::rep;
use super::req;
use super::send::{
    reply,
    Repeat, //
};
use super::sidr;
use crate::rdma::{
    ah::AhAttr,
    mad::RecvMad,
    sysfs::CounterGroup,
    trace, //
};
use ib_cm_proto::messages::{
    drep_to_stranger,
    rej_to_stranger, //
};
use ib_cm_proto::state::State;
use ib_cm_proto::step::Input;
use ib_cm_proto::wire::{
    AprView,
    AttrId,
    DrepView,
    DreqView,
    LapView,
    MraView,
    Msg,
    RejReason,
    RejView,
    RtuView,
    SidrRepView, //
};

/// A MAD as it waits for its turn.
pub(crate) type Mail = Pin<KBox<Arrival>>;

/// Takes a MAD from the MAD layer.
pub(crate) fn enqueue(port: ArcBorrow<'_, Port>, mad: RecvMad) {
    let Some(message) = AttrId::from_raw(mad.attr_id()) else {
        return;
    };
    port.count(CounterGroup::RxMsgs, message, 1);
    // Without memory the MAD is as good as lost, and the peer repeats it.
    if let Ok(arrival) = Arrival::new(mad, port.into(), message) {
        port.inbox.push(arrival);
    }
}

/// Does the protocol's part of a message. Returns the identifier whose events the caller has to
/// deliver, if any.
pub(crate) fn process(arrival: Mail) -> Option<Arc<Id>> {
    match arrival.message {
        AttrId::Req => req::process(arrival),
        AttrId::Rep => rep::process(arrival),
        AttrId::SidrReq => sidr::process(arrival),
        AttrId::Mra => mra(arrival),
        AttrId::Rej => rej(arrival),
        AttrId::Rtu => rtu(arrival),
        AttrId::Dreq => dreq(arrival),
        AttrId::Drep => drep(arrival),
        AttrId::SidrRep => sidr_rep(arrival),
        AttrId::Lap => lap(arrival),
        AttrId::Apr => apr(arrival),
    }
}

/// The identifier that a message names by our communication ID.
fn named(arrival: &Arrival, local_id: u32) -> Option<Arc<Id>> {
    match Id::find(local_id, arrival.port.device.key()) {
        Found::Id(id) => Some(id),
        Found::Elsewhere | Found::Nobody => None,
    }
}

/// Counts a message that was known already.
pub(crate) fn count_duplicate(arrival: &Arrival) {
    arrival
        .port
        .count(CounterGroup::RxDuplicates, arrival.message, 1);
}

/// Rejects a REQ or REP that belongs to no connection of ours.
pub(crate) fn reject(arrival: &Arrival, message: Msg, reason: RejReason, ari: &[u8]) {
    reject_as(arrival, message, reason, ari, Repeat::No);
}

/// Rejects a REQ that repeats an earlier one.
pub(crate) fn reject_duplicate(arrival: &Arrival, reason: RejReason) {
    reject_as(arrival, Msg::Req, reason, &[], Repeat::Direct);
}

fn reject_as(arrival: &Arrival, message: Msg, reason: RejReason, ari: &[u8], repeat: Repeat) {
    let mad = arrival.mad.mad();
    // Both messages begin with the same two IDs.
    let view = RejView(mad);
    // A REQ has no remote ID: there the field is reserved.
    let remote = if message == Msg::Req {
        0
    } else {
        view.remote_comm_id()
    };
    let mut rej = rej_to_stranger(view.tid(), view.local_comm_id(), remote, message, reason);
    rej.set_ari(ari);
    trace::issue_rej(view.local_comm_id(), remote);
    // An answer that cannot be sent is as good as lost, and the peer asks again.
    let _ = reply(arrival, repeat, |mad| {
        rej.emit(mad, &[]);
        true
    });
}

/// Rejects a request whose listener has gone before it was told.
pub(crate) fn reject_withdrawn(arrival: &Arrival) {
    match arrival.message {
        AttrId::Req => reject(arrival, Msg::Req, RejReason::INVALID_SERVICE_ID, &[]),
        _ => sidr::refuse(arrival),
    }
}

/// Gives a message to the identifier that it is for. Returns the identifier if events wait, and
/// whether the message was expected.
fn give(id: Arc<Id>, input: Input, with: &mut With<'_>) -> (Option<Arc<Id>>, Expected) {
    let port = with
        .arrival
        .as_ref()
        .map(|arrival| (arrival.port.clone(), arrival.message));
    let outcome = id.act(input, with);
    let expected = match &outcome.step {
        None => Expected::NotForIt,
        Some(step) => {
            if let (true, Some((port, message))) = (step.duplicate, port) {
                port.count(CounterGroup::RxDuplicates, message, 1);
            }
            match step.unexpected {
                true if step.duplicate => Expected::Duplicate,
                true => Expected::No,
                false => Expected::Yes,
            }
        }
    };
    (outcome.deliver.then_some(id), expected)
}

/// Whether an identifier could make sense of a message.
#[derive(PartialEq, Eq)]
enum Expected {
    Yes,
    /// It had it before.
    Duplicate,
    /// Not in its state.
    No,
    /// It is not the one that was meant.
    NotForIt,
}

fn mra(arrival: Mail) -> Option<Arc<Id>> {
    let view = MraView(arrival.mad.mad());
    let message = Msg::from_raw(view.message_mraed())?;
    let id = named(&arrival, view.remote_comm_id())?;
    let service_timeout = view.service_timeout();
    // As long as no REP has come we do not know the peer's ID.
    let peer = if message == Msg::Req {
        0
    } else {
        view.local_comm_id()
    };
    let mut with = With {
        service_timeout,
        ..With::message(arrival, peer)
    };
    let (deliver, expected) = give(id.clone(), Input::Mra(message), &mut with);
    // As in C: an MRA for another message than the one that waits is passed over in silence.
    let state = id.lock().conn.state;
    let waits = matches!(state, State::ReqSent | State::RepSent | State::Established);
    if matches!(expected, Expected::No | Expected::Duplicate) && !waits {
        trace::mra_unknown_err(id.public.raw());
    }
    deliver
}

fn rej(arrival: Mail) -> Option<Arc<Id>> {
    let view = RejView(arrival.mad.mad());
    let reason = view.reason();
    let sender = view.local_comm_id();
    let (id, peer) = if reason == RejReason::TIMEOUT {
        // The sender has given up before it knew our ID: it tells its GUID instead.
        let guid: &[u8; 8] = view.ari().first_chunk()?;
        let key = RemoteId {
            id: sender,
            ca_guid: u64::from_be_bytes(*guid),
        };
        (manager().remote_ids.find(&key)?, sender)
    } else if view.message_rejected() == Msg::Req.raw() {
        (named(&arrival, view.remote_comm_id())?, 0)
    } else {
        (named(&arrival, view.remote_comm_id())?, sender)
    };
    let (deliver, expected) = give(
        id.clone(),
        Input::Rej(reason),
        &mut With::message(arrival, peer),
    );
    if expected == Expected::No {
        trace::rej_unknown_err(id.public.raw());
    }
    deliver
}

fn rtu(arrival: Mail) -> Option<Arc<Id>> {
    let view = RtuView(arrival.mad.mad());
    let id = named(&arrival, view.remote_comm_id())?;
    let peer = view.local_comm_id();
    give(id, Input::Rtu, &mut With::message(arrival, peer)).0
}

fn dreq(arrival: Mail) -> Option<Arc<Id>> {
    let mad = arrival.mad.mad();
    let view = DreqView(mad);
    let (local, remote, qpn) = (
        view.remote_comm_id(),
        view.local_comm_id(),
        view.remote_qpn_eecn(),
    );
    let id = match Id::find(local, arrival.port.device.key()) {
        Found::Id(id) => id,
        Found::Elsewhere => return None,
        Found::Nobody => {
            drep_again(&arrival);
            return None;
        }
    };
    let mut with = With {
        tid: Some(view.tid()),
        ..With::message(arrival, remote)
    };
    let (deliver, expected) = give(id.clone(), Input::Dreq { qpn }, &mut with);
    match (expected, &with.arrival) {
        (Expected::NotForIt, Some(arrival)) => drep_again(arrival),
        (Expected::No, _) if qpn == id.lock().conn.local_qpn => {
            trace::dreq_unknown_err(id.public.raw());
        }
        _ => {}
    }
    deliver
}

/// Answers a DREQ for a connection that we know nothing of: the peer may forget it too.
fn drep_again(arrival: &Arrival) {
    let mad = arrival.mad.mad();
    let view = DreqView(mad);
    let drep = drep_to_stranger(view.tid(), view.local_comm_id(), view.remote_comm_id());
    count_duplicate(arrival);
    trace::issue_drep(view.local_comm_id(), view.remote_comm_id());
    // An answer that cannot be sent is as good as lost, and the peer asks again.
    let _ = reply(arrival, Repeat::Direct, |mad| {
        drep.emit(mad, &[]);
        true
    });
    trace::no_priv_err(view.local_comm_id(), view.remote_comm_id());
}

fn drep(arrival: Mail) -> Option<Arc<Id>> {
    let view = DrepView(arrival.mad.mad());
    let id = named(&arrival, view.remote_comm_id())?;
    let peer = view.local_comm_id();
    give(id, Input::Drep, &mut With::message(arrival, peer)).0
}

fn sidr_rep(arrival: Mail) -> Option<Arc<Id>> {
    let view = SidrRepView(arrival.mad.mad());
    let id = named(&arrival, view.request_id())?;
    give(id, Input::SidrRep, &mut With::message(arrival, 0)).0
}

fn lap(mut arrival: Mail) -> Option<Arc<Id>> {
    let port = arrival.port.clone();
    // As in C, alternate paths are for InfiniBand alone.
    if port.device.ib().is_roce(port.number) {
        return None;
    }
    let mad = arrival.mad.mad();
    let view = LapView(mad);
    let (local, remote, tid) = (view.remote_comm_id(), view.local_comm_id(), view.tid());
    let id = named(&arrival, local)?;
    let mut path = req::path_of_lap(&arrival, &id);
    let agents = port.enter()?;
    let attr = AhAttr::from_mad(&agents.main, &arrival.mad).ok()?;
    drop(agents);
    let alt_av = KBox::new(Av::from_path(&mut path, None).ok()?, GFP_KERNEL).ok()?;
    let request = Request {
        primary: path,
        alternate: None,
        listener: None,
        bth_pkey: 0,
    };
    let av = Av {
        port: Some(port),
        attr,
        dlid_datapath: 0,
        pkey_index: arrival.mad.pkey_index(),
    };
    *arrival.as_mut().project().request = Some(KBox::new(request, GFP_KERNEL).ok()?);
    let mut with = With {
        tid: Some(tid),
        lap: Some((av, alt_av)),
        ..With::message(arrival, remote)
    };
    give(id, Input::Lap, &mut with).0
}

fn apr(arrival: Mail) -> Option<Arc<Id>> {
    let port = &arrival.port;
    // As in C, alternate paths are for InfiniBand alone.
    if port.device.ib().is_roce(port.number) {
        return None;
    }
    let view = AprView(arrival.mad.mad());
    let id = named(&arrival, view.remote_comm_id())?;
    let peer = view.local_comm_id();
    give(id, Input::Apr, &mut With::message(arrival, peer)).0
}
