// SPDX-License-Identifier: GPL-2.0
//! A host that talks to itself and to a forger: calls, messages, timers, failures in any order.
//!
//! What it sends to itself is under way until it is decided whether it arrives, once or twice, or
//! is lost. In the end all consumers destroy what they have and everything runs out: then nothing
//! may be left.

use std::rc::Rc;

use ib_cm_proto::connection::QpType;
use ib_cm_proto::step::Input;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto::wire::SidrStatus;
use ib_cm_sim::calls::Errno;
use ib_cm_sim::calls::Reply;
use ib_cm_sim::calls::Request;
use ib_cm_sim::calls::NO_MEMORY;
use ib_cm_sim::checker::Checker;
use ib_cm_sim::cm::Cm;
use ib_cm_sim::cm::Event;
use ib_cm_sim::cm::With;
use ib_cm_sim::config::Config;
use ib_cm_sim::fx::Fx;
use ib_cm_sim::fx::Lid;
use ib_cm_sim::fx::Packet;
use ib_cm_sim::fx::Task;
use ib_cm_sim::fx::Time;
use ib_cm_sim::fx::Uid;
use ib_cm_sim::mad::Status;
use ib_cm_sim::rng::Rng;
use ib_cm_sim::world::lid;
use ib_cm_sim::world::manager;
use ib_cm_sim::world::place;

use crate::bytes::Bytes;
use crate::mint::mint;
use crate::mint::Known;

/// More would only take longer.
const MOST_IDS: usize = 12;

/// A handler that runs.
#[derive(Debug)]
struct Running {
    uid: Uid,
    event: Event,
    /// Its identifier was destroyed meanwhile, by somebody who waits for the handler.
    destroyed: bool,
}

struct Harness {
    cm: Cm,
    fx: Fx,
    checker: Checker,
    /// MADs under way to the host itself.
    net: Vec<Packet>,
    /// Second halves of REQs, which a worker does.
    halves: Vec<Task>,
    running: Vec<Running>,
    /// Identifiers that consumers may still use.
    owned: Vec<Uid>,
}

/// Takes what happens to a host.
pub fn check(data: &[u8]) {
    let mut bytes = Bytes(data);
    let mut harness = Harness::new(bytes.byte());
    while !bytes.is_empty() {
        harness.turn(&mut bytes);
        harness.verify();
    }
    harness.go_home();
}

impl Harness {
    fn new(kind: u8) -> Self {
        let mut config = Config::draw(&mut Rng::new(0));
        config.devs = 2;
        config.same_ids = true;
        config.window = if kind & 1 == 0 { 128 } else { 1 };
        let mut fx = Fx::new(Rng::new(0), false);
        Harness {
            cm: manager(0, &config, &mut fx),
            fx,
            checker: Checker::new(0),
            net: Vec::new(),
            halves: Vec::new(),
            running: Vec::new(),
            owned: Vec::new(),
        }
    }

    /// Nothing is wrong so far.
    fn verify(&mut self) {
        let wrong = self.fx.broken.pop().or_else(|| self.cm.check_indices());
        assert_eq!(wrong, None);
    }

    /// One thing happens.
    fn turn(&mut self, bytes: &mut Bytes<'_>) {
        self.fx.allocation_fails = 0;
        match bytes.byte() {
            0..=23 => self.create(bytes),
            24..=119 => self.call(bytes),
            120..=159 => self.arrive(bytes),
            160..=175 => self.forge(bytes),
            176..=207 => self.deliver(bytes),
            208..=215 => self.handler_returns(bytes),
            216..=223 => self.half(bytes),
            224..=231 => self.time_out(bytes),
            232..=239 => self.timer(bytes),
            240..=245 => self.destroy(bytes),
            246..=248 => self.abandon(bytes),
            249..=250 => self.unplug(bytes),
            // The next thing finds no memory.
            _ => {
                self.fx.allocation_fails = 10_000;
                match bytes.byte() % 4 {
                    0 => self.create(bytes),
                    1 => self.call(bytes),
                    2 => self.arrive(bytes),
                    _ => self.half(bytes),
                }
                self.fx.allocation_fails = 0;
            }
        }
        self.settle();
    }

