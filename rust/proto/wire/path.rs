// SPDX-License-Identifier: GPL-2.0
//! What a REQ or LAP says about a path, and the GIDs by which Omni-Path carries long LIDs.

/// The permissive LID: stands for a LID that the sender cannot know (IBA 4.1.3).
pub const LID_PERMISSIVE: u16 = 0xffff;

/// One path between the two ports, as its proposer sees it (IBA 12.6.5, 12.7, 12.8.1).
///
/// "Local" is the side of the sender of the message, "remote" that of its recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathFields {
    /// LID of the sender's port; 0xffff when the path leaves the subnet.
    pub local_port_lid: u16,
    /// LID of the recipient's port; 0xffff when the path leaves the subnet.
    pub remote_port_lid: u16,
    /// GID of the sender's port.
    pub local_port_gid: [u8; 16],
    /// GID of the recipient's port.
    pub remote_port_gid: [u8; 16],
    /// Flow label of the global route header, 20 bits.
    pub flow_label: u32,
    /// Static rate of the path as the subnet administrator encodes it, 6 bits
    /// (`enum ib_rate`).
    pub packet_rate: u8,
    /// Traffic class of the global route header.
    pub traffic_class: u8,
    /// Hop limit of the global route header; 0 or 1 within the subnet.
    pub hop_limit: u8,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Whether both ports are in one subnet, so that LIDs suffice.
    pub subnet_local: bool,
    /// Local ACK timeout that the sender uses on this path, 5 bits: 4.096 µs * 2^n.
    pub local_ack_timeout: u8,
}

impl PathFields {
    /// The path with every field zero: "no alternate path".
    pub const ZERO: Self = Self {
        local_port_lid: 0,
        remote_port_lid: 0,
        local_port_gid: [0; 16],
        remote_port_gid: [0; 16],
        flow_label: 0,
        packet_rate: 0,
        traffic_class: 0,
        hop_limit: 0,
        sl: 0,
        subnet_local: false,
        local_ack_timeout: 0,
    };
}

impl Default for PathFields {
    fn default() -> Self {
        Self::ZERO
    }
}

/// Whether the GID is one that Omni-Path makes up to carry a LID of 32 bits: its interface ID
/// begins with the OUI 00-06-6a (`ib_is_opa_gid` in `rdma/opa_addr.h`).
#[inline]
pub const fn is_opa_gid(gid: &[u8; 16]) -> bool {
    matches!(gid, [_, _, _, _, _, _, _, _, 0x00, 0x06, 0x6a, ..])
}

/// The LID that such a GID carries: its last four bytes (`opa_get_lid_from_gid`).
#[inline]
pub const fn opa_lid(gid: &[u8; 16]) -> u32 {
    let [.., a, b, c, d] = *gid;
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opa_gids_are_known_by_the_oui_of_their_interface_id() {
        let gid = 0xfe80_0000_0000_0000_0006_6a00_0012_3456_u128.to_be_bytes();
        assert!(is_opa_gid(&gid));
        assert_eq!(opa_lid(&gid), 0x12_3456);
        for byte in 8..11 {
            let mut other = gid;
            other[byte] ^= 0x10;
            assert!(!is_opa_gid(&other));
        }
        assert!(!is_opa_gid(&[0; 16]));
    }
}
