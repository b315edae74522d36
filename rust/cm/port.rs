// SPDX-License-Identifier: GPL-2.0
//! Adapters and their ports: what is registered with the IB core when a device is added.

use kernel::{
    new_delayed_work,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        SetOnce,
        UniqueArc, //
    },
    workqueue::{
        impl_has_delayed_work,
        DelayedWork,
        WorkItem, //
    },
};

use super::hold::Holder;
use super::id::{
    self,
    Id, //
};
use super::inbox::Inbox;
use super::manager;
use super::receive;
use super::send::{
    self,
    Flying, //
};
use super::timers::{
    jiffies,
    Milliseconds,
    Timer,
    Timers, //
};
use crate::rdma::{
    client::{
        Client,
        ClientCell, //
    },
    delayed,
    device::{
        DeviceRef,
        IbDevice,
        LiveDevice, //
    },
    gate::{
        Gate,
        GateGuard, //
    },
    handles::Handles,
    mad::{
        Agent,
        MadHandler,
        RecvMad,
        Sent,
        Unanswered, //
    },
    sysfs::{
        CounterGroup,
        CounterGroups,
        Counters, //
    },
    ufile::TeardownHook,
};
use ib_cm_proto::wire::AttrId;

/// Expired timers that are served before the work makes room for other work.
const TIMERS_AT_A_TIME: usize = 256;

/// What outlives the registration of a device as long as an identifier refers to it.
#[pin_data]
pub(crate) struct Device {
    ib: DeviceRef,
    /// `local_ca_ack_delay` of the device (IBA time).
    pub(crate) ack_delay: u8,
    /// GUID of the adapter, in host byte order.
    pub(crate) node_guid: u64,
    #[pin]
    pub(crate) timers: Timers,
    #[pin]
    expiry: DelayedWork<Device>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Device { self.expiry }
}

impl WorkItem for Device {
    type Pointer = Arc<Device>;

    fn run(device: Arc<Device>) {
        // Not too many at a time: others want to run, too.
        for _ in 0..TIMERS_AT_A_TIME {
            let Some((deadline, id)) = device.timers.expired() else {
                break;
            };
            id::timer_expired(&device, &id, deadline);
        }
        device.timers.rearm(|delay| device.run_timers_in(delay));
    }
}

impl Device {
    fn new(ib: &IbDevice) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Device {
                ib: ib.into(),
                ack_delay: ib.local_ca_ack_delay(),
                node_guid: ib.node_guid(),
                timers <- Timers::new(),
                expiry <- new_delayed_work!("ib_cm timers"),
            }),
            GFP_KERNEL,
        )
    }

    /// The kernel's device: its memory stays, but it is registered only as long as a port of it
    /// can be entered.
    pub(crate) fn ib(&self) -> &IbDevice {
        &self.ib
    }

    /// A number that tells devices apart.
    pub(crate) fn key(&self) -> usize {
        self.ib.as_ptr() as usize
    }

    /// Sets the timer of an identifier; see [`Timers::set`].
    ///
    /// # Errors
    ///
    /// `ENODEV` when the device goes away, `ENOMEM` where no memory was set aside.
    pub(crate) fn set_timer(
        self: &Arc<Self>,
        timer: &mut Timer,
        id: &Arc<Id>,
        delay: Milliseconds,
    ) -> Result {
        self.timers
            .set(timer, id, delay, |delay| self.run_timers_in(delay))
    }

    /// Lets expired timers be served after `delay`.
    fn run_timers_in(self: &Arc<Self>, delay: Milliseconds) {
        delayed::schedule(manager().work(), self.clone(), jiffies(delay));
    }
}

/// The agents of a port.
pub(crate) struct Agents {
    /// Receives, and sends with flow control.
    pub(crate) main: Agent<Port>,
    /// Sends REPs, without flow control: they must not queue behind our own REQs, or two hosts
    /// that connect to each other starve each other.
    pub(crate) rep: Agent<Port>,
}

/// A port that speaks CM.
#[pin_data]
pub(crate) struct Port {
    /// The device of the port.
    pub(crate) device: Arc<Device>,
    /// Its number, from 1.
    pub(crate) number: u32,
    agents: SetOnce<Gate<Agents>>,
    /// Received MADs that wait for their turn.
    #[pin]
    pub(crate) inbox: Inbox,
    counters: Counters,
}

impl AsRef<Counters> for Port {
    fn as_ref(&self) -> &Counters {
        &self.counters
    }
}

impl Port {
    fn new(device: Arc<Device>, number: u32) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Port {
                device,
                number,
                agents: SetOnce::new(),
                inbox <- Inbox::new(),
                counters: Counters::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Registers the agents.
    fn open(self: &Arc<Self>, device: &LiveDevice<'_>) -> Result {
        let handles = Handles::new()?;
        let agents = Agents {
            main: Agent::register(device, self.number, self.clone(), handles.clone())?,
            rep: Agent::register_sender(device, self.number, self.clone(), handles)?,
        };
        self.agents.populate(Gate::new(agents));
        Ok(())
    }

    /// Unregisters the agents, once nobody uses them any more. All sends complete.
    fn close(&self) {
        drop(self.agents.as_ref().and_then(Gate::close));
        self.inbox.drain();
    }

    /// The agents, unless the device goes away. As long as the guard lives the device stays.
    pub(crate) fn enter(&self) -> Option<GateGuard<'_, Agents>> {
        self.agents.as_ref()?.enter()
    }

