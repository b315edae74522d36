// SPDX-License-Identifier: GPL-2.0
//! Two hosts and a connection, and everything that can happen next: what the exhaustive search goes
//! through.

mod fates;
mod key;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use ib_cm_proto::connection::QpType;
use ib_cm_proto::step::Input;

use crate::calls::Reply;
use crate::calls::Request;
use crate::checker::Checker;
use crate::checker::Kind;
use crate::cm::Cm;
use crate::config::Config;
use crate::deaf::Ears;
use crate::digest::body_of;
use crate::digest::ids_of;
use crate::exhaustive::Budget;
use crate::fx::Fx;
use crate::fx::Packet;
use crate::fx::Task;
use crate::fx::Uid;
use crate::mad::Status;
use crate::monitor::Monitor;
use crate::rng::Rng;
use crate::rules::Rule;
use crate::world::lid;
use crate::world::manager;

pub(crate) use fates::Fates;

const SERVICE: u64 = 0x1000;

/// Something that can happen next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Arrive(usize),
    /// It arrives, and will again, however late.
    ArriveTwice(usize),
    Deliver(usize, Uid),
    TimeOut(usize, Uid),
    Timer(usize, Uid),
    Ask,
    Disconnect(usize, Uid),
    Destroy(usize, Uid),
    Crash(usize),
}

/// A MAD under way.
#[derive(Clone)]
struct Flying {
    packet: Packet,
    /// Whether it may be later than any timer.
    late: bool,
    /// What it says, but for the IDs.
    body: u128,
}

impl Flying {
    fn new(packet: Packet, late: bool) -> Self {
        let body = body_of(&packet.mad);
        Flying { packet, late, body }
    }

    fn same(&self, other: &Flying) -> bool {
        self.body == other.body
            && self.packet.from == other.packet.from
            && ids_of(&self.packet.mad) == ids_of(&other.packet.mad)
    }
}

/// Hosts, network, and those who watch.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) hosts: [Rc<Cm>; 2],
    net: Vec<Flying>,
    checker: Rc<Checker>,
    monitor: Rc<Monitor>,
    budget: Budget,
    /// Whether host 0 has connected since it has come up.
    connected: bool,
    next: Uid,
    /// Have been sent and are not under way yet.
    leaving: VecDeque<Packet>,
    ears: Rc<RefCell<Ears>>,
    fates: Fates,
    /// Which fates could have been others, with a bit for each fate: four bits for each digit.
    open: u64,
    /// How many fates there were.
    asked: u32,
    /// It is no other state than one with a larger budget.
    pub(crate) over: bool,
}

impl State {
    pub(crate) fn begin(budget: Budget, fx: &mut Fx) -> Self {
        let config = Self::config();
        let mut state = State {
            hosts: [0, 1].map(|host| Rc::new(manager(host, &config, fx))),
            net: Vec::new(),
            checker: Rc::new(Checker::new(0)),
            monitor: Rc::new(Monitor::new(false)),
            budget,
            connected: false,
            next: 1,
            leaving: VecDeque::new(),
            ears: Rc::default(),
            fates: 0,
            open: 0,
            asked: 0,
            over: false,
        };
        fx.next = state.next;
        state.start(1, fx);
        state.spread(fx);
        state.next = fx.next;
        state
    }

    fn config() -> Config {
        let mut config = Config::draw(&mut Rng::new(0));
        (config.devs, config.window, config.same_ids) = (1, 128, true);
        config
    }

    /// A host comes up.
    fn boot(&mut self, host: usize, first_id: u32, fx: &mut Fx) {
        let mut cm = manager(host, &Self::config(), fx);
        cm.next_local_id = first_id;
        self.hosts[host] = Rc::new(cm);
        self.connected &= host != 0;
        self.start(host, fx);
    }

    /// Host 0 asks, host 1 listens.
    fn start(&mut self, host: usize, fx: &mut Fx) {
        let cm = self.host(host);
        let Some(uid) = cm.create(0, fx) else {
            return;
        };
        if host == 1 {
            let _ = cm.listen(uid, SERVICE, fx);
        } else {
            let request = Request {
                to: lid(1, 0),
                service: SERVICE,
                qpn: 17,
                token: 17,
                qp_type: QpType::Rc,
                life: 10,
                response: 10,
                retries: 1,
            };
            if cm.send_req(uid, request, fx).is_ok() {
                self.checker().req_sent(uid);
            }
        }
        self.settle(fx);
    }