    /// Does what takes no time; what takes some waits until it is its turn.
    fn settle(&mut self) {
        while !self.fx.out.is_empty() {
            for (_, task) in core::mem::take(&mut self.fx.out) {
                match task {
                    Task::Wire(packet) if packet.to == lid(0, 0) || packet.to == lid(0, 1) => {
                        self.net.push(packet);
                    }
                    Task::AdapterDone(at, send, ok) => {
                        let sends = &mut self.cm.devs[at.dev].sends;
                        sends.adapter_done(send, ok, &mut self.fx);
                    }
                    Task::Completed(_, send, status, Some((uid, flight))) => match status {
                        Status::TimedOut | Status::Failed => {
                            let input = Input::SendError(flight);
                            self.cm.send_failed(uid, send, input, &mut self.fx);
                        }
                        _ => self.cm.completed(uid, send),
                    },
                    Task::Lane(at, from) => self.cm.lane(at.dev, from, &mut self.fx),
                    Task::Complete(..) => self.halves.push(task),
                    _ => {}
                }
            }
        }
    }

    fn create(&mut self, bytes: &mut Bytes<'_>) {
        let dev = bytes.below(2);
        if self.cm.ids.len() < MOST_IDS {
            if let Some(uid) = self.cm.create(dev, &mut self.fx) {
                self.owned.push(uid);
            }
        }
    }

    fn call(&mut self, bytes: &mut Bytes<'_>) {
        let call = bytes.byte();
        let Some(uid) = bytes.pick(&self.owned) else {
            return;
        };
        let detail = bytes.byte();
        let (cm, fx) = (&mut self.cm, &mut self.fx);
        let to = if detail & 1 == 0 { lid(0, 0) } else { Lid(77) };
        let service = u64::from(detail & 2);
        // Nobody uses an identifier again before having heard how it ended.
        let news = |id: &ib_cm_sim::cm::Id| !id.events.is_empty() || id.running;
        let waits = cm.ids.get(&uid).is_some_and(news);
        match call % 12 {
            1 | 2 | 11 if waits => {}
            0 => drop(cm.listen(uid, service, fx)),
            1 | 2 => {
                let request = Request {
                    to,
                    service,
                    qpn: u32::from(detail % 4),
                    token: 0,
                    qp_type: [QpType::Rc, QpType::Uc, QpType::XrcIni, QpType::Rc]
                        [usize::from(detail / 64)],
                    life: 10,
                    response: 10,
                    retries: (detail / 4) % 4,
                };
                if cm.send_req(uid, request, fx).is_ok() {
                    self.checker.req_sent(uid);
                }
            }
            3 | 4 => {
                let qpn = u32::from(detail % 4);
                if cm.send_rep(uid, Reply { qpn, token: 0 }, fx).is_ok() {
                    self.checker.rep_sent(uid);
                }
            }
            5 => drop(cm.send_rtu(uid, fx)),
            6 => {
                if cm.send_dreq(uid, fx) == Err(Errno::NoMemory) {
                    self.checker.ended_by_call(uid, 0);
                }
            }
            7 => {
                if cm.send_drep(uid, fx).is_ok() {
                    self.checker.drep_sent(uid, 0);
                }
            }
            8 => {
                let reason = RejReason(detail.into());
                if cm.send_rej(uid, reason, fx).is_ok() {
                    self.checker.ended_by_call(uid, 0);
                }
            }
            9 => drop(cm.prepare_mra(uid, fx)),
            10 => drop(cm.established(uid, fx)),
            _ if detail & 4 == 0 => drop(cm.send_sidr_req(uid, to, service, 100, fx)),
            _ => drop(cm.send_sidr_rep(uid, SidrStatus(detail / 8), fx)),
        }
    }

