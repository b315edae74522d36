// SPDX-License-Identifier: GPL-2.0
//! Consumers: they keep the rules of the interface, and within them do whatever they like.

use ib_cm_proto::connection::QpType;

use crate::calls::Request;
use crate::checker::Kind;
use crate::cm::Event;
use crate::fx::Arrival;
use crate::fx::Lid;
use crate::fx::Place;
use crate::fx::Time;
use crate::fx::Uid;
use crate::qp::Data;
use crate::rules::Rule;
use crate::say;
use crate::seen::Mark;
use crate::world::lid;
use crate::world::Phase;
use crate::world::World;

/// The service that consumers offer.
pub const SERVICE: u64 = 0x1000;

/// A service that nobody offers.
const NO_SUCH_SERVICE: u64 = 0x2000;

/// Kinds of connections, the usual one more often.
const QP_TYPES: [QpType; 8] = [
    QpType::Rc,
    QpType::Rc,
    QpType::Rc,
    QpType::Rc,
    QpType::Rc,
    QpType::Rc,
    QpType::Uc,
    QpType::XrcIni,
];

/// What a consumer does after a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Later {
    /// `ib_send_cm_rep`.
    Accept,
    /// `ib_send_cm_rej`.
    Reject,
    /// `ib_send_cm_rtu`.
    Confirm,
    /// `ib_send_cm_dreq`.
    Disconnect,
    /// `ib_send_cm_drep`.
    ConfirmDisconnect,
    /// `ib_destroy_cm_id`.
    Destroy,
    /// TIMEWAIT_EXIT should have come by now, if so many uses are left.
    GiveUp(u32),
    /// The identifier is used again.
    Reuse,
}

/// Things that consumers and the world do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AppTask {
    /// A process looks for something to do.
    Tick(usize, Uid),
    /// A consumer goes on.
    Later(usize, Uid, Later),
    /// A handler returns, after it has destroyed another identifier.
    Returns(usize, Uid, i32, Option<Uid>),
    /// A queue pair sends a packet.
    Data(usize, Uid),
    /// A packet arrives.
    DataArrives(Data),
    /// A queue pair is not needed any more.
    FreeQp(usize, Uid),
    /// A process crashes.
    CrashAny(usize),
    /// The kernel closes the next file of a process.
    Close(usize, Uid),
    /// Holds may end.
    HoldEnds,
    /// A host loses its power.
    PowerOff(usize),
    /// A host is up again.
    PowerOn(usize),
    /// A device goes away.
    Unplug(Place),
    /// A device is there again.
    Plug(Place),
    /// Two hosts cannot reach each other any more.
    Part(usize, usize),
    /// Two hosts can reach each other again.
    Join(usize, usize),
    /// A listener is destroyed and made again.
    Relisten(usize),
    /// Somebody sends a MAD to a host that makes no sense, or looks as if it did.
    Forge(usize, u64),
    /// Nothing goes wrong any more.
    Calm,
    /// A peer tries to connect.
    Probe(Uid),
    /// Everybody goes home.
    Closing,
}

/// An identifier, as its consumer sees it.
#[derive(Clone, Debug)]
pub struct Conn {
    /// The identifier.
    pub uid: Uid,
    /// Its process.
    pub pid: Uid,
    /// Its device.
    pub dev: usize,
    /// Whether it asks.
    pub active: bool,
    /// Whether it listens.
    pub listens: bool,
    /// Its queue pair.
    pub qp: Option<Uid>,
    /// The REQ or REP: whose queue pair it names.
    pub named: Option<(Lid, u32, Uid)>,
    /// Data may flow.
    pub up: bool,
    /// It has heard that it is over.
    pub over: bool,
    /// Its handler runs, with this event.
    pub event: Option<Event>,
    /// It has been destroyed, and the call waits for a handler.
    pub destroyed: bool,
    /// Its time is up after this many more uses.
    pub uses: u32,
    /// The probe that it belongs to.
    pub probe: Option<Uid>,
}

impl World {
    pub(crate) fn track(&mut self, host: usize, uid: Uid, pid: Uid, dev: usize, active: bool) {
        let conn = Conn {
            uid,
            pid,
            dev,
            active,
            listens: false,
            qp: None,
            named: None,
            up: false,
            over: false,
            event: None,
            destroyed: false,
            uses: 2,
            probe: None,
        };
        self.hosts[host].conns.insert(uid, conn);
        if let Some(process) = self.hosts[host].procs.get_mut(&pid) {
            process.conns.insert(uid);
        }
    }

