// SPDX-License-Identifier: GPL-2.0
//! The checker: it knows the calls that were made and the events that were delivered, and nothing
//! of how they came about.

use std::collections::BTreeMap;

use ib_cm_proto::step::Report;
use ib_cm_proto::wire::AttrId;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto::wire::RejView;

use crate::cm::Event;
use crate::fx::Fx;
use crate::fx::Time;
use crate::fx::Uid;
use crate::rules::Rule;

/// What a consumer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message that is not listed here.
    Other,
    /// `IB_CM_REQ_RECEIVED`.
    Req,
    /// `IB_CM_REP_RECEIVED`.
    Rep,
    /// `IB_CM_RTU_RECEIVED` or `IB_CM_USER_ESTABLISHED`.
    Established,
    /// `IB_CM_MRA_RECEIVED`.
    Mra,
    /// `IB_CM_REJ_RECEIVED`.
    Rej(RejReason),
    /// `IB_CM_DREQ_RECEIVED`.
    Dreq,
    /// `IB_CM_DREP_RECEIVED`.
    Drep,
    /// `IB_CM_REQ_ERROR`.
    ReqError,
    /// `IB_CM_REP_ERROR`.
    RepError,
    /// `IB_CM_DREQ_ERROR`.
    DreqError,
    /// `IB_CM_TIMEWAIT_EXIT`.
    Exit,
    /// `IB_CM_SIDR_REQ_RECEIVED`.
    SidrReq,
    /// `IB_CM_SIDR_REP_RECEIVED`.
    SidrRep,
    /// `IB_CM_SIDR_REQ_ERROR`.
    SidrError,
}

impl Kind {
    /// What an event says.
    pub fn of(event: &Event) -> Kind {
        match event {
            Event::Arrival(arrival) => match AttrId::of(&arrival.mad) {
                Some(AttrId::Req) => Kind::Req,
                Some(AttrId::Rep) => Kind::Rep,
                Some(AttrId::Rtu) => Kind::Established,
                Some(AttrId::Mra) => Kind::Mra,
                Some(AttrId::Rej) => Kind::Rej(RejView(&arrival.mad).reason()),
                Some(AttrId::Dreq) => Kind::Dreq,
                Some(AttrId::Drep) => Kind::Drep,
                Some(AttrId::SidrReq) => Kind::SidrReq,
                Some(AttrId::SidrRep) => Kind::SidrRep,
                _ => Kind::Other,
            },
            Event::Note(report, _) => match report {
                Report::UserEstablished => Kind::Established,
                Report::ReqError => Kind::ReqError,
                Report::RepError => Kind::RepError,
                Report::DreqError => Kind::DreqError,
                Report::SidrReqError => Kind::SidrError,
                Report::Stale => Kind::Rej(RejReason::STALE_CONN),
                Report::TimewaitExit => Kind::Exit,
                Report::Message => Kind::Other,
            },
        }
    }
}

impl Kind {
    /// Whether it ends a connection, or the attempt to make one.
    fn is_terminal(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Rej(_) | Drep | ReqError | RepError | DreqError | SidrRep | SidrError
        )
    }
}

/// When what an event tells of came about.
pub fn cause(event: &Event) -> Time {
    match event {
        Event::Arrival(arrival) => arrival.at,
        Event::Note(_, at) => *at,
    }
}

/// One attempt to connect, as its consumer sees it.
#[derive(Clone, Copy, Debug, Default, Hash)]
struct Attempt {
    req_sent: bool,
    rep_sent: bool,
    rep_received: bool,
    established: bool,
    dreq_received: bool,
    ended: bool,
    exited: bool,
    /// TIMEWAIT_EXIT must come.
    owed: bool,
    /// Before this TimeWait cannot have begun.
    began: Option<Time>,
    /// It has ended without TimeWait.
    at_once: bool,
}

#[derive(Clone, Copy, Debug, Default, Hash)]
struct Life {
    attempt: Attempt,
    destroyed: bool,
    /// When.
    destroyed_at: Time,
    returned: bool,
    device_gone: bool,
    events: u32,
}

/// The checker.
#[derive(Clone, Debug)]
pub struct Checker {
    lives: BTreeMap<Uid, Life>,
    /// The identifiers that were made for the REQ of a queue pair, by its number and the host.
    asked: BTreeMap<(usize, Uid), Vec<Uid>>,
    /// The shortest TimeWait.
    timewait: Time,
}

