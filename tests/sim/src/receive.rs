// SPDX-License-Identifier: GPL-2.0
//! Received messages: in order for each source, whom each is for, and what becomes of it.

use std::collections::VecDeque;

use ib_cm_proto::lookup;
use ib_cm_proto::lookup::addressed;
use ib_cm_proto::lookup::Answer;
use ib_cm_proto::lookup::Meeting;
use ib_cm_proto::lookup::Named;
use ib_cm_proto::lookup::Recipient;
use ib_cm_proto::lookup::Verdict;
use ib_cm_proto::messages::drep_to_stranger;
use ib_cm_proto::messages::rej_to_stranger;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Input;
use ib_cm_proto::wire::AttrId;
use ib_cm_proto::wire::DreqView;
use ib_cm_proto::wire::MraView;
use ib_cm_proto::wire::Msg;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto::wire::RejView;
use ib_cm_proto::wire::RepView;
use ib_cm_proto::wire::ReqView;
use ib_cm_proto::wire::SidrRep;
use ib_cm_proto::wire::SidrReqView;
use ib_cm_proto::wire::SidrStatus;
use ib_cm_proto::Mad;

use crate::cm::Cm;
use crate::cm::Event;
use crate::cm::Slot;
use crate::cm::With;
use crate::fx::Arrival;
use crate::fx::Delay;
use crate::fx::Fx;
use crate::fx::Lid;
use crate::fx::Packet;
use crate::fx::Place;
use crate::fx::Task;
use crate::fx::Uid;
use crate::note::note;
use crate::rules::Rule;
use crate::say;
use crate::seen::Mark;

impl Cm {
    /// Takes a MAD from the network.
    pub fn receive(&mut self, dev: usize, packet: Packet, fx: &mut Fx) {
        let device = &mut self.devs[dev];
        if !device.open || fx.no_memory() {
            return;
        }
        device.received += 1;
        let arrival = Arrival {
            from: packet.from,
            at: fx.now,
            turn: device.received,
            mad: packet.mad,
            listener: None,
        };
        let at = Place {
            host: self.host,
            dev,
        };
        match device.lanes.get_mut(&packet.from) {
            Some(lane) => lane.push_back(arrival),
            None => {
                device.lanes.insert(packet.from, VecDeque::from([arrival]));
                fx.later(Delay::Worker, Task::Lane(at, packet.from));
            }
        }
    }

    /// A worker takes the next MAD of a source.
    pub fn lane(&mut self, dev: usize, from: Lid, fx: &mut Fx) {
        let device = &mut self.devs[dev];
        let Some(arrival) = device.lanes.get_mut(&from).and_then(VecDeque::pop_front) else {
            return;
        };
        let last = device.effective.insert(from, arrival.turn);
        if last.is_some_and(|last| last > arrival.turn) {
            let what = format!("host {}: a MAD of {from:?} overtook another", self.host);
            fx.broken(Rule::MadsInOrder, what);
        }
        if self.process(dev, arrival, fx) {
            self.finished(dev, from, fx);
        }
    }

    /// A worker has done the protocol's part of a MAD.
    fn finished(&mut self, dev: usize, from: Lid, fx: &mut Fx) {
        let lanes = &mut self.devs[dev].lanes;
        match lanes.get(&from) {
            Some(lane) if !lane.is_empty() => {
                let at = Place {
                    host: self.host,
                    dev,
                };
                fx.later(Delay::Worker, Task::Lane(at, from));
            }
            _ => {
                lanes.remove(&from);
            }
        }
    }

    /// Processes a MAD. Returns whether that is all.
    fn process(&mut self, dev: usize, arrival: Arrival, fx: &mut Fx) -> bool {
        let Some(message) = AttrId::of(&arrival.mad) else {
            return true;
        };
        say!(
            fx,
            "host {} dev {dev} takes {message:?} of {:?}",
            self.host,
            arrival.from
        );
        match message {
            AttrId::Req => return self.req(dev, arrival, fx),
            AttrId::Rep => self.rep(dev, arrival, fx),
            AttrId::SidrReq => self.sidr_req(dev, arrival, fx),
            _ => self.addressed(dev, message, arrival, fx),
        }
        true
    }