    /// A process listens.
    pub fn listen(&mut self, host: usize, dev: usize, pid: Uid) {
        let fx = &mut self.fx;
        let fails = core::mem::take(&mut fx.allocation_fails);
        let cm = &mut self.hosts[host].cm;
        let uid = cm.create(dev, fx);
        let listens = uid.is_some_and(|uid| cm.listen(uid, SERVICE, fx).is_ok());
        fx.allocation_fails = fails;
        let Some(uid) = uid else {
            return;
        };
        self.track(host, uid, pid, dev, false);
        if let Some(conn) = self.hosts[host].conns.get_mut(&uid) {
            conn.listens = listens;
        }
        if !listens {
            self.destroy(host, uid);
        }
    }

    /// A listener is destroyed and another takes its place.
    pub fn change_listener(&mut self, host: usize) {
        let conns = &self.hosts[host].conns;
        let listener = conns.values().find(|conn| conn.listens && !conn.destroyed);
        let Some((uid, dev)) = listener.map(|conn| (conn.uid, conn.dev)) else {
            return;
        };
        self.fx.seen.mark(Mark::ListenerDestroyed);
        self.destroy(host, uid);
        self.relisten(host, dev);
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.phase != Phase::Faulty
    }

    /// A while, as consumers go.
    pub(crate) fn while_(&mut self) -> Time {
        let life = self.config.life_us();
        let most = if self.fx.rng.chance(8000) {
            4 * life
        } else {
            1_500_000
        };
        self.fx.rng.range(1, most)
    }

    pub(crate) fn later(&mut self, host: usize, uid: Uid, after: Time, what: Later) {
        self.fx.after(after, AppTask::Later(host, uid, what));
    }

    /// A process looks for something to do.
    fn tick(&mut self, host: usize, pid: Uid) {
        let alive = self.hosts[host]
            .procs
            .get(&pid)
            .is_some_and(|process| process.alive);
        if !alive || self.is_calm() {
            return;
        }
        let own: Vec<Uid> = self.hosts[host]
            .conns
            .values()
            .filter(|conn| conn.pid == pid && !conn.listens && !conn.destroyed)
            .map(|conn| conn.uid)
            .collect();
        let asking = self.hosts[host]
            .conns
            .values()
            .filter(|conn| conn.pid == pid && conn.active);
        if asking.count() < self.config.connections {
            self.ask(host, pid);
        }
        if !own.is_empty() && self.fx.rng.chance(self.config.destroys) {
            let uid = self.fx.rng.pick(&own);
            self.destroy(host, uid);
        }
        let next = self.while_() / 4;
        self.fx.after(next + 1000, AppTask::Tick(host, pid));
    }

    /// A process asks for a connection, or for a queue pair.
    fn ask(&mut self, host: usize, pid: Uid) {
        let dev = self.fx.rng.below(self.config.devs as u64) as usize;
        let others = self.config.hosts as u64 - 1;
        let far = (host + 1 + self.fx.rng.below(others) as usize) % self.config.hosts;
        let to = lid(far, self.fx.rng.below(self.config.devs as u64) as usize);
        let Some(uid) = self.hosts[host].cm.create(dev, &mut self.fx) else {
            return;
        };
        self.track(host, uid, pid, dev, true);
        if self.fx.rng.chance(400) {
            let timeout_ms = self.fx.rng.range(5, 100) as u32;
            let cm = &mut self.hosts[host].cm;
            if cm
                .send_sidr_req(uid, to, SERVICE, timeout_ms, &mut self.fx)
                .is_err()
            {
                self.destroy(host, uid);
            }
            return;
        }
        self.request(host, uid, to);
    }

    /// Sends a REQ with a new queue pair.
    pub(crate) fn request(&mut self, host: usize, uid: Uid, to: Lid) {
        let Some((pid, dev)) = self.hosts[host]
            .conns
            .get(&uid)
            .map(|conn| (conn.pid, conn.dev))
        else {
            return;
        };
        let Some(qp) = self.make_qp(host, dev, pid) else {
            self.destroy(host, uid);
            return;
        };
        let unoffered = self.fx.rng.chance(self.config.no_service);
        let request = Request {
            to,
            service: if unoffered { NO_SUCH_SERVICE } else { SERVICE },
            qpn: self.hosts[host].qps.get(&qp).map_or(0, |qp| qp.qpn),
            token: qp,
            qp_type: self.fx.rng.pick(&QP_TYPES),
            life: self.config.life,
            response: self.config.response,
            retries: self.config.retries,
        };
        let sent = self.hosts[host].cm.send_req(uid, request, &mut self.fx);
        if sent.is_err() {
            self.destroy_qp(host, qp);
            self.destroy(host, uid);
            return;
        }
        self.checker.req_sent(uid);
        if let Some(conn) = self.hosts[host].conns.get_mut(&uid) {
            conn.qp = Some(qp);
            (conn.up, conn.over, conn.named) = (false, false, None);
        }
    }

