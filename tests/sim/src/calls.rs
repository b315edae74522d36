// SPDX-License-Identifier: GPL-2.0
//! The calls of consumers, and the delivery of events to them.

use ib_cm_proto::connection::QpType;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Call;
use ib_cm_proto::step::Flight;
use ib_cm_proto::step::Input;
use ib_cm_proto::step::Refusal;
use ib_cm_proto::time;
use ib_cm_proto::wire::PathFields;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto::wire::Rep;
use ib_cm_proto::wire::Req;
use ib_cm_proto::wire::SidrRep;
use ib_cm_proto::wire::SidrReq;
use ib_cm_proto::wire::SidrStatus;

use crate::cm::Cm;
use crate::cm::Event;
use crate::cm::Slot;
use crate::cm::With;
use crate::fx::Fx;
use crate::fx::Lid;
use crate::fx::Uid;
use crate::mad::Options;
use crate::note::tid_of;
use crate::rules::Rule;
use crate::seen::Mark;

/// Why a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// The identifier is in another state, or its device is gone.
    Invalid,
    /// No memory.
    NoMemory,
    /// The connection is established already.
    Connected,
}

/// What `ib_send_cm_req` gets.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Whom to ask.
    pub to: Lid,
    /// For which service.
    pub service: u64,
    /// Our queue pair.
    pub qpn: u32,
    /// What the far end is to know of our queue pair.
    pub token: u64,
    /// Kind of connection.
    pub qp_type: QpType,
    /// Packet life time (IBA time).
    pub life: u8,
    /// How long the far end may take to answer (IBA time).
    pub response: u8,
    /// How often to repeat a message.
    pub retries: u8,
}

/// What `ib_send_cm_rep` gets.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// Our queue pair.
    pub qpn: u32,
    /// What the far end is to know of our queue pair.
    pub token: u64,
}

impl Cm {
    /// `ib_create_cm_id`.
    pub fn create(&mut self, dev: usize, fx: &mut Fx) -> Option<Uid> {
        let uid = self.make(dev, fx)?;
        self.enter_local_id(uid);
        if let Some(id) = self.ids.get_mut(&uid) {
            id.owned = true;
        }
        Some(uid)
    }

    /// `ib_cm_listen`.
    pub fn listen(&mut self, uid: Uid, service: u64, fx: &mut Fx) -> Result<(), Errno> {
        let id = self.ids.get_mut(&uid).ok_or(Errno::Invalid)?;
        id.conn.permits(Call::Listen).map_err(errno)?;
        let key = (id.dev, service);
        if fx.no_memory() || self.services.contains_key(&key) {
            return Err(Errno::NoMemory);
        }
        id.service = service;
        self.services.insert(key, uid);
        self.take_call(uid, Input::Call(Call::Listen), fx);
        Ok(())
    }

    /// Whether a call is allowed now.
    pub fn permits(&self, uid: Uid, call: Call) -> Result<(), Errno> {
        let id = self.ids.get(&uid).ok_or(Errno::Invalid)?;
        id.conn.permits(call).map_err(errno)
    }

