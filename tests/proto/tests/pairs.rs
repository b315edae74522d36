// SPDX-License-Identifier: GPL-2.0
//! Two ends of a connection and the messages between them, some of which get lost: how an end is
//! noticed, how long it takes, and what each consumer hears.

use std::collections::BTreeSet;

use ib_cm_proto::connection::Connection;
use ib_cm_proto::state::LapState;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Call;
use ib_cm_proto::step::DuplicateReq;
use ib_cm_proto::step::Flight;
use ib_cm_proto::step::Input;
use ib_cm_proto::step::Report;
use ib_cm_proto::step::Step;
use ib_cm_proto::step::Timer;
use ib_cm_proto::time;
use ib_cm_proto::wire::Msg;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto_tests::connections::active;
use ib_cm_proto_tests::connections::chapters;
use ib_cm_proto_tests::connections::established;
use ib_cm_proto_tests::connections::passive;
use ib_cm_proto_tests::connections::unseen;
use ib_cm_proto_tests::connections::ACK_TIMEOUT;
use ib_cm_proto_tests::connections::LOCAL_QPN;
use ib_cm_proto_tests::connections::OTHER_QPN;
use ib_cm_proto_tests::connections::REMOTE_QPN;
use ib_cm_proto_tests::connections::RETRIES;
use ib_cm_proto_tests::connections::TIMEOUT_MS;

const DESTROY: Input = Input::Destroy { silent: false };
const DREQ: Input = Input::Dreq { qpn: LOCAL_QPN };

/// One end, its timer and what its consumer has heard.
struct End {
    conn: Connection,
    timer: Option<(u32, Timer)>,
    heard: Vec<Report>,
}

impl End {
    fn new(conn: Connection) -> Self {
        End {
            conn,
            timer: None,
            heard: Vec::new(),
        }
    }

    fn take(&mut self, now_ms: u32, input: Input) -> Step {
        let step = self.conn.step(input);
        match step.timer {
            Some(timer @ (Timer::Dreq(ms) | Timer::Timewait(ms))) => {
                self.timer = Some((now_ms + ms, timer));
            }
            Some(Timer::Stop) => self.timer = None,
            None => {}
        }
        self.heard.extend(step.report);
        step
    }

    /// The timer, if it runs out at `now_ms`.
    fn expire(&mut self, now_ms: u32) -> Step {
        match self.timer {
            Some((at_ms, _)) if at_ms == now_ms => {
                self.timer = None;
                self.take(now_ms, Input::Timer)
            }
            _ => Step::NONE,
        }
    }
}

/// How a disconnect went: both ends when nothing waits any more, and when each began TimeWait.
struct Outcome {
    a: End,
    b: End,
    a_ended_ms: Option<u32>,
    b_ended_ms: Option<u32>,
}

/// Destroys the end `a` of an established connection; the network loses the first DREQs and DREPs.
/// `b` stays in TimeWait for good if that is wanted.
fn disconnect(lost_dreqs: u32, lost_dreps: u32, b_lingers: bool) -> Outcome {
    let mut out = Outcome {
        a: End::new(established(&[])),
        b: End::new(established(&[])),
        a_ended_ms: None,
        b_ended_ms: None,
    };
    let (mut dreqs, mut dreps) = (0, 0);
    for now_ms in 0..10 * TIMEOUT_MS {
        let Outcome {
            a,
            b,
            a_ended_ms,
            b_ended_ms,
        } = &mut out;
        if !b_lingers {
            b.expire(now_ms);
        }
        let said = if now_ms == 0 {
            a.take(now_ms, DESTROY)
        } else {
            a.expire(now_ms)
        };
        dreqs += u32::from(said.dreq);
        if said.dreq && dreqs > lost_dreqs {
            let mut answer = b.take(now_ms, DREQ);
            if b.conn.state == State::DreqRcvd {
                answer = b.take(now_ms, Input::Call(Call::SendDrep));
            }
            dreps += u32::from(answer.drep);
            if answer.drep && dreps > lost_dreps {
                a.take(now_ms, Input::Drep);
            }
        }
        if a.conn.state == State::Timewait {
            a_ended_ms.get_or_insert(now_ms);
        }
        if b.conn.state == State::Timewait {
            b_ended_ms.get_or_insert(now_ms);
        }
    }
    out
}

/// When a sender of DREQs gives up.
const LAST_TIMEOUT_MS: u32 = (RETRIES as u32 + 1) * TIMEOUT_MS;