    /// Destroys an identifier from outside its handler.
    pub fn destroy(&mut self, host: usize, uid: Uid) {
        let Some(conn) = self.hosts[host].conns.get_mut(&uid) else {
            return;
        };
        if conn.destroyed {
            return;
        }
        conn.destroyed = true;
        let running = conn.event.is_some();
        self.leave_qp(host, uid);
        say!(self.fx, "host {host} destroys {uid}");
        self.note_destroyed(host, uid);
        self.hosts[host].cm.destroy(uid, &mut self.fx);
        if running {
            self.fx.seen.mark(Mark::ConsumerDestroysRunning);
        }
        self.settle(host, uid);
    }

    /// Tells the checker that an identifier is destroyed.
    fn note_destroyed(&mut self, host: usize, uid: Uid) {
        self.checker.destroyed(uid, self.fx.now);
        let id = self.hosts[host].cm.ids.get(&uid);
        // Targets of XRC know no TimeWait.
        if id.is_none_or(|id| !id.events.is_empty() || id.conn.qp_type == QpType::XrcTgt) {
            self.checker.ended_at_once(uid);
        }
    }

    /// A destroyed identifier is gone once nothing runs that has to do with it.
    pub(crate) fn settle(&mut self, host: usize, uid: Uid) {
        let Some(conn) = self.hosts[host].conns.get(&uid) else {
            return;
        };
        let requests = self.hosts[host]
            .cm
            .ids
            .get(&uid)
            .map_or(0, |id| id.requests);
        let running = self.hosts[host].conns.values().any(|other| {
            matches!(&other.event, Some(Event::Arrival(Arrival { listener: Some(l), .. })) if *l == uid)
        });
        if conn.event.is_some() || running || (conn.listens && requests > 0) {
            return;
        }
        self.checker.destroy_returned(uid);
        self.hosts[host].cm.disown(uid);
        self.untrack(host, uid);
    }

    pub(crate) fn untrack(&mut self, host: usize, uid: Uid) {
        if let Some(conn) = self.hosts[host].conns.remove(&uid) {
            if let Some(process) = self.hosts[host].procs.get_mut(&conn.pid) {
                process.conns.remove(&uid);
            }
            if let Some(probe) = conn.probe {
                self.fx
                    .after(self.config.linger_us() / 64 + 20_000, AppTask::Probe(probe));
            }
        }
    }

    /// The consumer of an identifier lets go of its queue pair, and keeps it as long as packets may
    /// be under way to it.
    pub(crate) fn leave_qp(&mut self, host: usize, uid: Uid) {
        let machine = &mut self.hosts[host];
        let Some(conn) = machine.conns.get_mut(&uid) else {
            return;
        };
        let Some(qp) = conn.qp.take() else {
            return;
        };
        let alive = machine
            .procs
            .get(&conn.pid)
            .is_some_and(|process| process.alive);
        let id = machine.cm.ids.get(&uid);
        let unaware = id.is_none_or(|id| !id.events.is_empty() || id.running);
        let linger = self.config.linger_us();
        if let Some(state) = machine.qps.get_mut(&qp) {
            if !alive {
                // The kernel closes one file, and knows nothing of the other.
                state.excused |= unaware;
            } else if state.used {
                self.stop_qp(host, qp);
                self.fx.after(linger, AppTask::FreeQp(host, qp));
            } else {
                self.destroy_qp(host, qp);
            }
        }
    }

    /// TimeWait is over: the queue pair may be used again.
    pub(crate) fn free_qp(&mut self, host: usize, uid: Uid) {
        let conn = self.hosts[host].conns.get_mut(&uid);
        if let Some(qp) = conn.and_then(|conn| conn.qp.take()) {
            self.destroy_qp(host, qp);
        }
    }

    /// Delivers the next event of an identifier to its consumer.
    pub fn deliver(&mut self, host: usize, uid: Uid) {
        let Some(event) = self.hosts[host].cm.next_event(uid, &mut self.fx) else {
            self.settle_all(host);
            return;
        };
        say!(self.fx, "host {host}: {uid} gets {:?}", Kind::of(&event));
        self.checker.event(uid, &event, &mut self.fx);
        let kind = Kind::of(&event);
        if let Event::Arrival(arrival) = &event {
            if let Some(listener) = arrival.listener {
                let Some(conn) = self.hosts[host].conns.get(&listener) else {
                    let what = format!("{uid} comes for {listener}");
                    self.fx.broken(Rule::ListenersWaited, what);
                    return;
                };
                let (pid, dev) = (conn.pid, conn.dev);
                self.track(host, uid, pid, dev, false);
            }
        }
        let Some(conn) = self.hosts[host].conns.get_mut(&uid) else {
            let what = format!("{uid} gets {kind:?} and has no consumer");
            self.fx.broken(Rule::NoEventAfterDestroy, what);
            return;
        };
        conn.event = Some(event.clone());
        let pid = conn.pid;
        let alive = self.hosts[host]
            .procs
            .get(&pid)
            .is_some_and(|process| process.alive);
        let returned = if alive {
            self.handle(host, uid, kind, &event)
        } else {
            0
        };
        let mut duration = 0;
        if self.fx.rng.chance(self.config.sleeps) {
            self.fx.seen.mark(Mark::ConsumerSleeps);
            duration = self.while_();
        }
        let mut other = None;
        if self.fx.rng.chance(self.config.destroys / 8) && alive {
            other = self.another(host, uid, pid);
        }
        if let Some(other) = other {
            self.fx.seen.mark(Mark::ConsumerDestroysInHandler);
            self.destroy(host, other);
        }
        self.fx
            .after(duration, AppTask::Returns(host, uid, returned, other));
    }

