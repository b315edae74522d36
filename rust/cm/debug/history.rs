// SPDX-License-Identifier: GPL-2.0
//! The last changes of state of the newest identifiers, dead ones too.
//!
//! Off unless the module parameter `history` says for how many. Local IDs are handed out in turn,
//! so a table that an ID's number leads into holds the newest; nothing is allocated for an
//! identifier and nothing has to be freed with it.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::{
    fmt,
    prelude::*,
    static_lock_class, //
};

use super::tables::state_name;
use crate::cm::manager;
use crate::rdma::{
    clock::now_ns,
    params,
    spinlock::SpinLockIrq,
    table::{
        Rows,
        Table, //
    },
};
use ib_cm_proto::connection::Connection;
use ib_cm_proto::step::{
    Call,
    Flight,
    Input, //
};

/// Changes that are remembered of an identifier.
const CHANGES: usize = 16;

/// Parts of the table that have a lock of their own; a power of two.
const SHARDS: usize = 64;

/// More than this many identifiers are never remembered: 25 MiB.
const MOST: u32 = 65536;

/// What a change came from.
#[derive(Clone, Copy)]
pub(crate) enum Cause {
    /// An input of the state machine.
    Input(Input),
    /// A REQ or SIDR_REQ, for which the identifier was made.
    Request,
    /// A timer that could not be set, since the device goes or memory was short.
    Other,
}

#[derive(Clone, Copy)]
struct Change {
    at_ns: i64,
    was: u8,
    is: u8,
    cause: Cause,
}

impl Change {
    const NONE: Self = Change {
        at_ns: 0,
        was: 0,
        is: 0,
        cause: Cause::Other,
    };
}

/// The changes of one identifier.
#[derive(Clone, Copy)]
struct Slot {
    local_id: u32,
    /// How many there were; the last ones are remembered.
    count: usize,
    changes: [Change; CHANGES],
}

kernel::static_assert!(core::mem::size_of::<Slot>() <= 400);

impl Slot {
    const FREE: Self = Slot {
        local_id: 0,
        count: 0,
        changes: [Change::NONE; CHANGES],
    };

    fn add(&mut self, local_id: u32, change: Change) {
        if self.local_id != local_id {
            *self = Slot {
                local_id,
                ..Slot::FREE
            };
        }
        // A remainder by a constant is always in range, and the compiler knows it.
        self.changes[self.count % CHANGES] = change;
        self.count = self.count.wrapping_add(1);
    }
}

/// The table.
#[pin_data]
pub(crate) struct History {
    /// For how many identifiers there is room.
    room: AtomicU32,
    #[pin]
    shards: [SpinLockIrq<KVVec<Slot>>; SHARDS],
}

impl History {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            room: AtomicU32::new(0),
            shards <- pin_init::pin_init_array_from_fn(|_| {
                SpinLockIrq::new(KVVec::new(), c"ib_cm history", static_lock_class!())
            }),
        })
    }

    /// Makes as much room as the parameter asks for. May sleep, unless there is enough.
    pub(crate) fn make_room(&self) {
        let wanted = params::history().min(MOST);
        let room = self.room.load(Ordering::Relaxed);
        if wanted == room
            || self
                .room
                .compare_exchange(room, wanted, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
        {
            return;
        }
        let each = (wanted as usize).div_ceil(SHARDS);
        for shard in &self.shards {
            // Without memory there is no history, which is no reason to fail.
            let mut slots = KVVec::new();
            let _ = slots.extend_with(each, Slot::FREE, GFP_KERNEL | __GFP_NOWARN);
            core::mem::swap(&mut *shard.lock(), &mut slots);
            drop(slots);
        }
    }

    /// Remembers that a connection has changed its state.
    pub(crate) fn add(&self, conn: &Connection, was: u32, cause: Cause) {
        if params::history() == 0 {
            return;
        }
        let change = Change {
            at_ns: now_ns(),
            was: was as u8,
            is: conn.state as u8,
            cause,
        };
        let at = conn.local_id as usize;
        let mut slots = self.shards[at % SHARDS].lock();
        let room = slots.len().max(1);
        if let Some(slot) = slots.get_mut((at / SHARDS) % room) {
            slot.add(conn.local_id, change);
        }
    }

    /// A copy of the slot at a place, or none behind the last.
    fn slot(&self, shard: usize, at: usize) -> Option<Slot> {
        self.shards.get(shard)?.lock().get(at).copied()
    }
}