#[test]
fn a_disconnect_survives_the_loss_of_all_dreqs_but_one() {
    for lost in 0..=u32::from(RETRIES) {
        let out = disconnect(lost, 0, false);
        let ended_ms = Some(lost * TIMEOUT_MS);
        assert_eq!((out.a_ended_ms, out.b_ended_ms), (ended_ms, ended_ms));
        assert_eq!(
            (out.a.conn.state, out.b.conn.state),
            (State::Idle, State::Idle)
        );
        assert_eq!(out.a.heard, []);
        assert_eq!(out.b.heard, [Report::Message, Report::TimewaitExit]);
    }
}

#[test]
fn when_all_dreqs_are_lost_the_sender_ends_after_its_last_timeout() {
    let out = disconnect(u32::MAX, 0, false);
    assert_eq!(
        (out.a_ended_ms, out.b_ended_ms),
        (Some(LAST_TIMEOUT_MS), None)
    );
    assert_eq!(
        (out.a.conn.state, out.b.conn.state),
        (State::Idle, State::Established)
    );
}

#[test]
fn a_repeated_dreq_is_answered_as_long_as_timewait_lasts() {
    for lost in 0..=u32::from(RETRIES) {
        let out = disconnect(0, lost, true);
        assert_eq!(
            (out.a_ended_ms, out.b_ended_ms),
            (Some(lost * TIMEOUT_MS), Some(0))
        );
        assert_eq!(out.a.conn.state, State::Idle);
        assert_eq!(out.b.heard, [Report::Message]);
    }
    assert_eq!(
        disconnect(0, u32::MAX, true).a_ended_ms,
        Some(LAST_TIMEOUT_MS)
    );
}

/// The peer says how long answers may take. It does not say for how long a destroyed connection
/// keeps memory here: a minute between two DREQs has to do.
#[test]
fn a_peer_cannot_stretch_the_repetition_of_dreqs() {
    let minute = Some(Timer::Dreq(60_000));
    for ways in [
        &[DESTROY, Input::Timer][..],
        &[Input::Stale, Input::Timer],
        &[Input::Call(Call::SendDreq), DESTROY, Input::Timer],
    ] {
        let mut conn = established(&[]);
        conn.timeout_ms = time::ms_from_iba(time::MAX);
        for input in ways {
            let step = conn.step(*input);
            let expected = if conn.is_ending() { minute } else { None };
            assert_eq!(step.timer, expected, "{ways:?} {input:?}");
        }
        assert!(conn.is_ending());
    }
}

/// Both ends say DREQ at once: each takes the other's for the end, and whoever still has a
/// consumer asks it.
#[test]
fn crossing_dreqs_end_both_ends() {
    for (destroyed, ending) in [(false, false), (true, false), (false, true)] {
        let mut end = End::new(match (destroyed, ending) {
            (true, _) => established(&[DESTROY]),
            (_, true) => established(&[Input::Stale]),
            _ => established(&[Input::Call(Call::SendDreq)]),
        });
        let step = end.take(0, DREQ);
        if destroyed || ending {
            assert!(step.drep && end.conn.state == State::Timewait);
        } else {
            assert_eq!(end.conn.state, State::DreqRcvd);
            assert!(end.take(0, Input::Call(Call::SendDrep)).drep);
        }
        // The answer to our own DREQ comes when nobody waits for it any more.
        assert!(end.take(0, Input::Drep).unexpected);
        end.expire(time::ms_from_iba(ACK_TIMEOUT));
        assert_eq!(end.conn.state, State::Idle);
        let heard: &[Report] = if destroyed {
            &[]
        } else {
            &[Report::Message, Report::TimewaitExit]
        };
        assert_eq!(end.heard, heard);
    }
}

#[test]
fn a_dreq_for_another_queue_pair_does_nothing_in_any_state() {
    for specimen in chapters().into_iter().flat_map(|chapter| chapter.specimens) {
        let mut conn = specimen.conn;
        let step = conn.step(Input::Dreq { qpn: OTHER_QPN });
        assert_eq!(
            (step, conn),
            (
                Step {
                    unexpected: true,
                    ..Step::NONE
                },
                specimen.conn
            )
        );
    }
}