    /// Another identifier of a process that may be destroyed from the handler of this one.
    fn another(&mut self, host: usize, uid: Uid, pid: Uid) -> Option<Uid> {
        let others: Vec<Uid> = self.hosts[host]
            .conns
            .values()
            .filter(|conn| {
                // Two handlers that destroy each other wait for each other.
                conn.pid == pid && conn.uid != uid && !conn.listens && conn.event.is_none()
            })
            .map(|conn| conn.uid)
            .collect();
        (!others.is_empty()).then(|| self.fx.rng.pick(&others))
    }

    /// A handler returns.
    fn returns(&mut self, host: usize, uid: Uid, returned: i32) {
        let Some(conn) = self.hosts[host].conns.get_mut(&uid) else {
            return;
        };
        let Some(event) = conn.event.take() else {
            return;
        };
        let destroyed = conn.destroyed;
        // Whoever has destroyed it meanwhile waits for us, and owns it.
        let returned = if destroyed { 0 } else { returned };
        if returned != 0 {
            self.leave_qp(host, uid);
            self.note_destroyed(host, uid);
            say!(
                self.fx,
                "host {host}: the handler of {uid} returns {returned}"
            );
        }
        if self.hosts[host]
            .cm
            .handled(uid, event, returned, &mut self.fx)
        {
            self.deliver_more(host, uid);
        } else {
            self.untrack(host, uid);
        }
        self.settle_all(host);
    }

    fn deliver_more(&mut self, host: usize, uid: Uid) {
        if let Some(id) = self.hosts[host].cm.ids.get_mut(&uid) {
            if id.events.is_empty() || id.conn.is_orphan() {
                id.delivering = false;
                self.hosts[host].cm.reap(uid);
            } else {
                let task = crate::fx::Task::Deliver(host, uid);
                self.fx.later(crate::fx::Delay::Worker, task);
            }
        }
    }

    fn settle_all(&mut self, host: usize) {
        let conns = &self.hosts[host].conns;
        let waiting: Vec<Uid> = conns
            .values()
            .filter(|conn| conn.destroyed)
            .map(|conn| conn.uid)
            .collect();
        for uid in waiting {
            self.settle(host, uid);
        }
    }

    /// Does what consumers and the world do.
    pub fn app(&mut self, task: AppTask) {
        match task {
            AppTask::Tick(host, pid) => self.tick(host, pid),
            AppTask::Later(host, uid, what) => self.go_on(host, uid, what),
            AppTask::Returns(host, uid, returned, other) => {
                let waits = other.is_some_and(|other| self.hosts[host].conns.contains_key(&other));
                if waits {
                    self.fx
                        .after(1000, AppTask::Returns(host, uid, returned, other));
                } else {
                    self.returns(host, uid, returned);
                }
            }
            AppTask::Data(host, qp) => self.send_data(host, qp),
            AppTask::DataArrives(data) => self.take_data(data),
            AppTask::FreeQp(host, qp) => self.destroy_qp(host, qp),
            AppTask::CrashAny(host) => self.crash_any(host),
            AppTask::Close(host, pid) => self.close(host, pid),
            AppTask::HoldEnds => {}
            AppTask::PowerOff(host) => self.power_off(host),
            AppTask::PowerOn(host) => self.power_on(host),
            AppTask::Unplug(at) => self.unplug(at),
            AppTask::Plug(at) => self.plug(at),
            AppTask::Part(a, b) => self.part(a, b),
            AppTask::Join(a, b) => {
                self.partitions.remove(&(a, b));
            }
            AppTask::Relisten(host) => self.change_listener(host),
            AppTask::Forge(host, seed) => self.forge(host, seed),
            AppTask::Calm => self.calm(),
            AppTask::Probe(number) => self.probe(number),
            AppTask::Closing => self.closing(),
        }
    }
}
