// SPDX-License-Identifier: GPL-2.0

//! Path records.
//!
//! C header: [`include/rdma/ib_sa.h`](srctree/include/rdma/ib_sa.h)

use core::ptr::NonNull;

use super::{
    bindings,
    gid::{
        Gid,
        GidType, //
    },
};

/// `enum sa_path_rec_type`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathType {
    /// InfiniBand.
    Ib,
    /// RoCE, version 1.
    RoceV1,
    /// RoCE, version 2.
    RoceV2,
    /// Omni-Path.
    Opa,
}

impl PathType {
    fn from_c(rec_type: bindings::sa_path_rec_type) -> Self {
        match rec_type {
            bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V1 => Self::RoceV1,
            bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V2 => Self::RoceV2,
            bindings::sa_path_rec_type_SA_PATH_REC_TYPE_OPA => Self::Opa,
            _ => Self::Ib,
        }
    }

    fn to_c(self) -> bindings::sa_path_rec_type {
        match self {
            Self::Ib => bindings::sa_path_rec_type_SA_PATH_REC_TYPE_IB,
            Self::RoceV1 => bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V1,
            Self::RoceV2 => bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V2,
            Self::Opa => bindings::sa_path_rec_type_SA_PATH_REC_TYPE_OPA,
        }
    }
}

/// Whether `gid` carries an Omni-Path LID.
pub(crate) fn is_opa_gid(gid: &Gid) -> bool {
    let gid = bindings::ib_gid { raw: *gid };
    // SAFETY: Reads one GID.
    unsafe { bindings::ib_cm_helper_is_opa_gid(&gid) }
}

/// The LID in a GID for which [`is_opa_gid`] holds.
pub(crate) fn opa_lid(gid: &Gid) -> u32 {
    let gid = bindings::ib_gid { raw: *gid };
    // SAFETY: Reads one GID.
    unsafe { bindings::ib_cm_helper_opa_lid(&gid) }
}

/// A path record, `struct sa_path_rec`. Numbers are in host order.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct PathRec(bindings::sa_path_rec);

// SAFETY: Plain data.
unsafe impl Send for PathRec {}
// SAFETY: Plain data.
unsafe impl Sync for PathRec {}

/// Getters of fields that need no conversion.
macro_rules! byte_getters {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(&self) -> u8 {
            self.0.$name
        }
    )*};
}

/// Setters of fields that need no conversion.
macro_rules! byte_setters {
    ($($set:ident => $name:ident;)*) => {$(
        #[doc = concat!("Sets `", stringify!($name), "`.")]
        pub(crate) fn $set(&mut self, value: u8) {
            self.0.$name = value;
        }
    )*};
}

impl PathRec {
    /// A record in which everything is zero.
    pub(crate) fn new() -> Self {
        Self(pin_init::zeroed())
    }

    /// A record that a consumer passed, or `None` for null.
    ///
    /// # Safety
    ///
    /// `path` is null or valid for reads during `'a`.
    pub(crate) unsafe fn from_ptr<'a>(path: *const bindings::sa_path_rec) -> Option<&'a Self> {
        // SAFETY: By the contract of this function; the type is transparent.
        unsafe { path.cast::<Self>().as_ref() }
    }

    /// The C object.
    pub(crate) fn raw_mut(&mut self) -> &mut bindings::sa_path_rec {
        &mut self.0
    }

    /// The C object, for an event. Valid as long as `self` stays where it is.
    pub(crate) fn as_mut_ptr(&mut self) -> NonNull<bindings::sa_path_rec> {
        NonNull::from(&mut self.0)
    }

    /// The kind of network.
    pub(crate) fn path_type(&self) -> PathType {
        PathType::from_c(self.0.rec_type)
    }

    /// Sets the kind of network.
    pub(crate) fn set_path_type(&mut self, path_type: PathType) {
        self.0.rec_type = path_type.to_c();
    }

    /// Sets the kind of network to that of a GID.
    pub(crate) fn set_path_type_of_gid(&mut self, gid_type: GidType) {
        self.set_path_type(match gid_type {
            GidType::Ib => PathType::Ib,
            GidType::RoceV1 => PathType::RoceV1,
            GidType::RoceV2 => PathType::RoceV2,
        });
    }

    /// The type of GID that paths of this kind use.
    pub(crate) fn gid_type(&self) -> GidType {
        match self.path_type() {
            PathType::Ib | PathType::Opa => GidType::Ib,
            PathType::RoceV1 => GidType::RoceV1,
            PathType::RoceV2 => GidType::RoceV2,
        }
    }

