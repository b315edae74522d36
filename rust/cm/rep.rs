// SPDX-License-Identifier: GPL-2.0
//! Received REPs: the answer to a REQ, checked against the connections that exist.

use kernel::sync::Arc;

use super::act::With;
use super::debug::{
    Cause,
    Described, //
};
use super::deliver::Delivery;
use super::id::{
    Found,
    Id, //
};
use super::inner::Inner;
use super::manager;
use super::manager::{
    RemoteId,
    RemoteQpn, //
};
use super::receive::{
    count_duplicate,
    reject,
    reject_duplicate,
    Mail, //
};
use super::send::{
    reply,
    Repeat, //
};
use crate::rdma::{
    log::warn_ratelimited,
    trace, //
};
use ib_cm_proto::connection::{
    Connection,
    QpType, //
};
use ib_cm_proto::lookup::{
    self,
    Answer,
    Meeting,
    Named,
    Verdict, //
};
use ib_cm_proto::step::{
    Input,
    RepMatch,
    Step, //
};
use ib_cm_proto::wire::{
    Msg,
    RepView, //
};

/// What became of a REP that answers a REQ.
enum Outcome {
    /// The identifier has moved on, and has an event if true.
    Accepted(bool),
    /// The identifier had moved on before.
    TooLate,
    /// It met another connection.
    Met(Holder),
}

pub(crate) fn process(arrival: Mail) -> Option<Delivery> {
    let view = RepView(arrival.mad.mad());
    let (local, remote) = (view.remote_comm_id(), view.local_comm_id());
    let found = Id::find(local, arrival.port.device.key());
    let conn = match &found {
        Found::Id(id) => Some(id.lock().conn),
        _ => None,
    };
    let named = match (&found, &conn) {
        (Found::Id(_), Some(conn)) => Named::Known(conn),
        (Found::Elsewhere, _) => Named::Elsewhere,
        _ => Named::Nobody,
    };
    let verdict = lookup::refuse_rep(named, remote);
    let id = match found {
        Found::Id(id) => Some(id),
        _ => None,
    };
    match (verdict, id) {
        (Some(verdict), id) => {
            trace_refused(&verdict, conn.as_ref(), local, remote);
            if let (Answer::Rtu | Answer::Mra, Some(id)) = (verdict.answer, &id) {
                again(&arrival, id);
            } else {
                carry_out(&arrival, Msg::Rep, &verdict, None, None);
            }
            None
        }
        (None, Some(id)) => answer(arrival, id),
        (None, None) => None,
    }
}

/// Traces a REP that leads no further, as C does.
fn trace_refused(verdict: &Verdict, conn: Option<&Connection>, local: u32, remote: u32) {
    match (verdict.answer, conn) {
        (Answer::Rej(_), Some(conn)) => {
            trace::rep_unknown_err(remote, local, conn.state as u32);
        }
        _ => trace::remote_no_priv_err(local),
    }
}

/// Does what a verdict on a REQ or REP says. `known` is whom it met, `ours` whom a REP is for.
pub(crate) fn carry_out(
    arrival: &Mail,
    message: Msg,
    verdict: &Verdict,
    known: Option<Arc<Id>>,
    ours: Option<Arc<Id>>,
) {
    if verdict.duplicate {
        count_duplicate(arrival);
    }
    match (verdict.answer, &known) {
        (Answer::Rej(reason), _) if verdict.duplicate && message == Msg::Req => {
            reject_duplicate(arrival, reason);
        }
        (Answer::Rej(reason), _) => reject(arrival, message, reason, &[]),
        (Answer::Mra, Some(known)) => {
            let conn = known.lock().conn;
            // An answer that cannot be sent is as good as lost, and the peer asks again.
            let _ = reply(arrival, Repeat::Direct, |mad| {
                conn.mra_message(message).emit(mad, &[]);
                true
            });
        }
        _ => {}
    }
    if let (true, Some(known)) = (verdict.end_known, known) {
        let described = Described::of(&known);
        let outcome = known.act(Input::Stale, &mut With::nothing());
        if outcome.step.is_some_and(|step| step != Step::NONE) {
            warn_ratelimited!(
                "{}: ended, since the peer uses its queue pair for a new connection\n",
                described
            );
        }
        if outcome.deliver {
            Id::deliver_later(known);
        }
    }
    if let (true, Some(ours)) = (verdict.end_ours, ours) {
        let outcome = ours.act(Input::StaleRep, &mut With::nothing());
        if outcome.deliver {
            // The MAD is freed soon, so its worker may not call the consumer: see `deliver::one`.
            Id::deliver_later(ours);
        }
    }
}