    /// `ib_send_cm_req`.
    pub fn send_req(&mut self, uid: Uid, request: Request, fx: &mut Fx) -> Result<(), Errno> {
        self.permits(uid, Call::SendReq)?;
        if fx.no_memory() {
            return Err(Errno::NoMemory);
        }
        let id = self.ids.get_mut(&uid).ok_or(Errno::Invalid)?;
        let dev = &self.devs[id.dev];
        if !dev.open {
            return Err(Errno::Invalid);
        }
        id.has_path = true;
        id.peer = request.to;
        id.service = request.service;
        let conn = &mut id.conn;
        conn.timeout_ms = time::ms_from_iba(request.life)
            .saturating_mul(2)
            .saturating_add(time::ms_from_iba(request.response));
        conn.max_cm_retries = request.retries;
        conn.qp_type = request.qp_type;
        conn.ack_timeout = request.life.saturating_add(1);
        conn.local_qpn = request.qpn;
        conn.tid = tid_of(conn);
        let mut message = Req {
            tid: conn.tid,
            local_comm_id: conn.local_id,
            service_id: request.service,
            local_ca_guid: dev.guid,
            local_qpn: request.qpn,
            remote_cm_response_timeout: request.response,
            local_cm_response_timeout: request.response,
            max_cm_retries: request.retries,
            primary: PathFields {
                local_port_lid: dev.lid.0,
                remote_port_lid: request.to.0,
                subnet_local: true,
                local_ack_timeout: time::ack_timeout(dev.ack_delay, request.life),
                ..PathFields::ZERO
            },
            ..Req::ZERO
        };
        if let Some(transport) = request.qp_type.transport() {
            message.set_transport(transport);
        }
        let options = Options {
            timeout_ms: conn.timeout_ms,
            retries: conn.max_cm_retries,
            owner: Some((uid, Flight::Req)),
            unlimited: false,
        };
        let (dev, local_id) = (id.dev, conn.local_id);
        let token = request.token.to_be_bytes();
        let sent = self.post_with(dev, request.to, options, fx, |mad| {
            message.emit(mad, &token)
        });
        let record = sent.ok_or(Errno::NoMemory)?;
        self.take_call(uid, Input::Call(Call::SendReq), fx);
        let id = self.ids.get_mut(&uid).ok_or(Errno::Invalid)?;
        id.record = Some(record);
        (id.remote_id, id.remote_qpn) = (Slot::Reserved, Slot::Reserved);
        id.timer_memory = true;
        id.local_qpn = Slot::Entered;
        self.local_qpns.insert((dev, request.qpn, local_id), uid);
        Ok(())
    }

    /// `ib_send_cm_rep`.
    pub fn send_rep(&mut self, uid: Uid, reply: Reply, fx: &mut Fx) -> Result<(), Errno> {
        self.permits(uid, Call::SendRep)?;
        let id = self.ids.get_mut(&uid).ok_or(Errno::Invalid)?;
        if !id.has_path || !self.devs[id.dev].open {
            return Err(Errno::Invalid);
        }
        let mut accepted = id.conn;
        accepted.local_qpn = reply.qpn;
        let dev = &self.devs[id.dev];
        let mut message = Rep {
            tid: accepted.tid,
            local_comm_id: accepted.local_id,
            remote_comm_id: accepted.remote_id,
            target_ack_delay: dev.ack_delay,
            local_ca_guid: dev.guid,
            ..Rep::ZERO
        };
        if accepted.qp_type == QpType::XrcTgt {
            message.local_ee_context_number = reply.qpn;
        } else {
            message.local_qpn = reply.qpn;
        }
        let options = Options {
            timeout_ms: accepted.timeout_ms,
            retries: accepted.max_cm_retries,
            owner: Some((uid, Flight::Rep)),
            unlimited: true,
        };
        let (dev, to) = (id.dev, id.peer);
        let token = reply.token.to_be_bytes();
        let sent = self.post_with(dev, to, options, fx, |mad| message.emit(mad, &token));
        let record = sent.ok_or(Errno::NoMemory)?;
        let id = self.ids.get_mut(&uid).ok_or(Errno::Invalid)?;
        id.record = Some(record);
        id.conn = accepted;
        let key = (dev, reply.qpn, accepted.local_id);
        if id.local_qpn == Slot::Reserved {
            id.local_qpn = Slot::Entered;
            self.local_qpns.insert(key, uid);
        }
        self.take_call(uid, Input::Call(Call::SendRep), fx);
        Ok(())
    }

    /// `ib_send_cm_rtu`.
    pub fn send_rtu(&mut self, uid: Uid, fx: &mut Fx) -> Result<(), Errno> {
        self.permits(uid, Call::SendRtu)?;
        let id = self.ids.get(&uid).ok_or(Errno::Invalid)?;
        let (conn, dev, to) = (id.conn, id.dev, id.peer);
        if !self.post(dev, to, fx, |mad| conn.rtu_message().emit(mad, &[])) {
            return Err(Errno::NoMemory);
        }
        self.take_call(uid, Input::Call(Call::SendRtu), fx);
        Ok(())
    }

