// SPDX-License-Identifier: GPL-2.0
//! All that can be put to a connection.

use ib_cm_proto::connection::Connection;
use ib_cm_proto::step::Call;
use ib_cm_proto::step::Flight;
use ib_cm_proto::step::Input;
use ib_cm_proto::wire::Msg;
use ib_cm_proto::wire::RejReason;

use crate::connections::LOCAL_QPN;
use crate::connections::OTHER_ID;
use crate::connections::OTHER_QPN;

/// An input of the state machine, or one of the two questions that are asked before there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An input.
    Input(Input),
    /// A REQ with the connection's remote ID, from the connection's remote queue pair or another.
    Req { same_qpn: bool },
    /// A REP for the connection's local ID, from the connection's remote ID or another.
    Rep { same_id: bool },
}

impl Event {
    /// The queue pair that a REQ names.
    pub fn qpn_of_req(conn: &Connection, same_qpn: bool) -> u32 {
        if same_qpn {
            conn.remote_qpn
        } else {
            OTHER_QPN
        }
    }

    /// The communication ID that a REP comes from.
    pub fn id_of_rep(conn: &Connection, same_id: bool) -> u32 {
        if same_id {
            conn.remote_id
        } else {
            OTHER_ID
        }
    }
}

/// All inputs and questions, with their names. Of the reasons of REJs there are those that the
/// state machine tells apart: "stale connection", and all others.
pub const EVENTS: [(&str, Event); 41] = [
    ("call Listen", Event::Input(Input::Call(Call::Listen))),
    ("call SendReq", Event::Input(Input::Call(Call::SendReq))),
    ("call SendRep", Event::Input(Input::Call(Call::SendRep))),
    ("call SendRtu", Event::Input(Input::Call(Call::SendRtu))),
    ("call SendDreq", Event::Input(Input::Call(Call::SendDreq))),
    ("call SendDrep", Event::Input(Input::Call(Call::SendDrep))),
    (
        "call SendRej",
        Event::Input(Input::Call(Call::SendRej(RejReason::NO_RESOURCES))),
    ),
    (
        "call PrepareMra",
        Event::Input(Input::Call(Call::PrepareMra)),
    ),
    (
        "call SendSidrReq",
        Event::Input(Input::Call(Call::SendSidrReq)),
    ),
    (
        "call SendSidrRep",
        Event::Input(Input::Call(Call::SendSidrRep)),
    ),
    (
        "call Established",
        Event::Input(Input::Call(Call::Established)),
    ),
    (
        "call PathMigrated",
        Event::Input(Input::Call(Call::PathMigrated)),
    ),
    ("DreqNotSent", Event::Input(Input::DreqNotSent)),
    ("Destroy", Event::Input(Input::Destroy { silent: false })),
    (
        "Destroy silent",
        Event::Input(Input::Destroy { silent: true }),
    ),
    ("REQ same QPN", Event::Req { same_qpn: true }),
    ("REQ other QPN", Event::Req { same_qpn: false }),
    ("REP same ID", Event::Rep { same_id: true }),
    ("REP other ID", Event::Rep { same_id: false }),
    ("Rep", Event::Input(Input::Rep)),
    ("StaleRep", Event::Input(Input::StaleRep)),
    ("Rtu", Event::Input(Input::Rtu)),
    ("Dreq our QPN", Event::Input(Input::Dreq { qpn: LOCAL_QPN })),
    (
        "Dreq other QPN",
        Event::Input(Input::Dreq { qpn: OTHER_QPN }),
    ),
    ("Drep", Event::Input(Input::Drep)),
    ("Rej stale", Event::Input(Input::Rej(RejReason::STALE_CONN))),
    ("Rej other", Event::Input(Input::Rej(RejReason::TIMEOUT))),
    ("Mra REQ", Event::Input(Input::Mra(Msg::Req))),
    ("Mra REP", Event::Input(Input::Mra(Msg::Rep))),
    ("Mra other", Event::Input(Input::Mra(Msg::Other))),
    ("Lap", Event::Input(Input::Lap)),
    ("Apr", Event::Input(Input::Apr)),
    ("SidrRep", Event::Input(Input::SidrRep)),
    ("Stale", Event::Input(Input::Stale)),
    ("Abandoned", Event::Input(Input::Abandoned)),
    ("SendError Req", Event::Input(Input::SendError(Flight::Req))),
    ("SendError Rep", Event::Input(Input::SendError(Flight::Rep))),
    (
        "SendError Dreq",
        Event::Input(Input::SendError(Flight::Dreq)),
    ),
    (
        "SendError SidrReq",
        Event::Input(Input::SendError(Flight::SidrReq)),
    ),
    ("Timer", Event::Input(Input::Timer)),
    ("DeviceGone", Event::Input(Input::DeviceGone)),
];

/// All inputs.
pub fn inputs() -> impl Iterator<Item = Input> {
    EVENTS.iter().filter_map(|(_, event)| match event {
        Event::Input(input) => Some(*input),
        _ => None,
    })
}
