// SPDX-License-Identifier: GPL-2.0
//! The connection manager of a host: identifiers and indices, and carrying out what the protocol
//! decides. It does in one thread what `rust/cm` does under locks.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use ib_cm_proto::connection::Connection;
use ib_cm_proto::lookup::RemoteId;
use ib_cm_proto::lookup::RemoteQpn;
use ib_cm_proto::step::Indices;
use ib_cm_proto::step::Input;
use ib_cm_proto::step::Report;
use ib_cm_proto::step::Step;
use ib_cm_proto::step::Timer;
use ib_cm_proto::time;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto::Mad;
use ib_cm_proto::MAD_SIZE;

use crate::fx::Arrival;
use crate::fx::Delay;
use crate::fx::Fx;
use crate::fx::Lid;
use crate::fx::Packet;
use crate::fx::Task;
use crate::fx::Time;
use crate::fx::Uid;
use crate::mad::Options;
use crate::mad::Sends;
use crate::note::note;
use crate::note::tid_of;
use crate::rules::Rule;

/// The place of an identifier in one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Not there, and no memory set aside.
    None,
    /// Not there yet; the memory waits.
    Reserved,
    /// There.
    Entered,
}

/// An event that waits for delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message came in.
    Arrival(Arrival),
    /// The module found something out, at this time.
    Note(Report, Time),
}

/// An identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id {
    /// What the protocol knows.
    pub conn: Connection,
    /// The device that it was made for.
    pub dev: usize,
    /// Whether it knows a path, which ends with the device.
    pub has_path: bool,
    /// The far end of the path.
    pub peer: Lid,
    /// The send in flight that waits for an answer.
    pub record: Option<Uid>,
    /// The events that wait.
    pub events: VecDeque<Event>,
    /// Somebody delivers, or has been asked to.
    pub delivering: bool,
    /// A handler runs.
    pub running: bool,
    /// Whether memory for a timer was set aside.
    pub timer_memory: bool,
    /// When the timer runs out.
    pub timer: Option<Time>,
    /// Its place in the index of local IDs.
    pub local_id: Slot,
    /// Its place in the index of remote IDs.
    pub remote_id: Slot,
    /// Its place in the index of remote queue pairs.
    pub remote_qpn: Slot,
    /// Its place in the index of local queue pairs.
    pub local_qpn: Slot,
    /// The SIDR request that it stands for in the index.
    pub sidr: Option<(u32, Lid)>,
    /// The service that it listens to or was asked for.
    pub service: u64,
    /// A consumer has it.
    pub owned: bool,
    /// Requests that name it as their listener.
    pub requests: u32,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dev {
    /// Its address.
    pub lid: Lid,
    /// Its GUID.
    pub guid: u64,
    /// Its acknowledgement delay (IBA time).
    pub ack_delay: u8,
    /// Whether it is there.
    pub open: bool,
    /// Its sends.
    pub sends: Sends,
    /// What has come in, by source. A source that is there has a MAD with a worker.
    pub lanes: BTreeMap<Lid, VecDeque<Arrival>>,
    /// MADs received.
    pub received: u64,
    /// The turn of the last MAD of each source that has taken effect.
    pub effective: BTreeMap<Lid, u64>,
}

/// The connection manager of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cm {
    /// Number of the host.
    pub host: usize,
    /// The devices.
    pub devs: Vec<Dev>,
    /// The identifiers that exist.
    pub ids: BTreeMap<Uid, Id>,
    /// Identifiers that can receive.
    pub local_ids: BTreeMap<u32, Uid>,
    /// Duplicates of REQ and REP.
    pub remote_ids: BTreeMap<RemoteId, Uid>,
    /// Stale connections.
    pub remote_qpns: BTreeMap<RemoteQpn, Uid>,
    /// Queue pairs that must not go away yet.
    pub local_qpns: BTreeMap<(usize, u32, u32), Uid>,
    /// Listeners.
    pub services: BTreeMap<(usize, u64), Uid>,
    /// Duplicates of SIDR_REQ.
    pub sidr_requests: BTreeMap<(u32, Lid), Uid>,
    /// The next communication ID.
    pub next_local_id: u32,
}

/// What comes with an input.
#[derive(Clone, Debug, Default)]
pub struct With {
    /// The MAD that is the input.
    pub arrival: Option<Arrival>,
    /// The remote ID that the identifier must have.
    pub peer: Option<u32>,
    /// The transaction that the message begins.
    pub tid: Option<u64>,
    /// The send that must be the one in flight.
    pub record: Option<Uid>,
    /// The deadline that the timer must have been set for.
    pub deadline: Option<Time>,
    /// How long the peer asks us to wait (IBA time).
    pub service_timeout: u8,
}

