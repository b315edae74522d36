// SPDX-License-Identifier: GPL-2.0
//! What consumers do when they are told something.

use crate::apps::Later;
use crate::calls::Reply;
use crate::calls::NO_MEMORY;
use crate::checker::Kind;
use crate::cm::Event;
use crate::fx::Arrival;
use crate::fx::Uid;
use crate::rules::Rule;
use crate::seen::Mark;
use crate::world::guid_of;
use crate::world::World;
use ib_cm_proto::connection::QpType;
use ib_cm_proto::state::State;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto::wire::Rep;
use ib_cm_proto::wire::RepView;
use ib_cm_proto::wire::Req;
use ib_cm_proto::wire::ReqView;
use ib_cm_proto::wire::SidrStatus;

fn token_of(bytes: &[u8]) -> Uid {
    bytes
        .first_chunk()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

impl World {
    /// What a consumer does when it is told something; returns what its handler returns.
    pub(crate) fn handle(&mut self, host: usize, uid: Uid, kind: Kind, event: &Event) -> i32 {
        let destroyed = self.hosts[host]
            .conns
            .get(&uid)
            .is_none_or(|conn| conn.destroyed);
        if destroyed {
            return 0;
        }
        if self.fx.rng.chance(self.config.errors) {
            self.fx.seen.mark(Mark::ConsumerError);
            return if kind == Kind::Req { -111 } else { 1 };
        }
        match (kind, event) {
            (Kind::Req, Event::Arrival(arrival)) => return self.asked(host, uid, arrival),
            (Kind::Rep, Event::Arrival(arrival)) => self.answered(host, uid, arrival),
            (Kind::Established, _) => self.connected(host, uid),
            (Kind::Dreq, _) => self.asked_to_leave(host, uid),
            (Kind::Drep | Kind::DreqError | Kind::RepError, _) => self.over(host, uid, true),
            (Kind::Rej(_) | Kind::ReqError, _) => return self.refused(host, uid),
            (Kind::Exit, _) => return self.exited(host, uid),
            (Kind::SidrReq, _) => {
                if !self.fx.rng.chance(self.config.ignores) {
                    let cm = &mut self.hosts[host].cm;
                    let _ = cm.send_sidr_rep(uid, SidrStatus::SUCCESS, &mut self.fx);
                }
                let after = self.while_();
                self.later(host, uid, after, Later::Destroy);
            }
            (Kind::SidrRep | Kind::SidrError, _) => return 1,
            _ => {}
        }
        0
    }

    /// A REQ has come in.
    pub(crate) fn asked(&mut self, host: usize, uid: Uid, arrival: &Arrival) -> i32 {
        let req = ReqView(&arrival.mad);
        let token = token_of(Req::private_data(&arrival.mad));
        if let Some(conn) = self.hosts[host].conns.get_mut(&uid) {
            conn.named = Some((arrival.from, req.local_qpn(), token));
        }
        if req.local_ca_guid() == guid_of(arrival.from) {
            let cm = &self.hosts[host].cm;
            let unaware = |uid| cm.ids.get(&uid).is_some_and(|id| !id.events.is_empty());
            self.checker.asked(host, token, uid, unaware, &mut self.fx);
        }
        let config = self.config.clone();
        if self.fx.rng.chance(config.no_memory) {
            self.fx.seen.mark(Mark::ConsumerNoMemory);
            return NO_MEMORY;
        }
        if self.fx.rng.chance(config.rejects) {
            self.fx.seen.mark(Mark::ConsumerRejects);
            self.reject(host, uid);
        } else if self.fx.rng.chance(config.ignores) {
            self.fx.seen.mark(Mark::ConsumerIgnores);
            let after = self.fx.rng.range(100_000, 3_000_000);
            self.later(host, uid, after, Later::Destroy);
        } else {
            self.take_time(host, uid, Later::Accept);
        }
        0
    }

    /// Answers now, or after a while, with or without MRA.
    pub(crate) fn take_time(&mut self, host: usize, uid: Uid, what: Later) {
        if self.fx.rng.chance(self.config.mras) {
            self.fx.seen.mark(Mark::ConsumerMra);
            let _ = self.hosts[host].cm.prepare_mra(uid, &mut self.fx);
            let after = self.while_();
            self.later(host, uid, after, what);
        } else if self.fx.rng.chance(self.config.slow) {
            let after = self.while_();
            self.later(host, uid, after, what);
        } else {
            self.go_on(host, uid, what);
        }
    }

    pub(crate) fn reject(&mut self, host: usize, uid: Uid) {
        let why = self.fx.rng.pick(&[
            RejReason::CONSUMER_DEFINED,
            RejReason::NO_QP,
            RejReason::STALE_CONN,
            RejReason::TIMEOUT,
        ]);
        let now = self.fx.now;
        if self.hosts[host].cm.send_rej(uid, why, &mut self.fx).is_ok() {
            self.checker.ended_by_call(uid, now);
            self.stop(host, uid);
        }
        let after = self.while_();
        self.later(host, uid, after, Later::Destroy);
    }

    /// Stops the queue pair of an identifier.
    pub(crate) fn stop(&mut self, host: usize, uid: Uid) {
        let conn = self.hosts[host].conns.get_mut(&uid);
        if let Some(qp) = conn.and_then(|conn| {
            conn.up = false;
            conn.qp
        }) {
            self.stop_qp(host, qp);
        }
    }

    /// `ib_send_cm_rep`, with a new queue pair.
    pub(crate) fn accept(&mut self, host: usize, uid: Uid) {
        let Some(conn) = self.hosts[host].conns.get(&uid) else {
            return;
        };
        let (Some((from, qpn, token)), pid, dev) = (conn.named, conn.pid, conn.dev) else {
            return;
        };
        if conn.qp.is_some() || conn.over {
            return;
        }
        let Some(qp) = self.make_qp(host, dev, pid) else {
            self.reject(host, uid);
            return;
        };
        self.ready_to_receive(host, qp, (from, qpn), token);
        let reply = Reply {
            qpn: self.hosts[host].qps.get(&qp).map_or(0, |qp| qp.qpn),
            token: qp,
        };
        if self.hosts[host]
            .cm
            .send_rep(uid, reply, &mut self.fx)
            .is_err()
        {
            self.destroy_qp(host, qp);
            self.later(host, uid, 1, Later::Destroy);
            return;
        }
        self.fx.seen.mark(Mark::ConsumerAccepts);
        let xrc = self.hosts[host]
            .cm
            .ids
            .get(&uid)
            .is_some_and(|id| id.conn.qp_type == QpType::XrcTgt);
        if let (true, Some(qp)) = (xrc, self.hosts[host].qps.get_mut(&qp)) {
            // Targets of XRC are shared, and no connection of theirs is waited for.
            qp.excused = true;
        }
        self.checker.rep_sent(uid);
        if let Some(conn) = self.hosts[host].conns.get_mut(&uid) {
            conn.qp = Some(qp);
        }
    }

    /// A REP has come in.
    pub(crate) fn answered(&mut self, host: usize, uid: Uid, arrival: &Arrival) {
        let rep = RepView(&arrival.mad);
        let token = token_of(Rep::private_data(&arrival.mad));
        let id = self.hosts[host].cm.ids.get(&uid);
        let qpn = rep.qpn(id.is_some_and(|id| id.conn.qp_type == QpType::XrcIni));
        if let Some(conn) = self.hosts[host].conns.get_mut(&uid) {
            conn.named = Some((arrival.from, qpn, token));
        }
        if self.fx.rng.chance(self.config.rejects) {
            self.fx.seen.mark(Mark::ConsumerRejects);
            self.reject(host, uid);
        } else if self.fx.rng.chance(self.config.ignores) {
            self.fx.seen.mark(Mark::ConsumerIgnores);
            let after = self.fx.rng.range(100_000, 3_000_000);
            self.later(host, uid, after, Later::Destroy);
        } else {
            self.take_time(host, uid, Later::Confirm);
        }
    }

    /// `ib_send_cm_rtu`.
    pub(crate) fn confirm(&mut self, host: usize, uid: Uid) {
        let Some(conn) = self.hosts[host].conns.get(&uid) else {
            return;
        };
        let (Some((from, qpn, token)), Some(qp), false) = (conn.named, conn.qp, conn.over) else {
            return;
        };
        self.ready_to_receive(host, qp, (from, qpn), token);
        self.ready_to_send(host, qp);
        if self.hosts[host].cm.send_rtu(uid, &mut self.fx).is_err() {
            // The RTU could not be sent: the consumer gives up, and the peer is rejected.
            self.stop(host, uid);
            self.later(host, uid, 1, Later::Destroy);
            return;
        }
        self.connected(host, uid);
    }

    /// Data may flow.
    pub(crate) fn connected(&mut self, host: usize, uid: Uid) {
        let Some(conn) = self.hosts[host].conns.get_mut(&uid) else {
            return;
        };
        conn.up = true;
        let (qp, active, probe) = (conn.qp, conn.active, conn.probe);
        if let Some(qp) = qp {
            self.ready_to_send(host, qp);
        }
        if let Some(probe) = probe {
            self.probed(probe);
        }
        let after = self.while_() * 2;
        if active || self.fx.rng.chance(3000) {
            self.later(host, uid, after, Later::Disconnect);
        }
    }

    /// Data has come before the RTU.
    pub fn data_before_rtu(&mut self, host: usize, qp: Uid) {
        let conns = &self.hosts[host].conns;
        let conn = conns
            .values()
            .find(|conn| conn.qp == Some(qp) && !conn.destroyed);
        if let Some(uid) = conn.map(|conn| conn.uid) {
            if self.hosts[host].cm.established(uid, &mut self.fx).is_ok() {
                self.fx.seen.mark(Mark::EventRtuLate);
            }
        }
    }

    /// `ib_send_cm_dreq`.
    pub(crate) fn disconnect(&mut self, host: usize, uid: Uid) {
        let conn = self.hosts[host].conns.get(&uid);
        if conn.is_none_or(|conn| !conn.up || conn.over) {
            return;
        }
        self.stop(host, uid);
        let now = self.fx.now;
        let sent = self.hosts[host].cm.send_dreq(uid, &mut self.fx);
        if sent == Err(crate::calls::Errno::NoMemory) {
            self.checker.ended_by_call(uid, now);
            self.wait_for_exit(host, uid);
        }
    }

    /// A DREQ has come in.
    pub(crate) fn asked_to_leave(&mut self, host: usize, uid: Uid) {
        self.stop(host, uid);
        if self.fx.rng.chance(self.config.ignores) {
            self.fx.seen.mark(Mark::ConsumerIgnores);
            let after = self.fx.rng.range(100_000, 3_000_000);
            self.later(host, uid, after, Later::Destroy);
        } else if self.fx.rng.chance(self.config.slow) {
            let after = self.while_();
            self.later(host, uid, after, Later::ConfirmDisconnect);
        } else {
            self.confirm_disconnect(host, uid);
        }
    }

    /// `ib_send_cm_drep`.
    pub(crate) fn confirm_disconnect(&mut self, host: usize, uid: Uid) {
        let now = self.fx.now;
        // It may fail: the connection may have ended meanwhile.
        if self.hosts[host].cm.send_drep(uid, &mut self.fx).is_ok() {
            self.checker.drep_sent(uid, now);
        }
        self.wait_for_exit(host, uid);
    }

    /// The connection is over.
    pub(crate) fn over(&mut self, host: usize, uid: Uid, exit: bool) {
        self.stop(host, uid);
        if let Some(conn) = self.hosts[host].conns.get_mut(&uid) {
            conn.over = true;
        }
        if exit && !self.fx.rng.chance(self.config.destroys) {
            self.wait_for_exit(host, uid);
        } else {
            let after = self.while_();
            self.later(host, uid, after, Later::Destroy);
        }
    }

    pub(crate) fn wait_for_exit(&mut self, host: usize, uid: Uid) {
        let longest = self.config.linger_us() + 2_000_000;
        let uses = self.hosts[host].conns.get(&uid).map_or(0, |conn| conn.uses);
        self.later(host, uid, longest, Later::GiveUp(uses));
    }

    /// The peer has refused, or could not be reached.
    pub(crate) fn refused(&mut self, host: usize, uid: Uid) -> i32 {
        let conn = self.hosts[host].conns.get(&uid);
        let Some((qp, active, uses)) = conn.map(|conn| (conn.qp, conn.active, conn.uses)) else {
            return 1;
        };
        let used = qp
            .and_then(|qp| self.hosts[host].qps.get(&qp))
            .is_some_and(|qp| qp.used);
        if used || self.checker.owes_exit(uid) {
            self.over(host, uid, true);
            return 0;
        }
        self.over(host, uid, false);
        self.free_qp(host, uid);
        if active && uses > 0 && self.fx.rng.chance(self.config.reuses) {
            let after = self.while_();
            self.later(host, uid, after, Later::Reuse);
            return 0;
        }
        1
    }

    /// TimeWait is over.
    pub(crate) fn exited(&mut self, host: usize, uid: Uid) -> i32 {
        self.stop(host, uid);
        self.free_qp(host, uid);
        let conn = self.hosts[host].conns.get_mut(&uid);
        let again = conn.is_some_and(|conn| {
            conn.over = true;
            conn.active && conn.uses > 0
        });
        if again && self.fx.rng.chance(self.config.reuses) {
            let after = self.while_();
            self.later(host, uid, after, Later::Reuse);
            return 0;
        }
        1
    }

    /// Uses an identifier again that is idle.
    pub(crate) fn reuse(&mut self, host: usize, uid: Uid) {
        let Some(id) = self.hosts[host].cm.ids.get(&uid) else {
            return;
        };
        let (idle, to) = (id.conn.state == State::Idle, id.peer);
        if !idle || !id.events.is_empty() {
            self.later(host, uid, 1, Later::Destroy);
            return;
        }
        if let Some(conn) = self.hosts[host].conns.get_mut(&uid) {
            conn.uses -= 1;
            self.fx.seen.mark(Mark::ConsumerReuses);
            self.request(host, uid, to);
        }
    }

    /// A consumer goes on.
    pub(crate) fn go_on(&mut self, host: usize, uid: Uid, what: Later) {
        let Some(conn) = self.hosts[host].conns.get(&uid) else {
            return;
        };
        let process = self.hosts[host].procs.get(&conn.pid);
        if conn.destroyed || !process.is_some_and(|process| process.alive) {
            return;
        }
        match what {
            Later::Accept => self.accept(host, uid),
            Later::Reject => self.reject(host, uid),
            Later::Confirm => self.confirm(host, uid),
            Later::Disconnect => self.disconnect(host, uid),
            Later::ConfirmDisconnect => self.confirm_disconnect(host, uid),
            Later::Destroy => self.destroy(host, uid),
            Later::GiveUp(uses) if conn.uses != uses => {}
            Later::GiveUp(_) => {
                if self.checker.owes_exit(uid) {
                    let what = format!("host {host}: {uid} never gets it");
                    self.fx.broken(Rule::OneTimewaitExit, what);
                }
                self.destroy(host, uid);
            }
            Later::Reuse => self.reuse(host, uid),
        }
    }
}