    /// `ib_send_cm_dreq`. Where the DREQ cannot be sent, TimeWait begins at once.
    pub fn send_dreq(&mut self, uid: Uid, fx: &mut Fx) -> Result<(), Errno> {
        self.permits(uid, Call::SendDreq)?;
        let id = self.ids.get(&uid).ok_or(Errno::Invalid)?;
        let (conn, dev, to) = (id.conn, id.dev, id.peer);
        let options = Options {
            timeout_ms: conn.timeout_ms,
            retries: conn.max_cm_retries,
            owner: Some((uid, Flight::Dreq)),
            unlimited: false,
        };
        let tid = tid_of(&conn);
        let fill = |mad: &mut _| conn.dreq_message(tid).emit(mad, &[]);
        match self.post_with(dev, to, options, fx, fill) {
            Some(record) => {
                if let Some(id) = self.ids.get_mut(&uid) {
                    id.record = Some(record);
                }
                self.take_call(uid, Input::Call(Call::SendDreq), fx);
                Ok(())
            }
            None => {
                self.act(uid, Input::DreqNotSent, With::default(), fx);
                Err(Errno::NoMemory)
            }
        }
    }

    /// A call that is nothing but a step.
    fn call(&mut self, uid: Uid, call: Call, fx: &mut Fx) -> Result<(), Errno> {
        let outcome = self.act(uid, Input::Call(call), With::default(), fx);
        match outcome.step {
            None => Err(Errno::Invalid),
            Some(step) => match step.refused {
                Some(refusal) => {
                    fx.seen.mark(Mark::CallRefused);
                    Err(errno(refusal))
                }
                None => Ok(()),
            },
        }
    }

    /// `ib_send_cm_drep`.
    pub fn send_drep(&mut self, uid: Uid, fx: &mut Fx) -> Result<(), Errno> {
        self.call(uid, Call::SendDrep, fx)
    }

    /// `ib_send_cm_rej`.
    pub fn send_rej(&mut self, uid: Uid, why: RejReason, fx: &mut Fx) -> Result<(), Errno> {
        self.call(uid, Call::SendRej(why), fx)
    }

    /// `ib_prepare_cm_mra`.
    pub fn prepare_mra(&mut self, uid: Uid, fx: &mut Fx) -> Result<(), Errno> {
        self.call(uid, Call::PrepareMra, fx)
    }

    /// `ib_cm_notify` with `IB_EVENT_COMM_EST`.
    pub fn established(&mut self, uid: Uid, fx: &mut Fx) -> Result<(), Errno> {
        self.call(uid, Call::Established, fx)
    }

    /// `ib_send_cm_sidr_req`.
    pub fn send_sidr_req(
        &mut self,
        uid: Uid,
        to: Lid,
        service: u64,
        timeout_ms: u32,
        fx: &mut Fx,
    ) -> Result<(), Errno> {
        self.permits(uid, Call::SendSidrReq)?;
        let id = self.ids.get_mut(&uid).ok_or(Errno::Invalid)?;
        id.has_path = true;
        id.peer = to;
        id.conn.timeout_ms = timeout_ms;
        id.conn.max_cm_retries = 3;
        id.conn.tid = tid_of(&id.conn);
        let message = SidrReq {
            tid: id.conn.tid,
            request_id: id.conn.local_id,
            partition_key: 0xffff,
            service_id: service,
        };
        let options = Options {
            timeout_ms,
            retries: 3,
            owner: Some((uid, Flight::SidrReq)),
            unlimited: false,
        };
        let dev = id.dev;
        let sent = self.post_with(dev, to, options, fx, |mad| message.emit(mad, &[]));
        let record = sent.ok_or(Errno::NoMemory)?;
        if let Some(id) = self.ids.get_mut(&uid) {
            id.record = Some(record);
        }
        self.take_call(uid, Input::Call(Call::SendSidrReq), fx);
        Ok(())
    }

