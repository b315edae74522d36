// SPDX-License-Identifier: GPL-2.0
//! Connections in every state, brought there by inputs as the module gives them.

use ib_cm_proto::connection::Connection;
use ib_cm_proto::connection::QpType;
use ib_cm_proto::state::LapState;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Call;
use ib_cm_proto::step::Input;
use ib_cm_proto::wire::Msg;
use ib_cm_proto::wire::RejReason;

/// Our queue pair.
pub const LOCAL_QPN: u32 = 0x11;
/// The peer's queue pair.
pub const REMOTE_QPN: u32 = 0x22;
/// A queue pair of somebody else.
pub const OTHER_QPN: u32 = 0x99;
/// Our communication ID.
pub const LOCAL_ID: u32 = 1;
/// The peer's communication ID.
pub const REMOTE_ID: u32 = 0x33;
/// Somebody else's communication ID.
pub const OTHER_ID: u32 = 0x44;
/// How long to wait for an answer, in milliseconds.
pub const TIMEOUT_MS: u32 = 1000;
/// How often a message is repeated.
pub const RETRIES: u8 = 2;
/// Acknowledgement timeout (IBA time): TimeWait takes 256 ms.
pub const ACK_TIMEOUT: u8 = 16;

/// An identifier that a consumer has made.
pub fn fresh() -> Connection {
    let mut conn = Connection::new(LOCAL_ID);
    conn.local_qpn = LOCAL_QPN;
    conn.timeout_ms = TIMEOUT_MS;
    conn.max_cm_retries = RETRIES;
    conn.ack_timeout = ACK_TIMEOUT;
    conn
}

/// A connection after `inputs`, all of which fit.
pub fn after(mut conn: Connection, inputs: &[Input]) -> Connection {
    for input in inputs {
        let before = conn;
        let step = conn.step(*input);
        assert!(
            step.refused.is_none() && !step.unexpected,
            "{before:?} does not take {input:?}: {step:?}"
        );
    }
    conn
}

/// What a message of the peer tells, as far as the state machine cares.
fn hear_from_peer(conn: &mut Connection) {
    conn.remote_id = REMOTE_ID;
    conn.remote_qpn = REMOTE_QPN;
}

/// A REQ has come in, and no consumer knows yet.
pub fn unseen() -> Connection {
    let mut conn = fresh();
    hear_from_peer(&mut conn);
    conn.begin_unseen(State::ReqRcvd);
    conn
}

/// A SIDR_REQ has come in, and no consumer knows yet.
pub fn unseen_question() -> Connection {
    let mut conn = fresh();
    conn.remote_id = REMOTE_ID;
    conn.begin_unseen(State::SidrReqRcvd);
    conn
}

/// Shows a connection to its consumer.
pub fn shown(mut conn: Connection) -> Connection {
    assert!(conn.show(), "{conn:?}");
    conn
}

/// A connection of the active side after `inputs`, of which the first is the REQ and the REP
/// teaches what it teaches.
pub fn active(inputs: &[Input]) -> Connection {
    let mut conn = fresh();
    for input in inputs {
        if *input == Input::Rep {
            hear_from_peer(&mut conn);
        }
        conn = after(conn, &[*input]);
    }
    conn
}

/// A connection of the passive side after `inputs`.
pub fn passive(inputs: &[Input]) -> Connection {
    after(shown(unseen()), inputs)
}

/// An established connection after `inputs`.
pub fn established(inputs: &[Input]) -> Connection {
    after(passive(&[Input::Call(Call::SendRep), Input::Rtu]), inputs)
}

/// An established connection in a state of the alternate path that inputs may not lead to.
fn with_lap(lap: LapState) -> Connection {
    let mut conn = established(&[]);
    conn.lap = lap;
    conn
}

/// An established connection of an XRC target.
pub fn xrc_target() -> Connection {
    let mut conn = established(&[]);
    conn.qp_type = QpType::XrcTgt;
    conn
}

/// A connection whose module has repeated its DREQ as often as allowed.
fn last_dreq(mut conn: Connection) -> Connection {
    for _ in 0..RETRIES {
        let step = conn.step(Input::Timer);
        assert!(step.dreq, "{conn:?}");
    }
    conn
}

/// A connection in one state, and where its peculiarities are few the one that it resembles.
pub struct Specimen {
    /// The state, and after `+` what else matters.
    pub name: &'static str,
    /// The specimen that does the same wherever the table says nothing.
    pub like: Option<&'static str>,
    /// What it is, in words.
    pub about: &'static str,
    /// The connection.
    pub conn: Connection,
}

/// A file of the table and the specimens in it.
pub struct Chapter {
    /// Name of the file.
    pub file: &'static str,
    /// Its specimens.
    pub specimens: Vec<Specimen>,
}

fn specimen(
    name: &'static str,
    like: Option<&'static str>,
    about: &'static str,
    conn: Connection,
) -> Specimen {
    Specimen {
        name,
        like,
        about,
        conn,
    }
}

