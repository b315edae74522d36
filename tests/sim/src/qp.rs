// SPDX-License-Identifier: GPL-2.0
//! Queue pairs, and the packets between them: who takes what shows whether TimeWait held.

use crate::apps::AppTask;
use crate::fx::Lid;
use crate::fx::Time;
use crate::fx::Uid;
use crate::rules::Rule;
use crate::say;
use crate::seen::Mark;
use crate::world::lid;
use crate::world::place;
use crate::world::Phase;
use crate::world::World;

/// The first number that a queue pair of a consumer can have.
const FIRST_QPN: u32 = 17;

/// State of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpState {
    /// Takes nothing.
    Init,
    /// Takes packets.
    Rtr,
    /// Takes and sends packets.
    Rts,
    /// Takes nothing.
    Error,
}

/// A queue pair.
#[derive(Clone, Debug)]
pub struct Qp {
    /// Its number, which another has had before.
    pub qpn: u32,
    /// Its device.
    pub dev: usize,
    /// Its process.
    pub pid: Uid,
    /// Its state.
    pub state: QpState,
    /// Whether it has ever taken packets.
    pub used: bool,
    /// The queue pair at the far end, and its device.
    pub to: (Lid, u32),
    /// Which queue pair its owner believes to be at the far end.
    pub peer: Uid,
    /// Packets sent.
    pub sent: u32,
    /// It takes packets only because its consumer was gone before it heard of the end.
    pub excused: bool,
}

/// A packet between queue pairs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Data {
    /// Sender: device and number, and which queue pair that is.
    pub from: (Lid, u32, Uid),
    /// Recipient: device and number, and which queue pair is meant.
    pub to: (Lid, u32, Uid),
}

impl World {
    /// Makes a queue pair; its number is the lowest that is free.
    pub fn make_qp(&mut self, host: usize, dev: usize, pid: Uid) -> Option<Uid> {
        if self.fx.no_memory() {
            return None;
        }
        let uid = self.fx.uid();
        let qps = &mut self.hosts[host].qps;
        let taken = |qpn: u32| qps.values().any(|qp| qp.dev == dev && qp.qpn == qpn);
        let qpn = (FIRST_QPN..).find(|qpn| !taken(*qpn))?;
        let qp = Qp {
            qpn,
            dev,
            pid,
            state: QpState::Init,
            used: false,
            to: (Lid(0), 0),
            peer: 0,
            sent: 0,
            excused: false,
        };
        qps.insert(uid, qp);
        say!(self.fx, "host {host} makes queue pair {uid}, number {qpn}");
        Some(uid)
    }

    /// Lets a queue pair take packets, from the queue pair `peer` at `to`.
    pub fn ready_to_receive(&mut self, host: usize, qp: Uid, to: (Lid, u32), peer: Uid) {
        say!(
            self.fx,
            "host {host} connects queue pair {qp} to {peer}, {to:?}"
        );
        let ghost = !self.hosts.iter().any(|host| host.qps.contains_key(&peer));
        self.ghosts |= ghost;
        if let Some(qp) = self.hosts[host].qps.get_mut(&qp) {
            qp.state = QpState::Rtr;
            qp.used = true;
            qp.to = to;
            qp.peer = peer;
        }
    }

    /// Lets a queue pair send packets.
    pub fn ready_to_send(&mut self, host: usize, uid: Uid) {
        if let Some(qp) = self.hosts[host].qps.get_mut(&uid) {
            if qp.state == QpState::Rtr {
                qp.state = QpState::Rts;
                self.fx.after(1, AppTask::Data(host, uid));
            }
        }
    }

    /// Stops a queue pair.
    pub fn stop_qp(&mut self, host: usize, qp: Uid) {
        say!(self.fx, "host {host} stops queue pair {qp}");
        if let Some(qp) = self.hosts[host].qps.get_mut(&qp) {
            qp.state = QpState::Error;
        }
    }

    /// A queue pair sends a packet.
    pub fn send_data(&mut self, host: usize, uid: Uid) {
        let life = self.config.life_us();
        let Some(qp) = self.hosts[host].qps.get_mut(&uid) else {
            return;
        };
        if qp.state != QpState::Rts {
            return;
        }
        qp.sent += 1;
        let data = Data {
            from: (lid(host, qp.dev), qp.qpn, uid),
            to: (qp.to.0, qp.to.1, qp.peer),
        };
        let gap: Time = if qp.sent < 20 { life / 2 } else { 50_000 };
        let next = self.fx.rng.range(gap / 4 + 1, 2 * gap + 2);
        let lost = self.parted(data.from.0, data.to.0) || self.fx.rng.chance(self.config.loss);
        if !lost {
            let latency = self.fx.rng.range(life / 16, life);
            self.fx.after(latency, AppTask::DataArrives(data));
        }
        self.fx.after(next, AppTask::Data(host, uid));
    }

    /// A packet arrives.
    pub fn take_data(&mut self, data: Data) {
        let (to, qpn, meant) = data.to;
        let at = place(to);
        let host = &self.hosts[at.host];
        let taker = host.qps.iter().find(|(_, qp)| {
            host.up
                && qp.dev == at.dev
                && qp.qpn == qpn
                && matches!(qp.state, QpState::Rtr | QpState::Rts)
                && qp.to == (data.from.0, data.from.1)
        });
        let Some((uid, qp)) = taker.map(|(uid, qp)| (*uid, qp.clone())) else {
            self.fx.seen.mark(Mark::PacketDiscarded);
            return;
        };
        self.fx.seen.mark(Mark::PacketAccepted);
        let (meant, expected) = (uid == meant, qp.peer == data.from.2);
        let wrong = match () {
            // An identifier that is used again, by a consumer or by a host after a boot, cannot be
            // told from what it was before. That is what new IDs and the random start are for.
            () if self.config.same_ids || self.config.reuses > 0 => false,
            // A REP that is older than TimeWait answers a REQ that has been accepted twice; a REQ
            // that is older is new to everybody.
            () if self.config.overdue => !meant && !expected && !self.ghosts,
            () => !meant || !expected,
        };
        if wrong {
            let what = format!("queue pair {uid} took {data:?}");
            self.fx.broken(Rule::NoStrangersPacket, what);
        }
        if qp.state == QpState::Rtr && self.phase == Phase::Faulty && self.fx.rng.chance(3000) {
            self.data_before_rtu(at.host, uid);
        }
    }

    /// Destroys a queue pair.
    pub fn destroy_qp(&mut self, host: usize, qp: Uid) {
        say!(self.fx, "host {host} destroys queue pair {qp}");
        self.hosts[host].qps.remove(&qp);
    }
}