    fn arrive(&mut self, bytes: &mut Bytes<'_>) {
        let how = bytes.byte();
        if self.net.is_empty() {
            return;
        }
        let at = bytes.below(self.net.len());
        let packet = if how < 32 {
            self.net[at].clone()
        } else {
            self.net.swap_remove(at)
        };
        if how < 224 && self.cm.ids.len() < MOST_IDS {
            let dev = place(packet.to).dev;
            self.cm.receive(dev, packet, &mut self.fx);
        }
    }

    fn forge(&mut self, bytes: &mut Bytes<'_>) {
        let uids: Vec<Uid> = self.cm.ids.keys().copied().collect();
        let uid = bytes.pick(&uids);
        let id = uid.and_then(|uid| self.cm.ids.get(&uid));
        let known = id.map_or(
            Known {
                local_id: 1,
                remote_id: 2,
                local_qpn: 1,
                remote_qpn: 2,
                ca_guid: 3,
                service: 0,
            },
            |id| Known {
                local_id: id.conn.local_id,
                remote_id: id.conn.remote_id,
                local_qpn: id.conn.local_qpn,
                remote_qpn: id.conn.remote_qpn,
                ca_guid: id.conn.remote_ca_guid,
                service: id.service,
            },
        );
        let dev = id.map_or(0, |id| id.dev);
        let from = if bytes.byte() < 128 {
            lid(0, 0)
        } else {
            Lid(77)
        };
        let packet = Packet {
            from,
            to: lid(0, dev),
            mad: Rc::new(mint(bytes, &known)),
        };
        if self.cm.ids.len() < MOST_IDS {
            self.cm.receive(dev, packet, &mut self.fx);
        }
    }

    /// A handler begins, and returns at once or later.
    fn deliver(&mut self, bytes: &mut Bytes<'_>) {
        let waits =
            |(uid, id): (&Uid, &ib_cm_sim::cm::Id)| (id.delivering && !id.running).then_some(*uid);
        let waiting: Vec<Uid> = self.cm.ids.iter().filter_map(waits).collect();
        let returned = bytes.byte();
        let Some(uid) = bytes.pick(&waiting) else {
            return;
        };
        let owned = self.cm.ids.get(&uid).is_some_and(|id| id.owned);
        let Some(event) = self.cm.next_event(uid, &mut self.fx) else {
            return;
        };
        if owned && !self.owned.contains(&uid) {
            self.owned.push(uid);
        }
        self.checker.event(uid, &event, &mut self.fx);
        self.running.push(Running {
            uid,
            event,
            destroyed: false,
        });
        if returned < 224 {
            self.end_handler(self.running.len() - 1, returned);
        }
    }

    fn handler_returns(&mut self, bytes: &mut Bytes<'_>) {
        let returned = bytes.byte();
        if !self.running.is_empty() {
            let at = bytes.below(self.running.len());
            self.end_handler(at, returned);
        }
    }

    fn end_handler(&mut self, at: usize, returned: u8) {
        let Running {
            uid,
            event,
            destroyed,
        } = self.running.swap_remove(at);
        let returned = match returned {
            // Whoever destroys an identifier from elsewhere does not give it up here as well.
            _ if destroyed => 0,
            200..=211 => NO_MEMORY,
            212.. => 1,
            _ => 0,
        };
        if returned != 0 {
            self.checker.destroyed(uid, 0);
            self.owned.retain(|owned| *owned != uid);
        }
        if self.cm.handled(uid, event, returned, &mut self.fx) {
            if let Some(id) = self.cm.ids.get_mut(&uid) {
                id.delivering = !id.events.is_empty() && !id.conn.is_orphan();
            }
            if destroyed {
                self.cm.disown(uid);
            }
            self.cm.reap(uid);
        }
    }

    fn half(&mut self, bytes: &mut Bytes<'_>) {
        if self.halves.is_empty() {
            return;
        }
        let at = bytes.below(self.halves.len());
        if let Task::Complete(place, uid, arrival) = self.halves.swap_remove(at) {
            self.cm.complete_req(place.dev, uid, arrival, &mut self.fx);
        }
    }

