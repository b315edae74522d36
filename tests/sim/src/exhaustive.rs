// SPDX-License-Identifier: GPL-2.0
//! All interleavings of one connection between two hosts, with a few losses, duplicates, a crash
//! and a destroy. Time has no length here: a timer may run out whenever nothing is under way but
//! late duplicates.

use std::collections::HashSet;
use std::hash::Hash;
use std::hash::Hasher;

use ib_cm_proto::connection::QpType;
use ib_cm_proto::step::Input;

use crate::calls::Reply;
use crate::calls::Request;
use crate::checker::Checker;
use crate::checker::Kind;
use crate::cm::Cm;
use crate::cm::Event;
use crate::config::Config;
use crate::fx::Fx;
use crate::fx::Packet;
use crate::fx::Task;
use crate::fx::Uid;
use crate::mad::Status;
use crate::monitor::Monitor;
use crate::rng::Rng;
use crate::seen::Seen;
use crate::world::lid;
use crate::world::manager;

const SERVICE: u64 = 0x1000;

/// What may go wrong, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// MADs lost.
    pub losses: u8,
    /// MADs delivered twice.
    pub duplicates: u8,
    /// Hosts that lose their power.
    pub crashes: u8,
    /// Identifiers destroyed by their consumers at any time.
    pub destroys: u8,
    /// Whether consumers hear of everything at once, else after any time.
    pub prompt: bool,
}

/// How the search went.
#[derive(Debug, Default)]
pub struct Found {
    /// Different states.
    pub states: usize,
    /// What was seen.
    pub seen: Seen,
    /// What is wrong, and how it came about.
    pub broken: Option<(String, Vec<String>)>,
}

/// Something that can happen next.
#[derive(Clone, Copy, Debug)]
enum Action {
    Arrive(usize),
    Lose(usize),
    Duplicate(usize),
    Deliver(usize, Uid),
    TimeOut(usize, Uid),
    Timer(usize, Uid),
    Ask,
    Disconnect(usize, Uid),
    Destroy(usize, Uid),
    Crash(usize),
}

#[derive(Clone)]
struct State {
    hosts: Vec<Cm>,
    /// MADs under way; whether each may be later than any timer.
    net: Vec<(Packet, bool)>,
    checker: Checker,
    monitor: Monitor,
    budget: Budget,
    attempts: u8,
    /// Each fault can make one attempt fail, and what an attempt leaves behind the next.
    most_attempts: u8,
    /// Whether host 0 has connected since it has come up.
    connected: bool,
    next: Uid,
    /// How this came about.
    path: Option<std::rc::Rc<Step>>,
}

struct Step {
    action: Action,
    before: Option<std::rc::Rc<Step>>,
}

/// A quick hash of 64 bits.
#[derive(Clone, Copy, Default)]
struct Digest(u64);