    /// Whether this is a RoCE path.
    pub(crate) fn is_roce(&self) -> bool {
        matches!(self.path_type(), PathType::RoceV1 | PathType::RoceV2)
    }

    /// Whether this is an Omni-Path path with a LID that does not fit in 16 bits.
    pub(crate) fn has_extended_lid(&self) -> bool {
        /// The first LID that InfiniBand takes for multicast (`IB_MULTICAST_LID_BASE`).
        const MULTICAST_BASE: u32 = 0xc000;

        self.path_type() == PathType::Opa
            && (self.dlid() >= MULTICAST_BASE || self.slid() >= MULTICAST_BASE)
    }

    /// The source LID; 0 on RoCE.
    pub(crate) fn slid(&self) -> u32 {
        // SAFETY: Reads one path record.
        unsafe { bindings::ib_cm_helper_path_slid(&self.0) }
    }

    /// Sets the source LID; nothing on RoCE.
    pub(crate) fn set_slid(&mut self, lid: u32) {
        // SAFETY: Writes one path record.
        unsafe { bindings::ib_cm_helper_path_set_slid(&mut self.0, lid) }
    }

    /// The destination LID; 0 on RoCE.
    pub(crate) fn dlid(&self) -> u32 {
        // SAFETY: Reads one path record.
        unsafe { bindings::ib_cm_helper_path_dlid(&self.0) }
    }

    /// Sets the destination LID; nothing on RoCE.
    pub(crate) fn set_dlid(&mut self, lid: u32) {
        // SAFETY: Writes one path record.
        unsafe { bindings::ib_cm_helper_path_set_dlid(&mut self.0, lid) }
    }

    /// The destination LID of a record that is taken for an InfiniBand one whatever it says.
    pub(crate) fn ib_dlid(&self) -> u16 {
        // SAFETY: Any bytes are a LID.
        u16::from_be(unsafe { self.0.__bindgen_anon_1.ib.dlid })
    }

    /// Sets the destination MAC address; nothing on other paths.
    pub(crate) fn set_dmac(&mut self, dmac: [u8; 6]) {
        if self.is_roce() {
            // Assigning to a field of a union reads nothing.
            self.0.__bindgen_anon_1.roce.dmac = dmac;
        }
    }

    /// Has the route of a RoCE path resolved again when it is next used.
    pub(crate) fn forget_route(&mut self) {
        if self.is_roce() {
            self.0.__bindgen_anon_1.roce.route_resolved = false;
        }
    }

    /// The source GID.
    pub(crate) fn sgid(&self) -> Gid {
        // SAFETY: Any bytes are a GID.
        unsafe { self.0.sgid.raw }
    }

    /// Sets the source GID.
    pub(crate) fn set_sgid(&mut self, gid: Gid) {
        self.0.sgid.raw = gid;
    }

    /// The destination GID.
    pub(crate) fn dgid(&self) -> Gid {
        // SAFETY: Any bytes are a GID.
        unsafe { self.0.dgid.raw }
    }

    /// Sets the destination GID.
    pub(crate) fn set_dgid(&mut self, gid: Gid) {
        self.0.dgid.raw = gid;
    }

    /// Sets the service ID.
    pub(crate) fn set_service_id(&mut self, service_id: u64) {
        self.0.service_id = service_id.to_be();
    }

    /// The flow label.
    pub(crate) fn flow_label(&self) -> u32 {
        u32::from_be(self.0.flow_label)
    }

    /// Sets the flow label.
    pub(crate) fn set_flow_label(&mut self, flow_label: u32) {
        self.0.flow_label = flow_label.to_be();
    }

    /// The P_Key.
    pub(crate) fn pkey(&self) -> u16 {
        u16::from_be(self.0.pkey)
    }

    /// Sets the P_Key.
    pub(crate) fn set_pkey(&mut self, pkey: u16) {
        self.0.pkey = pkey.to_be();
    }

    byte_getters! {
        /// The hop limit.
        hop_limit;
        /// The traffic class.
        traffic_class;
        /// The service level.
        sl;
        /// The MTU, `enum ib_mtu`.
        mtu;
        /// The packet rate, `enum ib_rate`.
        rate;
        /// The life time of a packet, as an exponent.
        packet_life_time;
    }

    byte_setters! {
        set_hop_limit => hop_limit;
        set_traffic_class => traffic_class;
        set_reversible => reversible;
        set_sl => sl;
        set_mtu_selector => mtu_selector;
        set_mtu => mtu;
        set_rate_selector => rate_selector;
        set_rate => rate;
        set_packet_life_time_selector => packet_life_time_selector;
        set_packet_life_time => packet_life_time;
    }
}

impl Default for PathRec {
    fn default() -> Self {
        Self::new()
    }
}