    fn addressed(&mut self, dev: usize, message: AttrId, arrival: Arrival, fx: &mut Fx) {
        let mad = arrival.mad.clone();
        let Some(to) = addressed(message, &mad) else {
            return;
        };
        let uid = match to.to {
            Recipient::Local(id) => self.local_ids.get(&id).copied(),
            Recipient::Remote(key) => self.remote_ids.get(&key).copied(),
        };
        let Some(uid) = uid else {
            if lookup::to_stranger(message) {
                self.drep_to_stranger(dev, &arrival, fx);
            }
            return;
        };
        if matches!(to.to, Recipient::Local(_)) && self.is_elsewhere(dev, uid) {
            fx.seen.mark(Mark::OtherDevice);
            return;
        }
        let begins = matches!(message, AttrId::Dreq | AttrId::Lap);
        let with = With {
            peer: Some(to.peer),
            tid: begins.then(|| RejView(&mad).tid()),
            service_timeout: MraView(&mad).service_timeout(),
            arrival: Some(arrival),
            ..With::default()
        };
        let outcome = self.act(uid, to.input, with, fx);
        if let (None, Some(arrival), true) =
            (outcome.step, outcome.arrival, lookup::to_stranger(message))
        {
            self.drep_to_stranger(dev, &arrival, fx);
        }
    }

    fn drep_to_stranger(&mut self, dev: usize, arrival: &Arrival, fx: &mut Fx) {
        let view = DreqView(&arrival.mad);
        let drep = drep_to_stranger(view.tid(), view.local_comm_id(), view.remote_comm_id());
        fx.seen.mark(Mark::DrepToStranger);
        self.post(dev, arrival.from, fx, |mad| drep.emit(mad, &[]));
    }

    /// Whether an identifier belongs to another device than the message that names it.
    fn is_elsewhere(&self, dev: usize, uid: Uid) -> bool {
        self.ids.get(&uid).is_some_and(|id| id.dev != dev)
    }

    /// Rejects a REQ or REP that belongs to no connection of ours.
    pub fn reject(&mut self, dev: usize, to: Lid, mad: &Mad, why: RejReason, fx: &mut Fx) {
        let view = RejView(mad);
        let message = match AttrId::of(mad) {
            Some(AttrId::Rep) => Msg::Rep,
            _ => Msg::Req,
        };
        // A REQ has no remote ID: there the field is reserved.
        let remote = if message == Msg::Req {
            0
        } else {
            view.remote_comm_id()
        };
        let rej = rej_to_stranger(view.tid(), view.local_comm_id(), remote, message, why);
        self.post(dev, to, fx, |mad| rej.emit(mad, &[]));
    }

    /// Enters an identifier in the indices of remote IDs and queue pairs, both or none. Returns
    /// who has a key already.
    fn enter_both(&mut self, uid: Uid) -> (Meeting, Option<Uid>) {
        let Some(id) = self.ids.get_mut(&uid) else {
            return (Meeting::Nobody, None);
        };
        let (id_key, qpn_key) = (id.conn.remote_id_key(), id.conn.remote_qpn_key());
        let known_id = self.remote_ids.get(&id_key).copied();
        let known_qpn = self.remote_qpns.get(&qpn_key).copied();
        let meeting = lookup::meet(known_id.is_some(), known_qpn.is_some());
        match meeting {
            Meeting::Nobody => {
                if id.remote_id == Slot::Reserved {
                    id.remote_id = Slot::Entered;
                    self.remote_ids.insert(id_key, uid);
                }
                if id.remote_qpn == Slot::Reserved {
                    id.remote_qpn = Slot::Entered;
                    self.remote_qpns.insert(qpn_key, uid);
                }
                (meeting, None)
            }
            Meeting::KnownId => (meeting, known_id),
            Meeting::KnownQpn => (meeting, known_qpn),
        }
    }