impl Digest {
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
        self.add(bytes.len() as u64);
    }

    fn write_u8(&mut self, number: u8) {
        self.add(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.add(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    fn finish(&self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ (hash >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^ (hash >> 29)
    }
}

/// Searches all states within a budget; `most` of them at most.
pub fn search(budget: Budget, most: usize) -> Found {
    let mut found = Found::default();
    let mut known = HashSet::new();
    let mut fx = Fx::new(Rng::new(0), false);
    fx.tidy = true;
    let mut open = vec![State::begin(budget, &mut fx)];
    known.insert(open[0].digest());
    while let Some(state) = open.pop() {
        found.states += 1;
        if found.states > most {
            found.broken = Some(("there are more states than expected".to_owned(), Vec::new()));
            break;
        }
        let actions = state.actions();
        let ends = !actions
            .iter()
            .any(|action| !matches!(action, Action::Crash(_)));
        if ends {
            if !state.connected {
                found.broken = Some(("the hosts never connect".to_owned(), state.story()));
                break;
            }
            let left = state.hosts.iter().find_map(Cm::leftovers);
            let left = left.filter(|_| {
                state
                    .hosts
                    .iter()
                    .any(|cm| cm.ids.len() > usize::from(cm.host == 1))
            });
            if let Some(left) = left {
                found.broken = Some((format!("at the end {left}"), state.story()));
                break;
            }
        }
        for action in actions {
            let mut next = state.clone();
            next.path = Some(std::rc::Rc::new(Step {
                action,
                before: state.path.clone(),
            }));
            next.act(action, &mut fx);
            let wrong = next.hosts.iter().find_map(Cm::check_indices);
            if let Some(what) = fx.broken.pop().or(wrong) {
                found.broken = Some((what, next.story()));
                found.seen = fx.seen;
                return found;
            }
            if known.insert(next.digest()) {
                open.push(next);
            }
        }
    }
    found.seen = fx.seen;
    found
}

impl State {
    fn begin(budget: Budget, fx: &mut Fx) -> Self {
        let config = Self::config();
        let mut state = State {
            hosts: (0..2).map(|host| manager(host, &config, fx)).collect(),
            net: Vec::new(),
            checker: Checker::new(0),
            monitor: Monitor::new(false),
            budget,
            attempts: 0,
            most_attempts: 2 + budget.losses + budget.duplicates + budget.crashes + budget.destroys,
            connected: false,
            next: 1,
            path: None,
        };
        fx.next = state.next;
        for host in 0..2 {
            state.boot(host, 0x100, fx);
        }
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
        self.hosts[host] = manager(host, &Self::config(), fx);
        self.hosts[host].next_local_id = first_id;
        if host == 0 {
            (self.attempts, self.connected) = (0, false);
        }
        self.start(host, fx);
    }

    /// Host 0 asks, host 1 listens.
    fn start(&mut self, host: usize, fx: &mut Fx) {
        let cm = &mut self.hosts[host];
        let Some(uid) = cm.create(0, fx) else {
            return;
        };
        if host == 1 {
            let _ = cm.listen(uid, SERVICE, fx);
        } else {
            self.attempts += 1;
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
                self.checker.req_sent(uid);
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
                        if let Some(what) = self.monitor.sent(&packet, 0) {
                            fx.broken(what.to_owned());
                        }
                        self.net.push((packet, false));
                    }
                    Task::AdapterDone(at, send, ok) => {
                        self.hosts[at.host].devs[0].sends.adapter_done(send, ok, fx);
                    }
                    Task::Completed(at, send, status, Some((uid, flight))) => {
                        let cm = &mut self.hosts[at.host];
                        match status {
                            Status::TimedOut | Status::Failed => {
                                cm.send_failed(uid, send, Input::SendError(flight), fx);
                            }
                            _ => cm.completed(uid, send),
                        }
                    }
                    Task::Lane(at, from) => self.hosts[at.host].lane(0, from, fx),
                    Task::Complete(at, uid, arrival) => {
                        self.hosts[at.host].complete_req(0, uid, arrival, fx);
                    }
                    // Timers, repetitions and deliveries are actions.
                    _ => {}
                }
            }
        }
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (at, (packet, _)) in self.net.iter().enumerate() {
            if self.net[..at].iter().any(|(other, _)| other == packet) {
                // To take the other copy comes to the same.
                continue;
            }
            actions.push(Action::Arrive(at));
            if self.budget.losses > 0 {
                actions.push(Action::Lose(at));
            }
            if self.budget.duplicates > 0 {
                actions.push(Action::Duplicate(at));
            }
        }
        let mut busy = self.net.iter().any(|(_, late)| !late);
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
        if idle && !busy && !asks && !self.connected && self.attempts < self.most_attempts {
            actions.push(Action::Ask);
        }
        actions
    }

    fn act(&mut self, action: Action, fx: &mut Fx) {
        fx.next = self.next;
        match action {
            Action::Arrive(at) => {
                let (packet, _) = self.net.swap_remove(at);
                let host = usize::from(packet.to == lid(1, 0));
                self.hosts[host].receive(0, packet, fx);
            }
            Action::Lose(at) => {
                self.budget.losses -= 1;
                self.net.swap_remove(at);
            }
            Action::Duplicate(at) => {
                self.budget.duplicates -= 1;
                let packet = self.net[at].0.clone();
                self.net.push((packet, true));
            }
            Action::Deliver(host, uid) => self.deliver(host, uid, fx),
            Action::TimeOut(host, send) => self.hosts[host].devs[0].sends.time_out(send, fx),
            Action::Timer(host, uid) => {
                if let Some(due) = self.hosts[host].ids.get(&uid).and_then(|id| id.timer) {
                    self.hosts[host].timer(uid, due, fx);
                }
            }
            Action::Ask => self.start(0, fx),
            Action::Disconnect(host, uid) => {
                let _ = self.hosts[host].send_dreq(uid, fx);
            }
            Action::Destroy(host, uid) => {
                self.budget.destroys -= 1;
                self.destroy(host, uid, fx);
            }
            Action::Crash(host) => {
                self.budget.crashes -= 1;
                self.boot(host, 0x900, fx);
            }
        }
        self.settle(fx);
        while let (true, Some((host, uid))) = (self.budget.prompt, self.waiting()) {
            self.deliver(host, uid, fx);
            self.settle(fx);
        }
        self.next = fx.next;
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
        self.checker.destroyed(uid, 0);
        self.hosts[host].destroy(uid, fx);
        self.hosts[host].disown(uid);
    }

    /// Consumers do at once what they should.
    fn deliver(&mut self, host: usize, uid: Uid, fx: &mut Fx) {
        let cm = &mut self.hosts[host];
        let Some(event) = cm.next_event(uid, fx) else {
            return;
        };
        self.checker.event(uid, &event, fx);
        let cm = &mut self.hosts[host];
        let mut returned = 0;
        match Kind::of(&event) {
            Kind::Req => {
                let reply = Reply { qpn: 20, token: 20 };
                if cm.send_rep(uid, reply, fx).is_ok() {
                    self.checker.rep_sent(uid);
                }
            }
            Kind::Rep => {
                self.connected = true;
                let _ = cm.send_rtu(uid, fx);
            }
            Kind::Dreq => {
                if cm.send_drep(uid, fx).is_ok() {
                    self.checker.drep_sent(uid, 0);
                }
            }
            Kind::Exit => returned = 1,
            Kind::Rej(_) | Kind::ReqError if !self.checker.owes_exit(uid) => returned = 1,
            _ => {}
        }
        if returned != 0 {
            self.checker.destroyed(uid, 0);
        }
        let cm = &mut self.hosts[host];
        if cm.handled(uid, event, returned, fx) {
            if let Some(id) = cm.ids.get_mut(&uid) {
                id.delivering = !id.events.is_empty() && !id.conn.is_orphan();
            }
            cm.reap(uid);
        }
    }

    /// A number that two states share only if the same can happen in both.
    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        (self.budget, self.attempts, self.connected).hash(&mut digest);
        for cm in &self.hosts {
            cm.next_local_id.hash(&mut digest);
            for (uid, id) in &cm.ids {
                let slots = [id.local_id, id.remote_id, id.remote_qpn, id.local_qpn];
                id.conn.hash(&mut digest);
                self.checker.known(*uid).hash(&mut digest);
                (slots, id.delivering, id.owned, id.timer).hash(&mut digest);
                (id.requests, id.has_path).hash(&mut digest);
                for event in &id.events {
                    match event {
                        Event::Arrival(arrival) => arrival.mad.hash(&mut digest),
                        Event::Note(report, _) => (*report as u8).hash(&mut digest),
                    }
                }
                let record = id
                    .record
                    .map(|record| cm.devs[0].sends.retries_left(record));
                record.hash(&mut digest);
            }
            cm.devs[0].sends.waiting().len().hash(&mut digest);
        }
        // In whatever order they are under way.
        let mut net = 0_u64;
        for packet in &self.net {
            let mut one = Digest::default();
            packet.hash(&mut one);
            net = net.wrapping_add(one.finish());
        }
        net.hash(&mut digest);
        digest.finish()
    }

    /// How this came about.
    fn story(&self) -> Vec<String> {
        let mut story = Vec::new();
        let mut step = self.path.clone();
        while let Some(last) = step {
            story.push(format!("{:?}", last.action));
            step = last.before.clone();
        }
        story.reverse();
        story
    }
}
