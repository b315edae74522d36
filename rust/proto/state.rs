// SPDX-License-Identifier: GPL-2.0
//! The states of a connection identifier, numbered as in the kernel's `include/rdma/ib_cm.h`.
//!
//! ```text
//!  active side                                     passive side
//!
//!  Idle --REQ--> ReqSent <------MRA------.         Idle <--REQ-- (peer)
//!                  |    `-> MraReqRcvd --|           |
//!              REP |            REP |    |         ReqRcvd --> MraReqSent
//!                  v                v    |           |  REP       | REP
//!                RepRcvd --> MraRepSent  |           v            v
//!                  | RTU        | RTU    |         RepSent --> MraRepRcvd
//!                  v            v        |           | RTU        | RTU
//!                Established <-----------+-----------+------------'
//!                  | DREQ out       | DREQ in
//!                  v                v
//!                DreqSent         DreqRcvd
//!                  | DREP           | DREP out
//!                  v                v
//!                Timewait ----(time is up)----> Idle
//! ```

/// State of a connection identifier (IBA 12.9.5), `enum ib_cm_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum State {
    /// Nothing has begun, or all is over.
    Idle = 0,
    /// Waits for REQs and SIDR_REQs to one service ID.
    Listen = 1,
    /// REQ sent, nothing heard yet.
    ReqSent = 2,
    /// REQ received, the consumer has not answered yet.
    ReqRcvd = 3,
    /// As `ReqRcvd`, and repeated REQs are answered with MRA.
    MraReqSent = 4,
    /// REQ sent, the peer asked for more time.
    MraReqRcvd = 5,
    /// REP sent, RTU expected.
    RepSent = 6,
    /// REP received, the consumer has not confirmed yet.
    RepRcvd = 7,
    /// As `RepRcvd`, and repeated REPs are answered with MRA.
    MraRepSent = 8,
    /// REP sent, the peer asked for more time.
    MraRepRcvd = 9,
    /// The queue pairs may talk.
    Established = 10,
    /// DREQ sent, DREP expected.
    DreqSent = 11,
    /// DREQ received, the consumer has not answered yet.
    DreqRcvd = 12,
    /// The connection is over; its local queue pair must stay put until the packets that may
    /// still be under way have died (IBA 12.9.8.4).
    Timewait = 13,
    /// SIDR_REQ sent, SIDR_REP expected.
    SidrReqSent = 14,
    /// SIDR_REQ received, the consumer has not answered yet.
    SidrReqRcvd = 15,
}

impl State {
    /// All states, in numerical order.
    pub const ALL: [State; 16] = [
        State::Idle,
        State::Listen,
        State::ReqSent,
        State::ReqRcvd,
        State::MraReqSent,
        State::MraReqRcvd,
        State::RepSent,
        State::RepRcvd,
        State::MraRepSent,
        State::MraRepRcvd,
        State::Established,
        State::DreqSent,
        State::DreqRcvd,
        State::Timewait,
        State::SidrReqSent,
        State::SidrReqRcvd,
    ];
}

/// State of the alternate path exchange of an established connection (IBA 12.8),
/// `enum ib_cm_lap_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LapState {
    /// No alternate path was ever loaded.
    Uninit = 0,
    /// An exchange took place and is over.
    Idle = 1,
    /// LAP sent. No call of the kernel sends one since Linux 5.7; kept for the numbering.
    Sent = 2,
    /// LAP received, the consumer has not answered yet.
    Rcvd = 3,
    /// As `Rcvd`, and repeated LAPs are answered with MRA.
    MraSent = 4,
    /// LAP sent, the peer asked for more time.
    MraRcvd = 5,
}

impl LapState {
    /// All states, in numerical order.
    pub const ALL: [LapState; 6] = [
        LapState::Uninit,
        LapState::Idle,
        LapState::Sent,
        LapState::Rcvd,
        LapState::MraSent,
        LapState::MraRcvd,
    ];
}