    /// `ib_send_cm_sidr_rep`.
    pub fn send_sidr_rep(
        &mut self,
        uid: Uid,
        status: SidrStatus,
        fx: &mut Fx,
    ) -> Result<(), Errno> {
        self.permits(uid, Call::SendSidrRep)?;
        let id = self.ids.get(&uid).ok_or(Errno::Invalid)?;
        let message = SidrRep {
            tid: id.conn.tid,
            request_id: id.conn.remote_id,
            status,
            service_id: id.service,
            ..SidrRep::ZERO
        };
        let (dev, to) = (id.dev, id.peer);
        if !self.post(dev, to, fx, |mad| message.emit(mad, &[])) {
            return Err(Errno::NoMemory);
        }
        fx.seen.mark(Mark::SidrAnswered);
        self.call(uid, Call::SendSidrRep, fx)
    }

    /// `ib_destroy_cm_id`, without the wait for running handlers.
    pub fn destroy(&mut self, uid: Uid, fx: &mut Fx) {
        let Some(id) = self.ids.get_mut(&uid) else {
            return;
        };
        match id.conn.state {
            State::Listen => self.stop_listening(uid, fx),
            State::SidrReqRcvd => {
                // Whether or not it can be sent: the identifier goes.
                let _ = self.send_sidr_rep(uid, SidrStatus::REJECT, fx);
            }
            _ => {}
        }
        self.abandon(uid, false, fx);
    }

    /// Takes a listener out of its index.
    fn stop_listening(&mut self, uid: Uid, fx: &mut Fx) {
        let key = self.ids.get(&uid).map(|id| (id.dev, id.service));
        let Some(key) = key else {
            return;
        };
        if self.services.get(&key) == Some(&uid) {
            self.services.remove(&key);
        } else {
            let what = format!("host {}: listener {uid} is not in its index", self.host);
            fx.broken(Rule::KeysUnique, what);
        }
    }

    /// Takes the next event of an identifier, for its handler, which runs from now on.
    pub fn next_event(&mut self, uid: Uid, fx: &mut Fx) -> Option<Event> {
        let id = self.ids.get_mut(&uid)?;
        let event = if id.conn.is_orphan() {
            None
        } else {
            id.events.pop_front()
        };
        let Some(event) = event else {
            id.delivering = false;
            self.reap(uid);
            return None;
        };
        if let Event::Arrival(arrival) = &event {
            let listener = arrival.listener.and_then(|uid| self.ids.get(&uid));
            if arrival.listener.is_some()
                && listener.is_none_or(|id| id.conn.state != State::Listen)
            {
                self.withdraw(uid, event, fx);
                return None;
            }
        }
        if let Some(id) = self.ids.get_mut(&uid) {
            id.running = true;
        }
        Some(event)
    }

    /// The listener of a request has been destroyed before its handler ran.
    fn withdraw(&mut self, uid: Uid, event: Event, fx: &mut Fx) {
        fx.seen.mark(Mark::ListenerWithdrew);
        if let (Event::Arrival(arrival), Some(dev)) = (&event, self.ids.get(&uid).map(|id| id.dev))
        {
            match ib_cm_proto::wire::AttrId::of(&arrival.mad) {
                Some(ib_cm_proto::wire::AttrId::Req) => {
                    let why = RejReason::INVALID_SERVICE_ID;
                    self.reject(dev, arrival.from, &arrival.mad, why, fx);
                }
                _ => self.sidr_say(dev, arrival, SidrStatus::REJECT, fx),
            }
        }
        self.drop_event(event);
        self.give_up(uid, true, fx);
    }

