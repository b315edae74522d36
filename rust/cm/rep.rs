// SPDX-License-Identifier: GPL-2.0
//! Received REPs: the answer to a REQ, checked against the connections that exist.

use kernel::sync::Arc;

use super::act::With;
use super::id::{
    Found,
    Id, //
};
use super::manager;
use super::manager::{
    RemoteId,
    RemoteQpn, //
};
use super::receive::{
    count_duplicate,
    reject,
    Mail, //
};
use super::send::{
    reply,
    Repeat, //
};
use crate::rdma::trace;
use ib_cm_proto::connection::{
    Connection,
    QpType, //
};
use ib_cm_proto::step::{
    DuplicateReq,
    Input,
    RepMatch, //
};
use ib_cm_proto::wire::{
    Msg,
    RejReason,
    RepView, //
};

/// What the indices say about a REP.
enum Verdict {
    /// It is the answer: the identifier has moved on, and has an event if true.
    Accepted(bool),
    /// The identifier has moved on meanwhile.
    TooLate,
    /// Another connection has the same remote ID.
    KnownId(Arc<Id>),
    /// Another connection, which must be stale, has the same remote queue pair.
    Stale(Arc<Id>),
}

pub(crate) fn process(arrival: Mail) -> Option<Arc<Id>> {
    let view = RepView(arrival.mad.mad());
    let (local, remote) = (view.remote_comm_id(), view.local_comm_id());
    let id = match Id::find(local, arrival.port.device.key()) {
        Found::Id(id) => id,
        Found::Elsewhere => return None,
        Found::Nobody => {
            trace::remote_no_priv_err(local);
            reject(&arrival, Msg::Rep, RejReason::INVALID_COMM_ID, &[]);
            return None;
        }
    };
    let conn = id.lock().conn;
    match conn.match_rep(remote) {
        RepMatch::Answer => return answer(arrival, id),
        RepMatch::RejInvalidId => {
            trace::rep_unknown_err(remote, local, conn.state as u32);
            reject(&arrival, Msg::Rep, RejReason::INVALID_COMM_ID, &[]);
        }
        RepMatch::RtuAgain | RepMatch::MraAgain => {
            again(&arrival, &id);
            trace::remote_no_priv_err(local);
        }
        // As in C, what is destroyed has no duplicates.
        RepMatch::Drop if conn.is_orphan() => trace::remote_no_priv_err(local),
        RepMatch::Drop => {
            count_duplicate(&arrival);
            trace::remote_no_priv_err(local);
        }
    }
    None
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
            RepMatch::RtuAgain => inner.conn.rtu_message().emit(mad, &inner.private_data),
            RepMatch::MraAgain => {
                let mra = inner.conn.mra_message(Msg::Rep);
                mra.emit(mad, &inner.private_data);
            }
            _ => return false,
        }
        true
    });
}

/// The REP answers the REQ of `id`.
fn answer(arrival: Mail, id: Arc<Id>) -> Option<Arc<Id>> {
    let view = RepView(arrival.mad.mad());
    let (local, remote) = (view.remote_comm_id(), view.local_comm_id());
    let mut with = With::message(arrival, 0);
    let mut done_with = None;
    let verdict = {
        let mut inner = id.lock();
        match inner.conn.match_rep(remote) {
            RepMatch::Answer => {
                let mut learned = inner.conn;
                if let Some(arrival) = &with.arrival {
                    learned.learn_rep(RepView(arrival.mad.mad()));
                }
                let entered = enter(&mut inner, &learned, &id);
                match entered {
                    Ok(()) => {
                        inner.conn = learned;
                        let step = inner.conn.step(Input::Rep);
                        done_with = inner.record.take();
                        if let Some(record) = &done_with {
                            record.cancel();
                        }
                        let port = inner.av.port.clone();
                        Verdict::Accepted(id.conclude(&mut inner, &step, &mut with, port))
                    }
                    Err(verdict) => verdict,
                }
            }
            _ => Verdict::TooLate,
        }
    };
    drop(done_with);
    match verdict {
        Verdict::Accepted(deliver) => return deliver.then_some(id),
        Verdict::TooLate => {}
        Verdict::KnownId(known) => {
            trace::insert_failed_err(local);
            if let Some(arrival) = &with.arrival {
                answer_known(arrival, &known, id);
            }
        }
        Verdict::Stale(known) => {
            trace::staleconn_err(remote, local);
            if let Some(arrival) = &with.arrival {
                reject(arrival, Msg::Rep, RejReason::STALE_CONN, &[]);
            }
            end_stale(known);
            give_up(id);
        }
    }
    None
}

/// The REP that answers the REQ of `id` carries the remote ID of another connection: as a REQ would
/// (IBA 12.9.8.3).
fn answer_known(arrival: &Mail, known: &Arc<Id>, id: Arc<Id>) {
    let conn = id.lock().conn;
    let rep = RepView(arrival.mad.mad());
    let qpn = rep.qpn(conn.qp_type == QpType::XrcIni);
    let verdict = known.lock().conn.duplicate_req(qpn);
    match verdict {
        DuplicateReq::RejStale => {
            count_duplicate(arrival);
            reject(arrival, Msg::Rep, RejReason::STALE_CONN, &[]);
            give_up(id);
        }
        DuplicateReq::RejIdInUse => {
            reject(arrival, Msg::Rep, RejReason::DUPLICATE_LOCAL_COMM_ID, &[]);
        }
        DuplicateReq::Drop | DuplicateReq::Mra => count_duplicate(arrival),
    }
}

/// Ends an attempt to connect to a peer that answers with what is left of another connection.
fn give_up(id: Arc<Id>) {
    let outcome = id.act(Input::StaleRep, &mut With::nothing());
    if outcome.deliver {
        // The MAD is freed soon, so its worker may not call the consumer: see `deliver::one`.
        Id::deliver_later(id);
    }
}

/// Enters `id` in the indices of remote IDs and queue pairs as `learned` has them, both or none.
fn enter(
    inner: &mut super::id::Inner,
    learned: &Connection,
    id: &Arc<Id>,
) -> core::result::Result<(), Verdict> {
    let remote_id = RemoteId {
        id: learned.remote_id,
        ca_guid: learned.remote_ca_guid,
    };
    let remote_qpn = RemoteQpn {
        qpn: learned.remote_qpn,
        ca_guid: learned.remote_ca_guid,
    };
    enter_both(inner, remote_id, remote_qpn, id).map_err(|holder| match holder {
        Holder::OfId(known) => Verdict::KnownId(known),
        Holder::OfQpn(known) => Verdict::Stale(known),
    })
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
    inner: &mut super::id::Inner,
    remote_id: RemoteId,
    remote_qpn: RemoteQpn,
    id: &Arc<Id>,
) -> core::result::Result<(), Holder> {
    let indices = manager();
    let super::id::Inner {
        remote_id: id_slot,
        remote_qpn: qpn_slot,
        ..
    } = inner;
    id_slot
        .enter_and(&indices.remote_ids, remote_id, id, || {
            qpn_slot.enter(&indices.remote_qpns, remote_qpn, id)
        })
        .map_err(|held| match held {
            Ok(holder) => Holder::OfId(holder),
            Err(holder) => Holder::OfQpn(holder),
        })
}

/// Ends a connection that the peer has lost.
pub(crate) fn end_stale(known: Arc<Id>) {
    let outcome = known.act(Input::Stale, &mut With::nothing());
    if outcome.deliver {
        Id::deliver_later(known);
    }
}