impl Checker {
    /// Nothing has happened yet.
    pub fn new(timewait: Time) -> Self {
        Checker {
            lives: BTreeMap::new(),
            asked: BTreeMap::new(),
            timewait,
        }
    }

    fn life(&mut self, uid: Uid) -> &mut Life {
        self.lives.entry(uid).or_default()
    }

    /// `ib_send_cm_req` has been called.
    pub fn req_sent(&mut self, uid: Uid) {
        self.life(uid).attempt = Attempt {
            req_sent: true,
            ..Attempt::default()
        };
    }

    /// `ib_send_cm_rep` has been called.
    pub fn rep_sent(&mut self, uid: Uid) {
        self.life(uid).attempt.rep_sent = true;
    }

    /// `ib_send_cm_drep` has been called.
    pub fn drep_sent(&mut self, uid: Uid, now: Time) {
        let attempt = &mut self.life(uid).attempt;
        attempt.owed = true;
        attempt.began.get_or_insert(now);
    }

    /// A call has ended the connection: TIMEWAIT_EXIT may come.
    pub fn ended_by_call(&mut self, uid: Uid, now: Time) {
        self.life(uid).attempt.began.get_or_insert(now);
    }

    /// The device of an identifier goes away.
    pub fn device_gone(&mut self, uid: Uid) {
        self.life(uid).device_gone = true;
    }

    /// `ib_destroy_cm_id` has been called.
    pub fn destroyed(&mut self, uid: Uid, now: Time) {
        let life = self.life(uid);
        (life.destroyed, life.destroyed_at) = (true, now);
    }

    /// A REQ of a queue pair is reported. As long as an earlier connection that it made may still
    /// be in TimeWait, it has to be known for what it is: a late duplicate.
    /// Connections that have ended meanwhile without the knowledge of their consumers, who are
    /// `unaware`, may have ended without TimeWait.
    pub fn asked(
        &mut self,
        host: usize,
        token: Uid,
        uid: Uid,
        unaware: impl Fn(Uid) -> bool,
        fx: &mut Fx,
    ) {
        let timewait = self.timewait;
        let earlier = self.asked.entry((host, token)).or_default();
        for known in earlier.iter() {
            let life = self.lives.get(known);
            let remembers = life.is_some_and(|life| life.remembers(fx.now, timewait));
            // One that was made earlier may be reported later.
            if *known < uid && remembers && !unaware(*known) {
                let what = format!("{uid} is made by a duplicate of the REQ of {known}");
                fx.broken(Rule::LateReqsKnown, what);
            }
        }
        earlier.push(uid);
    }

    /// The connection of an identifier may have ended without TimeWait.
    pub fn ended_at_once(&mut self, uid: Uid) {
        self.life(uid).attempt.at_once = true;
    }

    /// `ib_destroy_cm_id` has returned.
    pub fn destroy_returned(&mut self, uid: Uid) {
        self.life(uid).returned = true;
    }

    /// The consumer of an identifier is no more, and nobody is left to be told.
    pub fn forget(&mut self, uid: Uid) {
        self.lives.remove(&uid);
    }

    /// Whether TIMEWAIT_EXIT should have come and has not.
    pub fn owes_exit(&self, uid: Uid) -> bool {
        self.lives.get(&uid).is_some_and(|life| {
            life.attempt.owed && !life.attempt.exited && !life.device_gone && !life.destroyed
        })
    }

    /// What is known of an identifier and can still matter, for whoever compares states.
    pub fn known(&self, uid: Uid) -> impl core::hash::Hash {
        self.lives.get(&uid).map(|life| match life.destroyed {
            true => Life {
                destroyed: true,
                ..Life::default()
            },
            false => Life {
                events: life.events.min(1),
                ..*life
            },
        })
    }

    /// Whether all identifiers of which something is known are such.
    pub fn all(&self, are: impl Fn(Uid) -> bool) -> bool {
        self.lives.keys().all(|uid| are(*uid))
    }

    /// Forgets all identifiers but such.
    pub fn retain(&mut self, are: impl Fn(Uid) -> bool) {
        self.lives.retain(|uid, _| are(*uid));
    }