    /// Does what a verdict says about a message of `ours`, when `known` has been met.
    fn obey(&mut self, dev: usize, arrival: &Arrival, verdict: Verdict, who: Who, fx: &mut Fx) {
        let rep = AttrId::of(&arrival.mad) == Some(AttrId::Rep);
        let speaker = if rep { who.ours } else { who.known };
        let conn = speaker.and_then(|uid| self.ids.get(&uid)).map(|id| id.conn);
        let mark = match (rep, verdict.answer) {
            (false, Answer::Nothing) => Some(Mark::ReqDuplicateDropped),
            (false, Answer::Mra) => Some(Mark::ReqDuplicateMra),
            (false, Answer::Rej(RejReason::STALE_CONN)) if verdict.end_known => {
                Some(Mark::Rej10ByQpn)
            }
            (false, Answer::Rej(RejReason::STALE_CONN)) => Some(Mark::Rej10ById),
            (false, Answer::Rej(RejReason::DUPLICATE_LOCAL_COMM_ID)) => Some(Mark::Rej30),
            (false, Answer::Rej(RejReason::INVALID_SERVICE_ID)) => Some(Mark::Rej8),
            (true, Answer::Rej(RejReason::STALE_CONN)) if verdict.end_known => {
                Some(Mark::Rej10ToRep)
            }
            (true, Answer::Rej(RejReason::STALE_CONN)) => Some(Mark::Rej10ToRepById),
            (true, Answer::Rej(RejReason::DUPLICATE_LOCAL_COMM_ID)) => Some(Mark::Rej30ToRep),
            (true, Answer::Rej(RejReason::INVALID_COMM_ID)) => Some(Mark::Rej6),
            (true, Answer::Mra) => Some(Mark::RepMraAgain),
            (true, Answer::Rtu) => Some(Mark::RtuAgain),
            (true, Answer::Nothing) if who.known.is_some() => Some(Mark::RepKnownId),
            _ => None,
        };
        if let Some(mark) = mark {
            fx.seen.mark(mark);
        }
        match (verdict.answer, conn) {
            (Answer::Rej(why), _) => self.reject(dev, arrival.from, &arrival.mad, why, fx),
            (Answer::Mra, Some(conn)) => {
                let message = if rep { Msg::Rep } else { Msg::Req };
                self.post(dev, arrival.from, fx, |mad| {
                    conn.mra_message(message).emit(mad, &[])
                });
            }
            (Answer::Rtu, Some(conn)) => {
                self.post(dev, arrival.from, fx, |mad| {
                    conn.rtu_message().emit(mad, &[])
                });
            }
            _ => {}
        }
        if let (true, Some(known)) = (verdict.end_known, who.known) {
            self.act(known, Input::Stale, With::default(), fx);
        }
        if let (true, Some(ours)) = (verdict.end_ours, who.ours) {
            self.act(ours, Input::StaleRep, With::default(), fx);
        }
    }

