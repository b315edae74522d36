// SPDX-License-Identifier: GPL-2.0
//! REQ, the request for communication (IBA 12.6.5).

use super::is_opa_gid;

message! {
    /// REQ, request for communication: the active side asks a service for a connection
    /// (IBA 12.6.5).
    Req, ReqView, ReqEdit;
    ece attr_mod;
    fields {
        /// Communication ID by which the sender knows this connection.
        local_comm_id: u32 = (0, 0, 32);
        /// Vendor whose ECE option [`Req::attr_mod`] is, 24 bits.
        vendor_id: u32 = (5, 0, 24);
        /// The service asked for.
        service_id: u64 = (8, 0, 64);
        /// GUID of the sender's channel adapter.
        local_ca_guid: u64 = (16, 0, 64);
        /// Q_Key of the sender's queue pair, for reliable datagrams.
        local_q_key: u32 = (28, 0, 32);
        /// The sender's queue pair, 24 bits.
        local_qpn: u32 = (32, 0, 24);
        /// RDMA reads and atomics that the sender can serve at a time.
        responder_resources: u8 = (35, 0, 8);
        /// The sender's end-to-end context, for reliable datagrams, 24 bits.
        local_eecn: u32 = (36, 0, 24);
        /// RDMA reads and atomics that the sender wants to have outstanding at a time.
        initiator_depth: u8 = (39, 0, 8);
        /// The recipient's end-to-end context, for reliable datagrams, 24 bits.
        remote_eecn: u32 = (40, 0, 24);
        /// Time within which the sender wants the recipient's connection manager to answer,
        /// 5 bits: 4.096 µs * 2^n.
        remote_cm_response_timeout: u8 = (43, 0, 5);
        /// Transport service, 2 bits: 0 RC, 1 UC, 2 RD, 3 as the extended type says; see
        /// [`Req::transport`].
        transport_service_type: u8 = (43, 5, 2);
        /// Whether the sender's receive queue does end-to-end flow control.
        end_to_end_flow_control: bool = (43, 7, 1);
        /// First packet sequence number that the sender will send, 24 bits.
        starting_psn: u32 = (44, 0, 24);
        /// Time within which the sender's connection manager answers, 5 bits: 4.096 µs * 2^n.
        local_cm_response_timeout: u8 = (47, 0, 5);
        /// Times that the recipient is to repeat a packet after a time-out, 3 bits.
        retry_count: u8 = (47, 5, 3);
        /// Partition key of the connection.
        partition_key: u16 = (48, 0, 16);
        /// Largest payload of a packet, 4 bits: 1 to 5 for 256 to 4096 bytes (`enum ib_mtu`).
        path_packet_payload_mtu: u8 = (50, 0, 4);
        /// Whether a reliable datagram channel exists already.
        rdc_exists: bool = (50, 4, 1);
        /// Times that the recipient is to repeat a packet after a "receiver not ready", 3 bits;
        /// 7 stands for no end.
        rnr_retry_count: u8 = (50, 5, 3);
        /// Times that each side may repeat a message of the connection manager, 4 bits.
        max_cm_retries: u8 = (51, 0, 4);
        /// Whether the sender's queue pair takes its receives from a shared receive queue.
        srq: bool = (51, 4, 1);
        /// Transport service when the type is 3, 3 bits: 1 XRC.
        extended_transport_type: u8 = (51, 5, 3);
        /// Whether the sender can suggest an alternate path in a REJ or APR.
        sap_supported: bool = (139, 5, 1);
    }
    path primary {
        //! The path of the connection.
        primary_local_port_lid, local_port_lid: u16 = (52, 0, 16);
        primary_remote_port_lid, remote_port_lid: u16 = (54, 0, 16);
        primary_local_port_gid, local_port_gid: [u8; 16] = (56, 0, 128);
        primary_remote_port_gid, remote_port_gid: [u8; 16] = (72, 0, 128);
        primary_flow_label, flow_label: u32 = (88, 0, 20);
        primary_packet_rate, packet_rate: u8 = (91, 2, 6);
        primary_traffic_class, traffic_class: u8 = (92, 0, 8);
        primary_hop_limit, hop_limit: u8 = (93, 0, 8);
        primary_sl, sl: u8 = (94, 0, 4);
        primary_subnet_local, subnet_local: bool = (94, 4, 1);
        primary_local_ack_timeout, local_ack_timeout: u8 = (95, 0, 5);
    }
    path alternate {
        //! The path to migrate to, if there is one: see [`Req::has_alternate_path`].
        alternate_local_port_lid, local_port_lid: u16 = (96, 0, 16);
        alternate_remote_port_lid, remote_port_lid: u16 = (98, 0, 16);
        alternate_local_port_gid, local_port_gid: [u8; 16] = (100, 0, 128);
        alternate_remote_port_gid, remote_port_gid: [u8; 16] = (116, 0, 128);
        alternate_flow_label, flow_label: u32 = (132, 0, 20);
        alternate_packet_rate, packet_rate: u8 = (135, 2, 6);
        alternate_traffic_class, traffic_class: u8 = (136, 0, 8);
        alternate_hop_limit, hop_limit: u8 = (137, 0, 8);
        alternate_sl, sl: u8 = (138, 0, 4);
        alternate_subnet_local, subnet_local: bool = (138, 4, 1);
        alternate_local_ack_timeout, local_ack_timeout: u8 = (139, 0, 5);
    }
    private_data 92 = 140;
}

