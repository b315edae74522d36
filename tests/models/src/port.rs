// SPDX-License-Identifier: GPL-2.0
//! Devices and ports that are there until a model ends.

use ib_cm_proto::wire::AttrId;
use kernel::prelude::*;
use kernel::sync::Arc;

use super::id::Id;
use super::inbox::Inbox;
use super::timers::Milliseconds;
use super::timers::Timer;
use super::timers::Timers;
use crate::rdma::device::IbDevice;
use crate::rdma::gate::Gate;
use crate::rdma::gate::GateGuard;
use crate::rdma::mad::Agent;
use crate::rdma::mad::MadHandler;
use crate::rdma::sysfs::CounterGroup;

/// A device.
pub(crate) struct Device {
    ib: Box<IbDevice>,
    pub(crate) ack_delay: u8,
    pub(crate) node_guid: u64,
    pub(crate) timers: Timers,
}

impl Device {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Device {
            ib: Box::new(IbDevice::new()),
            ack_delay: 0,
            node_guid: 1,
            timers: kernel::init::make(Timers::new()).expect("there is memory"),
        })
    }

    pub(crate) fn ib(&self) -> &IbDevice {
        &self.ib
    }

    pub(crate) fn key(&self) -> usize {
        self.ib.as_ptr() as usize
    }

    /// Models run expired timers by themselves.
    pub(crate) fn set_timer(
        self: &Arc<Self>,
        timer: &mut Timer,
        id: &Arc<Id>,
        delay: Milliseconds,
    ) -> Result {
        self.timers.set(timer, id, delay, |_| {})
    }
}

/// The agents of a port.
pub(crate) struct Agents {
    pub(crate) main: Agent<Port>,
    pub(crate) rep: Agent<Port>,
}

/// A port.
pub(crate) struct Port {
    pub(crate) device: Arc<Device>,
    pub(crate) number: u32,
    pub(crate) inbox: Inbox,
    agents: Gate<Agents>,
}

impl Port {
    pub(crate) fn new(device: Arc<Device>) -> Arc<Self> {
        Arc::new(Port {
            device,
            number: 1,
            inbox: kernel::init::make(Inbox::new()).expect("there is memory"),
            agents: Gate::new(Agents {
                main: Agent::new(),
                rep: Agent::new(),
            }),
        })
    }

    pub(crate) fn enter(&self) -> Option<GateGuard<'_, Agents>> {
        self.agents.enter()
    }

    pub(crate) fn count(&self, _group: CounterGroup, _message: AttrId, _by: u32) {}
}

impl MadHandler for Port {
    type Payload = super::send::Flying;
}

/// An adapter.
pub(crate) struct Adapter {
    pub(crate) device: Arc<Device>,
    pub(crate) port: Arc<Port>,
}

impl Adapter {
    pub(crate) fn port(&self, _number: u32) -> Option<Arc<Port>> {
        Some(self.port.clone())
    }
}