/// An MRA is taken once, for the message that is in flight, and changes no later timeout.
#[test]
fn an_mra_leaves_the_timeouts_of_later_messages_alone() {
    let mut taken = BTreeSet::new();
    for specimen in chapters().into_iter().flat_map(|chapter| chapter.specimens) {
        for message in [Msg::Req, Msg::Rep, Msg::Other] {
            let mut conn = specimen.conn;
            let step = conn.step(Input::Mra(message));
            if !step.unexpected {
                taken.insert((specimen.name, message.raw()));
            }
            assert_eq!(conn.timeout_ms, TIMEOUT_MS);
            assert!(
                conn.step(Input::Mra(message)).unexpected,
                "{} twice",
                specimen.name
            );
        }
    }
    assert_eq!(
        taken,
        BTreeSet::from([("ReqSent", Msg::Req.raw()), ("RepSent", Msg::Rep.raw())])
    );

    // The delayed REP has its RTU; the DREQ at the end is repeated as fast as ever.
    let delayed = passive(&[Input::Call(Call::SendRep), Input::Mra(Msg::Rep), Input::Rtu]);
    let mut end = End::new(delayed);
    end.take(0, DESTROY);
    assert_eq!(end.timer, Some((TIMEOUT_MS, Timer::Dreq(TIMEOUT_MS))));
}

/// The active side has given up: REJ 4 ends a half-open passive identifier at once.
#[test]
fn a_rej_timeout_frees_a_half_open_passive_identifier() {
    let rep = Input::Call(Call::SendRep);
    for (inputs, in_flight) in [
        (&[][..], false),
        (&[Input::Call(Call::PrepareMra)], false),
        (&[rep], true),
        (&[rep, Input::Mra(Msg::Rep)], true),
    ] {
        let mut conn = passive(inputs);
        let step = conn.step(Input::Rej(RejReason::TIMEOUT));
        assert_eq!(conn.state, State::Idle);
        assert_eq!(
            (step.cancel, step.report),
            (in_flight, Some(Report::Message))
        );
    }
    let mut conn = unseen();
    assert_eq!(conn.step(Input::Rej(RejReason::TIMEOUT)).report, None);
    assert!(!conn.show());
}

/// All ways into TimeWait from connections that have a consumer: the terminal event comes first,
/// then the end of TimeWait, once, and nothing behind it.
#[test]
fn every_timewait_ends_with_one_event() {
    use ib_cm_proto_tests::inputs::inputs;

    let mut ways = 0;
    for specimen in chapters().into_iter().flat_map(|chapter| chapter.specimens) {
        for input in inputs() {
            let mut end = End::new(specimen.conn);
            end.take(0, input);
            let entered = specimen.conn.state != State::Timewait
                && end.conn.state == State::Timewait
                && !end.conn.is_orphan();
            if !entered || input == Input::DeviceGone {
                continue;
            }
            ways += 1;
            let before = end.heard.len();
            assert!(before <= 1 && !end.heard.contains(&Report::TimewaitExit));
            for late in inputs().filter(|late| !matches!(late, Input::Destroy { .. })) {
                if late != Input::Timer && late != Input::DeviceGone {
                    end.take(1, late);
                }
            }
            let (at_ms, _) = end.timer.expect("the timer of TimeWait is set");
            end.expire(at_ms);
            assert_eq!(
                end.heard[before..],
                [Report::TimewaitExit],
                "{}",
                specimen.name
            );
            assert_eq!((end.conn.state, end.timer), (State::Idle, None));
        }
    }
    assert!(ways > 25, "{ways}");
}

/// TimeWait is over, the consumer destroys the identifier, and late repetitions of REQ and DREQ
/// come in, all in the same tick and in any order.
#[test]
fn the_end_of_timewait_destruction_and_late_messages_in_any_order() {
    fn permutations(left: &[usize], taken: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
        if left.is_empty() {
            all.push(taken.clone());
        }
        for (place, item) in left.iter().enumerate() {
            let mut rest = left.to_vec();
            rest.remove(place);
            taken.push(*item);
            permutations(&rest, taken, all);
            taken.pop();
        }
    }

    let mut orders = Vec::new();
    permutations(&[0, 1, 2, 3], &mut Vec::new(), &mut orders);
    for order in orders {
        let mut end = End::new(established(&[]));
        end.take(0, DREQ);
        end.take(0, Input::Call(Call::SendDrep));
        let (at_ms, _) = end.timer.expect("the timer of TimeWait is set");
        end.heard.clear();
        let (mut expired, mut destroyed) = (false, false);
        for act in &order {
            match act {
                0 => {
                    end.expire(at_ms);
                    expired = true;
                }
                1 => {
                    end.take(at_ms, DESTROY);
                    destroyed = true;
                }
                2 => {
                    let verdict = end.conn.duplicate_req(REMOTE_QPN);
                    let late = if expired {
                        DuplicateReq::Drop
                    } else {
                        DuplicateReq::RejStale
                    };
                    assert_eq!(verdict, late, "{order:?}");
                }
                _ => assert!(end.take(at_ms, DREQ).drep, "{order:?}"),
            }
            let told = end.heard == [Report::TimewaitExit];
            assert!(told || end.heard.is_empty());
            assert!(
                !destroyed
                    || told
                        == (order.iter().position(|act| *act == 0)
                            < order.iter().position(|act| *act == 1)),
                "{order:?}"
            );
        }
        assert_eq!((end.conn.state, end.timer), (State::Idle, None));
    }
}

