// SPDX-License-Identifier: GPL-2.0
//! `connections`: every identifier but the listeners.

use core::net::Ipv6Addr;

use kernel::{
    fmt,
    sync::Arc, //
};

use super::tables::{
    device_name,
    lap_name,
    state_name,
    type_name, //
};
use crate::cm::id::Id;
use crate::cm::index::Place;
use crate::cm::inner::Inner;
use crate::cm::manager;
use crate::cm::manager::{
    LocalId,
    SidrRequest, //
};
use crate::rdma::table::{
    DeviceName,
    ModuleOf,
    Rows,
    Table, //
};
use ib_cm_proto::connection::Connection;
use ib_cm_proto::state::State;

/// `connections`.
pub(crate) struct Connections;

/// First the identifiers that receive connection messages, then those that answer SIDR_REQs.
#[derive(Default)]
pub(crate) struct At {
    ids: Place<LocalId>,
    ids_done: bool,
    sidr: Place<SidrRequest>,
}

impl At {
    fn next(&mut self) -> Option<Arc<Id>> {
        if !self.ids_done {
            if let Some((_, id)) = manager().local_ids.next(&mut self.ids) {
                return Some(id);
            }
            self.ids_done = true;
        }
        let (_, id) = manager().sidr_requests.next(&mut self.sidr)?;
        Some(id)
    }
}

/// What is shown of an identifier.
pub(crate) struct Row {
    conn: Connection,
    device: DeviceName,
    port: u32,
    peer: [u8; 16],
    peer_lid: u32,
    service_id: u64,
    age_ms: u64,
    left_ms: Option<u32>,
    busy: bool,
    /// The consumer's handler, an address that is only looked up.
    handler: usize,
}

impl Row {
    fn of(id: &Id) -> Self {
        let inner = id.lock();
        let (port, peer, peer_lid) = address(&inner);
        let conn = inner.conn;
        let left_ms = inner.timer.left_ms();
        let busy = inner.is_delivering();
        let device = inner.port().map(|port| port.device.clone());
        drop(inner);
        Row {
            conn,
            device: device_name(device, &id.public),
            port,
            peer,
            peer_lid,
            service_id: id.public.service_id(),
            age_ms: id.changed.age_ms(),
            left_ms,
            busy,
            handler: id.public.handler().map_or(0, |handler| handler as usize),
        }
    }
}

/// Port number, GID and LID of the primary path.
fn address(inner: &Inner) -> (u32, [u8; 16], u32) {
    let number = inner.port().map_or(0, |port| port.number);
    match inner.av() {
        Some(av) if number != 0 => (number, av.attr.dgid(), av.attr.dlid()),
        _ => (number, [0; 16], 0),
    }
}

/// What the next step waits for.
fn waits_for(state: State, busy: bool) -> &'static str {
    match state {
        State::ReqSent | State::MraReqRcvd => "peer:rep",
        State::ReqRcvd | State::MraReqSent => "consumer:rep",
        State::RepSent | State::MraRepRcvd => "peer:rtu",
        State::RepRcvd | State::MraRepSent => "consumer:rtu",
        State::DreqSent => "peer:drep",
        State::DreqRcvd => "consumer:drep",
        State::Timewait => "time",
        State::SidrReqSent => "peer:sidr_rep",
        State::SidrReqRcvd => "consumer:sidr_rep",
        State::Idle | State::Listen | State::Established if busy => "consumer:handler",
        State::Idle | State::Listen | State::Established => "-",
    }
}

impl Table for Connections {
    type Place = At;
    type Row = Row;

    const COLUMNS: &'static str = "local_id remote_id device port type state lap local_qpn \
        remote_qpn peer remote_guid service_id age_s waits left_ms timeout_ms retries \
        handler owner";

    fn read(place: &mut At, rows: &mut Rows<Row>) -> bool {
        for _ in 0..super::LOOK_AT_MOST {
            let Some(id) = place.next() else {
                return false;
            };
            let row = Row::of(&id);
            if row.conn.state != State::Listen && !rows.add(row) {
                break;
            }
        }
        true
    }

    fn print(row: &Row, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conn = &row.conn;
        write!(
            f,
            "{} {} {} {} {} {} {} {} {} ",
            conn.local_id,
            conn.remote_id,
            row.device,
            row.port,
            type_name(conn),
            state_name(conn.state as u32),
            lap_name(conn.lap),
            conn.local_qpn,
            conn.remote_qpn,
        )?;
        if row.peer != [0; 16] {
            write!(f, "{}", Ipv6Addr::from(row.peer))?;
        } else if row.peer_lid != 0 {
            write!(f, "lid:{}", row.peer_lid)?;
        } else {
            f.write_str("-")?;
        }
        write!(
            f,
            " {:#018x} {:#018x} {}.{} {} ",
            conn.remote_ca_guid,
            row.service_id,
            row.age_ms / 1000,
            row.age_ms % 1000 / 100,
            waits_for(conn.state, row.busy),
        )?;
        match row.left_ms {
            Some(left_ms) => write!(f, "{left_ms}")?,
            None => f.write_str("-")?,
        }
        write!(
            f,
            " {} {} {} ",
            conn.timeout_ms,
            conn.max_cm_retries,
            if row.busy { "busy" } else { "idle" },
        )?;
        if conn.is_orphan() || row.handler == 0 {
            return f.write_str("none");
        }
        write!(f, "{}", ModuleOf(row.handler))
    }
}
