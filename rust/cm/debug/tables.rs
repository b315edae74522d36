// SPDX-License-Identifier: GPL-2.0
//! The shorter tables, and what all have in common.

use core::sync::atomic::Ordering;

use kernel::{
    fmt,
    sync::Arc,
    time::NSEC_PER_MSEC, //
};

use crate::cm::index::Place;
use crate::cm::manager;
use crate::cm::manager::{
    LocalId,
    Service, //
};
use crate::cm::port::Device;
use crate::cm::public::Public;
use crate::rdma::{
    clock::now_ns,
    params,
    table::{
        DeviceName,
        ModuleOf,
        Rows,
        Table,
        Word, //
    },
    task::TaskName, //
};
use ib_cm_proto::connection::{
    Connection,
    QpType, //
};
use ib_cm_proto::state::{
    LapState,
    State, //
};

/// The name of a state, as in the trace events.
pub(super) fn state_name(state: u32) -> &'static str {
    const NAMES: [&str; State::ALL.len()] = [
        "IDLE",
        "LISTEN",
        "REQ_SENT",
        "REQ_RCVD",
        "MRA_REQ_SENT",
        "MRA_REQ_RCVD",
        "REP_SENT",
        "REP_RCVD",
        "MRA_REP_SENT",
        "MRA_REP_RCVD",
        "ESTABLISHED",
        "DREQ_SENT",
        "DREQ_RCVD",
        "TIMEWAIT",
        "SIDR_REQ_SENT",
        "SIDR_REQ_RCVD",
    ];
    NAMES.get(state as usize).copied().unwrap_or("?")
}

pub(super) fn lap_name(state: LapState) -> &'static str {
    match state {
        LapState::Uninit => "-",
        LapState::Idle => "LAP_IDLE",
        LapState::Sent => "LAP_SENT",
        LapState::Rcvd => "LAP_RCVD",
        LapState::MraSent => "MRA_LAP_SENT",
        LapState::MraRcvd => "MRA_LAP_RCVD",
    }
}

pub(super) fn type_name(conn: &Connection) -> &'static str {
    match conn.state {
        State::SidrReqSent | State::SidrReqRcvd => "UD",
        // Nothing has been said yet.
        State::Idle if conn.local_qpn == 0 && conn.remote_qpn == 0 => "-",
        _ => match conn.qp_type {
            QpType::Rc => "RC",
            QpType::Uc => "UC",
            QpType::XrcIni => "XRC_INI",
            QpType::XrcTgt => "XRC_TGT",
            QpType::Other => "-",
        },
    }
}

/// The device of a path, else that which an identifier was made for, if it is still there.
pub(super) fn device_name(device: Option<Arc<Device>>, public: &Public) -> DeviceName {
    let adapter = |key| Some(manager().adapter(key)?.device.clone());
    device
        .or_else(|| adapter(public.device_key()))
        .map_or(DeviceName::NONE, |device| DeviceName::of(device.ib()))
}

/// `timewait`: the connections that are over and whose queue pairs must stay.
pub(crate) struct Timewaits;

pub(crate) struct TimewaitRow {
    conn: Connection,
    device: DeviceName,
    left_ms: u32,
    age_ms: u64,
    held: bool,
}

impl Table for Timewaits {
    type Place = Place<LocalId>;
    type Row = TimewaitRow;

    const COLUMNS: &'static str =
        "local_id remote_id device local_qpn remote_qpn age_s left_ms held owner";

    fn read(place: &mut Self::Place, rows: &mut Rows<TimewaitRow>) -> bool {
        for _ in 0..super::LOOK_AT_MOST {
            let Some((key, id)) = manager().local_ids.next(place) else {
                return false;
            };
            let inner = id.lock();
            if inner.conn.state != State::Timewait {
                continue;
            }
            let conn = inner.conn;
            let left_ms = inner.timer.left_ms().unwrap_or(0);
            let device = inner.port().map(|port| port.device.clone());
            drop(inner);
            let row = TimewaitRow {
                conn,
                device: device_name(device, &id.public),
                left_ms,
                age_ms: id.changed.age_ms(),
                held: manager().held.find(&key).is_some(),
            };
            if !rows.add(row) {
                break;
            }
        }
        true
    }

    fn print(row: &TimewaitRow, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {} {} {}.{} {} {} {}",
            row.conn.local_id,
            row.conn.remote_id,
            row.device,
            row.conn.local_qpn,
            row.conn.remote_qpn,
            row.age_ms / 1000,
            row.age_ms % 1000 / 100,
            row.left_ms,
            if row.held { "yes" } else { "no" },
            if row.conn.is_orphan() {
                "none"
            } else {
                "consumer"
            },
        )
    }
}

