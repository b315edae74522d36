// SPDX-License-Identifier: GPL-2.0
//! What a connection says, and what it learns from what it is told.

use super::connection::Connection;
use super::connection::QpType;
use super::step::Reject;
use super::time;
use super::wire::Drep;
use super::wire::Dreq;
use super::wire::Mra;
use super::wire::Msg;
use super::wire::Rej;
use super::wire::RejReason;
use super::wire::RepView;
use super::wire::ReqView;
use super::wire::Rtu;
use super::wire::Transport;

/// The service timeout that an MRA asks for: 4.096 us * 2^24, about 68.7 s, as in C.
pub const MRA_SERVICE_TIMEOUT: u8 = 24;

impl Connection {
    /// Learns from the REQ that begins this connection (IBA 12.6.5). `tid` is that of its MAD.
    pub fn learn_req(&mut self, req: ReqView<'_>, tid: u64) {
        self.tid = tid;
        self.remote_id = req.local_comm_id();
        self.remote_ca_guid = req.local_ca_guid();
        self.remote_qpn = req.local_qpn();
        self.sq_psn = req.starting_psn();
        self.timeout_ms = time::ms_from_iba(req.local_cm_response_timeout());
        self.max_cm_retries = req.max_cm_retries();
        // What the peer can serve is what we may have out, and the other way round.
        self.initiator_depth = req.responder_resources();
        self.responder_resources = req.initiator_depth();
        self.retry_count = req.retry_count();
        self.rnr_retry_count = req.rnr_retry_count();
        self.path_mtu = req.path_packet_payload_mtu();
        self.pkey = req.partition_key();
        self.qp_type = QpType::of_passive_side(req.transport());
    }

    /// Learns from the REP that answers our REQ (IBA 12.6.8).
    pub fn learn_rep(&mut self, rep: RepView<'_>) {
        self.remote_id = rep.local_comm_id();
        self.remote_ca_guid = rep.local_ca_guid();
        self.remote_qpn = rep.qpn(self.qp_type == QpType::XrcIni);
        self.sq_psn = rep.starting_psn();
        self.initiator_depth = rep.responder_resources();
        self.responder_resources = rep.initiator_depth();
        self.rnr_retry_count = rep.rnr_retry_count();
        self.target_ack_delay = rep.target_ack_delay();
        self.ack_timeout = time::ack_timeout(
            self.target_ack_delay,
            // Undo the 1 that was added to the packet life time.
            self.ack_timeout.wrapping_sub(1),
        );
        self.alt_ack_timeout =
            time::ack_timeout(self.target_ack_delay, self.alt_ack_timeout.wrapping_sub(1));
    }

    /// An MRA that asks the peer to be patient about `message`.
    pub fn mra_message(&self, message: Msg) -> Mra {
        Mra {
            tid: self.tid,
            local_comm_id: self.local_id,
            remote_comm_id: self.remote_id,
            message_mraed: message.raw(),
            service_timeout: MRA_SERVICE_TIMEOUT,
        }
    }

    /// A REJ. `ari` beyond 72 bytes is left out.
    pub fn rej_message(&self, reject: Reject, ari: &[u8]) -> Rej {
        let mut rej = Rej {
            tid: self.tid,
            local_comm_id: if reject.name_us { self.local_id } else { 0 },
            remote_comm_id: self.remote_id,
            message_rejected: reject.message.raw(),
            reason: reject.reason,
            ..Rej::ZERO
        };
        rej.set_ari(ari);
        rej
    }

    /// An RTU.
    pub fn rtu_message(&self) -> Rtu {
        Rtu {
            tid: self.tid,
            local_comm_id: self.local_id,
            remote_comm_id: self.remote_id,
        }
    }

    /// A DREQ; `tid` begins its exchange.
    pub fn dreq_message(&self, tid: u64) -> Dreq {
        Dreq {
            tid,
            local_comm_id: self.local_id,
            remote_comm_id: self.remote_id,
            remote_qpn_eecn: self.remote_qpn,
        }
    }

    /// A DREP.
    pub fn drep_message(&self) -> Drep {
        Drep {
            tid: self.tid,
            local_comm_id: self.local_id,
            remote_comm_id: self.remote_id,
        }
    }
}

impl QpType {
    /// Our queue pair type when a REQ asks for `transport`.
    pub fn of_passive_side(transport: Option<Transport>) -> QpType {
        match transport {
            Some(Transport::Rc) => QpType::Rc,
            Some(Transport::Uc) => QpType::Uc,
            Some(Transport::Xrc) => QpType::XrcTgt,
            None => QpType::Other,
        }
    }

    /// The transport that a REQ asks for; none for a type that the active side cannot have.
    pub fn transport(self) -> Option<Transport> {
        match self {
            QpType::Rc => Some(Transport::Rc),
            QpType::Uc => Some(Transport::Uc),
            QpType::XrcIni => Some(Transport::Xrc),
            QpType::XrcTgt | QpType::Other => None,
        }
    }
}

/// The REJ to a message that belongs to no connection of ours: both IDs of the message, swapped.
pub fn rej_to_stranger(
    tid: u64,
    local_comm_id: u32,
    remote_comm_id: u32,
    message: Msg,
    reason: RejReason,
) -> Rej {
    Rej {
        tid,
        local_comm_id: remote_comm_id,
        remote_comm_id: local_comm_id,
        message_rejected: message.raw(),
        reason,
        ..Rej::ZERO
    }
}

/// The DREP to a DREQ that belongs to no connection of ours.
pub fn drep_to_stranger(tid: u64, local_comm_id: u32, remote_comm_id: u32) -> Drep {
    Drep {
        tid,
        local_comm_id: remote_comm_id,
        remote_comm_id: local_comm_id,
    }
}
