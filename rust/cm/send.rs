// SPDX-License-Identifier: GPL-2.0
//! Sending: buffers, records of sends in flight, and what happens when they end.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        ArcBorrow,
        SetOnce, //
    },
};

use super::act::With;
use super::av::Av;
use super::deliver::Delivery;
use super::id::Id;
use super::inbox::Arrival;
use super::manager;
use super::port::{
    Agents,
    Port, //
};
use crate::rdma::{
    ah::{
        AddressHandle,
        AhAttr, //
    },
    gate::GateGuard,
    mad::{
        Agent,
        Mad,
        SendBuf,
        Sent,
        Unanswered,
        WcStatus, //
    },
    params,
    record::{
        RecordPayload,
        SendRecord, //
    },
    sysfs::CounterGroup,
    trace, //
};
use ib_cm_proto::repeat::{
    Plan,
    Settings, //
};
use ib_cm_proto::step::{
    Call,
    Flight,
    Input,
    Refusal,
    Step, //
};
use ib_cm_proto::wire::AttrId;

/// What a send in flight carries: whose it is, and what.
///
/// The record belongs to the MAD layer's completion and to the identifier; so an adapter that
/// loses a completion costs memory, and never a process that waits.
pub(crate) struct Flying {
    id: Arc<Id>,
    flight: Flight,
    status: Atomic<u32>,
    /// How the module repeats it; none where the MAD layer does.
    plan: SetOnce<Plan>,
    /// How often the module has repeated it.
    repeated: Atomic<u32>,
    /// How long each further wait takes by an MRA, in milliseconds; 0 if as planned.
    every_ms: Atomic<u32>,
}

/// The record of a send in flight.
pub(crate) type Record = SendRecord<Flying>;

impl Flying {
    /// A record for a send of `id`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn record(id: Arc<Id>, flight: Flight) -> Result<Arc<Record>> {
        let flying = Flying {
            id,
            flight,
            status: Atomic::new(0),
            plan: SetOnce::new(),
            repeated: Atomic::new(0),
            every_ms: Atomic::new(0),
        };
        Arc::pin_init(Record::new(flying), GFP_ATOMIC)
    }

    /// The peer has asked for patience, and gets it for the wait that is under way.
    pub(crate) fn after_mra(&self, patience_ms: u32) {
        if let Some(plan) = self.plan.as_ref() {
            self.every_ms.store(plan.after_mra(patience_ms), Relaxed);
        }
    }
}

impl RecordPayload for Flying {
    /// The send has failed: the protocol decides what that means.
    fn run(record: Arc<Record>) {
        let mut with = With {
            status: record.status.load(Relaxed),
            record: Some(record.clone()),
            at_once: true,
            ..With::nothing()
        };
        let id = record.id.clone();
        let state = id.lock().conn.state;
        let outcome = id.act(Input::SendError(record.flight), &mut with);
        if outcome.step.is_some_and(|step| step != Step::NONE) {
            trace::mad_send_err(state as u32, with.status);
        }
        forget(&id, &record);
        if let Some(delivery) = Delivery::of(id, outcome.deliver, with.first) {
            delivery.one();
        }
    }
}

/// The identifier has no such send in flight any more.
fn forget(id: &Arc<Id>, record: &Arc<Record>) {
    let mut done_with = None;
    let mut inner = id.lock();
    if inner
        .record()
        .is_some_and(|in_flight| Arc::ptr_eq(in_flight, record))
    {
        done_with = inner.take_record();
    }
    let not_needed = inner.shed();
    drop(inner);
    drop((done_with, not_needed));
}

/// No answer has come: sends the message again if its plan says so.
pub(crate) fn unanswered(
    port: ArcBorrow<'_, Port>,
    unanswered: Unanswered<Port>,
) -> core::result::Result<(), Unanswered<Port>> {
    let flying = unanswered.record();
    let repeated = flying.repeated.load(Relaxed);
    let every_ms = flying.every_ms.load(Relaxed);
    let plan = flying.plan.as_ref();
    let Some(wait_ms) = plan.and_then(|plan| plan.next_ms(repeated, every_ms)) else {
        return Err(unanswered);
    };
    // An agent that goes away ends what is posted, and must not be given more.
    let Some(_agents) = port.enter() else {
        return Err(unanswered);
    };
    // Counted before: once it is posted the record may be at its end.
    flying.repeated.store(repeated.saturating_add(1), Relaxed);
    unanswered.post(wait_ms).inspect_err(|unanswered| {
        unanswered.record().repeated.store(repeated, Relaxed);
    })
}