/// Connections in every state.
pub fn chapters() -> Vec<Chapter> {
    let req = Input::Call(Call::SendReq);
    let rep = Input::Call(Call::SendRep);
    let mra = Input::Call(Call::PrepareMra);
    let dreq = Input::Call(Call::SendDreq);
    let destroy = Input::Destroy { silent: false };
    vec![
        Chapter {
            file: "idle.txt",
            specimens: vec![
                specimen("Idle", None, "made by a consumer", fresh()),
                specimen(
                    "Idle+orphan",
                    Some("Idle"),
                    "destroyed, about to leave the last index",
                    after(fresh(), &[destroy]),
                ),
                specimen(
                    "Listen",
                    None,
                    "a listener",
                    after(fresh(), &[Input::Call(Call::Listen)]),
                ),
                specimen(
                    "SidrReqSent",
                    None,
                    "asks for a service",
                    after(fresh(), &[Input::Call(Call::SendSidrReq)]),
                ),
                specimen(
                    "SidrReqRcvd",
                    None,
                    "asked for a service",
                    shown(unseen_question()),
                ),
                specimen(
                    "SidrReqRcvd+unseen",
                    Some("SidrReqRcvd"),
                    "its consumer does not know it yet",
                    unseen_question(),
                ),
            ],
        },
        Chapter {
            file: "active.txt",
            specimens: vec![
                specimen("ReqSent", None, "REQ sent", active(&[req])),
                specimen(
                    "MraReqRcvd",
                    None,
                    "the peer takes its time with the REP",
                    active(&[req, Input::Mra(Msg::Req)]),
                ),
                specimen("RepRcvd", None, "REP received", active(&[req, Input::Rep])),
                specimen(
                    "MraRepSent",
                    None,
                    "we take our time with the RTU",
                    active(&[req, Input::Rep, mra]),
                ),
            ],
        },
        Chapter {
            file: "passive.txt",
            specimens: vec![
                specimen("ReqRcvd", None, "REQ received", passive(&[])),
                specimen(
                    "ReqRcvd+unseen",
                    Some("ReqRcvd"),
                    "its consumer does not know it yet",
                    unseen(),
                ),
                specimen(
                    "MraReqSent",
                    None,
                    "we take our time with the REP",
                    passive(&[mra]),
                ),
                specimen("RepSent", None, "REP sent", passive(&[rep])),
                specimen(
                    "MraRepRcvd",
                    None,
                    "the peer takes its time with the RTU",
                    passive(&[rep, Input::Mra(Msg::Rep)]),
                ),
            ],
        },
        Chapter {
            file: "established.txt",
            specimens: vec![
                specimen("Established", None, "no LAP so far", established(&[])),
                specimen(
                    "Established/Idle",
                    Some("Established"),
                    "the path has migrated",
                    established(&[Input::Call(Call::PathMigrated)]),
                ),
                specimen(
                    "Established/Sent",
                    Some("Established"),
                    "LAP sent, as no call does",
                    with_lap(LapState::Sent),
                ),
                specimen(
                    "Established/Rcvd",
                    Some("Established"),
                    "LAP received",
                    established(&[Input::Lap]),
                ),
                specimen(
                    "Established/MraSent",
                    Some("Established"),
                    "we take our time with the APR",
                    established(&[Input::Lap, mra]),
                ),
                specimen(
                    "Established/MraRcvd",
                    Some("Established"),
                    "LAP sent and delayed, as no call does",
                    with_lap(LapState::MraRcvd),
                ),
                specimen(
                    "Established+xrc",
                    Some("Established"),
                    "an XRC target",
                    xrc_target(),
                ),
            ],
        },
        Chapter {
            file: "ending.txt",
            specimens: vec![
                specimen(
                    "DreqSent",
                    None,
                    "the consumer has sent the DREQ",
                    established(&[dreq]),
                ),
                specimen(
                    "DreqSent+ending",
                    Some("DreqSent"),
                    "was stale when established",
                    established(&[Input::Stale]),
                ),
                specimen(
                    "DreqSent+ending+last",
                    Some("DreqSent+ending"),
                    "repeated as often as allowed",
                    last_dreq(established(&[Input::Stale])),
                ),
                specimen(
                    "DreqSent+ending+told",
                    Some("DreqSent+ending"),
                    "was stale when half open",
                    passive(&[rep, Input::Stale]),
                ),
                specimen(
                    "DreqSent+ending+told+last",
                    Some("DreqSent+ending+told"),
                    "repeated as often as allowed",
                    last_dreq(passive(&[rep, Input::Stale])),
                ),
                specimen(
                    "DreqSent+ending+orphan",
                    Some("DreqSent+ending"),
                    "destroyed when established",
                    established(&[destroy]),
                ),
                specimen(
                    "DreqSent+ending+orphan+last",
                    Some("DreqSent+ending+orphan"),
                    "repeated as often as allowed",
                    last_dreq(established(&[destroy])),
                ),
                specimen(
                    "DreqRcvd",
                    None,
                    "DREQ received",
                    established(&[Input::Dreq { qpn: LOCAL_QPN }]),
                ),
                specimen(
                    "Timewait",
                    None,
                    "the DREQ has its DREP",
                    established(&[dreq, Input::Drep]),
                ),
                specimen(
                    "Timewait+told",
                    Some("Timewait"),
                    "after a REJ",
                    passive(&[rep, Input::Rej(RejReason::STALE_CONN)]),
                ),
                specimen(
                    "Timewait+orphan",
                    Some("Timewait"),
                    "destroyed",
                    established(&[dreq, Input::Drep, destroy]),
                ),
            ],
        },
    ]
}
