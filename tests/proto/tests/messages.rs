// SPDX-License-Identifier: GPL-2.0
//! What a connection learns from messages, and what it says in its own.

use ib_cm_proto::connection::Connection;
use ib_cm_proto::connection::QpType;
use ib_cm_proto::messages::drep_to_stranger;
use ib_cm_proto::messages::rej_to_stranger;
use ib_cm_proto::messages::MRA_SERVICE_TIMEOUT;
use ib_cm_proto::step::Reject;
use ib_cm_proto::time;
use ib_cm_proto::wire::Drep;
use ib_cm_proto::wire::Dreq;
use ib_cm_proto::wire::Mra;
use ib_cm_proto::wire::Msg;
use ib_cm_proto::wire::Rej;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto::wire::Rep;
use ib_cm_proto::wire::RepView;
use ib_cm_proto::wire::Req;
use ib_cm_proto::wire::ReqView;
use ib_cm_proto::wire::Rtu;
use ib_cm_proto::wire::Transport;
use ib_cm_proto::MAD_SIZE;

const TID: u64 = 0x0123_4567_89ab_cdef;

/// A REQ in which no two fields are alike.
fn req(transport: Transport) -> Req {
    let mut req = Req {
        tid: TID,
        local_comm_id: 0x1000_0001,
        local_ca_guid: 0x1000_0002_0000_0003,
        local_qpn: 0x10_0004,
        local_eecn: 0x10_0005,
        responder_resources: 6,
        initiator_depth: 7,
        remote_cm_response_timeout: 8,
        starting_psn: 0x10_0009,
        local_cm_response_timeout: 20,
        retry_count: 5,
        partition_key: 0x8001,
        path_packet_payload_mtu: 4,
        rnr_retry_count: 3,
        max_cm_retries: 15,
        ..Req::ZERO
    };
    req.set_transport(transport);
    req
}

/// A REP in which no two fields are alike.
fn rep() -> Rep {
    Rep {
        tid: TID,
        local_comm_id: 0x2000_0001,
        remote_comm_id: 0x2000_0002,
        local_qpn: 0x20_0003,
        local_ee_context_number: 0x20_0004,
        starting_psn: 0x20_0005,
        responder_resources: 6,
        initiator_depth: 7,
        target_ack_delay: 15,
        rnr_retry_count: 2,
        local_ca_guid: 0x2000_0008_0000_0009,
        ..Rep::ZERO
    }
}

fn learn_req(conn: &mut Connection, req: &Req) {
    let mut mad = [0; MAD_SIZE];
    req.emit(&mut mad, &[]);
    conn.learn_req(ReqView(&mad), req.tid);
}

fn learn_rep(conn: &mut Connection, rep: &Rep) {
    let mut mad = [0; MAD_SIZE];
    rep.emit(&mut mad, &[]);
    conn.learn_rep(RepView(&mad));
}

/// `cm_req_handler` takes the same from the same fields.
#[test]
fn a_req_teaches_the_passive_side() {
    let fresh = Connection::new(1);
    let mut conn = fresh;
    learn_req(&mut conn, &req(Transport::Rc));
    let mut expected = fresh;
    expected.tid = TID;
    expected.remote_id = 0x1000_0001;
    expected.remote_ca_guid = 0x1000_0002_0000_0003;
    expected.remote_qpn = 0x10_0004;
    expected.sq_psn = 0x10_0009;
    // The time that the peer grants its own answers is the one that we wait for them.
    expected.timeout_ms = 1 << 12;
    expected.max_cm_retries = 15;
    // What the peer serves we may have out, and the other way round.
    expected.initiator_depth = 6;
    expected.responder_resources = 7;
    expected.retry_count = 5;
    expected.rnr_retry_count = 3;
    expected.path_mtu = 4;
    expected.pkey = 0x8001;
    expected.qp_type = QpType::Rc;
    assert_eq!(conn, expected);
}

#[test]
fn the_passive_queue_pair_is_of_the_kind_that_the_req_asks_for() {
    for (transport, qp_type) in [
        (Transport::Rc, QpType::Rc),
        (Transport::Uc, QpType::Uc),
        (Transport::Xrc, QpType::XrcTgt),
    ] {
        let mut conn = Connection::new(1);
        learn_req(&mut conn, &req(transport));
        assert_eq!(conn.qp_type, qp_type);
        // Whatever the kind, the queue pair that sends is named in the same field.
        assert_eq!(conn.remote_qpn, 0x10_0004);
    }
    let mut conn = Connection::new(1);
    let mut reserved = req(Transport::Rc);
    reserved.transport_service_type = 2;
    learn_req(&mut conn, &reserved);
    assert_eq!(conn.qp_type, QpType::Other);
}

#[test]
fn a_queue_pair_asks_for_a_transport_of_which_the_other_side_makes_its_counterpart() {
    for (active, passive) in [
        (QpType::Rc, QpType::Rc),
        (QpType::Uc, QpType::Uc),
        (QpType::XrcIni, QpType::XrcTgt),
    ] {
        assert_eq!(QpType::of_passive_side(active.transport()), passive);
    }
    assert_eq!(QpType::XrcTgt.transport(), None);
    assert_eq!(QpType::Other.transport(), None);
}

