// SPDX-License-Identifier: GPL-2.0
//! What a step shows to have happened.

use crate::fx::Fx;
use crate::fx::Uid;
use crate::say;
use crate::seen::Mark;
use ib_cm_proto::connection::Connection;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Input;
use ib_cm_proto::step::Step;
use ib_cm_proto::wire::RejReason;

/// Transaction ID of what begins at an identifier.
pub fn tid_of(conn: &Connection) -> u64 {
    (1 << 32) | u64::from(conn.local_id)
}

/// Notes what a step shows to have happened.
pub fn note(uid: Uid, was: &Connection, input: Input, step: &Step, is: &Connection, fx: &mut Fx) {
    use State::*;

    if step.refused.is_none() {
        fx.seen.transition(was.state, is.state);
    }
    say!(
        fx,
        "id {uid} {:?} {input:?} -> {:?}, {step:?}",
        was.state,
        is.state
    );
    let mark = match (input, was.state) {
        (Input::Stale, ReqRcvd) => Mark::StaleReqRcvd,
        (Input::Stale, MraReqSent) => Mark::StaleMraReqSent,
        (Input::Stale, RepSent) => Mark::StaleRepSent,
        (Input::Stale, MraRepRcvd) => Mark::StaleMraRepRcvd,
        (Input::Stale, RepRcvd) => Mark::StaleRepRcvd,
        (Input::Stale, MraRepSent) => Mark::StaleMraRepSent,
        (Input::Stale, Established) => Mark::StaleEstablished,
        (Input::Stale, DreqSent) => Mark::StaleDreqSent,
        (Input::Stale, DreqRcvd) => Mark::StaleDreqRcvd,
        (Input::Abandoned, ReqSent | MraReqRcvd) => Mark::AbandonedReqSent,
        (Input::Abandoned, Established) => Mark::AbandonedEstablished,
        (Input::Abandoned, RepSent | MraRepRcvd | RepRcvd | MraRepSent) => Mark::AbandonedHalfOpen,
        (Input::Dreq { .. }, Timewait) if step.drep => Mark::DrepAgain,
        (Input::Dreq { .. }, DreqSent) if !step.unexpected => Mark::DreqCrossed,
        (Input::Timer, DreqSent) if is.state == Timewait => Mark::DreqGivenUp,
        (Input::Timer, DreqSent) if step.dreq && is.is_orphan() => Mark::DreqRepeatedAfterDestroy,
        (Input::Timer, Timewait) if is.is_orphan() => Mark::TimewaitOrphan,
        (Input::Timer, Timewait) => Mark::TimewaitExit,
        (Input::DreqNotSent, Established) => Mark::DreqNotSent,
        (Input::Rej(RejReason::TIMEOUT), ReqRcvd | MraReqSent | RepSent | MraRepRcvd) => Mark::Rej4,
        _ => return,
    };
    fx.seen.mark(mark);
}