    /// Destroys an identifier whose consumer does not want it.
    fn give_up(&mut self, uid: Uid, silent: bool, fx: &mut Fx) {
        // It may listen by now, when the event is one of an earlier life.
        let state = self.ids.get(&uid).map(|id| id.conn.state);
        if state == Some(State::Listen) {
            self.stop_listening(uid, fx);
        }
        self.abandon(uid, silent, fx);
        if let Some(id) = self.ids.get_mut(&uid) {
            id.delivering = false;
        }
        self.disown(uid);
    }

    /// A handler has returned. Returns whether it may run again.
    pub fn handled(&mut self, uid: Uid, event: Event, returned: i32, fx: &mut Fx) -> bool {
        self.drop_event(event);
        if let Some(id) = self.ids.get_mut(&uid) {
            id.running = false;
        }
        if returned != 0 {
            self.give_up(uid, returned == NO_MEMORY, fx);
            return false;
        }
        true
    }

    /// Puts a device back where nothing of an earlier life is left.
    pub fn add_device(&mut self, dev: usize) {
        let device = &mut self.devs[dev];
        device.open = true;
        device.received = 0;
    }

    /// Gives up a hold on a queue pair.
    pub fn let_go(&mut self, uid: Uid, fx: &mut Fx) {
        if let Some(id) = self.ids.get_mut(&uid) {
            if id.local_qpn != Slot::Entered {
                return;
            }
            id.local_qpn = Slot::None;
            let key = (id.dev, id.conn.local_qpn, id.conn.local_id);
            if self.local_qpns.remove(&key) != Some(uid) {
                let what = format!("host {}: id {uid} has lost its queue pair", self.host);
                fx.broken(Rule::KeysUnique, what);
            }
        }
        self.reap(uid);
    }

    /// What the indices hold that they should not.
    pub fn check_indices(&self) -> Option<String> {
        let holds = |uid: &Uid, at: fn(&crate::cm::Id) -> bool| self.ids.get(uid).is_some_and(at);
        for (key, uid) in &self.remote_ids {
            let there = holds(uid, |id| id.remote_id == Slot::Entered);
            if !there || self.ids[uid].conn.remote_id_key() != *key {
                return Some(format!("the index of remote IDs has a wrong entry {key:?}"));
            }
        }
        for (key, uid) in &self.remote_qpns {
            let there = holds(uid, |id| id.remote_qpn == Slot::Entered);
            if !there || self.ids[uid].conn.remote_qpn_key() != *key {
                return Some(format!(
                    "the index of remote QPNs has a wrong entry {key:?}"
                ));
            }
        }
        for (key, uid) in &self.local_qpns {
            if !holds(uid, |id| id.local_qpn == Slot::Entered)
                || self.ids[uid].conn.local_qpn != key.1
            {
                return Some(format!("the index of local QPNs has a wrong entry {key:?}"));
            }
        }
        for (key, uid) in &self.local_ids {
            if !holds(uid, |id| id.local_id == Slot::Entered) || self.ids[uid].conn.local_id != *key
            {
                return Some(format!("the index of local IDs has a wrong entry {key:?}"));
            }
        }
        None
    }

    /// What is left where nothing should be.
    pub fn leftovers(&self) -> Option<String> {
        let counts = [
            ("identifiers", self.ids.len()),
            ("local IDs", self.local_ids.len()),
            ("remote IDs", self.remote_ids.len()),
            ("remote QPNs", self.remote_qpns.len()),
            ("local QPNs", self.local_qpns.len()),
            ("services", self.services.len()),
            ("SIDR requests", self.sidr_requests.len()),
            ("sends", self.devs.iter().map(|dev| dev.sends.len()).sum()),
        ];
        let left: Vec<String> = counts
            .iter()
            .filter(|(_, count)| *count != 0)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        (!left.is_empty()).then(|| format!("host {} keeps {}", self.host, left.join(", ")))
    }
}

/// What a REQ handler returns that ran out of memory.
pub const NO_MEMORY: i32 = -12;

fn errno(refusal: Refusal) -> Errno {
    match refusal {
        Refusal::InvalidState => Errno::Invalid,
        Refusal::AlreadyConnected => Errno::Connected,
    }
}