/// `history`.
pub(crate) struct Changes;

/// A place in the table.
#[derive(Default)]
pub(crate) struct At {
    shard: usize,
    slot: usize,
}

/// A change, and whose it is.
pub(crate) struct Row {
    local_id: u32,
    number: usize,
    change: Change,
}

impl Table for Changes {
    type Place = At;
    type Row = Row;

    const COLUMNS: &'static str = "local_id number time_s from to cause";

    fn read(place: &mut At, rows: &mut Rows<Row>) -> bool {
        manager().history.make_room();
        for _ in 0..super::LOOK_AT_MOST {
            if rows.room() < CHANGES {
                break;
            }
            match manager().history.slot(place.shard, place.slot) {
                Some(slot) => {
                    for number in slot.count.saturating_sub(CHANGES)..slot.count {
                        rows.add(Row {
                            local_id: slot.local_id,
                            number,
                            change: slot.changes[number % CHANGES],
                        });
                    }
                    place.slot = place.slot.saturating_add(1);
                }
                None if place.shard < SHARDS => {
                    place.shard = place.shard.saturating_add(1);
                    place.slot = 0;
                }
                None => return false,
            }
        }
        true
    }

    fn print(row: &Row, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = &row.change;
        let us = change.at_ns / 1000;
        write!(
            f,
            "{} {} {}.{:06} {} {} ",
            row.local_id,
            row.number,
            us / 1_000_000,
            us % 1_000_000,
            state_name(change.was.into()),
            state_name(change.is.into()),
        )?;
        print_cause(&change.cause, f)
    }
}

fn print_cause(cause: &Cause, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = match cause {
        Cause::Request => "received_request",
        Cause::Other => "no_timer",
        Cause::Input(input) => match input {
            Input::Call(Call::SendRej(reason)) => return write!(f, "call_rej_{}", reason.0),
            Input::Rej(reason) => return write!(f, "received_rej_{}", reason.0),
            Input::Call(call) => call_name(*call),
            Input::DreqNotSent => "dreq_not_sent",
            Input::Destroy { .. } => "destroyed",
            Input::Rep => "received_rep",
            Input::StaleRep => "received_stale_rep",
            Input::Rtu => "received_rtu",
            Input::Dreq { .. } => "received_dreq",
            Input::Drep => "received_drep",
            Input::Mra(_) => "received_mra",
            Input::Lap => "received_lap",
            Input::Apr => "received_apr",
            Input::SidrRep => "received_sidr_rep",
            Input::Stale => "stale",
            Input::Abandoned => "process_gone",
            Input::SendError(Flight::Req) => "no_answer_to_req",
            Input::SendError(Flight::Rep) => "no_answer_to_rep",
            Input::SendError(Flight::Dreq) => "no_answer_to_dreq",
            Input::SendError(Flight::SidrReq) => "no_answer_to_sidr_req",
            Input::Timer => "timer",
            Input::DeviceGone => "device_gone",
        },
    };
    f.write_str(name)
}

fn call_name(call: Call) -> &'static str {
    match call {
        Call::Listen => "call_listen",
        Call::SendReq => "call_req",
        Call::SendRep => "call_rep",
        Call::SendRtu => "call_rtu",
        Call::SendDreq => "call_dreq",
        Call::SendDrep => "call_drep",
        Call::SendRej(_) => "call_rej",
        Call::PrepareMra => "call_mra",
        Call::SendSidrReq => "call_sidr_req",
        Call::SendSidrRep => "call_sidr_rep",
        Call::Established => "call_established",
        Call::PathMigrated => "call_path_migrated",
    }
}

#[kunit_tests(ib_cm_history)]
mod tests {
    use super::*;

    fn change(at_ns: i64) -> Change {
        Change {
            at_ns,
            ..Change::NONE
        }
    }

    #[test]
    fn the_last_sixteen_are_remembered() {
        let mut slot = Slot::FREE;
        for at_ns in 0..40 {
            slot.add(1, change(at_ns));
        }
        assert_eq!(slot.count, 40);
        for number in slot.count - CHANGES..slot.count {
            assert_eq!(slot.changes[number % CHANGES].at_ns, number as i64);
        }
    }

    #[test]
    fn a_newer_identifier_takes_the_place() {
        let mut slot = Slot::FREE;
        slot.add(1, change(1));
        slot.add(65, change(2));
        assert_eq!((slot.local_id, slot.count), (65, 1));
        assert_eq!(slot.changes[0].at_ns, 2);
    }
}