    /// An event is delivered.
    pub fn event(&mut self, uid: Uid, event: &Event, fx: &mut Fx) {
        let kind = Kind::of(event);
        let timewait = self.timewait;
        let life = self.life(uid);
        if let Some((rule, what)) = life.take(kind, cause(event), fx.now, timewait) {
            fx.broken(rule, format!("id {uid} gets {kind:?}: {what}"));
        }
    }
}

impl Life {
    /// Whether the connection is remembered for sure, so that no duplicate of its REQ is news.
    fn remembers(&self, now: Time, timewait: Time) -> bool {
        let attempt = &self.attempt;
        let began = match (attempt.began, self.destroyed) {
            (Some(began), true) => began.min(self.destroyed_at),
            (Some(began), false) => began,
            (None, true) => self.destroyed_at,
            // It has not ended.
            (None, false) => now,
        };
        let ended = attempt.at_once || attempt.exited || self.device_gone;
        attempt.rep_sent && !ended && now < began + timewait
    }

    /// Takes an event; returns the rule that it breaks, and how.
    fn take(
        &mut self,
        kind: Kind,
        cause: Time,
        now: Time,
        timewait: Time,
    ) -> Option<(Rule, &'static str)> {
        use Rule::*;

        self.events += 1;
        if self.destroyed || self.returned {
            return Some((NoEventAfterDestroy, "it has been destroyed"));
        }
        let first = self.events == 1 && !self.attempt.req_sent;
        let attempt = &mut self.attempt;
        if attempt.exited {
            return Some((OneTimewaitExit, "TIMEWAIT_EXIT was the last event"));
        }
        if attempt.ended && kind.is_terminal() {
            return Some((OneTerminalEvent, "it has ended before"));
        }
        if attempt.ended && kind != Kind::Exit {
            return Some((OnlyExitAfterEnd, "it has ended before"));
        }
        let connected = attempt.rep_sent || attempt.rep_received;
        match kind {
            Kind::Req | Kind::SidrReq if !first => {
                return Some((EventsInTurn, "it is not the first event"))
            }
            Kind::Rep => {
                if !attempt.req_sent || attempt.rep_received {
                    return Some((EventsInTurn, "no REP was expected"));
                }
                attempt.rep_received = true;
            }
            Kind::Established => {
                if !attempt.rep_sent || attempt.established || attempt.dreq_received {
                    return Some((EventsInTurn, "no RTU was expected"));
                }
                attempt.established = true;
            }
            Kind::Mra if !attempt.req_sent && !attempt.rep_sent => {
                return Some((EventsInTurn, "nothing was sent that could be delayed"));
            }
            Kind::Rej(why) => {
                attempt.ended = true;
                // Where nothing was sent that a REP or RTU could have answered, there is none.
                let stale = why == RejReason::STALE_CONN && (attempt.req_sent || attempt.rep_sent);
                attempt.owed = attempt.rep_received || attempt.established || stale;
                attempt.at_once = !attempt.owed;
                attempt.began.get_or_insert(cause);
            }
            Kind::ReqError => {
                if !attempt.req_sent || attempt.rep_received {
                    return Some((EventsInTurn, "no REQ was on its way"));
                }
                attempt.ended = true;
            }
            Kind::RepError => {
                if !attempt.rep_sent || attempt.established {
                    return Some((EventsInTurn, "no REP was on its way"));
                }
                attempt.ended = true;
                attempt.owed = true;
                attempt.began.get_or_insert(cause);
            }
            Kind::Dreq => {
                if !connected || attempt.dreq_received {
                    return Some((EventsInTurn, "no DREQ was expected"));
                }
                attempt.dreq_received = true;
                attempt.began.get_or_insert(cause);
            }
            Kind::Drep | Kind::DreqError => {
                if !connected {
                    return Some((EventsInTurn, "there was no connection"));
                }
                attempt.ended = true;
                attempt.owed = true;
                attempt.began.get_or_insert(cause);
            }
            Kind::Exit => {
                attempt.exited = true;
                match attempt.began {
                    None => return Some((EventsInTurn, "nothing ended before")),
                    Some(began) if now < began + timewait && !self.device_gone => {
                        return Some((TimewaitLasts, "it has just begun"));
                    }
                    Some(_) => {}
                }
            }
            _ => {}
        }
        None
    }
}
