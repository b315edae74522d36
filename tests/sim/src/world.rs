// SPDX-License-Identifier: GPL-2.0
//! The world: hosts, the network between them, virtual time, and what goes wrong.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::BinaryHeap;

use ib_cm_proto::step::Flight;
use ib_cm_proto::step::Input;

use crate::apps::AppTask;
use crate::apps::Conn;
use crate::checker::Checker;
use crate::cm::Cm;
use crate::cm::Dev;
use crate::config::Config;
use crate::fx::Delay;
use crate::fx::Fx;
use crate::fx::Lid;
use crate::fx::Packet;
use crate::fx::Place;
use crate::fx::Task;
use crate::fx::Time;
use crate::fx::Uid;
use crate::mad::Sends;
use crate::mad::Status;
use crate::monitor::Monitor;
use crate::process::Process;
use crate::qp::Qp;
use crate::rng::Rng;
use crate::rules::Rule;
use crate::say;
use crate::seen::Mark;
use crate::seen::Seen;

/// More tasks than any world needs: one that goes on beyond runs in a circle.
const MOST_TASKS: u64 = 3_000_000;

/// A host.
#[derive(Debug)]
pub struct Host {
    /// Whether it has power.
    pub up: bool,
    /// Its connection manager.
    pub cm: Cm,
    /// Its queue pairs.
    pub qps: BTreeMap<Uid, Qp>,
    /// Its processes.
    pub procs: BTreeMap<Uid, Process>,
    /// The identifiers of its consumers.
    pub conns: BTreeMap<Uid, Conn>,
}

/// Which part of the run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Things go wrong, and nothing may break.
    Faulty,
    /// Nothing goes wrong any more, and everything has to come right.
    Calm,
    /// Everybody goes home, and nothing may be left.
    Closing,
}

/// The world.
#[derive(Debug)]
pub struct World {
    /// What the seed has drawn.
    pub config: Config,
    /// Time, chance and notes.
    pub fx: Fx,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// Who watches.
    pub checker: Checker,
    /// Who listens on the wire.
    pub monitor: Monitor,
    /// Which part of the run it is.
    pub phase: Phase,
    /// Pairs of hosts that cannot reach each other.
    pub partitions: BTreeSet<(usize, usize)>,
    /// Connections that still have to be made, by their probes.
    pub probes: BTreeMap<Uid, crate::probe::Probe>,
    /// A queue pair was connected to one that was gone already: a MAD that is older than TimeWait
    /// has been believed.
    pub ghosts: bool,
    /// The most attempts that a probe took.
    pub most_attempts: u32,
    queue: BinaryHeap<Reverse<(Time, u64)>>,
    tasks: BTreeMap<u64, Task>,
    next_task: u64,
    lost_completions: Vec<Task>,
    last_arrival: BTreeMap<(Lid, Lid), Time>,
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    /// What went wrong.
    pub broken: Vec<String>,
    /// What was seen.
    pub seen: Seen,
    /// The log.
    pub log: Vec<String>,
    /// Tasks done.
    pub tasks: u64,
    /// The most attempts that a probe took.
    pub most_attempts: u32,
}

/// Runs the world of a seed.
pub fn run(seed: u64, log: bool) -> Outcome {
    let mut world = World::new(seed, log);
    let tasks = world.run();
    Outcome {
        broken: world.fx.broken,
        seen: world.fx.seen,
        log: world.fx.log.unwrap_or_default(),
        tasks,
        most_attempts: world.most_attempts,
    }
}

/// The address of a device.
pub fn lid(host: usize, dev: usize) -> Lid {
    Lid((host * 2 + dev + 1) as u16)
}

/// The GUID of a device.
pub fn guid_of(lid: Lid) -> u64 {
    0x0002_c903_0000_0000 + u64::from(lid.0)
}

/// The device with an address.
pub fn place(lid: Lid) -> Place {
    let number = usize::from(lid.0) - 1;
    Place {
        host: number / 2,
        dev: number % 2,
    }
}

/// The connection manager of a host that comes up.
pub fn manager(host: usize, config: &Config, fx: &mut Fx) -> Cm {
    let devs = (0..config.devs)
        .map(|dev| Dev {
            lid: lid(host, dev),
            guid: guid_of(lid(host, dev)),
            ack_delay: config.ack_delay,
            open: true,
            sends: Sends::new(Place { host, dev }, config.window),
            lanes: BTreeMap::new(),
            received: 0,
            effective: BTreeMap::new(),
        })
        .collect();
    let first_id = if config.same_ids {
        0x100
    } else {
        fx.rng.draw() as u32
    };
    Cm::new(host, devs, first_id)
}