/// A REP that nobody confirms: the queue pair may have received data, so TimeWait follows.
#[test]
fn a_rep_that_times_out_ends_in_timewait_and_a_req_does_not() {
    let mut rep = End::new(passive(&[Input::Call(Call::SendRep)]));
    rep.take(0, Input::SendError(Flight::Rep));
    rep.expire(time::ms_from_iba(ACK_TIMEOUT));
    assert_eq!(rep.heard, [Report::RepError, Report::TimewaitExit]);
    let mut req = End::new(active(&[Input::Call(Call::SendReq)]));
    req.take(0, Input::SendError(Flight::Req));
    assert_eq!(
        (req.heard, req.timer, req.conn.state),
        (vec![Report::ReqError], None, State::Idle)
    );
}

/// A send that fails moves the connection only from the states in which it is in flight.
#[test]
fn a_failed_send_matters_only_where_it_is_in_flight() {
    for specimen in chapters().into_iter().flat_map(|chapter| chapter.specimens) {
        for flight in [Flight::Req, Flight::Rep, Flight::Dreq, Flight::SidrReq] {
            let mut conn = specimen.conn;
            let step = conn.step(Input::SendError(flight));
            let expected: &[&str] = match flight {
                Flight::Req => &["ReqSent", "MraReqRcvd"],
                Flight::Rep => &["RepSent", "MraRepRcvd"],
                Flight::Dreq => &["DreqSent"],
                Flight::SidrReq => &["SidrReqSent"],
            };
            assert_eq!(
                step != Step::NONE,
                expected.contains(&specimen.name),
                "{}",
                specimen.name
            );
            assert_eq!(conn != specimen.conn, step != Step::NONE);
        }
    }
}

/// A REP is found by an identifier that knows no peer yet.
#[test]
fn an_identifier_that_is_used_again_has_forgotten_its_peer() {
    let mut conn = established(&[Input::Lap, Input::Stale, Input::Drep, Input::Timer]);
    assert_eq!((conn.state, conn.remote_qpn), (State::Idle, REMOTE_QPN));
    assert_eq!(conn.step(Input::Call(Call::SendReq)), Step::NONE);
    assert_eq!(
        (conn.remote_id, conn.remote_ca_guid, conn.remote_qpn),
        (0, 0, 0)
    );
    assert_eq!(conn.lap, LapState::Uninit);
    assert!(!conn.is_reported());
}

/// The survivor of a peer that crashed and comes back, in all its states: the newcomer is turned
/// away once, the old connection ends, its consumer knows, and the remote queue pair is free.
#[test]
fn a_peer_that_comes_back_finds_its_queue_pair_free_one_round_trip_later() {
    for specimen in chapters().into_iter().flat_map(|chapter| chapter.specimens) {
        let known_peer = specimen.conn.remote_qpn == REMOTE_QPN;
        let in_index = !matches!(specimen.conn.state, State::Idle | State::Timewait);
        if !known_peer || !in_index || specimen.conn.is_orphan() {
            continue;
        }
        let mut end = End::new(specimen.conn);
        let step = end.take(0, Input::Stale);
        if step.dreq {
            // A peer that knows nothing of it answers all the same.
            end.take(1, Input::Drep);
        }
        assert!(
            !matches!(end.conn.state, State::DreqSent),
            "{}",
            specimen.name
        );
        if let Some((at_ms, _)) = end.timer {
            end.expire(at_ms);
            assert_eq!(
                end.heard.last(),
                Some(&Report::TimewaitExit),
                "{}",
                specimen.name
            );
        }
        assert_eq!(end.conn.state, State::Idle, "{}", specimen.name);
        assert!(
            !end.heard.is_empty() || specimen.conn.is_reported(),
            "{}",
            specimen.name
        );
    }
}