/// Transport service of a connection, as far as the connection manager knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Extended reliable connection: the active side has the initiator, the passive side the
    /// target.
    Xrc,
}

impl Transport {
    /// The transport that the two fields of a REQ name; none for reliable datagrams and for what
    /// the specification reserves (`cm_req_get_qp_type` in `cm_msgs.h`).
    pub const fn from_raw(service_type: u8, extended_type: u8) -> Option<Self> {
        match (service_type, extended_type) {
            (0, _) => Some(Self::Rc),
            (1, _) => Some(Self::Uc),
            (3, 1) => Some(Self::Xrc),
            _ => None,
        }
    }

    /// The values of the two fields of a REQ: transport service type and extended type
    /// (`cm_req_set_qp_type`).
    pub const fn raw(self) -> (u8, u8) {
        match self {
            Self::Rc => (0, 0),
            Self::Uc => (1, 0),
            Self::Xrc => (3, 1),
        }
    }
}

impl Req {
    /// The transport service asked for; none if the connection manager does not know it.
    pub fn transport(&self) -> Option<Transport> {
        Transport::from_raw(self.transport_service_type, self.extended_transport_type)
    }

    /// Sets the transport service.
    pub fn set_transport(&mut self, transport: Transport) {
        let (service_type, extended_type) = transport.raw();
        self.transport_service_type = service_type;
        self.extended_transport_type = extended_type;
    }

    /// Whether the REQ names an alternate path: the path has a local LID, or a GID that carries
    /// one (`cm_req_has_alt_path` in `cm.c`).
    pub fn has_alternate_path(&self) -> bool {
        self.alternate.local_port_lid != 0 || is_opa_gid(&self.alternate.local_port_gid)
    }
}

impl ReqView<'_> {
    /// Reads [`Req::transport`].
    pub fn transport(self) -> Option<Transport> {
        Transport::from_raw(
            self.transport_service_type(),
            self.extended_transport_type(),
        )
    }

    /// Reads [`Req::has_alternate_path`].
    pub fn has_alternate_path(self) -> bool {
        self.alternate_local_port_lid() != 0 || is_opa_gid(&self.alternate_local_port_gid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_read_back() {
        for transport in [Transport::Rc, Transport::Uc, Transport::Xrc] {
            let mut req = Req::ZERO;
            req.set_transport(transport);
            assert_eq!(req.transport(), Some(transport));

            let mut mad = [0; super::super::MAD_SIZE];
            req.emit(&mut mad, &[]);
            assert_eq!(ReqView(&mad).transport(), Some(transport));
        }
    }

    #[test]
    fn unknown_transports_are_none() {
        for service_type in 0..4 {
            for extended_type in 0..8 {
                let known = service_type < 2 || (service_type, extended_type) == (3, 1);
                let transport = Transport::from_raw(service_type, extended_type);
                assert_eq!(transport.is_some(), known);
            }
        }
    }

    #[test]
    fn an_alternate_path_has_a_lid_or_an_opa_gid() {
        let opa_gid = 0xfe80_0000_0000_0000_0006_6a00_0012_3456_u128.to_be_bytes();
        for (lid, gid, expected) in [
            (0, [0; 16], false),
            (0, [0xff; 16], false),
            (1, [0; 16], true),
            (0x100, [0; 16], true),
            (0, opa_gid, true),
        ] {
            let mut req = Req::ZERO;
            req.alternate.local_port_lid = lid;
            req.alternate.local_port_gid = gid;
            assert_eq!(req.has_alternate_path(), expected);

            let mut mad = [0; super::super::MAD_SIZE];
            req.emit(&mut mad, &[]);
            assert_eq!(ReqView(&mad).has_alternate_path(), expected);
        }
    }
}
