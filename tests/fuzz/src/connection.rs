// SPDX-License-Identifier: GPL-2.0
//! One connection, and any sequence of inputs; MADs are understood first.

use ib_cm_proto::connection::Connection;
use ib_cm_proto::lookup::addressed;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Call;
use ib_cm_proto::step::Input;
use ib_cm_proto::wire::AttrId;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto::wire::RepView;
use ib_cm_proto_tests::connections::fresh;
use ib_cm_proto_tests::connections::unseen;
use ib_cm_proto_tests::connections::unseen_question;
use ib_cm_proto_tests::connections::xrc_target;
use ib_cm_proto_tests::inputs::inputs;
use ib_cm_proto_tests::witness::Witness;

use crate::bytes::Bytes;
use crate::mint::mint;
use crate::mint::Known;

fn beginning(bytes: &mut Bytes<'_>) -> Connection {
    let mut conn = match bytes.below(4) {
        0 => fresh(),
        1 => unseen(),
        2 => unseen_question(),
        _ => xrc_target(),
    };
    conn.max_cm_retries = bytes.byte() % 16;
    conn.ack_timeout = bytes.byte();
    conn.timeout_ms = bytes.word();
    conn
}

/// What a MAD says to the connection, if it is for it.
fn said(bytes: &mut Bytes<'_>, conn: &mut Connection) -> Option<Input> {
    let known = Known {
        local_id: conn.local_id,
        remote_id: conn.remote_id,
        local_qpn: conn.local_qpn,
        remote_qpn: conn.remote_qpn,
        ca_guid: conn.remote_ca_guid,
        service: 1,
    };
    let mad = mint(bytes, &known);
    let message = AttrId::of(&mad)?;
    if message == AttrId::Rep && matches!(conn.state, State::ReqSent | State::MraReqRcvd) {
        conn.learn_rep(RepView(&mad));
        return Some(Input::Rep);
    }
    let to = addressed(message, &mad)?;
    (to.peer == conn.remote_id).then_some(to.input)
}

/// Takes a life.
pub fn check(data: &[u8]) {
    let mut bytes = Bytes(data);
    let all: Vec<Input> = inputs().collect();
    let mut witness = Witness::new(beginning(&mut bytes));
    while !bytes.is_empty() {
        let input = match bytes.byte() {
            0..=127 => bytes.pick(&all),
            128..=207 => said(&mut bytes, &mut witness.conn),
            208..=223 => Some(Input::Rej(RejReason(bytes.byte().into()))),
            224..=239 => Some(Input::Dreq { qpn: bytes.word() }),
            240..=247 => Some(Input::Call(Call::SendRej(RejReason(bytes.byte().into())))),
            248..=255 if witness.conn.is_orphan() => {
                witness.conn.show();
                if witness.conn.is_orphan() && !witness.conn.lingers() {
                    break;
                }
                None
            }
            _ => None,
        };
        if let Some(input) = input {
            let before = witness.conn;
            let step = witness.see(input);
            if step.refused.is_some() || (step.unexpected && !step.duplicate) {
                assert_eq!(witness.conn, before, "{input:?}");
            }
        }
        if witness.conn.state == State::Timewait && witness.timer.is_none() {
            witness.see(Input::DeviceGone);
        }
    }
    witness.rest();
}