/// What became of an input.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What was decided; none when the input was not meant for the identifier.
    pub step: Option<Step>,
    /// Whether what it said could be sent.
    pub sent: bool,
    /// The MAD, if no event took it.
    pub arrival: Option<Arrival>,
}

impl Cm {
    /// A host that has just come up.
    pub fn new(host: usize, devs: Vec<Dev>, next_local_id: u32) -> Self {
        Cm {
            host,
            devs,
            ids: BTreeMap::new(),
            local_ids: BTreeMap::new(),
            remote_ids: BTreeMap::new(),
            remote_qpns: BTreeMap::new(),
            local_qpns: BTreeMap::new(),
            services: BTreeMap::new(),
            sidr_requests: BTreeMap::new(),
            next_local_id,
        }
    }

    /// The next communication ID; never 0.
    fn next_local_id(&mut self) -> u32 {
        loop {
            let id = self.next_local_id;
            self.next_local_id = id.wrapping_add(1);
            if id != 0 {
                return id;
            }
        }
    }

    /// A fresh identifier, in no index.
    pub fn make(&mut self, dev: usize, fx: &mut Fx) -> Option<Uid> {
        if fx.no_memory() {
            return None;
        }
        let uid = fx.uid();
        let conn = Connection::new(self.next_local_id());
        let id = Id {
            conn,
            dev,
            has_path: false,
            peer: Lid(0),
            record: None,
            events: VecDeque::new(),
            delivering: false,
            running: false,
            timer_memory: false,
            timer: None,
            local_id: Slot::None,
            remote_id: Slot::None,
            remote_qpn: Slot::None,
            local_qpn: Slot::None,
            sidr: None,
            service: 0,
            owned: false,
            requests: 0,
        };
        self.ids.insert(uid, id);
        Some(uid)
    }

    /// Enters the index of local IDs, under the next number where this one is in use.
    pub fn enter_local_id(&mut self, uid: Uid) {
        loop {
            let Some(id) = self.ids.get_mut(&uid) else {
                return;
            };
            let key = id.conn.local_id;
            if let std::collections::btree_map::Entry::Vacant(entry) = self.local_ids.entry(key) {
                entry.insert(uid);
                id.local_id = Slot::Entered;
                return;
            }
            let next = self.next_local_id();
            if let Some(id) = self.ids.get_mut(&uid) {
                id.conn.local_id = next;
            }
        }
    }

    /// Frees an identifier that nobody refers to any more.
    pub fn reap(&mut self, uid: Uid) {
        let gone = self.ids.get(&uid).is_some_and(|id| {
            let slots = [id.local_id, id.remote_id, id.remote_qpn, id.local_qpn];
            !id.owned
                && !id.delivering
                && !id.running
                && id.record.is_none()
                && id.timer.is_none()
                && id.requests == 0
                && id.sidr.is_none()
                && !slots.contains(&Slot::Entered)
        });
        if gone {
            self.ids.remove(&uid);
        }
    }

    /// Whether the input is meant for the identifier as it is now.
    fn is_for(id: &Id, with: &With) -> bool {
        with.peer.is_none_or(|peer| id.conn.remote_id == peer)
            && with.record.is_none_or(|record| id.record == Some(record))
            && with
                .deadline
                .is_none_or(|deadline| id.timer == Some(deadline))
    }

    /// Gives an input to an identifier and does what follows from it.
    pub fn act(&mut self, uid: Uid, input: Input, mut with: With, fx: &mut Fx) -> Outcome {
        let Some(id) = self.ids.get_mut(&uid) else {
            return Outcome::default();
        };
        if !Self::is_for(id, &with) {
            return Outcome {
                arrival: with.arrival,
                ..Outcome::default()
            };
        }
        let before = id.conn;
        let mut next = id.conn;
        let step = next.step(input);
        if let (Input::Mra(_), false) = (input, step.unexpected) {
            let patience_ms = time::ms_from_iba(with.service_timeout)
                .saturating_add(time::ms_from_iba(id.conn.ack_timeout));
            let sends = &mut self.devs[id.dev].sends;
            // The message may just be failing: then there is nothing to be patient about.
            if !id
                .record
                .is_some_and(|record| sends.modify_timeout(record, patience_ms, fx))
            {
                return Outcome::default();
            }
        }
        id.conn = next;
        note(uid, &before, input, &step, &next, fx);
        if let (Some(tid), false) = (with.tid, step.unexpected) {
            id.conn.tid = tid;
        }
        if with.deadline.is_some() {
            id.timer = None;
        }
        if step.cancel {
            if let Some(record) = id.record.take() {
                self.devs[id.dev].sends.cancel(record, fx);
            }
        }
        let to = with.arrival.as_ref().map(|arrival| arrival.from);
        let sent = self.send_all(uid, &step, to, fx);
        self.conclude(uid, &step, &mut with, fx);
        Outcome {
            step: Some(step),
            sent,
            arrival: with.arrival,
        }
    }

