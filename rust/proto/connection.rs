// SPDX-License-Identifier: GPL-2.0
//! What the protocol knows of one connection, and how each input changes it.
//!
//! [`Connection::step`] takes one [`Input`], notes the new state and returns a [`Step`]: the
//! messages to send, the timer to set, the index entries to drop and the event to report. It
//! calls nothing and waits for nothing. What received messages do stands in `incoming.rs`, the rest
//! here. Where a rule is not the C module's, the section of the
//! specification or the reason stands beside it.

use super::state::LapState;
use super::state::State;
use super::step::Call;
use super::step::DuplicateReq;
use super::step::Flight;
use super::step::Indices;
use super::step::Input;
use super::step::Refusal;
use super::step::Reject;
use super::step::RepMatch;
use super::step::Report;
use super::step::Step;
use super::step::Timer;
use super::time;
use super::wire::Msg;
use super::wire::RejReason;

/// The longest time between two DREQs that the module repeats by itself, in milliseconds.
const MOST_DREQ_INTERVAL_MS: u32 = 60_000;

/// Type of the queue pair, `enum ib_qp_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum QpType {
    /// None that connections are made of; the consumer decides what to make of the REQ.
    Other = 0,
    /// Reliable connection.
    Rc = 2,
    /// Unreliable connection.
    Uc = 3,
    /// Initiator of an extended reliable connection.
    XrcIni = 9,
    /// Target of an extended reliable connection.
    XrcTgt = 10,
}

/// The protocol's view of one identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    /// Where the connection stands.
    pub state: State,
    /// Where the exchange of an alternate path stands.
    pub lap: LapState,
    /// Our communication ID; never 0.
    pub local_id: u32,
    /// The peer's communication ID; 0 until a message has told it.
    pub remote_id: u32,
    /// GUID of the peer's channel adapter; 0 until a message has told it.
    pub remote_ca_guid: u64,
    /// Transaction ID of the exchange under way.
    pub tid: u64,
    /// Our queue pair number, 24 bits.
    pub local_qpn: u32,
    /// The peer's queue pair number, 24 bits.
    pub remote_qpn: u32,
    /// First packet sequence number that we send, 24 bits.
    pub sq_psn: u32,
    /// First packet sequence number that we expect, 24 bits.
    pub rq_psn: u32,
    /// How long to wait for an answer before a message is sent again, in milliseconds.
    pub timeout_ms: u32,
    /// Partition key.
    pub pkey: u16,
    /// How often a message without answer is sent again, 0 to 15.
    pub max_cm_retries: u8,
    /// Type of our queue pair.
    pub qp_type: QpType,
    /// Path MTU, as encoded in the REQ.
    pub path_mtu: u8,
    /// RDMA reads and atomics that we accept at a time.
    pub responder_resources: u8,
    /// RDMA reads and atomics that we have out at a time.
    pub initiator_depth: u8,
    /// Transport retries, 0 to 7.
    pub retry_count: u8,
    /// Receiver-not-ready retries, 0 to 7.
    pub rnr_retry_count: u8,
    /// Acknowledgement delay of the peer's adapter (IBA time).
    pub target_ack_delay: u8,
    /// Acknowledgement timeout of the primary path (IBA time); also the length of TimeWait.
    pub ack_timeout: u8,
    /// Acknowledgement timeout of the alternate path (IBA time).
    pub alt_ack_timeout: u8,
    /// How often the module will still repeat its own DREQ.
    dreqs_left: u8,
    /// The consumer has given the identifier up: nobody is left to be told.
    pub(crate) orphan: bool,
    /// An error or a REJ has been reported: only TIMEWAIT_EXIT may follow.
    pub(crate) reported: bool,
    /// The module itself ends this connection: it repeats the DREQ by its own timer, and answers
    /// a DREQ without asking the consumer.
    pub(crate) ending: bool,
}

impl Connection {
    /// A fresh identifier.
    pub fn new(local_id: u32) -> Self {
        Connection {
            state: State::Idle,
            lap: LapState::Uninit,
            local_id,
            remote_id: 0,
            remote_ca_guid: 0,
            tid: 0,
            local_qpn: 0,
            remote_qpn: 0,
            sq_psn: 0,
            rq_psn: 0,
            timeout_ms: 0,
            pkey: 0,
            max_cm_retries: 0,
            qp_type: QpType::Rc,
            path_mtu: 0,
            responder_resources: 0,
            initiator_depth: 0,
            retry_count: 0,
            rnr_retry_count: 0,
            target_ack_delay: 0,
            ack_timeout: 0,
            alt_ack_timeout: 0,
            dreqs_left: 0,
            orphan: false,
            reported: false,
            ending: false,
        }
    }

