// SPDX-License-Identifier: GPL-2.0
//! SIDR_REQ and SIDR_REP, which find the queue pair of a datagram service (IBA 12.11).

message! {
    /// SIDR_REQ, service ID resolution request (IBA 12.11.1).
    SidrReq, SidrReqView, SidrReqEdit;
    fields {
        /// ID by which the sender knows this request.
        request_id: u32 = (0, 0, 32);
        /// Partition key of the communication.
        partition_key: u16 = (4, 0, 16);
        /// The service asked for.
        service_id: u64 = (8, 0, 64);
    }
    private_data 216 = 16;
}

message! {
    /// SIDR_REP, service ID resolution response (IBA 12.11.2).
    SidrRep, SidrRepView, SidrRepEdit;
    ece attr_mod;
    fields {
        /// The ID of the request.
        request_id: u32 = (0, 0, 32);
        /// Whether the service was found.
        status: SidrStatus = (4, 0, 8);
        /// Number of bytes of additional information in use, as the sender claims: not more than
        /// 72 exist. See [`SidrRep::info()`].
        info_length: u8 = (5, 0, 8);
        /// Vendor whose ECE option [`SidrRep::attr_mod`] is, 24 bits.
        vendor_id: u32 = (6, 0, 16) (11, 0, 8);
        /// The queue pair of the service, 24 bits.
        qpn: u32 = (8, 0, 24);
        /// The service asked for.
        service_id: u64 = (12, 0, 64);
        /// Q_Key of the queue pair of the service.
        q_key: u32 = (20, 0, 32);
    }
    /// Additional information: what it is depends on the status. [`SidrRep::info()`] is the part
    /// in use.
    info info, info_length = 24;
    private_data 136 = 96;
}

/// Status of a service ID resolution (IBA 12.11.2; `enum ib_cm_sidr_status`). Any value can
/// arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidrStatus(pub u8);

impl SidrStatus {
    /// The queue pair is valid.
    pub const SUCCESS: Self = Self(0);
    /// The service ID is not supported: nobody listens on it.
    pub const UNSUPPORTED: Self = Self(1);
    /// The service refused.
    pub const REJECT: Self = Self(2);
    /// No queue pair is available.
    pub const NO_QP: Self = Self(3);
    /// The additional information names a port to ask instead.
    pub const REDIRECT: Self = Self(4);
    /// The version of the class is not supported.
    pub const UNSUPPORTED_VERSION: Self = Self(5);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additional_information_is_clamped() {
        let mut mad = [0; super::super::MAD_SIZE];
        SidrRepEdit(&mut mad).info([3; super::super::INFO_SIZE]);
        assert_eq!(SidrRepView(&mad).info(), []);
        SidrRepEdit(&mut mad).info_length(73);
        assert_eq!(SidrRepView(&mad).info(), [3; super::super::INFO_SIZE]);
        assert_eq!(SidrRep::parse(&mad).info(), [3; super::super::INFO_SIZE]);
    }
}
