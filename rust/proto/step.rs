// SPDX-License-Identifier: GPL-2.0
//! The vocabulary of the state machine: what goes in ([`Input`]) and what comes out ([`Step`]).

use super::wire::Msg;
use super::wire::RejReason;

/// Why a call of a consumer is refused. The values are the kernel's errno numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Refusal {
    /// The identifier is in a state in which the call makes no sense.
    InvalidState = 22,
    /// The connection is established already.
    AlreadyConnected = 106,
}

/// A call of a consumer that moves the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `ib_cm_listen` or `ib_cm_insert_listen`.
    Listen,
    /// `ib_send_cm_req`.
    SendReq,
    /// `ib_send_cm_rep`.
    SendRep,
    /// `ib_send_cm_rtu`.
    SendRtu,
    /// `ib_send_cm_dreq`.
    SendDreq,
    /// `ib_send_cm_drep`.
    SendDrep,
    /// `ib_send_cm_rej`, with the reason.
    SendRej(RejReason),
    /// `ib_prepare_cm_mra`.
    PrepareMra,
    /// `ib_send_cm_sidr_req`.
    SendSidrReq,
    /// `ib_send_cm_sidr_rep`.
    SendSidrRep,
    /// `ib_cm_notify` with `IB_EVENT_COMM_EST`.
    Established,
    /// `ib_cm_notify` with `IB_EVENT_PATH_MIG`.
    PathMigrated,
}

/// A send that expects an answer, and is repeated by the MAD layer until one comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Flight {
    /// A REQ.
    Req,
    /// A REP.
    Rep,
    /// A DREQ that a consumer asked for.
    Dreq,
    /// A SIDR_REQ.
    SidrReq,
}

/// What can happen to an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The consumer calls. What the call sends has been handed to the MAD layer already, save for
    /// `SendRej` and `SendDrep`, which take effect whether or not they can be sent.
    Call(Call),
    /// `ib_send_cm_dreq` could not send its DREQ.
    DreqNotSent,
    /// The consumer gives the identifier up. `silent`: its REQ handler ran out of memory, so the
    /// peer is not told and may try again.
    Destroy {
        /// Do not reject a REQ that waits for its answer.
        silent: bool,
    },
    /// A REP that belongs to this identifier and that no index objects to.
    Rep,
    /// A REP whose queue pair another, live connection claims.
    StaleRep,
    /// An RTU for this pair of communication IDs.
    Rtu,
    /// A DREQ for this pair of communication IDs.
    Dreq {
        /// The queue pair that the message names; it has to be ours.
        qpn: u32,
    },
    /// A DREP for this pair of communication IDs.
    Drep,
    /// A REJ for this identifier.
    Rej(RejReason),
    /// An MRA for this identifier and the message that it delays.
    Mra(Msg),
    /// A LAP for this pair of communication IDs.
    Lap,
    /// An APR for this pair of communication IDs.
    Apr,
    /// A SIDR_REP for this identifier.
    SidrRep,
    /// A REQ or REP came in with the remote queue pair of this connection, so the peer has lost
    /// it (IBA 12.9.8.3.1).
    Stale,
    /// The process that owns the local queue pair is gone.
    Abandoned,
    /// A send was repeated as often as allowed and never answered, or failed.
    SendError(Flight),
    /// The identifier's timer has run out.
    Timer,
    /// The device goes away; nothing can be sent or received any more.
    DeviceGone,
}

/// A REJ to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Why.
    pub reason: RejReason,
    /// Which message is rejected.
    pub message: Msg,
    /// Whether the REJ names our communication ID (else 0).
    pub name_us: bool,
}

/// A timer to set. Each identifier has one; setting it again moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Send the DREQ again after this many milliseconds.
    Dreq(u32),
    /// TimeWait ends after this many milliseconds.
    Timewait(u32),
    /// No timer.
    Stop,
}

/// What becomes of the identifier's entries in the indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Indices {
    /// They stay.
    #[default]
    Keep,
    /// The remote QPN leaves; remote ID and local QPN stay.
    DropRemoteQpn,
    /// All but the local ID leave.
    DropAll,
}

/// An event for the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The message that was the input.
    Message,
    /// `IB_CM_USER_ESTABLISHED`.
    UserEstablished,
    /// `IB_CM_REQ_ERROR`.
    ReqError,
    /// `IB_CM_REP_ERROR`.
    RepError,
    /// `IB_CM_DREQ_ERROR`.
    DreqError,
    /// `IB_CM_SIDR_REQ_ERROR`.
    SidrReqError,
    /// `IB_CM_REJ_RECEIVED` with reason "stale connection", though no REJ came in.
    Stale,
    /// `IB_CM_TIMEWAIT_EXIT`.
    TimewaitExit,
}

/// What the glue has to do after an input, besides noting the new state.
///
/// Order: cancel, then REJ, DREQ, DREP, MRA, then indices and timer, then the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Step {
    /// For a call: why it is refused. Nothing else is set then.
    pub refused: Option<Refusal>,
    /// For a message: it does not fit the state and is dropped.
    pub unexpected: bool,
    /// Count the message as a duplicate.
    pub duplicate: bool,
    /// Cancel the send in flight.
    pub cancel: bool,
    /// Send this REJ.
    pub rej: Option<Reject>,
    /// Send a DREQ that the module repeats by its own timer.
    pub dreq: bool,
    /// Send a DREP.
    pub drep: bool,
    /// Send an MRA for this message.
    pub mra: Option<Msg>,
    /// What becomes of the entries in the indices.
    pub indices: Indices,
    /// Set the timer.
    pub timer: Option<Timer>,
    /// Tell the consumer.
    pub report: Option<Report>,
}

impl Step {
    /// Nothing happens.
    pub const NONE: Step = Step {
        refused: None,
        unexpected: false,
        duplicate: false,
        cancel: false,
        rej: None,
        dreq: false,
        drep: false,
        mra: None,
        indices: Indices::Keep,
        timer: None,
        report: None,
    };

    /// The call is refused.
    pub(crate) const fn refuse(refusal: Refusal) -> Step {
        Step {
            refused: Some(refusal),
            ..Step::NONE
        }
    }

    /// The message is dropped.
    pub(crate) const fn unexpected() -> Step {
        Step {
            unexpected: true,
            ..Step::NONE
        }
    }

    /// The message is dropped and counted as a duplicate.
    pub(crate) const fn duplicate() -> Step {
        Step {
            unexpected: true,
            duplicate: true,
            ..Step::NONE
        }
    }
}

/// What a REQ meets whose remote ID belongs to a known connection (IBA 12.9.8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateReq {
    /// Drop it; the peer's state decides.
    Drop,
    /// Send the MRA again.
    Mra,
    /// It is a late duplicate of a connection that is over: REJ "stale connection".
    RejStale,
    /// The peer uses one ID for two connections: REJ "duplicate local comm ID".
    RejIdInUse,
}

/// What a REP meets that names one of our communication IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepMatch {
    /// It answers our REQ.
    Answer,
    /// It is a repetition: the RTU got lost.
    RtuAgain,
    /// It is a repetition: the MRA got lost.
    MraAgain,
    /// It is a repetition that needs no answer.
    Drop,
    /// The peer believes in a connection that we know nothing of: REJ "invalid comm ID".
    RejInvalidId,
}