/// `cm_rep_handler` takes the same from the same fields.
#[test]
fn a_rep_teaches_the_active_side() {
    for (qp_type, remote_qpn) in [
        (QpType::Rc, 0x20_0003),
        (QpType::Uc, 0x20_0003),
        (QpType::XrcIni, 0x20_0004),
    ] {
        let mut conn = Connection::new(1);
        conn.qp_type = qp_type;
        conn.ack_timeout = 14;
        conn.retry_count = 7;
        conn.timeout_ms = 4000;
        let before = conn;
        learn_rep(&mut conn, &rep());
        let mut expected = before;
        expected.remote_id = 0x2000_0001;
        expected.remote_ca_guid = 0x2000_0008_0000_0009;
        expected.remote_qpn = remote_qpn;
        expected.sq_psn = 0x20_0005;
        expected.initiator_depth = 6;
        expected.responder_resources = 7;
        expected.rnr_retry_count = 2;
        expected.target_ack_delay = 15;
        // A life time of 13 both ways, and the other adapter's delay.
        expected.ack_timeout = 16;
        // No alternate path: a life time of 255, which nobody ever uses.
        expected.alt_ack_timeout = time::MAX;
        assert_eq!(conn, expected);
    }
}

/// TimeWait is as long as packets may live, which the REP is the last to say.
#[test]
fn the_delay_of_the_peers_adapter_prolongs_timewait() {
    for life_time in 0..=30u8 {
        for delay in 0..=31u8 {
            let mut conn = Connection::new(1);
            conn.ack_timeout = life_time + 1;
            learn_rep(
                &mut conn,
                &Rep {
                    target_ack_delay: delay,
                    ..rep()
                },
            );
            assert_eq!(conn.ack_timeout, time::ack_timeout(delay, life_time));
        }
    }
}

/// A connection in which no two fields are alike.
fn speaker() -> Connection {
    let mut conn = Connection::new(0x3000_0001);
    conn.remote_id = 0x3000_0002;
    conn.remote_qpn = 0x30_0003;
    conn.local_qpn = 0x30_0004;
    conn.tid = TID;
    conn
}

#[test]
fn messages_name_the_sender_first() {
    let conn = speaker();
    let (local_comm_id, remote_comm_id) = (0x3000_0001, 0x3000_0002);
    assert_eq!(
        conn.rtu_message(),
        Rtu {
            tid: TID,
            local_comm_id,
            remote_comm_id
        }
    );
    assert_eq!(
        conn.drep_message(),
        Drep {
            tid: TID,
            local_comm_id,
            remote_comm_id
        }
    );
    // A DREQ begins an exchange of its own, and names the peer's queue pair.
    assert_eq!(
        conn.dreq_message(5),
        Dreq {
            tid: 5,
            local_comm_id,
            remote_comm_id,
            remote_qpn_eecn: 0x30_0003
        }
    );
    for (message, message_mraed) in [(Msg::Req, 0), (Msg::Rep, 1), (Msg::Other, 2)] {
        let service_timeout = MRA_SERVICE_TIMEOUT;
        assert_eq!(
            conn.mra_message(message),
            Mra {
                tid: TID,
                local_comm_id,
                remote_comm_id,
                message_mraed,
                service_timeout
            }
        );
    }
}

#[test]
fn a_rej_names_us_only_if_it_should() {
    let conn = speaker();
    let reject = |name_us| Reject {
        reason: RejReason::CONSUMER_DEFINED,
        message: Msg::Rep,
        name_us,
    };
    let named = conn.rej_message(reject(true), &[7; 9]);
    assert_eq!(
        (named.local_comm_id, named.remote_comm_id),
        (0x3000_0001, 0x3000_0002)
    );
    assert_eq!((named.tid, named.message_rejected), (TID, 1));
    assert_eq!(named.reason, RejReason::CONSUMER_DEFINED);
    assert_eq!(named.ari(), &[7; 9]);
    let nameless = conn.rej_message(reject(false), &[7; 9]);
    assert_eq!(
        nameless,
        Rej {
            local_comm_id: 0,
            ..named
        }
    );
    // Additional information ends where the field does.
    assert_eq!(conn.rej_message(reject(true), &[8; 100]).ari(), &[8; 72]);
}

/// What belongs to nobody is answered with its own IDs, the other way round.
#[test]
fn strangers_get_their_ids_back() {
    let rej = rej_to_stranger(TID, 1, 2, Msg::Rep, RejReason::INVALID_COMM_ID);
    let expected = Rej {
        tid: TID,
        local_comm_id: 2,
        remote_comm_id: 1,
        message_rejected: 1,
        reason: RejReason::INVALID_COMM_ID,
        ..Rej::ZERO
    };
    assert_eq!(rej, expected);
    let drep = drep_to_stranger(TID, 1, 2);
    assert_eq!(
        drep,
        Drep {
            tid: TID,
            local_comm_id: 2,
            remote_comm_id: 1
        }
    );
}