    /// Does at once what takes no time.
    fn settle(&mut self, fx: &mut Fx) {
        while !fx.out.is_empty() {
            for (_, task) in core::mem::take(&mut fx.out) {
                match task {
                    Task::Wire(packet) => {
                        let monitor = Rc::make_mut(&mut self.monitor);
                        if let Some(what) = monitor.sent(&packet, 0) {
                            fx.broken(Rule::RejsFit, what);
                        }
                        self.leaving.push_back(packet);
                    }
                    Task::AdapterDone(at, send, ok) => {
                        let sends = &mut self.host(at.host).devs[0].sends;
                        sends.adapter_done(send, ok, fx);
                    }
                    Task::Completed(at, send, status, Some((uid, flight))) => {
                        let cm = self.host(at.host);
                        match status {
                            Status::TimedOut | Status::Failed => {
                                cm.send_failed(uid, send, Input::SendError(flight), fx);
                            }
                            _ => cm.completed(uid, send),
                        }
                    }
                    Task::Lane(at, from) => self.host(at.host).lane(0, from, fx),
                    Task::Complete(at, uid, arrival) => {
                        self.host(at.host).complete_req(0, uid, arrival, fx);
                    }
                    // Timers, repetitions and deliveries are actions.
                    _ => {}
                }
            }
        }
    }

