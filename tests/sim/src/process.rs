// SPDX-License-Identifier: GPL-2.0
//! Processes that crash and what the kernel closes for them, hosts that lose their power, devices
//! that go away.

use std::collections::BTreeSet;

use ib_cm_proto::lookup;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Input;
use ib_cm_proto::time;

use crate::apps::AppTask;
use crate::apps::Later;
use crate::cm::Slot;
use crate::cm::With;
use crate::fx::Place;
use crate::fx::Time;
use crate::fx::Uid;
use crate::qp::QpState;
use crate::rules::Rule;
use crate::say;
use crate::seen::Mark;
use crate::world::lid;
use crate::world::manager;
use crate::world::Phase;
use crate::world::World;

/// Longest hold, in milliseconds.
const HOLD_MAX_MS: u32 = 10_000;

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Whether it runs.
    pub alive: bool,
    /// When it ended.
    pub ended: Time,
    /// Its identifiers.
    pub conns: BTreeSet<Uid>,
    /// What is still to be closed for it, the last first.
    pub files: Vec<File>,
    /// The hold that it waits in.
    pub hold: Option<Hold>,
}

/// A file that the kernel closes for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// Its queue pairs.
    Uverbs,
    /// Its identifiers.
    Ucma,
}

/// A wait for queue pairs to leave TimeWait.
#[derive(Clone, Debug)]
pub struct Hold {
    ids: Vec<Uid>,
    /// How long it waits for peers, before it looks whether any has answered.
    patience_ms: u32,
    /// How many had not answered when it last looked.
    unanswered: usize,
    ends: Time,
    began: Time,
    /// It only waits for TimeWait to end.
    last: bool,
    /// Queue pairs that took packets when it began.
    live: BTreeSet<Uid>,
}

impl World {
    /// Starts the processes of a host that comes up.
    pub fn start_processes(&mut self, host: usize) {
        for number in 0..self.config.processes {
            self.start_process(host, number == 0);
        }
    }

    fn start_process(&mut self, host: usize, listens: bool) {
        let pid = self.fx.uid();
        let process = Process {
            alive: true,
            ended: 0,
            conns: BTreeSet::new(),
            files: Vec::new(),
            hold: None,
        };
        self.hosts[host].procs.insert(pid, process);
        say!(self.fx, "host {host}: process {pid} starts");
        if listens {
            for dev in 0..self.config.devs {
                self.listen(host, dev, pid);
            }
        }
        let soon = self.fx.rng.range(1, 20_000);
        self.fx.after(soon, AppTask::Tick(host, pid));
    }

    /// One of the processes of a host crashes.
    pub fn crash_any(&mut self, host: usize) {
        let procs = &self.hosts[host].procs;
        let alive: Vec<Uid> = procs
            .iter()
            .filter(|(_, process)| process.alive)
            .map(|(pid, _)| *pid)
            .collect();
        if !self.hosts[host].up || alive.is_empty() {
            return;
        }
        self.fx.seen.mark(Mark::ProcessCrashed);
        let pid = self.fx.rng.pick(&alive);
        self.exit(host, pid);
        let listens = !self.hosts[host].procs.values().any(|process| process.alive);
        if self.phase == Phase::Faulty {
            self.start_process(host, listens);
        }
    }

    /// A process ends, by itself or not: its files are closed one after the other.
    pub fn exit(&mut self, host: usize, pid: Uid) {
        let ucma_first = self.fx.rng.chance(1500);
        let Some(process) = self.hosts[host].procs.get_mut(&pid) else {
            return;
        };
        say!(self.fx, "host {host}: process {pid} ends");
        process.alive = false;
        process.ended = self.fx.now;
        process.files = match ucma_first {
            true => vec![File::Uverbs, File::Ucma],
            false => vec![File::Ucma, File::Uverbs],
        };
        self.fx.after(1, AppTask::Close(host, pid));
    }

    /// Closes the next file of a process.
    pub fn close(&mut self, host: usize, pid: Uid) {
        let Some(process) = self.hosts[host].procs.get_mut(&pid) else {
            return;
        };
        match process.files.pop() {
            Some(File::Uverbs) => self.begin_hold(host, pid),
            Some(File::Ucma) => {
                let conns = process.conns.clone();
                for uid in conns {
                    self.destroy(host, uid);
                }
                self.fx.after(1, AppTask::Close(host, pid));
            }
            None => {
                if process.conns.is_empty() {
                    self.hosts[host].procs.remove(&pid);
                } else {
                    // A handler still runs.
                    self.fx.after(1000, AppTask::Close(host, pid));
                }
            }
        }
    }