/// A send is over: counts it, and lets a worker deal with a failure.
pub(crate) fn completed(port: ArcBorrow<'_, Port>, sent: Sent<Flying>) {
    if let Some(message) = AttrId::from_raw(sent.attr_id) {
        let record = sent.record.as_ref();
        let by_us = record.map_or(0, |record| record.repeated.load(Relaxed));
        let retries = sent.retries.saturating_add(by_us);
        port.count(CounterGroup::TxMsgs, message, retries.saturating_add(1));
        if retries > 0 {
            port.count(CounterGroup::TxRetries, message, retries);
        }
    }
    let Some(record) = sent.record else {
        return;
    };
    if sent.status == WcStatus::SUCCESS || sent.status == WcStatus::FLUSHED {
        // Whoever cancels a send has taken its record from the identifier before.
        if !sent.cancelled {
            let id = record.id.clone();
            forget(&id, &record);
        }
        return;
    }
    record.status.store(sent.status.to_c(), Relaxed);
    // A record completes once, so its work cannot be queued already.
    let _ = manager().work().queue().enqueue(record);
}

/// Whether a message says again what was said before, for the counters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It does not.
    No,
    /// It answers a duplicate; counted as C counts it.
    Direct,
    /// The module repeats it by its own timer; counted as the MAD layer's repetitions are.
    Module,
}

/// A buffer for a message along `av`. Does not sleep.
///
/// # Errors
///
/// `ENOMEM`, or what the adapter says about the address.
pub(crate) fn buffer(agent: &Agent<Port>, av: &Av, remote_qpn: u32) -> Result<Outgoing> {
    let ah = AddressHandle::create(agent, &av.attr, false)?;
    addressed(agent, ah, av.pkey_index, remote_qpn, false)
}

fn addressed(
    agent: &Agent<Port>,
    ah: AddressHandle<'_>,
    pkey_index: u16,
    remote_qpn: u32,
    sleepable: bool,
) -> Result<Outgoing> {
    let mut buf = agent.create_send(remote_qpn, pkey_index, sleepable)?;
    buf.set_ah(ah)?;
    Ok(Outgoing {
        buf,
        hi_tid: agent.hi_tid(),
    })
}

/// The port by which a message that is being made will leave.
pub(crate) type Way = Option<Arc<Port>>;

/// A message that is being made. It keeps the device registered.
pub(crate) struct Begun<'way> {
    /// To be filled and posted.
    pub(crate) outgoing: Outgoing,
    /// The port by which it will leave.
    pub(crate) port: &'way Port,
    _agents: GateGuard<'way, Agents>,
}

/// The agent for all messages but REPs.
pub(crate) fn main_agent(agents: &Agents) -> &Agent<Port> {
    &agents.main
}

/// Why there is no message.
pub(crate) enum NotBegun {
    /// The consumer may not send it now.
    Refused(Refusal),
    /// `EINVAL` when the device goes away; `ENOMEM`, or what the adapter says about the address.
    Failed(Error),
}

impl From<Error> for NotBegun {
    fn from(error: Error) -> Self {
        NotBegun::Failed(error)
    }
}

impl From<NotBegun> for Error {
    fn from(why: NotBegun) -> Self {
        match why {
            NotBegun::Refused(refusal) => super::refused(refusal),
            NotBegun::Failed(error) => error,
        }
    }
}

/// Begins a message of `id` along its primary path, by the agent that `by` chooses, if the state
/// permits the `call` that sends it. Does not sleep.
// One copy for all messages: they follow each other, and find it in the caches.
#[inline(never)]
pub(crate) fn begin<'way>(
    id: &Id,
    way: &'way mut Way,
    by: fn(&Agents) -> &Agent<Port>,
    call: Option<Call>,
) -> core::result::Result<Begun<'way>, NotBegun> {
    let inner = id.lock();
    if let Some(call) = call {
        inner.conn.permits(call).map_err(NotBegun::Refused)?;
    }
    let av = inner.av().ok_or(EINVAL)?;
    let port = &**way.insert(av.port.clone().ok_or(EINVAL)?);
    let agents = port.enter().ok_or(EINVAL)?;
    let agent = by(&agents);
    let pkey_index = av.pkey_index;
    // Most messages go where another one went just before. To make a handle takes too long for a
    // lock to be held.
    let known = AddressHandle::find(agent, &av.attr).ok_or_else(|| av.attr.copy());
    drop(inner);
    let ah = match known {
        Ok(ah) => ah,
        Err(attr) => AddressHandle::create(agent, &attr, false)?,
    };
    let outgoing = addressed(agent, ah, pkey_index, id.public.remote_cm_qpn(), false)?;
    Ok(Begun {
        outgoing,
        port,
        _agents: agents,
    })
}