    pub(crate) fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (at, flying) in self.net.iter().enumerate() {
            let sooner = |other: &(usize, &Flying)| (other.1.late, other.0) < (flying.late, at);
            let mut others = self.net.iter().enumerate().filter(sooner);
            if others.any(|(_, other)| other.same(flying)) {
                continue;
            }
            actions.push(Action::Arrive(at));
            if self.budget.duplicates > 0 {
                actions.push(Action::ArriveTwice(at));
            }
        }
        let mut busy = self.net.iter().any(|flying| !flying.late);
        for (host, cm) in self.hosts.iter().enumerate() {
            for (uid, id) in &cm.ids {
                let listens = cm.services.values().any(|listener| listener == uid);
                if id.delivering {
                    busy = true;
                    actions.push(Action::Deliver(host, *uid));
                }
                if self.budget.destroys > 0 && id.owned && !listens && !id.running {
                    actions.push(Action::Destroy(host, *uid));
                }
            }
            if self.budget.crashes > 0 {
                actions.push(Action::Crash(host));
            }
        }
        let mut timers = Vec::new();
        for (host, cm) in self.hosts.iter().enumerate() {
            let waiting = cm.devs[0].sends.waiting();
            timers.extend(waiting.iter().map(|send| Action::TimeOut(host, *send)));
            for (uid, id) in &cm.ids {
                if id.timer.is_some() {
                    timers.push(Action::Timer(host, *uid));
                }
            }
        }
        let idle = timers.is_empty();
        for (host, cm) in self.hosts.iter().enumerate() {
            for (uid, id) in &cm.ids {
                let up = id.conn.permits(ib_cm_proto::step::Call::SendDreq).is_ok();
                // One side disconnects whenever it likes, the other when nothing else happens.
                if up && id.owned && (host == 0 || (idle && !busy)) {
                    actions.push(Action::Disconnect(host, *uid));
                }
            }
        }
        if !busy {
            actions.append(&mut timers);
        }
        let asks = self.hosts[0].ids.values().any(|id| id.owned);
        if idle && !busy && !asks && !self.connected {
            actions.push(Action::Ask);
        }
        actions
    }

    /// What is wrong where nothing but a crash could follow.
    pub(crate) fn end(&self, actions: &[(Action, Fates)]) -> Option<String> {
        if actions
            .iter()
            .any(|(action, _)| !matches!(action, Action::Crash(_)))
        {
            return None;
        }
        if !self.connected {
            return Some("the hosts never connect".to_owned());
        }
        // Host 1 listens.
        let all = |cm: &Rc<Cm>| cm.ids.len() > usize::from(cm.host == 1);
        let left = self.hosts.iter().find_map(|cm| cm.leftovers());
        let left = left.filter(|_| self.hosts.iter().any(all));
        left.map(|left| format!("at the end {left}"))
    }

    pub(crate) fn act(&mut self, action: Action, fates: Fates, fx: &mut Fx) {
        fx.next = self.next;
        (self.fates, self.open, self.asked) = (fates, 0, 0);
        let mut again = None;
        match action {
            Action::Arrive(at) => {
                let packet = self.net.swap_remove(at).packet;
                self.arrive(packet, fx);
            }
            Action::ArriveTwice(at) => {
                self.budget.duplicates -= 1;
                let packet = self.net.swap_remove(at).packet;
                again = Some(packet.clone());
                self.arrive(packet, fx);
            }
            Action::Deliver(host, uid) => self.deliver(host, uid, fx),
            Action::TimeOut(host, send) => self.host(host).devs[0].sends.time_out(send, fx),
            Action::Timer(host, uid) => {
                if let Some(due) = self.hosts[host].ids.get(&uid).and_then(|id| id.timer) {
                    self.host(host).timer(uid, due, fx);
                }
            }
            Action::Ask => self.start(0, fx),
            Action::Disconnect(host, uid) => {
                let _ = self.host(host).send_dreq(uid, fx);
            }
            Action::Destroy(host, uid) => {
                self.budget.destroys -= 1;
                self.destroy(host, uid, fx);
            }
            Action::Crash(host) => {
                self.budget.crashes -= 1;
                self.boot(host, self.hosts[host].next_local_id, fx);
            }
        }
        self.settle(fx);
        while let (true, Some((host, uid))) = (self.budget.prompt, self.waiting()) {
            self.deliver(host, uid, fx);
            self.settle(fx);
        }
        if let Some(packet) = again {
            self.over = self.is_dead(&packet);
            self.net.push(Flying::new(packet, true));
        }
        self.spread(fx);
        self.next = fx.next;
        // Nobody can be told any more of what does not exist.
        let hosts = &self.hosts;
        let exists = |uid: Uid| hosts.iter().any(|cm| cm.ids.contains_key(&uid));
        if !self.checker.all(exists) {
            Rc::make_mut(&mut self.checker).retain(exists);
        }
    }

    /// The hosts that are not as they were before.
    pub(crate) fn changed<'a>(&'a self, before: &'a State) -> impl Iterator<Item = &'a Cm> {
        let hosts = self.hosts.iter().zip(&before.hosts);
        let same = |(is, was): &(&Rc<Cm>, &Rc<Cm>)| Rc::ptr_eq(is, was);
        hosts.filter(move |pair| !same(pair)).map(|(is, _)| &**is)
    }

    fn host(&mut self, host: usize) -> &mut Cm {
        Rc::make_mut(&mut self.hosts[host])
    }

    fn checker(&mut self) -> &mut Checker {
        Rc::make_mut(&mut self.checker)
    }

    fn arrive(&mut self, packet: Packet, fx: &mut Fx) {
        let host = usize::from(packet.to == lid(1, 0));
        self.host(host).receive(0, packet, fx);
    }

    /// Whose consumer is to hear something.
    fn waiting(&self) -> Option<(usize, Uid)> {
        let hosts = self.hosts.iter();
        let ids = hosts.flat_map(|cm| {
            cm.ids
                .iter()
                .map(|(uid, id)| (cm.host, *uid, id.delivering))
        });
        ids.filter(|(_, _, delivering)| *delivering)
            .map(|(host, uid, _)| (host, uid))
            .next()
    }

    fn destroy(&mut self, host: usize, uid: Uid, fx: &mut Fx) {
        self.checker().destroyed(uid, 0);
        self.host(host).destroy(uid, fx);
        self.host(host).disown(uid);
    }

    /// Consumers do at once what they should.
    fn deliver(&mut self, host: usize, uid: Uid, fx: &mut Fx) {
        let Some(event) = self.host(host).next_event(uid, fx) else {
            return;
        };
        self.checker().event(uid, &event, fx);
        let mut returned = 0;
        match Kind::of(&event) {
            Kind::Req => {
                let reply = Reply { qpn: 20, token: 20 };
                if self.host(host).send_rep(uid, reply, fx).is_ok() {
                    self.checker().rep_sent(uid);
                }
            }
            Kind::Rep => {
                self.connected = true;
                let _ = self.host(host).send_rtu(uid, fx);
            }
            Kind::Dreq => {
                if self.host(host).send_drep(uid, fx).is_ok() {
                    self.checker().drep_sent(uid, 0);
                }
            }
            Kind::Exit => returned = 1,
            Kind::Rej(_) | Kind::ReqError if !self.checker.owes_exit(uid) => returned = 1,
            _ => {}
        }
        if returned != 0 {
            self.checker().destroyed(uid, 0);
        }
        let cm = self.host(host);
        if cm.handled(uid, event, returned, fx) {
            if let Some(id) = cm.ids.get_mut(&uid) {
                id.delivering = !id.events.is_empty() && !id.conn.is_orphan();
            }
            cm.reap(uid);
        }
    }
}
