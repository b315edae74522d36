// SPDX-License-Identifier: GPL-2.0
//! What received messages do to a connection.

use super::connection::Connection;
use super::state::LapState;
use super::state::State;
use super::step::Report;
use super::step::Step;
use super::step::Timer;
use super::wire::Msg;
use super::wire::RejReason;

impl Connection {
    pub(crate) fn rep(&mut self) -> Step {
        if !matches!(self.state, State::ReqSent | State::MraReqRcvd) {
            return Step::unexpected();
        }
        let mut step = Step {
            cancel: true,
            ..Step::NONE
        };
        self.state = State::RepRcvd;
        self.report(Report::Message, &mut step);
        step
    }

    pub(crate) fn stale_rep(&mut self) -> Step {
        if !matches!(self.state, State::ReqSent | State::MraReqRcvd) {
            return Step::unexpected();
        }
        let mut step = Step {
            cancel: true,
            ..Step::NONE
        };
        // The glue rejects the REP itself, with both IDs of the message.
        self.enter_timewait(&mut step);
        self.report(Report::Stale, &mut step);
        step
    }

    pub(crate) fn rtu(&mut self) -> Step {
        // C has forgotten an identifier that is destroyed, and counts nothing for it.
        if self.orphan {
            return Step::unexpected();
        }
        if !matches!(self.state, State::RepSent | State::MraRepRcvd) {
            return Step::duplicate();
        }
        let mut step = Step {
            cancel: true,
            ..Step::NONE
        };
        self.state = State::Established;
        self.report(Report::Message, &mut step);
        step
    }

    pub(crate) fn dreq(&mut self, qpn: u32) -> Step {
        use State::*;

        if qpn != self.local_qpn {
            return Step::unexpected();
        }
        let mut step = Step::NONE;
        match self.state {
            RepSent | MraRepRcvd => step.cancel = true,
            DreqSent if self.ending => step.timer = Some(Timer::Stop),
            DreqSent => step.cancel = true,
            Established => step.cancel = self.lap_in_flight(),
            // The connection is over on our side. C drops a DREQ once TimeWait has ended, unless the
            // consumer has destroyed the identifier, and the peer repeats it in vain.
            Timewait | Idle => {
                return Step {
                    duplicate: true,
                    drep: true,
                    ..Step::NONE
                }
            }
            DreqRcvd => return Step::duplicate(),
            _ => return Step::unexpected(),
        }
        if self.ending || self.orphan || self.reported {
            // Nobody will answer for us. Where the identifier is destroyed C knows it no more, and
            // counts the DREQ as a repeated one.
            step.duplicate = self.orphan;
            self.report(Report::Message, &mut step);
            self.enter_timewait(&mut step);
            step.drep = true;
        } else {
            self.state = DreqRcvd;
            self.report(Report::Message, &mut step);
        }
        step
    }

    pub(crate) fn drep(&mut self) -> Step {
        if !matches!(self.state, State::DreqSent | State::DreqRcvd) {
            return Step::unexpected();
        }
        let mut step = Step {
            cancel: true,
            ..Step::NONE
        };
        self.enter_timewait(&mut step);
        self.report(Report::Message, &mut step);
        step
    }

    pub(crate) fn rej(&mut self, reason: RejReason) -> Step {
        use State::*;

        let mut step = Step::NONE;
        match self.state {
            ReqSent | MraReqRcvd | RepSent | MraRepRcvd | ReqRcvd | MraReqSent => {
                step.cancel = matches!(self.state, ReqSent | MraReqRcvd | RepSent | MraRepRcvd);
                if reason == RejReason::STALE_CONN {
                    self.enter_timewait(&mut step);
                } else {
                    self.reset(&mut step);
                }
            }
            DreqSent => {
                step.cancel = true;
                self.enter_timewait(&mut step);
            }
            RepRcvd | MraRepSent => self.enter_timewait(&mut step),
            Established if matches!(self.lap, LapState::Uninit | LapState::Sent) => {
                step.cancel = self.lap == LapState::Sent;
                self.enter_timewait(&mut step);
            }
            _ => return Step::unexpected(),
        }
        self.report(Report::Message, &mut step);
        self.reported = true;
        step
    }

    pub(crate) fn mra(&mut self, message: Msg) -> Step {
        use State::*;

        match (self.state, message) {
            (ReqSent, Msg::Req) => self.state = MraReqRcvd,
            (RepSent, Msg::Rep) => self.state = MraRepRcvd,
            (MraReqRcvd | MraRepRcvd, _) => return Step::duplicate(),
            _ => return Step::unexpected(),
        }
        let mut step = Step::NONE;
        self.report(Report::Message, &mut step);
        step
    }

    pub(crate) fn lap(&mut self) -> Step {
        if self.state != State::Established {
            return Step::unexpected();
        }
        let mut step = Step::NONE;
        match self.lap {
            LapState::Uninit | LapState::Idle => {
                self.lap = LapState::Rcvd;
                self.report(Report::Message, &mut step);
            }
            LapState::MraSent => {
                step.duplicate = true;
                step.mra = Some(Msg::Other);
            }
            LapState::Rcvd => return Step::duplicate(),
            LapState::Sent | LapState::MraRcvd => return Step::unexpected(),
        }
        step
    }

    pub(crate) fn sidr_rep(&mut self) -> Step {
        if self.state != State::SidrReqSent {
            return Step::unexpected();
        }
        let mut step = Step {
            cancel: true,
            ..Step::NONE
        };
        self.state = State::Idle;
        self.report(Report::Message, &mut step);
        step
    }
}
