// SPDX-License-Identifier: GPL-2.0
//! Received messages: whom each is for, and what becomes of it.
//!
//! Everything here runs in a worker and before any lock is taken, so it may sleep, which finding
//! the MAC address of a RoCE peer does. It returns what is to be delivered to a consumer.

use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
};

use super::act::With;
use super::av::Av;
use super::deliver::Delivery;
use super::id::{
    Found,
    Id, //
};
use super::inbox::{
    Arrival,
    Request, //
};
use super::manager;
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
use ib_cm_proto::lookup::{
    self,
    Addressed,
    Recipient, //
};
use ib_cm_proto::messages::{
    drep_to_stranger,
    rej_to_stranger, //
};
use ib_cm_proto::state::State;
use ib_cm_proto::step::Input;
use ib_cm_proto::wire::{
    AttrId,
    DreqView,
    LapView,
    MraView,
    Msg,
    RejReason,
    RejView, //
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

/// Whether a message needs an answer of its own, to where it comes from.
pub(crate) fn needs_sender(message: AttrId) -> bool {
    matches!(message, AttrId::Req | AttrId::SidrReq | AttrId::Lap)
}

/// Where a message that needs it comes from. May sleep, and so comes before the message's turn.
pub(crate) fn sender(arrival: &Arrival) -> Option<AhAttr> {
    if arrival.message == AttrId::Lap && is_roce(arrival) {
        return None;
    }
    let agents = arrival.port.enter()?;
    AhAttr::from_mad(&agents.main, &arrival.mad).ok()
}

/// Does the protocol's part of a message. Returns what the caller has to deliver, if anything.
pub(crate) fn process(arrival: Mail) -> Option<Delivery> {
    match arrival.message {
        AttrId::Req => req::process(arrival),
        AttrId::Rep => rep::process(arrival),
        AttrId::SidrReq => sidr::process(arrival),
        AttrId::Lap | AttrId::Apr if is_roce(&arrival) => None,
        AttrId::Lap => lap(arrival),
        _ => pass_on(arrival, With::nothing()),
    }
}

/// As in C, alternate paths are for InfiniBand alone.
fn is_roce(arrival: &Arrival) -> bool {
    let port = &arrival.port;
    port.device.ib().is_roce(port.number)
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

/// Gives a message to the identifier that it is for.
fn pass_on(arrival: Mail, with: With<'_>) -> Option<Delivery> {
    let addressed = lookup::addressed(arrival.message, arrival.mad.mad())?;
    let found = match addressed.to {
        Recipient::Local(local_id) => Id::find(local_id, arrival.port.device.key()),
        Recipient::Remote(key) => match manager().remote_ids.find(&key) {
            Some(id) => Found::Id(id),
            None => Found::Nobody,
        },
    };
    let id = match found {
        Found::Id(id) => id,
        Found::Elsewhere => return None,
        Found::Nobody => {
            if lookup::to_stranger(arrival.message) {
                drep_again(&arrival);
            }
            return None;
        }
    };
    give(id, addressed, arrival, with)
}

/// [`pass_on`], once the identifier is found.
fn give(id: Arc<Id>, addressed: Addressed, arrival: Mail, mut with: With<'_>) -> Option<Delivery> {
    let message = arrival.message;
    let mad = arrival.mad.mad();
    match message {
        // These begin a transaction.
        AttrId::Dreq | AttrId::Lap => with.tid = Some(DreqView(mad).tid()),
        AttrId::Mra => with.service_timeout = MraView(mad).service_timeout(),
        _ => {}
    }
    with.peer = Some(addressed.peer);
    with.arrival = Some(arrival);
    with.at_once = true;
    let outcome = id.act(addressed.input, &mut with);
    match (&outcome.step, &with.arrival) {
        (Some(step), arrival) => {
            // What is reported, and so gone, is no duplicate.
            if let (true, Some(arrival)) = (step.duplicate, arrival) {
                count_duplicate(arrival);
            }
            if step.unexpected {
                trace_unexpected(&id, addressed.input, step.duplicate);
            }
        }
        (None, Some(arrival)) if lookup::to_stranger(message) => drep_again(arrival),
        _ => {}
    }
    Delivery::of(id, outcome.deliver, with.first)
}

/// Traces a message that does not fit the state, where C does.
fn trace_unexpected(id: &Arc<Id>, input: Input, duplicate: bool) {
    let conn = id.lock().conn;
    let id = id.public.raw();
    match input {
        Input::Rej(_) => trace::rej_unknown_err(id),
        Input::Dreq { qpn } if qpn == conn.local_qpn && !duplicate => trace::dreq_unknown_err(id),
        // An MRA for another message than the one that waits is passed over in silence.
        Input::Mra(_)
            if !matches!(
                conn.state,
                State::ReqSent | State::RepSent | State::Established
            ) =>
        {
            trace::mra_unknown_err(id);
        }
        _ => {}
    }
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

/// A LAP brings a path, which has to be found before the identifier is locked.
fn lap(mut arrival: Mail) -> Option<Delivery> {
    let port = arrival.port.clone();
    let local_id = LapView(arrival.mad.mad()).remote_comm_id();
    let Found::Id(id) = Id::find(local_id, port.device.key()) else {
        return None;
    };
    let mut path = req::path_of_lap(&arrival, &id);
    let attr = arrival.as_mut().project().sender.take()?;
    let alt_av = Av::from_path(&mut path, None).ok()?;
    // A queue pair cannot leave by another adapter.
    if !alt_av.is_of(port.device.key()) {
        return None;
    }
    let alt_av = KBox::new(alt_av, GFP_KERNEL).ok()?;
    let av = Av {
        port: Some(port),
        attr,
        dlid_datapath: 0,
        pkey_index: arrival.mad.pkey_index(),
    };
    let request = Request {
        primary: path,
        alternate: None,
        listener: None,
        bth_pkey: 0,
    };
    *arrival.as_mut().project().request = Some(KBox::new(request, GFP_KERNEL).ok()?);
    let with = With {
        lap: Some((av, alt_av)),
        ..With::nothing()
    };
    pass_on(arrival, with)
}