/// Says again what a repeated REP shows to be lost.
fn again(arrival: &Mail, id: &Arc<Id>) {
    count_duplicate(arrival);
    trace::send_dup_rep(id.public.raw());
    let remote = RepView(arrival.mad.mad()).local_comm_id();
    // An answer that cannot be sent is as good as lost, and the peer asks again.
    let _ = reply(arrival, Repeat::Direct, |mad| {
        // Finding the way may have taken a while: what matters is how things stand now.
        let inner = id.lock();
        match inner.conn.match_rep(remote) {
            RepMatch::RtuAgain => inner.conn.rtu_message().emit(mad, inner.private_data()),
            RepMatch::MraAgain => {
                let mra = inner.conn.mra_message(Msg::Rep);
                mra.emit(mad, inner.private_data());
            }
            _ => return false,
        }
        true
    });
}

/// The REP answers the REQ of `id`.
fn answer(arrival: Mail, id: Arc<Id>) -> Option<Delivery> {
    let view = RepView(arrival.mad.mad());
    let (local, remote) = (view.remote_comm_id(), view.local_comm_id());
    let mut with = With::message(arrival, 0);
    let mut done_with = None;
    let mut qpn = 0;
    let outcome = {
        let mut inner = id.lock();
        match inner.conn.match_rep(remote) {
            RepMatch::Answer => {
                let mut learned = inner.conn;
                if let Some(arrival) = &mut with.arrival {
                    learned.learn_rep(RepView(arrival.mad.mad()));
                    let to_initiator = learned.qp_type == QpType::XrcIni;
                    *arrival.as_mut().project().to_xrc_initiator = to_initiator;
                }
                qpn = learned.remote_qpn;
                let (remote_id, remote_qpn) = (learned.remote_id_key(), learned.remote_qpn_key());
                match enter_both(&mut inner, remote_id, remote_qpn, &id) {
                    Ok(()) => {
                        inner.conn = learned;
                        let step = inner.conn.step(Input::Rep);
                        done_with = inner.take_record();
                        if let Some(record) = &done_with {
                            record.cancel();
                        }
                        id.note(&inner.conn, Cause::Input(Input::Rep));
                        Outcome::Accepted(id.conclude(&mut inner, &step, &mut with))
                    }
                    Err(holder) => Outcome::Met(holder),
                }
            }
            _ => Outcome::TooLate,
        }
    };
    drop(done_with);
    let (meeting, known) = match outcome {
        Outcome::Accepted(deliver) => return Delivery::of(id, deliver, with.first),
        Outcome::TooLate => return None,
        Outcome::Met(Holder::OfId(known)) => {
            trace::insert_failed_err(local);
            (Meeting::KnownId, known)
        }
        Outcome::Met(Holder::OfQpn(known)) => {
            trace::staleconn_err(remote, local);
            (Meeting::KnownQpn, known)
        }
    };
    let conn = known.lock().conn;
    let verdict = lookup::rep_meets(meeting, Some(&conn), qpn)?;
    carry_out(
        with.arrival.as_ref()?,
        Msg::Rep,
        &verdict,
        Some(known),
        Some(id),
    );
    None
}

/// Who holds a key already.
pub(crate) enum Holder {
    /// The remote ID.
    OfId(Arc<Id>),
    /// The remote queue pair.
    OfQpn(Arc<Id>),
}

/// Enters an identifier in the indices of remote IDs and queue pairs, both or none, atomically
/// against other REQs and REPs with the same keys.
pub(crate) fn enter_both(
    inner: &mut Inner,
    remote_id: RemoteId,
    remote_qpn: RemoteQpn,
    id: &Arc<Id>,
) -> core::result::Result<(), Holder> {
    let indices = manager();
    let Some(mut slots) = inner.slots() else {
        return Ok(());
    };
    slots
        .remote_id
        .enter_and(&indices.remote_ids, remote_id, id, || {
            slots.remote_qpn.enter(&indices.remote_qpns, remote_qpn, id)
        })
        .map_err(|held| match held {
            Ok(holder) => Holder::OfId(holder),
            Err(holder) => Holder::OfQpn(holder),
        })
}