    /// Sends the messages of a step: answers to where the MAD came from, else along the path.
    fn send_all(&mut self, uid: Uid, step: &Step, to: Option<Lid>, fx: &mut Fx) -> bool {
        let Some(id) = self.ids.get(&uid) else {
            return false;
        };
        let (conn, dev) = (id.conn, id.dev);
        let Some(to) = to.or(id.has_path.then_some(id.peer)) else {
            return false;
        };
        let mut sent = true;
        if let Some(reject) = step.rej {
            let guid = self.devs[dev].guid.to_be_bytes();
            let ari = match reject.reason {
                // The peer finds its identifier by our GUID (IBA 12.6.7.2).
                RejReason::TIMEOUT => &guid[..],
                _ => &[],
            };
            sent = self.post(dev, to, fx, |mad| {
                conn.rej_message(reject, ari).emit(mad, &[])
            });
        }
        if step.dreq {
            let tid = tid_of(&conn);
            sent = self.post(dev, to, fx, |mad| conn.dreq_message(tid).emit(mad, &[]));
        }
        if step.drep {
            sent = self.post(dev, to, fx, |mad| conn.drep_message().emit(mad, &[]));
        }
        if let Some(message) = step.mra {
            sent = self.post(dev, to, fx, |mad| conn.mra_message(message).emit(mad, &[]));
        }
        sent
    }

    /// Sends a message that expects no answer.
    pub fn post(&mut self, dev: usize, to: Lid, fx: &mut Fx, fill: impl FnOnce(&mut Mad)) -> bool {
        self.post_with(dev, to, Options::default(), fx, fill)
            .is_some()
    }

    /// Sends a message.
    pub fn post_with(
        &mut self,
        dev: usize,
        to: Lid,
        options: Options,
        fx: &mut Fx,
        fill: impl FnOnce(&mut Mad),
    ) -> Option<Uid> {
        let dev = &mut self.devs[dev];
        if !dev.open || fx.no_memory() {
            return None;
        }
        let mut mad = [0; MAD_SIZE];
        fill(&mut mad);
        let packet = Packet {
            from: dev.lid,
            to,
            mad: mad.into(),
        };
        Some(dev.sends.post(packet, options, fx))
    }

    /// Does the rest of a step: report, timer, indices, and sees to delivery.
    pub fn conclude(&mut self, uid: Uid, step: &Step, with: &mut With, fx: &mut Fx) {
        self.report(uid, step, with, fx);
        let Some(id) = self.ids.get_mut(&uid) else {
            return;
        };
        match step.timer {
            None => {}
            Some(Timer::Dreq(ms) | Timer::Timewait(ms)) => {
                if id.has_path && id.timer_memory && self.devs[id.dev].open {
                    let due = fx.now + Time::from(ms.max(1)) * 1000;
                    id.timer = Some(due);
                    fx.later(Delay::At(due), Task::Timer(self.host, uid, due));
                } else {
                    // Nothing will ever happen by itself again: be done with it now.
                    self.run_down(uid, fx);
                    self.leave(uid, Indices::DropAll, fx);
                }
            }
            Some(Timer::Stop) => id.timer = None,
        }
        self.leave(uid, step.indices, fx);
        if let Some(id) = self.ids.get_mut(&uid) {
            if !id.events.is_empty() && !id.delivering {
                id.delivering = true;
                fx.later(Delay::Worker, Task::Deliver(self.host, uid));
            }
        }
        self.reap(uid);
    }

    /// The device has gone: takes the connection to its end.
    fn run_down(&mut self, uid: Uid, fx: &mut Fx) {
        while let Some(id) = self.ids.get_mut(&uid) {
            let before = id.conn;
            let step = id.conn.step(Input::DeviceGone);
            let after = id.conn;
            if step.timer.is_none() {
                break;
            }
            note(uid, &before, Input::DeviceGone, &step, &after, fx);
            self.report(uid, &step, &mut With::default(), fx);
        }
    }

    /// Queues the event of a step.
    fn report(&mut self, uid: Uid, step: &Step, with: &mut With, fx: &mut Fx) {
        let Some(id) = self.ids.get_mut(&uid) else {
            return;
        };
        match step.report {
            None => {}
            Some(Report::Message) => {
                if let Some(arrival) = with.arrival.take() {
                    id.events.push_back(Event::Arrival(arrival));
                }
            }
            Some(report) => id.events.push_back(Event::Note(report, fx.now)),
        }
    }

