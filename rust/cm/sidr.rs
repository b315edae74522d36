// SPDX-License-Identifier: GPL-2.0
//! Service ID resolution: which queue pair serves datagrams of a service (IBA 12.11).

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::act::With;
use super::av::Av;
use super::debug::Cause;
use super::deliver::{
    discard,
    Delivery, //
};
use super::id::Id;
use super::inbox::{
    Arrival,
    Request, //
};
use super::index::Reservation;
use super::inner::Details;
use super::listen::Listener;
use super::manager;
use super::manager::SidrRequest;
use super::receive::{
    count_duplicate,
    Mail, //
};
use super::send::{
    self,
    reply,
    Flying,
    Repeat,
    Way, //
};
use crate::rdma::{
    gid::GidAttr,
    mad::MAD_SIZE,
    path::PathRec,
    trace, //
};
use ib_cm_proto::replay;
use ib_cm_proto::state::State;
use ib_cm_proto::step::{
    Call,
    Flight,
    Input, //
};
use ib_cm_proto::wire::{
    SidrRep,
    SidrReq,
    SidrReqView,
    SidrStatus, //
};

/// What a SIDR_REQ asks and says.
pub(crate) struct Question<'a> {
    pub(crate) service_id: u64,
    pub(crate) timeout_ms: u32,
    pub(crate) max_cm_retries: u8,
    pub(crate) private_data: &'a [u8],
}

/// `ib_send_cm_sidr_req`.
///
/// # Errors
///
/// `EINVAL` in another state than idle or where no port has the path's source GID; `ENOENT`,
/// `ENOMEM`, and what sending returns.
pub(crate) fn ask(
    id: &Arc<Id>,
    path: &mut PathRec,
    attr: Option<&GidAttr>,
    question: Question<'_>,
) -> Result {
    let pkey = path.pkey();
    let mut av = Av::from_path(path, attr)?;
    let mut fresh = Some(Details::new()?);
    let record = Flying::record(id.clone(), Flight::SidrReq)?;
    let port = av.port.clone().ok_or(EINVAL)?;
    let agents = port.enter().ok_or(EINVAL)?;
    // Taken only to be sent: what a refused call leaves is freed after the lock.
    let mut outgoing = Some(send::buffer(&agents.main, &av, id.public.remote_cm_qpn()));
    let mut inner = id.lock();
    // As in C, the path is the identifier's from here on, whatever becomes of the question.
    let details = inner.details_or(&mut fresh).ok_or(ENOMEM)?;
    core::mem::swap(&mut details.av, &mut av);
    id.public.set_service_id(question.service_id);
    inner.conn.timeout_ms = question.timeout_ms;
    inner.conn.max_cm_retries = question.max_cm_retries;
    let sent = inner
        .conn
        .permits(Call::SendSidrReq)
        .map_err(super::refused);
    let sent = sent.and_then(|()| {
        let mut outgoing = outgoing.take().unwrap_or(Err(EINVAL))?;
        let tid = super::act::tid_of(outgoing.hi_tid(), inner.conn.local_id);
        let message = SidrReq {
            tid,
            request_id: inner.conn.local_id,
            partition_key: pkey,
            service_id: question.service_id,
        };
        message.emit(outgoing.mad_mut(), question.private_data);
        inner.conn.tid = tid;
        trace::send_sidr_req(id.public.raw());
        outgoing.post_recorded(&record, question.timeout_ms, question.max_cm_retries)?;
        inner.set_record(record);
        inner.conn.step(Input::Call(Call::SendSidrReq));
        id.note(&inner.conn, Cause::Input(Input::Call(Call::SendSidrReq)));
        id.public.show(&inner.conn);
        Ok(())
    });
    drop(inner);
    drop((av, outgoing));
    sent
}

/// What a SIDR_REP answers.
pub(crate) struct Answer<'a> {
    pub(crate) status: SidrStatus,
    pub(crate) qpn: u32,
    pub(crate) q_key: u32,
    pub(crate) attr_mod: u32,
    pub(crate) vendor_id: u32,
    pub(crate) info: &'a [u8],
    pub(crate) private_data: &'a [u8],
}

impl Answer<'_> {
    /// An answer that only has a status.
    fn status(status: SidrStatus) -> Self {
        Answer {
            status,
            qpn: 0,
            q_key: 0,
            attr_mod: 0,
            vendor_id: 0,
            info: &[],
            private_data: &[],
        }
    }

    fn message(&self, tid: u64, request_id: u32, service_id: u64) -> SidrRep {
        let mut message = SidrRep {
            tid,
            attr_mod: self.attr_mod,
            request_id,
            status: self.status,
            // The message has room for 16 bits of it where C puts any.
            vendor_id: self.vendor_id & 0xffff,
            qpn: self.qpn,
            service_id,
            q_key: self.q_key,
            ..SidrRep::ZERO
        };
        for (to, from) in message.info.iter_mut().zip(self.info) {
            *to = *from;
        }
        message
    }
}