impl World {
    fn new(seed: u64, log: bool) -> Self {
        let mut rng = Rng::new(seed);
        let config = Config::draw(&mut rng);
        let mut fx = Fx::new(rng, log);
        fx.allocation_fails = config.allocation_fails;
        say!(fx, "seed {seed}: {config:?}");
        let checker = Checker::new(config.timewait_us());
        let monitor = Monitor::new(config.same_ids);
        let mut world = World {
            config,
            fx,
            hosts: Vec::new(),
            checker,
            monitor,
            phase: Phase::Faulty,
            partitions: BTreeSet::new(),
            probes: BTreeMap::new(),
            ghosts: false,
            most_attempts: 0,
            queue: BinaryHeap::new(),
            tasks: BTreeMap::new(),
            next_task: 0,
            lost_completions: Vec::new(),
            last_arrival: BTreeMap::new(),
        };
        for host in 0..world.config.hosts {
            let cm = manager(host, &world.config, &mut world.fx);
            world.hosts.push(Host {
                up: true,
                cm,
                qps: BTreeMap::new(),
                procs: BTreeMap::new(),
                conns: BTreeMap::new(),
            });
        }
        for host in 0..world.config.hosts {
            world.start_processes(host);
        }
        world.plan_faults();
        world
    }

    /// Runs to the end; returns how many tasks that took.
    fn run(&mut self) -> u64 {
        let mut done = 0;
        self.drain();
        while let Some(Reverse((time, number))) = self.queue.pop() {
            let Some(task) = self.tasks.remove(&number) else {
                continue;
            };
            self.fx.now = time;
            self.dispatch(task);
            self.look_at_holds();
            self.drain();
            done += 1;
            if done % 64 == 0 {
                for host in &self.hosts {
                    if let Some(what) = host.cm.check_indices() {
                        let what = format!("host {}: {what}", host.cm.host);
                        self.fx.broken(Rule::KeysUnique, what);
                    }
                }
            }
            if done > MOST_TASKS {
                self.fx.broken(Rule::Rest, format!("{done} tasks"));
            }
            if !self.fx.broken.is_empty() {
                return done;
            }
        }
        if self.config.sends_surely && !self.config.same_ids {
            if let Some(what) = self.monitor.given_up_early(self.config.retries) {
                self.fx.broken(Rule::DreqsRepeated, what);
            }
        }
        if self.phase != Phase::Closing {
            let left = self.probes.len();
            let what = format!("{left} peers neither connect nor give up");
            self.fx.broken(Rule::PeersConnect, what);
        }
        for host in 0..self.hosts.len() {
            if let Some(what) = self.hosts[host].cm.leftovers() {
                self.fx.broken(Rule::EmptyAtEnd, what);
            }
            let (qps, conns) = (self.hosts[host].qps.len(), self.hosts[host].conns.len());
            if qps + conns > 0 {
                let what = format!("host {host} keeps {qps} queue pairs, {conns} consumers");
                self.fx.broken(Rule::EmptyAtEnd, what);
            }
        }
        done
    }

    fn dispatch(&mut self, task: Task) {
        let fx = &mut self.fx;
        match task {
            Task::Wire(packet) => self.send(packet),
            Task::Arrive(packet) => {
                let at = place(packet.to);
                let host = &mut self.hosts[at.host];
                if host.up {
                    self.monitor.arrived(&packet);
                    host.cm.receive(at.dev, packet, fx);
                }
            }
            Task::AdapterDone(at, send, ok) => {
                self.hosts[at.host].cm.devs[at.dev]
                    .sends
                    .adapter_done(send, ok, fx);
            }
            Task::Retry(at, send, due) => {
                self.hosts[at.host].cm.devs[at.dev]
                    .sends
                    .retry(send, due, fx);
            }
            Task::Completed(at, send, status, owner) => {
                let Some((uid, flight)) = owner else {
                    return;
                };
                if matches!(status, Status::TimedOut | Status::Failed) {
                    fx.later(Delay::Worker, Task::SendFailed(at.host, uid, send, flight));
                } else {
                    self.hosts[at.host].cm.completed(uid, send);
                }
            }
            Task::SendFailed(host, uid, send, flight) => {
                if flight == Flight::SidrReq {
                    fx.seen.mark(Mark::SidrTimedOut);
                }
                self.hosts[host]
                    .cm
                    .send_failed(uid, send, Input::SendError(flight), fx);
            }
            Task::Lane(at, from) => self.hosts[at.host].cm.lane(at.dev, from, fx),
            Task::Complete(at, uid, arrival) => {
                self.hosts[at.host]
                    .cm
                    .complete_req(at.dev, uid, arrival, fx);
            }
            Task::Timer(host, uid, due) => self.hosts[host].cm.timer(uid, due, fx),
            Task::Deliver(host, uid) => self.deliver(host, uid),
            Task::App(task) => self.app(task),
        }
    }