    /// Leaves indices.
    pub fn leave(&mut self, uid: Uid, indices: Indices, fx: &mut Fx) {
        let Some(id) = self.ids.get_mut(&uid) else {
            return;
        };
        let leaves = id.conn.leaves(indices);
        let (host, conn) = (self.host, id.conn);
        let mut check = |holder: Option<Uid>, index: &str| {
            if holder != Some(uid) {
                let what = format!("host {host}: id {uid} left the index of {index}, which has");
                fx.broken(Rule::KeysUnique, format!("{what} {holder:?} in its place"));
            }
        };
        if leaves.remote_qpn && id.remote_qpn == Slot::Entered {
            id.remote_qpn = Slot::None;
            check(
                self.remote_qpns.remove(&conn.remote_qpn_key()),
                "remote QPNs",
            );
        }
        if leaves.remote_id && id.remote_id == Slot::Entered {
            id.remote_id = Slot::None;
            check(self.remote_ids.remove(&conn.remote_id_key()), "remote IDs");
        }
        if leaves.local_qpn && id.local_qpn == Slot::Entered {
            id.local_qpn = Slot::None;
            let key = (id.dev, conn.local_qpn, conn.local_id);
            check(self.local_qpns.remove(&key), "local QPNs");
        }
        if leaves.remote_id {
            if let Some(request) = id.sidr.take() {
                check(self.sidr_requests.remove(&request), "SIDR requests");
            }
        }
        if leaves.local_id && id.local_id == Slot::Entered {
            id.local_id = Slot::None;
            check(self.local_ids.remove(&conn.local_id), "local IDs");
        }
    }

    /// The device goes away: ends its sends and tells its identifiers.
    pub fn remove_device(&mut self, dev: usize, fx: &mut Fx) {
        let device = &mut self.devs[dev];
        device.open = false;
        device.sends.close(fx);
        device.lanes.clear();
        device.effective.clear();
        let ids: Vec<Uid> = self.local_ids.values().copied().collect();
        for uid in ids {
            if self.ids.get(&uid).is_some_and(|id| id.dev == dev) {
                self.lose_device(uid, fx);
            }
        }
        // Those that no consumer has seen yet die with the worker that made them.
        let unseen: Vec<Uid> = self.ids.keys().copied().collect();
        for uid in unseen {
            if self
                .ids
                .get(&uid)
                .is_some_and(|id| id.dev == dev && id.local_id == Slot::Reserved)
            {
                self.discard(uid, fx);
                self.lose_device(uid, fx);
            }
        }
    }

    fn lose_device(&mut self, uid: Uid, fx: &mut Fx) {
        loop {
            let outcome = self.act(uid, Input::DeviceGone, With::default(), fx);
            if outcome.step.is_none_or(|step| step.timer.is_none()) {
                break;
            }
        }
        if let Some(id) = self.ids.get_mut(&uid) {
            id.has_path = false;
        }
    }

    /// Gives an identifier up that no consumer has seen.
    pub fn discard(&mut self, uid: Uid, fx: &mut Fx) {
        let local_id = self.ids.get(&uid).map(|id| id.conn.local_id);
        self.act(uid, Input::Destroy { silent: true }, With::default(), fx);
        self.reap(uid);
        if fx.tidy && local_id == Some(self.next_local_id.wrapping_sub(1)) {
            self.next_local_id = self.next_local_id.wrapping_sub(1);
        }
    }

    /// Gives an identifier up on behalf of its consumer.
    pub fn abandon(&mut self, uid: Uid, silent: bool, fx: &mut Fx) {
        self.act(uid, Input::Destroy { silent }, With::default(), fx);
        let events = self
            .ids
            .get_mut(&uid)
            .map(|id| core::mem::take(&mut id.events));
        for event in events.into_iter().flatten() {
            self.drop_event(event);
        }
    }

    /// The consumer will not use the identifier any more.
    pub fn disown(&mut self, uid: Uid) {
        if let Some(id) = self.ids.get_mut(&uid) {
            id.owned = false;
        }
        self.reap(uid);
    }

    /// An event is done with, and with it the request's hold on its listener.
    pub fn drop_event(&mut self, event: Event) {
        if let Event::Arrival(Arrival {
            listener: Some(listener),
            ..
        }) = event
        {
            if let Some(id) = self.ids.get_mut(&listener) {
                id.requests -= 1;
            }
            self.reap(listener);
        }
    }

    /// The timer of an identifier has run out.
    pub fn timer(&mut self, uid: Uid, due: Time, fx: &mut Fx) {
        let with = With {
            deadline: Some(due),
            ..With::default()
        };
        self.act(uid, Input::Timer, with, fx);
    }
}