    /// A REQ or SIDR_REQ has come in: begins in `state`, unseen by any consumer.
    ///
    /// Until [`Connection::show`] nothing is reported, and messages that end the connection end
    /// it for good.
    pub fn begin_unseen(&mut self, state: State) {
        self.state = state;
        self.orphan = true;
    }

    /// A consumer will be told of the connection from now on. Returns false where the connection
    /// has ended meanwhile, before anybody could see it.
    pub fn show(&mut self) -> bool {
        let alive = matches!(self.state, State::ReqRcvd | State::SidrReqRcvd);
        self.orphan = !alive;
        alive
    }

    /// Whether the consumer has given the identifier up.
    pub fn is_orphan(&self) -> bool {
        self.orphan
    }

    /// Whether the consumer has been told of an error or a REJ, so that only TIMEWAIT_EXIT may
    /// follow.
    pub fn is_reported(&self) -> bool {
        self.reported
    }

    /// Whether the module repeats this connection's DREQ by its own timer.
    pub fn is_ending(&self) -> bool {
        self.ending && self.state == State::DreqSent
    }

    /// Whether the protocol still needs the identifier after its consumer has given it up.
    pub fn lingers(&self) -> bool {
        matches!(self.state, State::DreqSent | State::Timewait)
    }

    /// Asks whether a call is allowed now, before anything is sent for it.
    ///
    /// # Errors
    ///
    /// The errno that the consumer gets.
    pub fn permits(&self, call: Call) -> Result<(), Refusal> {
        use State::*;

        let allowed = match call {
            Call::Listen | Call::SendReq | Call::SendSidrReq => self.state == Idle,
            Call::SendRep => matches!(self.state, ReqRcvd | MraReqSent),
            Call::SendRtu => matches!(self.state, RepRcvd | MraRepSent),
            Call::SendDreq => self.state == Established,
            Call::SendDrep => self.state == DreqRcvd,
            Call::SendRej(_) => matches!(
                self.state,
                ReqSent
                    | MraReqRcvd
                    | ReqRcvd
                    | MraReqSent
                    | RepRcvd
                    | MraRepSent
                    | RepSent
                    | MraRepRcvd
            ),
            Call::PrepareMra => {
                matches!(self.state, ReqRcvd | RepRcvd)
                    || (self.state == Established && self.lap == LapState::Rcvd)
            }
            Call::SendSidrRep => self.state == SidrReqRcvd,
            Call::Established => match self.state {
                RepSent | MraRepRcvd => true,
                Established => return Err(Refusal::AlreadyConnected),
                _ => false,
            },
            Call::PathMigrated => {
                self.state == Established && matches!(self.lap, LapState::Uninit | LapState::Idle)
            }
        };
        if allowed && !self.orphan {
            Ok(())
        } else {
            Err(Refusal::InvalidState)
        }
    }

    /// Takes one input.
    pub fn step(&mut self, input: Input) -> Step {
        match input {
            Input::Call(call) => self.call(call),
            Input::DreqNotSent => self.dreq_not_sent(),
            Input::Destroy { silent } => self.destroy(silent),
            Input::Rep => self.rep(),
            Input::StaleRep => self.stale_rep(),
            Input::Rtu => self.rtu(),
            Input::Dreq { qpn } => self.dreq(qpn),
            Input::Drep => self.drep(),
            Input::Rej(reason) => self.rej(reason),
            Input::Mra(message) => self.mra(message),
            Input::Lap => self.lap(),
            // No call of the kernel sends a LAP, so no APR is ever expected.
            Input::Apr => Step::unexpected(),
            Input::SidrRep => self.sidr_rep(),
            Input::Stale => self.stale(),
            Input::Abandoned => self.abandoned(),
            Input::SendError(flight) => self.send_error(flight),
            Input::Timer => self.timer(),
            Input::DeviceGone => self.device_gone(),
        }
    }

    /// What a REQ meets that carries the remote ID of this connection.
    ///
    /// `remote_qpn` is the queue pair that the REQ names.
    pub fn duplicate_req(&self, remote_qpn: u32) -> DuplicateReq {
        match self.state {
            // Already on its way out of the index.
            State::Idle => DuplicateReq::Drop,
            State::Timewait => DuplicateReq::RejStale,
            _ if remote_qpn != self.remote_qpn => DuplicateReq::RejIdInUse,
            State::MraReqSent => DuplicateReq::Mra,
            _ => DuplicateReq::Drop,
        }
    }

    /// What a REP meets that names our communication ID and comes from `remote_id`.
    pub fn match_rep(&self, remote_id: u32) -> RepMatch {
        use State::*;

        match self.state {
            ReqSent | MraReqRcvd => RepMatch::Answer,
            // They take no part in connections.
            Idle | Listen | SidrReqSent | SidrReqRcvd => RepMatch::RejInvalidId,
            _ if self.remote_id != remote_id => RepMatch::RejInvalidId,
            Established => RepMatch::RtuAgain,
            MraRepSent => RepMatch::MraAgain,
            _ => RepMatch::Drop,
        }
    }

