// SPDX-License-Identifier: GPL-2.0
//! LAP and APR, by which the two sides agree on an alternate path (IBA 12.8.1, 12.8.2).

message! {
    /// LAP, load alternate path (IBA 12.8.1).
    Lap, LapView, LapEdit;
    fields {
        /// The sender's communication ID of this connection.
        local_comm_id: u32 = (0, 0, 32);
        /// The recipient's communication ID of this connection.
        remote_comm_id: u32 = (4, 0, 32);
        /// The recipient's queue pair (its end-to-end context for reliable datagrams), 24 bits.
        remote_qpn_eecn: u32 = (12, 0, 24);
        /// Time within which the sender wants the recipient's connection manager to answer,
        /// 5 bits: 4.096 µs * 2^n.
        remote_cm_response_timeout: u8 = (15, 0, 5);
    }
    path alternate {
        //! The path to migrate to.
        alternate_local_port_lid, local_port_lid: u16 = (20, 0, 16);
        alternate_remote_port_lid, remote_port_lid: u16 = (22, 0, 16);
        alternate_local_port_gid, local_port_gid: [u8; 16] = (24, 0, 128);
        alternate_remote_port_gid, remote_port_gid: [u8; 16] = (40, 0, 128);
        alternate_flow_label, flow_label: u32 = (56, 0, 20);
        alternate_traffic_class, traffic_class: u8 = (59, 0, 8);
        alternate_hop_limit, hop_limit: u8 = (60, 0, 8);
        alternate_packet_rate, packet_rate: u8 = (61, 2, 6);
        alternate_sl, sl: u8 = (62, 0, 4);
        alternate_subnet_local, subnet_local: bool = (62, 4, 1);
        alternate_local_ack_timeout, local_ack_timeout: u8 = (63, 0, 5);
    }
    private_data 168 = 64;
}

message! {
    /// APR, alternate path response (IBA 12.8.2).
    Apr, AprView, AprEdit;
    fields {
        /// The sender's communication ID of this connection.
        local_comm_id: u32 = (0, 0, 32);
        /// The recipient's communication ID of this connection.
        remote_comm_id: u32 = (4, 0, 32);
        /// Number of bytes of additional information in use, as the sender claims: not more than
        /// 72 exist. See [`Apr::info()`].
        info_length: u8 = (8, 0, 8);
        /// What became of the alternate path.
        ar_status: ApStatus = (9, 0, 8);
    }
    /// Additional information: what it is depends on the status. [`Apr::info()`] is the part in
    /// use.
    info info, info_length = 12;
    private_data 148 = 84;
}

/// Status of an alternate path (IBA 12.8.2; `enum ib_cm_apr_status`). Any value can arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApStatus(pub u8);

impl ApStatus {
    /// The path was loaded.
    pub const SUCCESS: Self = Self(0);
    /// The communication ID of the LAP names no connection.
    pub const INVALID_COMM_ID: Self = Self(1);
    /// Alternate paths are not supported.
    pub const UNSUPPORTED: Self = Self(2);
    /// The path was refused.
    pub const REJECT: Self = Self(3);
    /// Refused: the additional information names a port to ask instead.
    pub const REDIRECT: Self = Self(4);
    /// The path is the alternate path already, or the primary one.
    pub const IS_CURRENT: Self = Self(5);
    /// The queue pair or end-to-end context is not that of the connection.
    pub const INVALID_QPN_EECN: Self = Self(6);
    /// A LID is invalid.
    pub const INVALID_LID: Self = Self(7);
    /// A GID is invalid.
    pub const INVALID_GID: Self = Self(8);
    /// The flow label is invalid.
    pub const INVALID_FLOW_LABEL: Self = Self(9);
    /// The traffic class is invalid.
    pub const INVALID_TCLASS: Self = Self(10);
    /// The hop limit is invalid.
    pub const INVALID_HOP_LIMIT: Self = Self(11);
    /// The packet rate is invalid.
    pub const INVALID_PACKET_RATE: Self = Self(12);
    /// The service level is invalid.
    pub const INVALID_SL: Self = Self(13);
}

#[cfg(test)]
mod tests {
    use super::super::INFO_SIZE;
    use super::*;

    #[test]
    fn additional_information_is_clamped() {
        let mut mad = [0; super::super::MAD_SIZE];
        let mut apr = Apr {
            info_length: 3,
            info: [9; INFO_SIZE],
            ..Apr::ZERO
        };
        assert_eq!(apr.info(), [9; 3]);
        apr.info_length = u8::MAX;
        assert_eq!(apr.info(), [9; INFO_SIZE]);

        apr.emit(&mut mad, &[]);
        assert_eq!(AprView(&mad).info_length(), u8::MAX);
        assert_eq!(AprView(&mad).info(), [9; INFO_SIZE]);
    }
}