    /// The first half of a REQ: enters the indices. Returns whether there is no second half.
    fn req(&mut self, dev: usize, arrival: Arrival, fx: &mut Fx) -> bool {
        // What fails before the peer is heard is as good as lost: the peer repeats its REQ.
        let Some(uid) = self.make(dev, fx) else {
            return true;
        };
        let req = ReqView(&arrival.mad);
        let Some(id) = self.ids.get_mut(&uid) else {
            return true;
        };
        id.conn.learn_req(req, req.tid());
        id.conn.begin_unseen(State::ReqRcvd);
        fx.seen.transition(State::Idle, State::ReqRcvd);
        id.has_path = true;
        id.peer = arrival.from;
        id.local_id = Slot::Reserved;
        id.remote_id = Slot::Reserved;
        id.remote_qpn = Slot::Reserved;
        id.local_qpn = Slot::Reserved;
        id.timer_memory = true;
        id.service = req.service_id();
        let (meeting, known) = self.enter_both(uid);
        if meeting != Meeting::Nobody {
            self.discard(uid, fx);
            let holder = known
                .and_then(|known| self.ids.get(&known))
                .map(|id| id.conn);
            let by_id = holder.filter(|_| meeting == Meeting::KnownId);
            let verdict = lookup::refuse_req(by_id.as_ref(), req.local_qpn());
            let who = Who { ours: None, known };
            self.obey(dev, &arrival, verdict, who, fx);
            return true;
        }
        let at = Place {
            host: self.host,
            dev,
        };
        fx.later(Delay::Worker, Task::Complete(at, uid, arrival));
        false
    }

    /// The second half of a REQ: makes the identifier visible.
    pub fn complete_req(&mut self, dev: usize, uid: Uid, mut arrival: Arrival, fx: &mut Fx) {
        let from = arrival.from;
        if !self.devs[dev].open {
            return;
        }
        if !self.ids.contains_key(&uid) {
            // The peer has lost this connection too.
            self.finished(dev, from, fx);
            return;
        }
        let req = ReqView(&arrival.mad);
        let key = (dev, req.service_id());
        let Some(listener) = self.services.get(&key).copied() else {
            let who = Who {
                ours: None,
                known: None,
            };
            self.obey(dev, &arrival, lookup::NO_SERVICE, who, fx);
            self.discard(uid, fx);
            self.finished(dev, from, fx);
            return;
        };
        if fx.no_memory() {
            self.discard(uid, fx);
            self.finished(dev, from, fx);
            return;
        }
        let lives = |path: u8| path.saturating_sub(u8::from(path > 0)).saturating_add(1);
        let ack_timeout = lives(req.primary_local_ack_timeout());
        let Some(id) = self.ids.get_mut(&uid) else {
            return;
        };
        // As the peer waits for acknowledgements, so do we; and so long lasts TimeWait.
        id.conn.ack_timeout = ack_timeout;
        if !id.conn.show() {
            // The peer has given up meanwhile, or has lost this connection too.
            self.discard(uid, fx);
            self.finished(dev, from, fx);
            return;
        }
        self.enter_local_id(uid);
        self.show(uid, listener, &mut arrival, fx);
        self.finished(dev, from, fx);
    }

    /// Queues the first event of an identifier for its listener.
    fn show(&mut self, uid: Uid, listener: Uid, arrival: &mut Arrival, fx: &mut Fx) {
        if let Some(listener) = self.ids.get_mut(&listener) {
            listener.requests += 1;
        }
        arrival.listener = Some(listener);
        if let Some(id) = self.ids.get_mut(&uid) {
            id.owned = true;
            id.delivering = true;
            id.events.push_back(Event::Arrival(arrival.clone()));
            fx.later(Delay::Worker, Task::Deliver(self.host, uid));
        }
    }

    fn rep(&mut self, dev: usize, arrival: Arrival, fx: &mut Fx) {
        let mad = arrival.mad.clone();
        let view = RepView(&mad);
        let ours = self.local_ids.get(&view.remote_comm_id()).copied();
        let conn = ours.and_then(|uid| self.ids.get(&uid)).map(|id| id.conn);
        let named = match (&conn, ours) {
            (Some(_), Some(uid)) if self.is_elsewhere(dev, uid) => Named::Elsewhere,
            (Some(conn), _) => Named::Known(conn),
            (None, _) => Named::Nobody,
        };
        let mut who = Who { ours, known: None };
        if let Some(verdict) = lookup::refuse_rep(named, view.local_comm_id()) {
            self.obey(dev, &arrival, verdict, who, fx);
            return;
        }
        let (Some(uid), Some(before)) = (ours, conn) else {
            return;
        };
        let mut learned = before;
        learned.learn_rep(view);
        self.set_conn(uid, learned);
        let (meeting, known) = self.enter_both(uid);
        let holder = known
            .and_then(|known| self.ids.get(&known))
            .map(|id| id.conn);
        if let Some(verdict) = lookup::rep_meets(meeting, holder.as_ref(), learned.remote_qpn) {
            self.set_conn(uid, before);
            who.known = known;
            self.obey(dev, &arrival, verdict, who, fx);
            return;
        }
        let with = With {
            arrival: Some(arrival),
            ..With::default()
        };
        self.act(uid, Input::Rep, with, fx);
    }

