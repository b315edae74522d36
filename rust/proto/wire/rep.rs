// SPDX-License-Identifier: GPL-2.0
//! REP and RTU, the second and third message of a connection's set-up (IBA 12.6.8, 12.6.9).

message! {
    /// REP, reply to request for communication: the passive side accepts (IBA 12.6.8).
    Rep, RepView, RepEdit;
    ece attr_mod;
    fields {
        /// Communication ID by which the sender knows this connection.
        local_comm_id: u32 = (0, 0, 32);
        /// The local communication ID of the REQ.
        remote_comm_id: u32 = (4, 0, 32);
        /// Q_Key of the sender's queue pair, for reliable datagrams.
        local_q_key: u32 = (8, 0, 32);
        /// The sender's queue pair, 24 bits; see [`Rep::qpn`].
        local_qpn: u32 = (12, 0, 24);
        /// Vendor whose ECE option [`Rep::attr_mod`] is, 24 bits.
        vendor_id: u32 = (15, 0, 8) (19, 0, 8) (23, 0, 8);
        /// The sender's end-to-end context for reliable datagrams; its queue pair for XRC.
        /// 24 bits.
        local_ee_context_number: u32 = (16, 0, 24);
        /// First packet sequence number that the sender will send, 24 bits.
        starting_psn: u32 = (20, 0, 24);
        /// RDMA reads and atomics that the sender can serve at a time.
        responder_resources: u8 = (24, 0, 8);
        /// RDMA reads and atomics that the sender wants to have outstanding at a time.
        initiator_depth: u8 = (25, 0, 8);
        /// Time that the sender's channel adapter may take to acknowledge a packet, 5 bits:
        /// 4.096 µs * 2^n.
        target_ack_delay: u8 = (26, 0, 5);
        /// What became of the alternate path of the REQ, 2 bits: 0 accepted, 1 failover is not
        /// supported, 2 the path was refused.
        failover_accepted: u8 = (26, 5, 2);
        /// Whether the sender's receive queue does end-to-end flow control.
        end_to_end_flow_control: bool = (26, 7, 1);
        /// Times that the recipient is to repeat a packet after a "receiver not ready", 3 bits;
        /// 7 stands for no end.
        rnr_retry_count: u8 = (27, 0, 3);
        /// Whether the sender's queue pair takes its receives from a shared receive queue.
        srq: bool = (27, 3, 1);
        /// GUID of the sender's channel adapter.
        local_ca_guid: u64 = (28, 0, 64);
    }
    private_data 196 = 36;
}

impl Rep {
    /// The sender's queue pair: an XRC initiator finds it in the field of the end-to-end context
    /// (`cm_rep_get_qpn` in `cm_msgs.h`).
    pub fn qpn(&self, to_xrc_initiator: bool) -> u32 {
        if to_xrc_initiator {
            self.local_ee_context_number
        } else {
            self.local_qpn
        }
    }
}

impl RepView<'_> {
    /// Reads [`Rep::qpn`].
    pub fn qpn(self, to_xrc_initiator: bool) -> u32 {
        if to_xrc_initiator {
            self.local_ee_context_number()
        } else {
            self.local_qpn()
        }
    }
}

message! {
    /// RTU, ready to use: the active side confirms that the connection stands (IBA 12.6.9).
    Rtu, RtuView, RtuEdit;
    fields {
        /// The local communication ID of the REQ.
        local_comm_id: u32 = (0, 0, 32);
        /// The local communication ID of the REP.
        remote_comm_id: u32 = (4, 0, 32);
    }
    private_data 224 = 8;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_xrc_initiator_takes_the_queue_pair_from_the_other_field() {
        let mut mad = [0; super::super::MAD_SIZE];
        let rep = Rep {
            local_qpn: 0x11_1111,
            local_ee_context_number: 0x22_2222,
            vendor_id: 0xab_cdef,
            ..Rep::ZERO
        };
        rep.emit(&mut mad, &[]);
        for message in [rep, Rep::parse(&mad)] {
            assert_eq!(message.qpn(false), 0x11_1111);
            assert_eq!(message.qpn(true), 0x22_2222);
        }
        assert_eq!(RepView(&mad).qpn(false), 0x11_1111);
        assert_eq!(RepView(&mad).qpn(true), 0x22_2222);
        assert_eq!((mad[39], mad[43], mad[47]), (0xab, 0xcd, 0xef));
    }
}