    fn time_out(&mut self, bytes: &mut Bytes<'_>) {
        let dev = bytes.below(2);
        let waiting = self.cm.devs[dev].sends.waiting();
        if let Some(send) = bytes.pick(&waiting) {
            self.cm.devs[dev].sends.time_out(send, &mut self.fx);
        }
    }

    fn timers(&self) -> Vec<(Uid, Time)> {
        let set = |(uid, id): (&Uid, &ib_cm_sim::cm::Id)| id.timer.map(|due| (*uid, due));
        self.cm.ids.iter().filter_map(set).collect()
    }

    fn timer(&mut self, bytes: &mut Bytes<'_>) {
        if let Some((uid, due)) = bytes.pick(&self.timers()) {
            self.cm.timer(uid, due, &mut self.fx);
        }
    }

    fn destroy(&mut self, bytes: &mut Bytes<'_>) {
        if let Some(uid) = bytes.pick(&self.owned) {
            self.destroy_one(uid);
        }
    }

    fn destroy_one(&mut self, uid: Uid) {
        self.owned.retain(|owned| *owned != uid);
        self.checker.destroyed(uid, 0);
        self.cm.destroy(uid, &mut self.fx);
        match self.running.iter_mut().find(|running| running.uid == uid) {
            Some(running) => running.destroyed = true,
            None => self.cm.disown(uid),
        }
    }

    /// The process that owns a queue pair is gone.
    fn abandon(&mut self, bytes: &mut Bytes<'_>) {
        let held: Vec<Uid> = self.cm.local_qpns.values().copied().collect();
        if let Some(uid) = bytes.pick(&held) {
            self.cm
                .act(uid, Input::Abandoned, With::default(), &mut self.fx);
        }
    }

    /// A device goes away, or comes back.
    fn unplug(&mut self, bytes: &mut Bytes<'_>) {
        let dev = bytes.below(2);
        if self.cm.devs[dev].open {
            for (uid, id) in &self.cm.ids {
                if id.dev == dev {
                    self.checker.device_gone(*uid);
                }
            }
            self.cm.remove_device(dev, &mut self.fx);
            // Its workers have ended before it is gone.
            self.halves
                .retain(|half| !matches!(half, Task::Complete(at, ..) if at.dev == dev));
        } else if self.cm.ids.values().all(|id| id.dev != dev) {
            self.cm.add_device(dev);
        }
    }

    /// Consumers destroy what they have, and all runs out.
    fn go_home(&mut self) {
        self.net.clear();
        while !self.halves.is_empty() {
            self.half(&mut Bytes(&[]));
            self.settle();
        }
        while !self.running.is_empty() {
            self.end_handler(0, 0);
            self.settle();
        }
        // Also what no handler has seen yet.
        let deliveries = self.cm.ids.len() * 8;
        for _ in 0..deliveries {
            self.deliver(&mut Bytes(&[]));
            self.settle();
        }
        while let Some(uid) = self.owned.first().copied() {
            self.destroy_one(uid);
            self.settle();
        }
        self.verify();
        let mut rounds = 0;
        loop {
            self.net.clear();
            let mut idle = true;
            for dev in 0..2 {
                for send in self.cm.devs[dev].sends.waiting() {
                    idle = false;
                    self.cm.devs[dev].sends.time_out(send, &mut self.fx);
                }
            }
            for (uid, due) in self.timers() {
                idle = false;
                self.cm.timer(uid, due, &mut self.fx);
            }
            self.settle();
            self.verify();
            if idle {
                break;
            }
            rounds += 1;
            assert!(rounds < 1000, "something never ends");
        }
        // Whoever has heard nothing of a destroyed identifier any more lets it go.
        for uid in self.cm.ids.keys().copied().collect::<Vec<_>>() {
            self.cm.next_event(uid, &mut self.fx);
            self.cm.reap(uid);
        }
        assert_eq!(self.cm.leftovers(), None);
    }
}
