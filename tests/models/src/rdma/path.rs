// SPDX-License-Identifier: GPL-2.0
//! Path records, of which nothing is kept.

pub(crate) use ib_cm_proto::wire::is_opa_gid;
pub(crate) use ib_cm_proto::wire::opa_lid;

#[derive(Clone, Copy)]
pub(crate) struct GidType;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathType {
    Ib,
    Roce,
    Opa,
}

pub(crate) struct PathRec;

macro_rules! forget {
    ($($name:ident: $type:ty,)*) => {$(
        pub(crate) fn $name(&mut self, _value: $type) {}
    )*};
}

impl PathRec {
    pub(crate) fn new() -> Self {
        PathRec
    }

    pub(crate) fn sgid(&self) -> [u8; 16] {
        [0; 16]
    }

    pub(crate) fn gid_type(&self) -> GidType {
        GidType
    }

    pub(crate) fn pkey(&self) -> u16 {
        0xffff
    }

    pub(crate) fn path_type(&self) -> PathType {
        PathType::Roce
    }

    pub(crate) fn is_roce(&self) -> bool {
        true
    }

    pub(crate) fn forget_route(&mut self) {}

    forget! {
        set_path_type: PathType,
        set_path_type_of_gid: GidType,
        set_service_id: u64,
        set_pkey: u16,
        set_mtu: u8,
        set_dlid: u32,
        set_slid: u32,
        set_dmac: [u8; 6],
        set_hop_limit: u8,
        set_dgid: [u8; 16],
        set_sgid: [u8; 16],
        set_flow_label: u32,
        set_traffic_class: u8,
        set_reversible: u8,
        set_sl: u8,
        set_mtu_selector: u8,
        set_rate_selector: u8,
        set_rate: u8,
        set_packet_life_time_selector: u8,
        set_packet_life_time: u8,
    }
}
