// SPDX-License-Identifier: GPL-2.0
//! DREQ and DREP, the two messages of a connection's release (IBA 12.6.10, 12.6.11).

message! {
    /// DREQ, request for communication release (IBA 12.6.10).
    Dreq, DreqView, DreqEdit;
    fields {
        /// The sender's communication ID of this connection.
        local_comm_id: u32 = (0, 0, 32);
        /// The recipient's communication ID of this connection.
        remote_comm_id: u32 = (4, 0, 32);
        /// The recipient's queue pair (its end-to-end context for reliable datagrams), 24 bits.
        remote_qpn_eecn: u32 = (8, 0, 24);
    }
    private_data 220 = 12;
}

message! {
    /// DREP, reply to request for communication release (IBA 12.6.11).
    Drep, DrepView, DrepEdit;
    fields {
        /// The sender's communication ID of this connection.
        local_comm_id: u32 = (0, 0, 32);
        /// The recipient's communication ID of this connection.
        remote_comm_id: u32 = (4, 0, 32);
    }
    private_data 224 = 8;
}