/// `holds`: the queue pairs whose destruction waits, and the process that waits with them.
pub(crate) struct HoldsTable;

pub(crate) struct HoldRow {
    conn: Connection,
    device: DeviceName,
    held_ms: i64,
    left_ms: Option<u32>,
    task: TaskName,
}

impl Table for HoldsTable {
    type Place = Place<LocalId>;
    type Row = HoldRow;

    const COLUMNS: &'static str =
        "local_id remote_id device local_qpn remote_qpn state held_ms left_ms limit_ms pid command";

    fn read(place: &mut Self::Place, rows: &mut Rows<HoldRow>) -> bool {
        while let Some((_, hold)) = manager().held.next(place) {
            let inner = hold.id.lock();
            let conn = inner.conn;
            let left_ms = inner.timer.left_ms();
            let device = inner.port().map(|port| port.device.clone());
            drop(inner);
            let row = HoldRow {
                conn,
                device: device_name(device, &hold.id.public),
                held_ms: now_ns().saturating_sub(hold.since_ns) / NSEC_PER_MSEC,
                left_ms,
                task: hold.task,
            };
            if !rows.add(row) {
                return true;
            }
        }
        false
    }

    fn print(row: &HoldRow, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {} {} {} {} ",
            row.conn.local_id,
            row.conn.remote_id,
            row.device,
            row.conn.local_qpn,
            row.conn.remote_qpn,
            state_name(row.conn.state as u32),
            row.held_ms,
        )?;
        match row.left_ms {
            Some(left_ms) => write!(f, "{left_ms}")?,
            None => f.write_str("-")?,
        }
        write!(
            f,
            " {} {} {}",
            params::hold_max_ms(),
            row.task.pid,
            Word(row.task.name()),
        )
    }
}

/// `listeners`.
pub(crate) struct Listeners;

pub(crate) struct ListenerRow {
    device: DeviceName,
    service_id: u64,
    shares: u32,
    running: i32,
    local_id: u32,
    age_ms: u64,
    handler: usize,
}

impl Table for Listeners {
    type Place = Place<Service>;
    type Row = ListenerRow;

    const COLUMNS: &'static str = "device service_id shares requests age_s local_id owner";

    fn read(place: &mut Self::Place, rows: &mut Rows<ListenerRow>) -> bool {
        while let Some((key, id)) = manager().services.next(place) {
            let inner = id.lock();
            let (shares, local_id) = (inner.shares, inner.conn.local_id);
            drop(inner);
            let row = ListenerRow {
                device: device_name(None, &id.public),
                service_id: key.service_id,
                shares,
                running: id.running.get(),
                local_id,
                age_ms: id.changed.age_ms(),
                handler: id.public.handler().map_or(0, |handler| handler as usize),
            };
            if !rows.add(row) {
                return true;
            }
        }
        false
    }

    fn print(row: &ListenerRow, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {:#018x} {} {} {}.{} {} {}",
            row.device,
            row.service_id,
            row.shares,
            row.running,
            row.age_ms / 1000,
            row.age_ms % 1000 / 100,
            row.local_id,
            ModuleOf(row.handler),
        )
    }
}

/// `live`: how many identifiers exist.
pub(crate) struct Live;

impl Table for Live {
    type Place = ();
    type Row = u32;

    const COLUMNS: &'static str = "";

    fn read((): &mut (), rows: &mut Rows<u32>) -> bool {
        rows.add(manager().live.load(Ordering::Relaxed));
        false
    }

    fn print(row: &u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{row}")
    }
}

/// `stats`: a line for each count, its name, a blank, its value.
pub(crate) struct Stats;

impl Table for Stats {
    type Place = ();
    type Row = (&'static str, u64);

    const COLUMNS: &'static str = "";

    fn read((): &mut (), rows: &mut Rows<Self::Row>) -> bool {
        let manager = manager();
        let holds = &manager.holds;
        rows.add(("ids", manager.live.load(Ordering::Relaxed).into()));
        rows.add(("holds_taken", holds.taken.load(Ordering::Relaxed)));
        rows.add(("holds_released", holds.released.load(Ordering::Relaxed)));
        rows.add(("holds_expired", holds.expired.load(Ordering::Relaxed)));
        false
    }

    fn print(row: &Self::Row, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", row.0, row.1)
    }
}