    /// Counts `by` messages.
    pub(crate) fn count(&self, group: CounterGroup, message: AttrId, by: u32) {
        self.counters.add(group, message.raw(), by);
    }
}

impl MadHandler for Port {
    type Payload = Flying;

    fn received(port: ArcBorrow<'_, Port>, mad: RecvMad) {
        receive::enqueue(port, mad);
    }

    fn unanswered(
        port: ArcBorrow<'_, Port>,
        unanswered: Unanswered<Port>,
    ) -> core::result::Result<(), Unanswered<Port>> {
        send::unanswered(port, unanswered)
    }

    fn sent(port: ArcBorrow<'_, Port>, sent: Sent<Flying>) {
        send::completed(port, sent);
    }
}

/// An adapter while it is registered.
pub(crate) struct Adapter {
    pub(crate) device: Arc<Device>,
    ports: KVec<Arc<Port>>,
}

impl Adapter {
    /// A port, by its number; none where the port does not speak CM.
    pub(crate) fn port(&self, number: u32) -> Option<Arc<Port>> {
        self.ports
            .iter()
            .find(|port| port.number == number)
            .cloned()
    }
}

/// What a device was registered with. Undone by [`Registered::close`].
pub(crate) struct Registered {
    adapter: Arc<Adapter>,
    /// Taken away first: holds end before anything else does.
    hook: SetOnce<Gate<TeardownHook>>,
    counters: KVec<CounterGroups<Port>>,
    /// Ports that the subnet was told of.
    advertised: KVec<u32>,
}

impl Registered {
    /// Opens the ports of `adapter`.
    fn open(&mut self, live: &LiveDevice<'_>) -> Result {
        for port in self.adapter.ports.iter() {
            let counters = CounterGroups::register(live, port.number, port.clone())?;
            self.counters.push(counters, GFP_KERNEL)?;
            port.open(live)?;
            self.advertised.reserve(1, GFP_KERNEL)?;
            live.advertise_cm(port.number, true)?;
            self.advertised.push(port.number, GFP_KERNEL)?;
        }
        manager().add_adapter(self.adapter.clone())?;
        match TeardownHook::install(live, Arc::new(Holder, GFP_KERNEL)?) {
            Ok(hook) => {
                self.hook.populate(Gate::new(hook));
            }
            Err(error) => pr_warn!(
                "queue pairs of dead processes are not held on this kernel ({})\n",
                error.to_errno()
            ),
        }
        Ok(())
    }

    /// Takes everything back: no new work, sends ended, received MADs processed, timers stopped,
    /// connections told.
    fn close(&self, live: &LiveDevice<'_>) {
        drop(self.hook.as_ref().and_then(Gate::close));
        manager().remove_adapter(&self.adapter);
        for port in self.advertised.iter() {
            // A device that refuses is going anyway.
            let _ = live.advertise_cm(*port, false);
        }
        self.adapter.device.timers.close();
        for port in self.adapter.ports.iter() {
            port.close();
        }
        let key = self.adapter.device.key();
        manager().replays.forget(key);
        manager().local_ids.for_each(|_, id| {
            if id.public.device_key() == key {
                id.lose_device(&self.adapter.device);
            }
        });
        delayed::cancel(&self.adapter.device);
        // Those that have left the index meanwhile.
        while let Some(id) = self.adapter.device.timers.first() {
            id.lose_device(&self.adapter.device);
        }
    }
}

/// The connection manager as a client of the IB core.
pub(crate) struct Cm;

static CELL: ClientCell<Cm> = ClientCell::new(c"cm");

impl Client for Cm {
    type Data = Registered;

    fn cell() -> &'static ClientCell<Self> {
        &CELL
    }

    fn add(live: &LiveDevice<'_>) -> Result<Arc<Registered>> {
        let device = Device::new(live)?;
        let mut ports = KVec::new();
        for number in live.ports() {
            if live.cap_ib_cm(number) {
                ports.push(Port::new(device.clone(), number)?, GFP_KERNEL)?;
            }
        }
        if ports.is_empty() {
            return Err(ENOTSUPP);
        }
        let adapter = Arc::new(Adapter { device, ports }, GFP_KERNEL)?;
        let mut registered = KBox::new(
            Registered {
                adapter,
                hook: SetOnce::new(),
                counters: KVec::new(),
                advertised: KVec::new(),
            },
            GFP_KERNEL,
        )?;
        let memory = UniqueArc::new_uninit(GFP_KERNEL)?;
        if let Err(error) = registered.open(live) {
            registered.close(live);
            return Err(error);
        }
        Ok(memory.write(KBox::into_inner(registered)).into())
    }

    fn remove(live: &LiveDevice<'_>, data: Arc<Registered>) {
        data.close(live);
    }
}