    /// Puts what is to happen later where it belongs.
    fn drain(&mut self) {
        let mut out = core::mem::take(&mut self.fx.out);
        for (delay, task) in out.drain(..) {
            let now = self.fx.now;
            let (at, task) = match delay {
                Delay::At(time) => (time, task),
                Delay::Wire => (now, task),
                Delay::Worker => {
                    let slow = self.fx.rng.chance(self.config.worker_slow);
                    let most = if slow { 300_000 } else { 200 };
                    (now + self.fx.rng.range(1, most), task)
                }
                Delay::Adapter => match self.adapter(task) {
                    Some((delay, task)) => (now + delay, task),
                    None => continue,
                },
            };
            self.push(at, task);
        }
        self.fx.out = out;
    }

    fn push(&mut self, at: Time, task: Task) {
        self.queue.push(Reverse((at, self.next_task)));
        self.tasks.insert(self.next_task, task);
        self.next_task += 1;
    }

    /// What an adapter makes of a send: how long it takes, if it ever ends.
    fn adapter(&mut self, task: Task) -> Option<(Time, Task)> {
        let fx = &mut self.fx;
        if fx.rng.chance(self.config.completion_lost) {
            fx.seen.mark(Mark::CompletionLost);
            self.lost_completions.push(task);
            return None;
        }
        let mut delay = fx.rng.range(5, 100);
        if fx.rng.chance(self.config.completion_late) {
            fx.seen.mark(Mark::CompletionLate);
            delay = fx.rng.range(1000, 1_000_000);
        }
        if fx.rng.chance(self.config.completion_failed) {
            fx.seen.mark(Mark::CompletionFailed);
            if let Task::AdapterDone(at, send, _) = task {
                return Some((delay, Task::AdapterDone(at, send, false)));
            }
        }
        Some((delay, task))
    }

    /// Completions that were lost come after all.
    pub fn find_completions(&mut self) {
        for task in core::mem::take(&mut self.lost_completions) {
            self.push(self.fx.now, task);
        }
    }

    /// Whether two devices cannot reach each other.
    pub fn parted(&self, from: Lid, to: Lid) -> bool {
        let (a, b) = (place(from).host, place(to).host);
        self.partitions.contains(&(a.min(b), a.max(b)))
    }

    /// A MAD leaves a host: loses, repeats and delays it.
    fn send(&mut self, packet: Packet) {
        let life = self.config.life_us();
        let view = ib_cm_proto::wire::RejView(&packet.mad);
        say!(
            self.fx,
            "{:?} sends {:?} of {:#x} to {:#x} at {:?}",
            packet.from,
            ib_cm_proto::wire::AttrId::of(&packet.mad),
            view.local_comm_id(),
            view.remote_comm_id(),
            packet.to
        );
        if let Some(what) = self.monitor.sent(&packet, self.fx.now) {
            let what = format!("{:?} sends {what}", packet.from);
            self.fx.broken(Rule::RejsFit, what);
        }
        if self.parted(packet.from, packet.to) || self.fx.rng.chance(self.config.loss) {
            self.fx.seen.mark(Mark::MadLost);
            return;
        }
        let mut copies = 1;
        if self.fx.rng.chance(self.config.duplicate) {
            self.fx.seen.mark(Mark::MadDuplicated);
            copies = 2;
        }
        for _ in 0..copies {
            let mut at = self.fx.now + life / 8;
            if self.config.reorder {
                at = self.fx.now + self.fx.rng.range(life / 16, life);
            }
            if self.fx.rng.chance(self.config.late) {
                self.fx.seen.mark(Mark::MadLate);
                at += self.fx.rng.range(life, 3_000_000);
            }
            let last = self
                .last_arrival
                .entry((packet.from, packet.to))
                .or_default();
            if *last > at {
                self.fx.seen.mark(Mark::MadReordered);
            }
            *last = at.max(*last);
            self.push(at, Task::Arrive(packet.clone()));
        }
    }

    /// Draws when things go wrong.
    fn plan_faults(&mut self) {
        let config = self.config.clone();
        let fx = &mut self.fx;
        let mut plan = |count: u64, task: &mut dyn FnMut(&mut Rng) -> AppTask| {
            for _ in 0..count {
                let at = fx.rng.range(1000, config.faulty);
                let task = task(&mut fx.rng);
                fx.at(at, task);
            }
        };
        let hosts = config.hosts as u64;
        let host = |rng: &mut Rng| rng.below(hosts) as usize;
        let dev = |rng: &mut Rng| rng.below(config.devs as u64) as usize;
        plan(config.crashes, &mut |rng| AppTask::CrashAny(host(rng)));
        plan(config.reboots, &mut |rng| AppTask::PowerOff(host(rng)));
        plan(config.unplugs, &mut |rng| {
            AppTask::Unplug(Place {
                host: host(rng),
                dev: dev(rng),
            })
        });
        plan(config.partitions, &mut |rng| {
            AppTask::Part(host(rng), host(rng))
        });
        plan(config.relistens, &mut |rng| AppTask::Relisten(host(rng)));
        plan(config.forgeries, &mut |rng| {
            AppTask::Forge(host(rng), rng.draw())
        });
        self.fx.at(self.config.faulty, AppTask::Calm);
    }
}
