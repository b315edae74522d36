// SPDX-License-Identifier: GPL-2.0
//! Random lives of connections, and inputs of any kind to connections of any kind.

use ib_cm_proto::connection::Connection;
use ib_cm_proto::connection::QpType;
use ib_cm_proto::state::LapState;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Call;
use ib_cm_proto::step::Input;
use ib_cm_proto::wire::Msg;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto_tests::connections::fresh;
use ib_cm_proto_tests::connections::unseen;
use ib_cm_proto_tests::connections::unseen_question;
use ib_cm_proto_tests::connections::xrc_target;
use ib_cm_proto_tests::inputs::inputs;
use ib_cm_proto_tests::witness::Witness;
use proptest::prelude::*;
use proptest::sample::Index;

/// As many cases as `PROPTEST_CASES` says, else what takes a second.
fn config() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(20_000),
    }
}

/// One turn of a life: any input, or one that fits; or the consumer is shown the connection.
#[derive(Clone, Debug)]
enum Turn {
    Any(Index),
    Fitting(Index),
    Show,
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        2 => any::<Index>().prop_map(Turn::Any),
        6 => any::<Index>().prop_map(Turn::Fitting),
        1 => Just(Turn::Show),
    ]
}

fn beginning() -> impl Strategy<Value = Connection> {
    let begun = prop_oneof![
        Just(fresh()),
        Just(unseen()),
        Just(unseen_question()),
        Just(xrc_target())
    ];
    (begun, 0..=15u8, any::<u8>(), any::<u32>()).prop_map(|(mut conn, retries, ack, ms)| {
        conn.max_cm_retries = retries;
        conn.ack_timeout = ack;
        conn.timeout_ms = ms;
        conn
    })
}

/// The inputs that do something.
fn fitting(conn: &Connection) -> Vec<Input> {
    inputs()
        .filter(|input| {
            let mut after = *conn;
            let step = after.step(*input);
            after != *conn || step.dreq || step.drep
        })
        // Destruction ends most lives soon enough.
        .filter(|input| !matches!(input, Input::Destroy { .. }))
        .collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_life_keeps_the_rules(
        conn in beginning(),
        turns in prop::collection::vec(turn(), 0..60),
    ) {
        let all: Vec<_> = inputs().collect();
        let mut witness = Witness::new(conn);
        for turn in turns {
            match turn {
                Turn::Any(index) => {
                    witness.see(*index.get(&all));
                }
                Turn::Fitting(index) => {
                    let inputs = fitting(&witness.conn);
                    if !inputs.is_empty() {
                        witness.see(*index.get(&inputs));
                    }
                }
                Turn::Show if witness.conn.is_orphan() => {
                    witness.conn.show();
                    if witness.conn.is_orphan() && !witness.conn.lingers() {
                        // It is given back: nobody has a use for it.
                        break;
                    }
                }
                Turn::Show => {}
            }
            if witness.conn.state == State::Timewait && witness.timer.is_none() {
                witness.see(Input::DeviceGone);
            }
        }
        witness.rest();
    }
}

fn any_input() -> impl Strategy<Value = Input> {
    let reason = any::<u16>().prop_map(RejReason);
    prop_oneof![
        8 => prop::sample::select(inputs().collect::<Vec<_>>()),
        1 => any::<u32>().prop_map(|qpn| Input::Dreq { qpn }),
        1 => reason.clone().prop_map(Input::Rej),
        1 => reason.prop_map(|reason| Input::Call(Call::SendRej(reason))),
    ]
}

/// A connection with anything in its fields, reachable or not.
fn any_connection() -> impl Strategy<Value = Connection> {
    let numbers = (
        any::<[u32; 7]>(),
        any::<[u8; 9]>(),
        any::<u64>(),
        any::<u16>(),
    );
    let states = (
        prop::sample::select(&State::ALL[..]),
        prop::sample::select(&LapState::ALL[..]),
        prop::sample::select(
            &[
                QpType::Other,
                QpType::Rc,
                QpType::Uc,
                QpType::XrcIni,
                QpType::XrcTgt,
            ][..],
        ),
    );
    let past = prop::collection::vec(any_input(), 0..6);
    (numbers, states, past).prop_map(
        |((words, bytes, long, short), (state, lap, qp_type), past)| {
            let mut conn = fresh();
            for input in past {
                conn.step(input);
            }
            conn.state = state;
            conn.lap = lap;
            conn.qp_type = qp_type;
            [
                conn.local_id,
                conn.remote_id,
                conn.local_qpn,
                conn.remote_qpn,
            ] = [words[0], words[1], words[2], words[3]];
            [conn.sq_psn, conn.rq_psn, conn.timeout_ms] = [words[4], words[5], words[6]];
            (conn.remote_ca_guid, conn.tid, conn.pkey) = (long, !long, short);
            [conn.max_cm_retries, conn.path_mtu, conn.responder_resources] =
                [bytes[0], bytes[1], bytes[2]];
            [conn.initiator_depth, conn.retry_count, conn.rnr_retry_count] =
                [bytes[3], bytes[4], bytes[5]];
            [
                conn.target_ack_delay,
                conn.ack_timeout,
                conn.alt_ack_timeout,
            ] = [bytes[6], bytes[7], bytes[8]];
            conn
        },
    )
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_panics(
        conn in any_connection(),
        more in prop::collection::vec(any_input(), 0..8),
        message in prop::sample::select(&[Msg::Req, Msg::Rep, Msg::Other][..]),
        number in any::<u32>(),
    ) {
        let mut conn = conn;
        for input in inputs().chain(more) {
            conn.step(input);
            conn.duplicate_req(number);
            conn.match_rep(number);
            conn.mra_message(message);
            conn.dreq_message(u64::from(number));
        }
    }
}