    /// Stops the queue pairs of a process, ends their connections, and waits for all of them.
    fn begin_hold(&mut self, host: usize, pid: Uid) {
        let now = self.fx.now;
        let live = self.live_qps(host, pid);
        let mut ids = Vec::new();
        let qps = self.hosts[host].qps.clone();
        for (uid, qp) in qps.iter().filter(|(_, qp)| qp.pid == pid) {
            let cm = &self.hosts[host].cm;
            let keys = cm
                .local_qpns
                .range((qp.dev, qp.qpn, 0)..=(qp.dev, qp.qpn, u32::MAX));
            let entries: Vec<Uid> = keys.map(|(_, id)| *id).collect();
            for id in entries {
                let conn = self.hosts[host].cm.ids.get(&id).map(|id| id.conn);
                if conn.is_some_and(|conn| lookup::carries(true, qp.to.1, &conn)) {
                    self.fx.seen.mark(Mark::HoldTaken);
                    self.stop_qp(host, *uid);
                    ids.push(id);
                }
            }
        }
        let cm = &mut self.hosts[host].cm;
        for id in &ids {
            cm.act(*id, Input::Abandoned, With::default(), &mut self.fx);
        }
        let timewait_ms = |id: &Uid| {
            cm.ids
                .get(id)
                .map(|id| time::ms_from_iba(id.conn.ack_timeout))
        };
        let longest_ms = ids.iter().filter_map(timewait_ms).max().unwrap_or(0);
        let mut hold = Hold {
            ids,
            patience_ms: lookup::hold_patience_ms(longest_ms),
            unanswered: usize::MAX,
            ends: now,
            began: now,
            last: false,
            live,
        };
        say!(self.fx, "host {host}: process {pid} holds {:?}", hold.ids);
        self.go_on_holding(host, &mut hold);
        if let Some(process) = self.hosts[host].procs.get_mut(&pid) {
            process.hold = Some(hold);
        }
    }

    /// Waits once more, unless that is in vain.
    fn go_on_holding(&mut self, host: usize, hold: &mut Hold) {
        let unanswered = self.held_in(host, hold, State::DreqSent);
        // Peers are dead, or have all answered: those in TimeWait see it out.
        hold.last = unanswered >= hold.unanswered || unanswered == 0;
        hold.unanswered = unanswered;
        let waited = (self.fx.now - hold.began) / 1000;
        let left = Time::from(HOLD_MAX_MS).saturating_sub(waited);
        hold.ends = self.fx.now + left.min(hold.patience_ms.into()) * 1000;
        self.fx.at(hold.ends, AppTask::HoldEnds);
    }

    /// How many connections of a hold are in a state.
    fn held_in(&self, host: usize, hold: &Hold, state: State) -> usize {
        let ids = &self.hosts[host].cm.ids;
        let is_in = |uid: &&Uid| ids.get(uid).is_some_and(|id| id.conn.state == state);
        hold.ids.iter().filter(is_in).count()
    }

    /// Ends the holds whose time has come. Called after everything that happens.
    pub fn look_at_holds(&mut self) {
        for host in 0..self.hosts.len() {
            let procs = &self.hosts[host].procs;
            let waiting = procs.iter().filter(|(_, process)| process.hold.is_some());
            let waiting: Vec<Uid> = waiting.map(|(pid, _)| *pid).collect();
            for pid in waiting {
                self.look_at_hold(host, pid);
            }
        }
    }

    fn look_at_hold(&mut self, host: usize, pid: Uid) {
        let now = self.fx.now;
        let Some(process) = self.hosts[host].procs.get_mut(&pid) else {
            return;
        };
        let Some(mut hold) = process.hold.take() else {
            return;
        };
        let cm = &mut self.hosts[host].cm;
        let seen = &mut self.fx.seen;
        hold.ids.retain(|uid| {
            let stays = cm
                .ids
                .get(uid)
                .is_some_and(|id| id.local_qpn == Slot::Entered);
            if !stays {
                seen.mark(Mark::HoldReleased);
            }
            stays
        });
        let over = if hold.ids.is_empty() {
            true
        } else if hold.last {
            now >= hold.ends || self.held_in(host, &hold, State::Timewait) == 0
        } else {
            if now >= hold.ends {
                self.go_on_holding(host, &mut hold);
            }
            false
        };
        if over {
            self.end_hold(host, pid, &hold);
        } else if let Some(process) = self.hosts[host].procs.get_mut(&pid) {
            process.hold = Some(hold);
        }
    }

    /// The queue pairs of a process may be destroyed now.
    fn end_hold(&mut self, host: usize, pid: Uid, hold: &Hold) {
        for uid in &hold.ids {
            self.fx.seen.mark(Mark::HoldExpired);
            self.hosts[host].cm.let_go(*uid, &mut self.fx);
        }
        say!(self.fx, "host {host}: process {pid} holds no more");
        let ended = self.hosts[host]
            .procs
            .get(&pid)
            .map_or(0, |process| process.ended);
        let qps = &self.hosts[host].qps;
        let its = qps
            .iter()
            .filter(|(_, qp)| qp.pid == pid)
            .map(|(uid, _)| *uid);
        for qp in its.collect::<Vec<Uid>>() {
            self.destroy_qp_of_dead(host, qp, hold, ended);
        }
        self.fx.after(1, AppTask::Close(host, pid));
    }