    fn call(&mut self, call: Call) -> Step {
        use State::*;

        if let Err(refusal) = self.permits(call) {
            return Step::refuse(refusal);
        }
        let mut step = Step::NONE;
        match call {
            Call::Listen => self.state = Listen,
            Call::SendReq => {
                self.remote_id = 0;
                self.remote_ca_guid = 0;
                self.remote_qpn = 0;
                self.lap = LapState::Uninit;
                self.reported = false;
                self.ending = false;
                self.state = ReqSent;
            }
            Call::SendSidrReq => {
                self.remote_id = 0;
                self.reported = false;
                self.state = SidrReqSent;
            }
            Call::SendRep => self.state = RepSent,
            Call::SendRtu => self.state = Established,
            Call::SendDreq => self.state = DreqSent,
            Call::SendDrep => {
                self.enter_timewait(&mut step);
                step.drep = true;
            }
            Call::SendRej(reason) => self.reject(reason, &mut step),
            Call::PrepareMra => match self.state {
                ReqRcvd => self.state = MraReqSent,
                RepRcvd => self.state = MraRepSent,
                _ => self.lap = LapState::MraSent,
            },
            Call::SendSidrRep => {
                self.state = Idle;
                step.indices = Indices::DropAll;
            }
            Call::Established => {
                self.state = Established;
                step.cancel = true;
                self.report(Report::UserEstablished, &mut step);
            }
            Call::PathMigrated => self.lap = LapState::Idle,
        }
        step
    }

    fn dreq_not_sent(&mut self) -> Step {
        let mut step = Step::NONE;
        if self.state == State::Established {
            self.enter_timewait(&mut step);
        }
        step
    }

    fn destroy(&mut self, silent: bool) -> Step {
        use State::*;

        let mut step = Step::NONE;
        self.orphan = true;
        match self.state {
            Timewait => {}
            // The glue answers a SIDR_REQ with status "rejected".
            Idle | Listen | SidrReqRcvd => self.reset(&mut step),
            SidrReqSent => {
                step.cancel = true;
                self.reset(&mut step);
            }
            ReqSent | MraReqRcvd => self.reject(RejReason::TIMEOUT, &mut step),
            ReqRcvd if silent => self.reset(&mut step),
            ReqRcvd | MraReqSent | RepRcvd | MraRepSent | RepSent | MraRepRcvd => {
                self.reject(RejReason::CONSUMER_DEFINED, &mut step);
            }
            Established if self.qp_type == QpType::XrcTgt => self.reset(&mut step),
            Established => {
                self.end(&mut step);
                step.indices = Indices::DropRemoteQpn;
            }
            DreqSent => {
                step.indices = Indices::DropRemoteQpn;
                if !self.ending {
                    // The MAD layer repeated this DREQ so far; now it is the module's. It may never
                    // have been sent: it is sent once more than it would be repeated.
                    step.cancel = true;
                    self.ending = true;
                    self.dreqs_left = self.max_cm_retries.saturating_add(1);
                    step.timer = Some(self.dreq_timer());
                }
            }
            DreqRcvd => {
                self.enter_timewait(&mut step);
                step.drep = true;
            }
        }
        step
    }

    /// The peer has lost this connection (IBA 12.9.8.3.1): end it, whatever its state.
    fn stale(&mut self) -> Step {
        use State::*;

        let mut step = Step::NONE;
        match self.state {
            // No REP was sent, so the peer cannot have sent anything to our queue pair.
            ReqRcvd | MraReqSent => {
                self.report(Report::Stale, &mut step);
                self.reset(&mut step);
            }
            RepSent | MraRepRcvd => {
                step.cancel = true;
                step.rej = Some(Reject {
                    reason: RejReason::STALE_CONN,
                    message: Msg::Other,
                    name_us: true,
                });
                self.report(Report::Stale, &mut step);
                self.end(&mut step);
            }
            RepRcvd | MraRepSent => {
                self.report(Report::Stale, &mut step);
                self.end(&mut step);
            }
            Established => {
                step.cancel = self.lap_in_flight();
                self.end(&mut step);
            }
            DreqSent => step.dreq = true,
            DreqRcvd => {
                self.enter_timewait(&mut step);
                step.drep = true;
            }
            _ => {}
        }
        step
    }

    /// The process that owns our queue pair is gone, and its file is being torn down.
    fn abandoned(&mut self) -> Step {
        match self.state {
            State::ReqSent | State::MraReqRcvd => {
                let mut step = Step::NONE;
                self.report(Report::ReqError, &mut step);
                self.reject(RejReason::TIMEOUT, &mut step);
                step
            }
            // A DREQ is out already; if the MAD layer repeats it, it goes on doing so.
            State::DreqSent => Step::NONE,
            _ => self.stale(),
        }
    }

