// SPDX-License-Identifier: GPL-2.0
//! Somebody who watches a connection and knows only what goes in and comes out.

use ib_cm_proto::connection::Connection;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Call;
use ib_cm_proto::step::Flight;
use ib_cm_proto::step::Indices;
use ib_cm_proto::step::Input;
use ib_cm_proto::step::Report;
use ib_cm_proto::step::Step;
use ib_cm_proto::step::Timer;

/// Who looks on: keeps books of his own and compares.
pub struct Witness {
    /// The connection that is watched.
    pub conn: Connection,
    /// The timer, as the steps set it.
    pub timer: Option<Timer>,
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
    /// Begins to look on.
    pub fn new(conn: Connection) -> Self {
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
    pub fn see(&mut self, input: Input) -> Step {
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
    pub fn rest(mut self) {
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