    /// uverbs destroys a queue pair of a process that has ended. If packets could go both ways until
    /// then, TimeWait must have passed.
    fn destroy_qp_of_dead(&mut self, host: usize, uid: Uid, hold: &Hold, ended: Time) {
        let now = self.fx.now;
        let due = ended + self.config.timewait_us();
        if hold.live.contains(&uid) && self.hosts[host].qps.contains_key(&uid) && now < due {
            let early = due - now;
            let what = format!("host {host}: queue pair {uid} is destroyed {early} us early");
            self.fx.broken(Rule::QpsOutliveTimewait, what);
        }
        self.destroy_qp(host, uid);
    }

    /// The queue pairs of a process that take packets, as far as anybody has been told.
    fn live_qps(&self, host: usize, pid: Uid) -> BTreeSet<Uid> {
        let host = &self.hosts[host];
        let lives = |(uid, qp): &(&Uid, &crate::qp::Qp)| {
            let conn = host.conns.values().find(|conn| conn.qp == Some(**uid));
            let id = conn.and_then(|conn| host.cm.ids.get(&conn.uid));
            // An end that its consumer has not heard of yet is an end nevertheless.
            let unaware = id.is_some_and(|id| !id.events.is_empty() || id.running);
            qp.pid == pid
                && matches!(qp.state, QpState::Rtr | QpState::Rts)
                && !qp.excused
                && !unaware
        };
        host.qps.iter().filter(lives).map(|(uid, _)| *uid).collect()
    }

    /// A host loses its power.
    pub fn power_off(&mut self, host: usize) {
        if !self.hosts[host].up || self.phase != Phase::Faulty {
            return;
        }
        self.fx.seen.mark(Mark::HostRebooted);
        say!(self.fx, "host {host} loses its power");
        let machine = &mut self.hosts[host];
        machine.up = false;
        for uid in machine.conns.keys() {
            self.checker.forget(*uid);
        }
        for dev in 0..self.config.devs {
            self.monitor.device_gone(lid(host, dev), self.fx.now);
        }
        machine.conns.clear();
        machine.procs.clear();
        machine.qps.clear();
        machine.cm = manager(host, &self.config, &mut self.fx);
        // To boot takes longer than any packet lives.
        let boot = self.fx.rng.range(2, 50) * self.config.life_us();
        self.fx.after(boot, AppTask::PowerOn(host));
    }

    /// A host is up again.
    pub fn power_on(&mut self, host: usize) {
        say!(self.fx, "host {host} is up again");
        self.hosts[host].up = true;
        if self.phase != Phase::Closing {
            self.start_processes(host);
        }
    }

    /// A device goes away.
    pub fn unplug(&mut self, at: Place) {
        let host = &mut self.hosts[at.host];
        if !host.up || !host.cm.devs[at.dev].open || self.phase != Phase::Faulty {
            return;
        }
        self.fx.seen.mark(Mark::DeviceRemoved);
        say!(self.fx, "host {} loses device {}", at.host, at.dev);
        // uverbs destroys the queue pairs at once, and waits for nothing.
        host.qps.retain(|_, qp| qp.dev != at.dev);
        let conns: Vec<Uid> = host
            .conns
            .iter()
            .filter(|(_, conn)| conn.dev == at.dev)
            .map(|(uid, _)| *uid)
            .collect();
        for uid in conns {
            self.checker.device_gone(uid);
            // Some consumers are told before the connection manager, some after.
            if self.fx.rng.chance(3000) {
                self.destroy(at.host, uid);
            } else {
                let soon = self.fx.rng.range(1, 50_000);
                self.fx
                    .after(soon, AppTask::Later(at.host, uid, Later::Destroy));
            }
        }
        let held = self.hosts[at.host]
            .procs
            .values()
            .any(|process| process.hold.is_some());
        if held {
            self.fx.seen.mark(Mark::HoldStopped);
        }
        self.monitor.device_gone(lid(at.host, at.dev), self.fx.now);
        self.hosts[at.host].cm.remove_device(at.dev, &mut self.fx);
        let away = self.fx.rng.range(2, 50) * self.config.life_us() + 60_000;
        self.fx.after(away, AppTask::Plug(at));
    }

    /// A device is there again.
    pub fn plug(&mut self, at: Place) {
        let host = &mut self.hosts[at.host];
        if !host.up || host.cm.devs[at.dev].open {
            // The host has rebooted meanwhile.
            return;
        }
        say!(self.fx, "host {} has device {} again", at.host, at.dev);
        host.cm.add_device(at.dev);
        self.relisten(at.host, at.dev);
    }

    /// Somebody listens at a device again.
    pub fn relisten(&mut self, host: usize, dev: usize) {
        let machine = &self.hosts[host];
        let listens = machine.cm.services.keys().any(|(at, _)| *at == dev);
        let alive = machine.procs.iter().find(|(_, process)| process.alive);
        if let (false, Some(pid), true) = (listens, alive.map(|(pid, _)| *pid), machine.up) {
            self.listen(host, dev, pid);
        }
    }
}
