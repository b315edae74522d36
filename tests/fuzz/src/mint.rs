// SPDX-License-Identifier: GPL-2.0
//! Forged MADs: well-formed messages that name what the victim knows, with some bytes changed.

use ib_cm_proto::wire::*;
use ib_cm_proto::Mad;
use ib_cm_proto::MAD_SIZE;

use crate::bytes::Bytes;

/// What the forger knows of a connection of the victim, as the victim sees it.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The victim's communication ID.
    pub local_id: u32,
    /// Its peer's.
    pub remote_id: u32,
    /// The victim's queue pair.
    pub local_qpn: u32,
    /// Its peer's.
    pub remote_qpn: u32,
    /// GUID of the peer's channel adapter.
    pub ca_guid: u64,
    /// The service.
    pub service: u64,
}

/// Makes a MAD.
pub fn mint(bytes: &mut Bytes<'_>, known: &Known) -> Mad {
    let kind = bytes.byte();
    let lie = bytes.byte();
    let tid = u64::from(lie);
    let local_comm_id = if lie & 1 == 0 { known.remote_id } else { 3 };
    let remote_comm_id = if lie & 2 == 0 { known.local_id } else { 5 };
    let our_qpn = if lie & 4 == 0 { known.remote_qpn } else { 7 };
    let your_qpn = if lie & 8 == 0 { known.local_qpn } else { 9 };
    let local_ca_guid = if lie & 16 == 0 { known.ca_guid } else { 11 };
    let detail = bytes.byte();
    let mut mad = [0; MAD_SIZE];
    match kind % 11 {
        0 => Req {
            tid,
            local_comm_id,
            local_ca_guid,
            local_qpn: our_qpn,
            service_id: known.service,
            max_cm_retries: detail % 16,
            local_cm_response_timeout: detail % 32,
            transport_service_type: detail / 64,
            ..Req::ZERO
        }
        .emit(&mut mad, &[]),
        1 => Mra {
            tid,
            local_comm_id,
            remote_comm_id,
            message_mraed: detail % 4,
            service_timeout: detail / 8,
        }
        .emit(&mut mad, &[]),
        2 => {
            let mut rej = Rej {
                tid,
                local_comm_id,
                remote_comm_id,
                message_rejected: detail % 4,
                reason: RejReason((detail / 4).into()),
                ..Rej::ZERO
            };
            rej.set_ari(&local_ca_guid.to_be_bytes()[usize::from(lie >> 5)..]);
            rej.emit(&mut mad, &[]);
        }
        3 => Rep {
            tid,
            local_comm_id,
            remote_comm_id,
            local_ca_guid,
            local_qpn: our_qpn,
            local_ee_context_number: our_qpn,
            target_ack_delay: detail % 32,
            ..Rep::ZERO
        }
        .emit(&mut mad, &[]),
        4 => Rtu {
            tid,
            local_comm_id,
            remote_comm_id,
        }
        .emit(&mut mad, &[]),
        5 => Dreq {
            tid,
            local_comm_id,
            remote_comm_id,
            remote_qpn_eecn: your_qpn,
        }
        .emit(&mut mad, &[]),
        6 => Drep {
            tid,
            local_comm_id,
            remote_comm_id,
        }
        .emit(&mut mad, &[]),
        7 => SidrReq {
            tid,
            request_id: local_comm_id,
            partition_key: 0xffff,
            service_id: known.service,
        }
        .emit(&mut mad, &[]),
        8 => SidrRep {
            tid,
            request_id: remote_comm_id,
            status: SidrStatus(detail % 8),
            info_length: detail,
            ..SidrRep::ZERO
        }
        .emit(&mut mad, &[]),
        9 => Lap {
            tid,
            local_comm_id,
            remote_comm_id,
            ..Lap::ZERO
        }
        .emit(&mut mad, &[]),
        _ => Apr {
            tid,
            local_comm_id,
            remote_comm_id,
            info_length: detail,
            ..Apr::ZERO
        }
        .emit(&mut mad, &[]),
    }
    if kind >= 176 {
        for _ in 0..bytes.below(4) {
            let at = usize::from(bytes.byte());
            mad[at] = bytes.byte();
        }
    }
    mad
}