    fn send_error(&mut self, flight: Flight) -> Step {
        use State::*;

        let mut step = Step::NONE;
        match (flight, self.state) {
            (Flight::Req, ReqSent | MraReqRcvd) => {
                self.reset(&mut step);
                self.report(Report::ReqError, &mut step);
            }
            // Our queue pair may be in RTR, and the peer may have sent: C skips TimeWait here.
            (Flight::Rep, RepSent | MraRepRcvd) => {
                self.enter_timewait(&mut step);
                self.report(Report::RepError, &mut step);
            }
            (Flight::Dreq, DreqSent) if !self.ending => {
                self.enter_timewait(&mut step);
                self.report(Report::DreqError, &mut step);
            }
            (Flight::SidrReq, SidrReqSent) => {
                self.state = Idle;
                self.report(Report::SidrReqError, &mut step);
            }
            _ => {}
        }
        step
    }

    fn timer(&mut self) -> Step {
        let mut step = Step::NONE;
        match self.state {
            State::DreqSent if self.ending => match self.dreqs_left.checked_sub(1) {
                Some(left) => {
                    self.dreqs_left = left;
                    step.dreq = true;
                    step.timer = Some(self.dreq_timer());
                }
                None => {
                    self.enter_timewait(&mut step);
                    self.report(Report::DreqError, &mut step);
                }
            },
            State::Timewait => {
                self.reset(&mut step);
                self.report(Report::TimewaitExit, &mut step);
            }
            _ => {}
        }
        step
    }

    fn device_gone(&mut self) -> Step {
        let mut step = Step::NONE;
        match self.state {
            State::DreqSent => {
                self.enter_timewait(&mut step);
                self.report(Report::DreqError, &mut step);
                step.timer = Some(Timer::Stop);
            }
            State::Timewait => {
                self.reset(&mut step);
                step.timer = Some(Timer::Stop);
                self.report(Report::TimewaitExit, &mut step);
            }
            _ => {}
        }
        step
    }

    /// Whether a LAP waits for its answer.
    pub(crate) fn lap_in_flight(&self) -> bool {
        matches!(self.lap, LapState::Sent | LapState::MraRcvd)
    }

    /// Begins to end a connection that may have carried data: DREQ by the module's own timer.
    fn end(&mut self, step: &mut Step) {
        self.state = State::DreqSent;
        self.ending = true;
        self.dreqs_left = self.max_cm_retries;
        step.dreq = true;
        step.timer = Some(self.dreq_timer());
    }

    /// When the module repeats its DREQ. The peer may have chosen the interval, but not for how
    /// long it keeps memory here.
    fn dreq_timer(&self) -> Timer {
        Timer::Dreq(self.timeout_ms.min(MOST_DREQ_INTERVAL_MS))
    }

    /// Begins TimeWait. The remote QPN is free for a new connection at once; the remote ID
    /// stays, to recognise late duplicates, and so does the local QPN.
    pub(crate) fn enter_timewait(&mut self, step: &mut Step) {
        self.state = State::Timewait;
        step.indices = Indices::DropRemoteQpn;
        step.timer = Some(Timer::Timewait(time::ms_from_iba(self.ack_timeout)));
    }

    /// Back to the beginning.
    pub(crate) fn reset(&mut self, step: &mut Step) {
        self.state = State::Idle;
        self.ending = false;
        step.indices = Indices::DropAll;
    }

    /// Rejects what the peer sent last (IBA 12.6.7), or gives up what we sent.
    fn reject(&mut self, reason: RejReason, step: &mut Step) {
        use State::*;

        let (message, name_us) = match self.state {
            ReqRcvd => (Msg::Req, false),
            MraReqSent => (Msg::Req, true),
            RepRcvd | MraRepSent => (Msg::Rep, true),
            _ => (Msg::Other, true),
        };
        step.rej = Some(Reject {
            reason,
            message,
            name_us,
        });
        // C leaves a REP that is rejected by its own sender in flight; the peer would see both.
        step.cancel = matches!(self.state, ReqSent | MraReqRcvd | RepSent | MraRepRcvd);
        if matches!(self.state, RepSent | MraRepRcvd) {
            self.enter_timewait(step);
        } else {
            self.reset(step);
        }
    }

    /// Reports to the consumer, unless it has gone or has heard the last word already.
    pub(crate) fn report(&mut self, report: Report, step: &mut Step) {
        if self.orphan || (self.reported && report != Report::TimewaitExit) {
            return;
        }
        if matches!(
            report,
            Report::ReqError | Report::RepError | Report::SidrReqError | Report::Stale
        ) {
            self.reported = true;
        }
        step.report = Some(report);
    }
}