/// `ib_send_cm_sidr_rep`. An answer that cannot be sent leaves the question open.
///
/// # Errors
///
/// `EINVAL` where there is no question, and what sending returns.
pub(crate) fn answer(id: &Arc<Id>, answer: &Answer<'_>) -> Result {
    let call = Call::SendSidrRep;
    let mut way = Way::None;
    let mut begun = send::begin(id, &mut way, send::main_agent, Some(call))?;
    let mut inner = id.lock();
    inner.conn.permits(call).map_err(super::refused)?;
    let conn = inner.conn;
    let message = answer.message(conn.tid, conn.remote_id, id.public.service_id());
    message.emit(begun.outgoing.mad_mut(), answer.private_data);
    trace::send_sidr_rep(id.public.raw());
    let replays = &manager().replays;
    let said = replays.wanted().then(|| *begun.outgoing.mad_mut());
    begun.outgoing.post(Repeat::No)?;
    if let (Some(said), Some(from)) = (said, inner.sidr()) {
        let question = replay::Question {
            request_id: conn.remote_id,
            tid: conn.tid,
            service_id: id.public.service_id(),
        };
        // Before the request leaves its index: a repetition finds either the one or the other.
        replays.keep(begun.port.device.key(), from, question, &said);
    }
    let step = inner.conn.step(Input::Call(Call::SendSidrRep));
    id.note(&inner.conn, Cause::Input(Input::Call(Call::SendSidrRep)));
    id.conclude(&mut inner, &step, &mut With::nothing());
    Ok(())
}

/// Refuses the question of an identifier that is being destroyed, if there is one.
pub(crate) fn refuse_if_asked(id: &Arc<Id>) {
    // Whether or not it can be sent: the identifier goes.
    let _ = answer(id, &Answer::status(SidrStatus::REJECT));
}

/// A received SIDR_REQ.
pub(crate) fn process(mut arrival: Mail) -> Option<Delivery> {
    let port = arrival.port.clone();
    let attr = arrival.as_mut().project().sender.take()?;
    let id = Id::new(port.device.ib().as_ptr(), None, core::ptr::null_mut()).ok()?;
    let memory = Reservation::new(GFP_KERNEL).ok()?;
    let mut details = Details::new().ok()?;
    manager().replays.make_room();
    let mad = arrival.mad.mad();
    let req = SidrReqView(mad);
    let key = SidrRequest {
        request_id: req.request_id(),
        slid: arrival.mad.slid(),
        sgid: attr.dgid(),
    };
    {
        let mut inner = id.lock();
        inner.conn.remote_id = req.request_id();
        inner.conn.tid = req.tid();
        inner.conn.begin_unseen(State::SidrReqRcvd);
        details.av = Av {
            port: Some(port.clone()),
            attr,
            dlid_datapath: 0,
            pkey_index: arrival.mad.pkey_index(),
        };
        inner.details = Some(details);
        id.public.set_service_id(req.service_id());
        id.note(&inner.conn, Cause::Request);
        id.public.show(&inner.conn);
        if manager()
            .sidr_requests
            .insert(key, id.clone(), memory)
            .is_err()
        {
            drop(inner);
            count_duplicate(&arrival);
            return None;
        }
        inner.set_sidr(key);
    }
    if manager().replays.wanted() && say_again(&arrival, &id, &key) {
        return None;
    }
    let listener = Listener::find(port.device.key(), req.service_id());
    let Some(listener) = listener else {
        say(&arrival, SidrStatus::UNSUPPORTED, Some(&id));
        discard(&id);
        return None;
    };
    match show(arrival, &id, listener) {
        Ok(()) => Delivery::of(id, true, None),
        Err(_) => {
            discard(&id);
            None
        }
    }
}

/// Answers a request that was answered before in the same way again, and ends its new identifier.
fn say_again(arrival: &Arrival, id: &Arc<Id>, from: &SidrRequest) -> bool {
    let question = replay::Question::of(SidrReqView(arrival.mad.mad()));
    let device = arrival.port.device.key();
    let mut said = [0; MAD_SIZE];
    if !manager().replays.find(device, from, &question, &mut said) {
        return false;
    }
    count_duplicate(arrival);
    discard(id);
    // An answer that cannot be sent is as good as lost, and the peer asks again.
    let _ = reply(arrival, Repeat::Direct, |mad| {
        *mad = said;
        true
    });
    true
}

/// Queues the first event of an identifier for its listener.
fn show(mut arrival: Mail, id: &Arc<Id>, listener: Listener) -> Result {
    let port = &arrival.port;
    let pkey_index = arrival.mad.pkey_index();
    let bth_pkey = port
        .device
        .ib()
        .cached_pkey(port.number, pkey_index)
        .unwrap_or(0);
    id.public.inherit(&listener.id().public);
    let request = Request {
        primary: PathRec::new(),
        alternate: None,
        bth_pkey,
        listener: Some(listener),
    };
    *arrival.as_mut().project().request = Some(KBox::new(request, GFP_KERNEL)?);
    let mut inner = id.lock();
    if !inner.conn.show() {
        return Err(EPIPE);
    }
    // The consumer's reference.
    let _ = id.clone().own();
    if let Some(events) = inner.events() {
        events.push_arrival(arrival);
        events.delivering = true;
    }
    Ok(())
}

/// Refuses a SIDR_REQ whose listener has gone.
pub(crate) fn refuse(arrival: &Arrival) {
    say(arrival, SidrStatus::REJECT, None);
}

fn say(arrival: &Arrival, status: SidrStatus, id: Option<&Arc<Id>>) {
    let mad = arrival.mad.mad();
    let req = SidrReqView(mad);
    let message = Answer::status(status).message(req.tid(), req.request_id(), req.service_id());
    if let Some(id) = id {
        trace::send_sidr_rep(id.public.raw());
    }
    // An answer that cannot be sent is as good as lost, and the peer asks again.
    let _ = reply(arrival, Repeat::No, |mad| {
        message.emit(mad, &[]);
        true
    });
}
