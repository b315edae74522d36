// SPDX-License-Identifier: GPL-2.0
//! Random lives of connections, watched by somebody who knows only what goes in and comes out.

use ib_cm_proto::connection::Connection;
use ib_cm_proto::connection::QpType;
use ib_cm_proto::state::LapState;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Call;
use ib_cm_proto::step::Flight;
use ib_cm_proto::step::Indices;
use ib_cm_proto::step::Input;
use ib_cm_proto::step::Report;
use ib_cm_proto::step::Step;
use ib_cm_proto::step::Timer;
use ib_cm_proto::wire::Msg;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto_tests::connections::fresh;
use ib_cm_proto_tests::connections::unseen;
use ib_cm_proto_tests::connections::unseen_question;
use ib_cm_proto_tests::connections::xrc_target;
use ib_cm_proto_tests::inputs::inputs;
use proptest::prelude::*;
use proptest::sample::Index;

/// As many cases as `PROPTEST_CASES` says, else what takes a second.
fn config() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(20_000),
    }
}

/// Who looks on: keeps books of his own and compares.
struct Witness {
    conn: Connection,
    /// The timer, as the steps set it.
    timer: Option<Timer>,
    /// TimeWaits begun while somebody could be told of their end, and not told so far.
    exits_due: u32,
    /// The consumer has heard an error or a REJ.
    last_word: bool,
    /// Reports other than messages since the identifier was last taken into use.
    notes: u32,
    /// DREQs sent by the timer since the module took over.
    repeated: u32,
}

impl Witness {
    fn new(conn: Connection) -> Self {
        Witness {
            conn,
            timer: None,
            exits_due: 0,
            last_word: false,
            notes: 0,
            repeated: 0,
        }
    }

    /// Puts an input and checks what comes of it.
    fn see(&mut self, input: Input) -> Step {
        let before = self.conn;
        let step = self.conn.step(input);
        let what = format!("{before:?} {input:?} {step:?}");

        self.check_messages(&step, &what);
        if input == Input::Timer {
            self.timer = None;
        }
        match step.timer {
            Some(Timer::Stop) => self.timer = None,
            Some(timer) => self.timer = Some(timer),
            None => {}
        }
        if matches!(input, Input::Destroy { .. }) {
            self.exits_due = 0;
        }
        self.check_reports(&before, input, &step, &what);
        self.check_timers(&before, input, &step, &what);
        self.check_indices(&before, &step, &what);
        step
    }

    fn check_messages(&self, step: &Step, what: &str) {
        let sent = [step.rej.is_some(), step.dreq, step.drep, step.mra.is_some()];
        assert!(sent.iter().filter(|sent| **sent).count() <= 2, "{what}");
    }

    fn check_reports(&mut self, before: &Connection, input: Input, step: &Step, what: &str) {
        let begins = matches!(input, Input::Call(Call::SendReq | Call::SendSidrReq));
        if begins && step.refused.is_none() {
            self.last_word = false;
            self.notes = 0;
            assert_eq!(self.exits_due, 0, "{what}");
        }
        let entered = before.state != State::Timewait && self.conn.state == State::Timewait;
        if entered && !self.conn.is_orphan() {
            self.exits_due += 1;
        }
        let Some(report) = step.report else { return };
        assert!(!before.is_orphan() && !self.conn.is_orphan(), "{what}");
        if report == Report::TimewaitExit {
            assert_eq!(
                (before.state, self.conn.state),
                (State::Timewait, State::Idle),
                "{what}"
            );
            self.exits_due = self.exits_due.checked_sub(1).expect(what);
        } else {
            assert!(!self.last_word, "{what}");
        }
        let rejected = matches!(input, Input::Rej(_)) && report == Report::Message;
        self.last_word |= rejected
            || matches!(
                report,
                Report::ReqError | Report::RepError | Report::SidrReqError | Report::Stale
            );
        self.notes += u32::from(report != Report::Message);
        // As many as the queue of events has room for.
        assert!(self.notes <= 3, "{what}");
    }

    fn check_timers(&mut self, before: &Connection, input: Input, step: &Step, what: &str) {
        let conn = &self.conn;
        match conn.state {
            // The caller goes on with DeviceGone until nothing waits.
            State::Timewait if input == Input::DeviceGone => {}
            State::Timewait => {
                assert!(matches!(self.timer, Some(Timer::Timewait(_))), "{what}");
            }
            State::DreqSent if conn.is_ending() => {
                let interval_ms = conn.timeout_ms.min(60_000);
                assert_eq!(self.timer, Some(Timer::Dreq(interval_ms)), "{what}");
            }
            _ => assert_eq!(self.timer, None, "{what}"),
        }
        assert!(!conn.is_ending() || conn.state == State::DreqSent, "{what}");
        if conn.is_ending() && !before.is_ending() {
            self.repeated = 0;
        }
        if input == Input::Timer && step.dreq {
            self.repeated += 1;
            // One that was taken over from the MAD layer may not have been sent at all before.
            let most = u32::from(conn.max_cm_retries).saturating_add(1);
            assert!(self.repeated <= most, "{what}");
        }
    }

    fn check_indices(&self, before: &Connection, step: &Step, what: &str) {
        let (from, to) = (before.state, self.conn.state);
        if from != State::Timewait && to == State::Timewait {
            assert_eq!(step.indices, Indices::DropRemoteQpn, "{what}");
        }
        if step.indices == Indices::DropAll {
            assert_eq!(to, State::Idle, "{what}");
        }
        // Who has been in an index leaves it on the way to idle.
        let plain = matches!(from, State::Idle | State::SidrReqSent);
        if to == State::Idle && !plain {
            assert_eq!(step.indices, Indices::DropAll, "{what}");
        }
    }

    /// Lets all timers run out: then nothing may wait, and nobody may miss an event.
    fn rest(mut self) {
        // The MAD layer gives up in the end, too.
        if self.conn.state == State::DreqSent && !self.conn.is_ending() {
            self.see(Input::SendError(Flight::Dreq));
        }
        let mut rounds = 0;
        while self.timer.is_some() {
            self.see(Input::Timer);
            rounds += 1;
            assert!(
                rounds <= u32::from(self.conn.max_cm_retries) + 3,
                "{:?}",
                self.conn
            );
        }
        assert!(!self.conn.lingers(), "{:?}", self.conn);
        assert_eq!(self.exits_due, 0, "{:?}", self.conn);
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