/// Begins an answer to a MAD, to where it came from. May sleep.
///
/// # Errors
///
/// `EINVAL` when the device goes away; `ENOMEM`, or what address resolution says.
pub(crate) fn begin_reply<'way>(way: &'way mut Way, arrival: &Arrival) -> Result<Begun<'way>> {
    const GENERAL_SERVICES_QP: u32 = 1;

    let port = &**way.insert(arrival.port.clone());
    let agents = port.enter().ok_or(EINVAL)?;
    let agent = &agents.main;
    let attr = AhAttr::from_mad(agent, &arrival.mad)?;
    let ah = AddressHandle::create(agent, &attr, true)?;
    let pkey_index = arrival.mad.pkey_index();
    let outgoing = addressed(agent, ah, pkey_index, GENERAL_SERVICES_QP, true)?;
    Ok(Begun {
        outgoing,
        port,
        _agents: agents,
    })
}

/// A buffer that is ready to be filled and sent.
pub(crate) struct Outgoing {
    buf: SendBuf<Port>,
    hi_tid: u32,
}

impl Outgoing {
    /// The message to fill in.
    pub(crate) fn mad_mut(&mut self) -> &mut Mad {
        self.buf.mad_mut()
    }

    /// The high half of transaction IDs that begin here.
    pub(crate) fn hi_tid(&self) -> u32 {
        self.hi_tid
    }

    /// Sends it, expecting no answer.
    ///
    /// # Errors
    ///
    /// What the MAD layer says.
    pub(crate) fn post(mut self, repeat: Repeat) -> Result {
        match repeat {
            Repeat::No | Repeat::Module => {}
            Repeat::Direct => self.buf.set_direct_retry(),
        }
        self.buf.post().map_err(|(error, _)| error)
    }

    /// Sends it, and again every `timeout_ms` as long as no answer comes and `retries` last; or as
    /// the module's parameters say.
    ///
    /// # Errors
    ///
    /// What the MAD layer says.
    pub(crate) fn post_recorded(
        mut self,
        record: &Arc<Record>,
        timeout_ms: u32,
        retries: u8,
    ) -> Result {
        let settings = Settings {
            first_retry_ms: params::first_retry_ms(),
            mra_once: params::mra_once(),
        };
        match Plan::new(settings, timeout_ms, retries) {
            None => {
                self.buf.set_timeout_ms(timeout_ms);
                self.buf.set_retries(retries.into());
            }
            Some(plan) => {
                self.buf.set_timeout_ms(plan.first_ms());
                record.plan.populate(plan);
            }
        }
        record.post(self.buf)
    }
}

/// Answers a MAD at once, outside any connection, unless `fill` finds that there is nothing to say
/// any more.
///
/// # Errors
///
/// As [`begin_reply`] and [`Outgoing::post`].
pub(crate) fn reply(
    arrival: &Arrival,
    repeat: Repeat,
    fill: impl FnOnce(&mut Mad) -> bool,
) -> Result {
    let mut way = Way::None;
    let mut begun = begin_reply(&mut way, arrival)?;
    if fill(begun.outgoing.mad_mut()) {
        begun.outgoing.post(repeat)?;
    }
    Ok(())
}

/// The most messages that one step sends.
pub(crate) const MOST: usize = 2;

/// Messages begun in advance for a step.
pub(crate) struct Mail<'way> {
    begun: [Option<Result<Begun<'way>>>; MOST],
    wanted: usize,
}

impl<'way> Mail<'way> {
    /// For a step that sends `wanted` messages.
    pub(crate) fn new(wanted: usize) -> Self {
        Mail {
            begun: [None, None],
            wanted,
        }
    }

    /// How many messages there was an attempt to prepare.
    pub(crate) fn wanted(&self) -> usize {
        self.wanted
    }

    /// Adds a message, or the reason why there is none.
    pub(crate) fn add(&mut self, begun: Result<Begun<'way>>) {
        if let Some(free) = self.begun.iter_mut().find(|begun| begun.is_none()) {
            *free = Some(begun);
        }
    }

    /// Fills the next one and sends it.
    ///
    /// # Errors
    ///
    /// Why there is none, or what the MAD layer says.
    pub(crate) fn post(&mut self, repeat: Repeat, fill: impl FnOnce(&mut Mad, u32)) -> Result {
        let next = self.begun.iter_mut().find(|begun| begun.is_some());
        let Begun {
            mut outgoing,
            _agents: agents,
            ..
        } = next.and_then(Option::take).unwrap_or(Err(EINVAL))?;
        let hi_tid = outgoing.hi_tid();
        fill(outgoing.mad_mut(), hi_tid);
        let posted = outgoing.post(repeat);
        drop(agents);
        posted
    }
}
