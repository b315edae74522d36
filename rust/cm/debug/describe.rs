// SPDX-License-Identifier: GPL-2.0
//! An identifier in a line of the kernel's log.

use kernel::fmt;

use super::tables::{
    device_name,
    state_name, //
};
use crate::cm::id::Id;
use crate::rdma::table::DeviceName;
use ib_cm_proto::connection::Connection;
use ib_cm_proto::state::State;

/// What tells a connection from others, as it was a moment ago.
pub(crate) struct Described {
    device: DeviceName,
    conn: Connection,
}

impl Described {
    pub(crate) fn of(id: &Id) -> Self {
        let inner = id.lock();
        let conn = inner.conn;
        let device = inner.port().map(|port| port.device.clone());
        drop(inner);
        Described {
            device: device_name(device, &id.public),
            conn,
        }
    }

    pub(crate) fn state(&self) -> State {
        self.conn.state
    }
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conn = &self.conn;
        write!(
            f,
            "{}: id {} (peer's {}), queue pair {} (peer's {}), {}",
            self.device,
            conn.local_id,
            conn.remote_id,
            conn.local_qpn,
            conn.remote_qpn,
            state_name(conn.state as u32),
        )
    }
}
