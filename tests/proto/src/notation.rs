// SPDX-License-Identifier: GPL-2.0
//! A short notation for states and steps.

use ib_cm_proto::connection::Connection;
use ib_cm_proto::state::LapState;
use ib_cm_proto::state::State;
use ib_cm_proto::step::DuplicateReq;
use ib_cm_proto::step::Indices;
use ib_cm_proto::step::Refusal;
use ib_cm_proto::step::RepMatch;
use ib_cm_proto::step::Step;
use ib_cm_proto::step::Timer;
use ib_cm_proto::time;
use ib_cm_proto::wire::Msg;

use crate::inputs::Event;

/// What becomes of a connection, and what is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The state after it, `.` where nothing has changed.
    pub next: String,
    /// What is done, `-` for nothing.
    pub actions: String,
}

impl Cell {
    /// Puts `event` to a copy of `conn`.
    pub fn of(conn: &Connection, event: Event) -> Cell {
        let mut after = *conn;
        let actions = match event {
            Event::Input(input) => actions(&after.step(input), &after),
            Event::Req { same_qpn } => {
                match conn.duplicate_req(Event::qpn_of_req(conn, same_qpn)) {
                    DuplicateReq::Drop => "drop",
                    DuplicateReq::Mra => "MRA(REQ)",
                    DuplicateReq::RejStale => "REJ(10)",
                    DuplicateReq::RejIdInUse => "REJ(30)",
                }
                .to_owned()
            }
            Event::Rep { same_id } => match conn.match_rep(Event::id_of_rep(conn, same_id)) {
                RepMatch::Answer => "take it",
                RepMatch::RtuAgain => "RTU",
                RepMatch::MraAgain => "MRA(REP)",
                RepMatch::Drop => "drop",
                RepMatch::RejInvalidId => "REJ(6)",
            }
            .to_owned(),
        };
        let next = if after == *conn {
            ".".to_owned()
        } else {
            state(&after)
        };
        Cell { next, actions }
    }
}

/// The state of a connection and what else matters in it.
pub fn state(conn: &Connection) -> String {
    let mut name = format!("{:?}", conn.state);
    if conn.state == State::Established && conn.lap != LapState::Uninit {
        name += &format!("/{:?}", conn.lap);
    }
    if conn.is_ending() {
        name += "+ending";
    }
    if conn.is_orphan() {
        let unseen = matches!(conn.state, State::ReqRcvd | State::SidrReqRcvd);
        name += if unseen { "+unseen" } else { "+orphan" };
    } else if conn.is_reported()
        && matches!(conn.state, State::DreqSent | State::Timewait | State::Idle)
    {
        name += "+told";
    }
    name
}

fn message(message: Msg) -> &'static str {
    match message {
        Msg::Req => "REQ",
        Msg::Rep => "REP",
        Msg::Other => "other",
    }
}

/// What a step does, in the order in which it is done.
fn actions(step: &Step, after: &Connection) -> String {
    let mut words = Vec::new();
    match step.refused {
        Some(Refusal::InvalidState) => words.push("EINVAL".to_owned()),
        Some(Refusal::AlreadyConnected) => words.push("EISCONN".to_owned()),
        None => {}
    }
    for (word, said) in [
        ("unexpected", step.unexpected),
        ("duplicate", step.duplicate),
        ("cancel", step.cancel),
    ] {
        if said {
            words.push(word.to_owned());
        }
    }
    if let Some(rej) = step.rej {
        let from = if rej.name_us { "" } else { ",from 0" };
        words.push(format!(
            "REJ({},{}{from})",
            rej.reason.0,
            message(rej.message)
        ));
    }
    for (word, said) in [("DREQ", step.dreq), ("DREP", step.drep)] {
        if said {
            words.push(word.to_owned());
        }
    }
    if let Some(delayed) = step.mra {
        words.push(format!("MRA({})", message(delayed)));
    }
    match (step.indices, step.timer) {
        // What begins TimeWait.
        (Indices::DropRemoteQpn, Some(Timer::Timewait(_))) => words.push("timewait".to_owned()),
        (indices, timer) => {
            words.extend(index_word(indices).map(str::to_owned));
            words.extend(timer.map(|timer| timer_word(timer).to_owned()));
        }
    }
    check_times(step.timer, after);
    if let Some(report) = step.report {
        words.push(format!("tell:{report:?}"));
    }
    if words.is_empty() {
        words.push("-".to_owned());
    }
    words.join(" ")
}

fn index_word(indices: Indices) -> Option<&'static str> {
    match indices {
        Indices::Keep => None,
        Indices::DropRemoteQpn => Some("drop:QPN"),
        Indices::DropAll => Some("drop:all"),
    }
}

fn timer_word(timer: Timer) -> &'static str {
    match timer {
        Timer::Dreq(_) => "timer",
        Timer::Timewait(_) => "timer:TimeWait",
        Timer::Stop => "timer:stop",
    }
}

/// Timers are always set for the same times of the connection.
fn check_times(timer: Option<Timer>, conn: &Connection) {
    match timer {
        Some(Timer::Dreq(ms)) => assert_eq!(ms, conn.timeout_ms.min(60_000)),
        Some(Timer::Timewait(ms)) => assert_eq!(ms, time::ms_from_iba(conn.ack_timeout)),
        Some(Timer::Stop) | None => {}
    }
}
