// SPDX-License-Identifier: GPL-2.0
//! All connections that any sequence of inputs leads to, and what holds in each of them.

use std::collections::BTreeSet;
use std::collections::VecDeque;

use ib_cm_proto::connection::Connection;
use ib_cm_proto::connection::QpType;
use ib_cm_proto::state::LapState;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Call;
use ib_cm_proto::step::Input;
use ib_cm_proto::step::Step;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto_tests::connections::chapters;
use ib_cm_proto_tests::connections::fresh;
use ib_cm_proto_tests::connections::unseen;
use ib_cm_proto_tests::connections::unseen_question;
use ib_cm_proto_tests::connections::xrc_target;
use ib_cm_proto_tests::inputs::inputs;
use ib_cm_proto_tests::inputs::EVENTS;
use ib_cm_proto_tests::notation::Cell;

/// A transition: before, input, what is done, after.
type Transition = (Connection, Input, Step, Connection);

/// Every connection that can be, and every transition between them.
fn explore() -> (Vec<Connection>, Vec<Transition>) {
    let mut known = Vec::new();
    let mut transitions = Vec::new();
    let mut open = VecDeque::from([fresh(), unseen(), unseen_question(), xrc_target()]);
    while let Some(conn) = open.pop_front() {
        if known.contains(&conn) {
            continue;
        }
        known.push(conn);
        let mut shown = conn;
        if conn.is_orphan() && shown.show() {
            open.push_back(shown);
        }
        for input in inputs() {
            let mut after = conn;
            let step = after.step(input);
            transitions.push((conn, input, step, after));
            open.push_back(after);
        }
    }
    (known, transitions)
}

/// What a connection does with every input, without the flags that it carries along.
fn behaviour(conn: &Connection) -> Vec<(String, String)> {
    let cells = EVENTS.iter().map(|(_, event)| Cell::of(conn, *event));
    cells
        .map(|Cell { next, actions }| {
            let state = next.split('+').next().unwrap_or_default();
            (state.to_owned(), actions)
        })
        .collect()
}

/// So nothing that matters is missing in the table: every connection behaves as one of its
/// specimens in the same state.
#[test]
fn the_table_shows_every_connection() {
    let specimens: Vec<_> = chapters()
        .into_iter()
        .flat_map(|chapter| chapter.specimens)
        .map(|specimen| (specimen.conn, behaviour(&specimen.conn)))
        .collect();
    for mut conn in explore().0 {
        if conn.lap != LapState::Uninit {
            // The table shows what is peculiar of XRC targets only where no LAP has come.
            conn.qp_type = QpType::Rc;
        }
        let mine = behaviour(&conn);
        let alike = specimens.iter().any(|(specimen, behaviour)| {
            specimen.state == conn.state
                && specimen.is_orphan() == conn.is_orphan()
                && *behaviour == mine
        });
        assert!(alike, "no specimen behaves like {conn:?}");
    }
}

#[test]
fn every_state_is_reached_and_so_is_every_state_of_the_alternate_path_that_calls_lead_to() {
    let (connections, _) = explore();
    let states: BTreeSet<_> = connections.iter().map(|conn| conn.state).collect();
    assert_eq!(states.len(), State::ALL.len());
    let laps: BTreeSet<_> = connections.iter().map(|conn| conn.lap).collect();
    let unused = [LapState::Sent, LapState::MraRcvd];
    let used = LapState::ALL.iter().filter(|lap| !unused.contains(lap));
    assert!(laps.iter().eq(used));
}

#[test]
fn what_is_refused_or_unexpected_changes_nothing() {
    for (before, input, step, after) in explore().1 {
        if step.refused.is_some() || step.unexpected {
            assert_eq!(before, after, "{input:?}");
            let silent = Step {
                refused: step.refused,
                unexpected: step.unexpected,
                duplicate: step.duplicate,
                ..Step::NONE
            };
            assert_eq!(step, silent, "{before:?} {input:?}");
        }
    }
}

#[test]
fn a_call_is_refused_exactly_where_it_is_not_permitted() {
    for (before, input, step, _) in explore().1 {
        if let Input::Call(call) = input {
            assert_eq!(
                before.permits(call).err(),
                step.refused,
                "{before:?} {call:?}"
            );
        }
    }
}

#[test]
fn a_destroyed_identifier_either_waits_for_time_or_is_idle() {
    for (before, input, _, after) in explore().1 {
        if let Input::Destroy { .. } = input {
            let idle = after.state == State::Idle;
            assert!(
                after.is_orphan() && (after.lingers() || idle),
                "{before:?} {after:?}"
            );
        }
    }
}

/// Late completions: whatever becomes of what was in flight, a destroyed identifier stays calm.
#[test]
fn no_completion_moves_a_destroyed_identifier() {
    for (_, destroy, step, after) in explore().1 {
        let Input::Destroy { .. } = destroy else {
            continue;
        };
        for input in inputs() {
            if let Input::SendError(_) = input {
                let mut later = after;
                assert_eq!(later.step(input), Step::NONE, "{after:?} {input:?}");
                assert_eq!(later, after);
            }
        }
        // A repeated DREQ has no completion of its own: the one that the MAD layer repeats goes.
        if after.is_ending() && !step.dreq && step.timer.is_some() {
            assert!(step.cancel, "{after:?}");
        }
    }
}

#[test]
fn a_device_that_goes_leaves_nothing_waiting() {
    for conn in explore().0 {
        let mut after = conn;
        let mut steps = 0;
        while after.step(Input::DeviceGone).timer.is_some() {
            steps += 1;
        }
        assert!(!after.lingers(), "{conn:?} still waits after {steps} steps");
        let most = match conn.state {
            State::DreqSent => 2,
            State::Timewait => 1,
            _ => 0,
        };
        assert_eq!(steps, most, "{conn:?}");
    }
}

/// The connections whose queue pair may have received data: a REP was sent or received.
fn may_have_carried_data(conn: &Connection) -> bool {
    use State::*;
    matches!(
        conn.state,
        RepSent | MraRepRcvd | RepRcvd | MraRepSent | Established | DreqSent | DreqRcvd
    )
}

/// What skips TimeWait though data may be under way: only what the C module lets skip it, since
/// peers and consumers rely on the end of such a connection at once.
#[test]
fn timewait_is_skipped_only_by_rejections_and_by_xrc_targets() {
    let mut skipped = BTreeSet::new();
    for (before, input, _, after) in explore().1 {
        if !may_have_carried_data(&before) || after.state != State::Idle {
            continue;
        }
        let exception = match (before.state, input) {
            // cm_rej_handler: the peer does not take our REP.
            (State::RepSent | State::MraRepRcvd, Input::Rej(reason)) => {
                assert_ne!(reason, RejReason::STALE_CONN);
                "REP rejected by the peer"
            }
            // cm_send_rej_locked: we do not take the peer's REP.
            (State::RepRcvd | State::MraRepSent, Input::Call(Call::SendRej(_))) => "REP rejected",
            (State::RepRcvd | State::MraRepSent, Input::Destroy { .. }) => "REP rejected",
            // cm_destroy_id: the target's queue pair serves other connections too.
            (State::Established, Input::Destroy { .. }) if before.qp_type == QpType::XrcTgt => {
                "XRC target"
            }
            _ => panic!("{input:?} takes {before:?} past TimeWait"),
        };
        skipped.insert(exception);
    }
    assert_eq!(skipped.len(), 3, "an exception is no more: {skipped:?}");
}