    fn set_conn(&mut self, uid: Uid, conn: ib_cm_proto::connection::Connection) {
        if let Some(id) = self.ids.get_mut(&uid) {
            id.conn = conn;
        }
    }

    fn sidr_req(&mut self, dev: usize, mut arrival: Arrival, fx: &mut Fx) {
        let Some(uid) = self.make(dev, fx) else {
            return;
        };
        let mad = arrival.mad.clone();
        let req = SidrReqView(&mad);
        let key = (req.request_id(), arrival.from);
        let Some(id) = self.ids.get_mut(&uid) else {
            return;
        };
        id.conn.remote_id = req.request_id();
        id.conn.tid = req.tid();
        id.conn.begin_unseen(State::SidrReqRcvd);
        fx.seen.transition(State::Idle, State::SidrReqRcvd);
        id.has_path = true;
        id.peer = arrival.from;
        id.service = req.service_id();
        if self.sidr_requests.contains_key(&key) {
            fx.seen.mark(Mark::SidrDuplicate);
            self.ids.remove(&uid);
            return;
        }
        id.sidr = Some(key);
        self.sidr_requests.insert(key, uid);
        let Some(listener) = self.services.get(&(dev, req.service_id())).copied() else {
            self.sidr_say(dev, &arrival, SidrStatus::UNSUPPORTED, fx);
            self.discard(uid, fx);
            return;
        };
        let shown = self.ids.get_mut(&uid).is_some_and(|id| id.conn.show());
        if shown {
            self.show(uid, listener, &mut arrival, fx);
        } else {
            self.discard(uid, fx);
        }
    }

    /// Answers a SIDR_REQ with a status alone.
    pub fn sidr_say(&mut self, dev: usize, to: &Arrival, status: SidrStatus, fx: &mut Fx) {
        let req = SidrReqView(&to.mad);
        let message = SidrRep {
            tid: req.tid(),
            request_id: req.request_id(),
            status,
            service_id: req.service_id(),
            ..SidrRep::ZERO
        };
        self.post(dev, to.from, fx, |mad| message.emit(mad, &[]));
    }

    /// The MAD layer is done with a send.
    pub fn completed(&mut self, uid: Uid, send: Uid) {
        if let Some(id) = self.ids.get_mut(&uid) {
            if id.record == Some(send) {
                id.record = None;
            }
        }
        self.reap(uid);
    }

    /// A worker deals with a send that has failed.
    pub fn send_failed(&mut self, uid: Uid, send: Uid, input: Input, fx: &mut Fx) {
        let with = With {
            record: Some(send),
            ..With::default()
        };
        self.act(uid, input, with, fx);
        self.completed(uid, send);
    }

    /// Takes an input of a call, and says whether it was allowed.
    pub fn take_call(&mut self, uid: Uid, input: Input, fx: &mut Fx) {
        if let Some(id) = self.ids.get_mut(&uid) {
            let before = id.conn;
            let step = id.conn.step(input);
            let after = id.conn;
            note(uid, &before, input, &step, &after, fx);
        }
    }
}

/// The identifiers that a REQ or REP is about.
#[derive(Clone, Copy, Debug)]
struct Who {
    ours: Option<Uid>,
    known: Option<Uid>,
}
