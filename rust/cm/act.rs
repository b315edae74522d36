// SPDX-License-Identifier: GPL-2.0
//! Carrying out what the protocol decides.
//!
//! [`Id::act`] gives an input to the state machine of an identifier and does what it says. Address
//! handles and buffers are made before the lock is taken, so the decision is taken twice: once to
//! see what it needs, once for good. When it asks for more the second time, it is taken again.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::av::Av;
use super::debug::Cause;
use super::deliver;
use super::event::{
    Event,
    Events, //
};
use super::id::Id;
use super::inbox::Arrival;
use super::inner::Inner;
use super::port::Device;
use super::send::{
    self,
    Mail,
    Record,
    Repeat,
    Way,
    MOST, //
};
use super::timers::Deadline;
use crate::rdma::{
    sysfs::CounterGroup,
    trace, //
};
use ib_cm_proto::state::State;
use ib_cm_proto::step::{
    Indices,
    Input,
    Report,
    Step,
    Timer, //
};
use ib_cm_proto::time;
use ib_cm_proto::wire::{
    AttrId,
    RejReason, //
};

/// What comes with an input.
pub(crate) struct With<'a> {
    /// The MAD that is the input. Answers go where it came from; if it is reported, the queue of
    /// events takes it.
    pub(crate) arrival: Option<Pin<KBox<Arrival>>>,
    /// The remote ID that the identifier must have.
    pub(crate) peer: Option<u32>,
    /// The transaction that the message begins.
    pub(crate) tid: Option<u64>,
    /// The send that must be the one in flight.
    pub(crate) record: Option<Arc<Record>>,
    /// The deadline that the timer must have been set for, and the device whose timer it is.
    pub(crate) deadline: Option<(Deadline, &'a Device)>,
    /// How long the peer asks us to wait (IBA time).
    pub(crate) service_timeout: u8,
    /// The address vectors that a LAP brings.
    pub(crate) lap: Option<(Av, KBox<Av>)>,
    /// Status of the send, `enum ib_wc_status`.
    pub(crate) status: u32,
    /// Additional information for a REJ.
    pub(crate) ari: &'a [u8],
    /// Private data for what is sent.
    pub(crate) private_data: &'a [u8],
    /// The same, to be kept for repetitions.
    pub(crate) keep: Option<KVec<u8>>,
    /// Where events go that nobody is to be told of any more.
    pub(crate) undelivered: Option<&'a mut Events>,
    /// The caller delivers at once, so that `first` can be taken out with the identifier locked.
    pub(crate) at_once: bool,
    /// What the caller has to deliver first; for the rest see [`Outcome::deliver`].
    pub(crate) first: Option<Event>,
}

impl<'a> With<'a> {
    /// Nothing comes with the input.
    pub(crate) fn nothing() -> Self {
        With {
            arrival: None,
            peer: None,
            tid: None,
            record: None,
            deadline: None,
            service_timeout: 0,
            lap: None,
            status: 0,
            ari: &[],
            private_data: &[],
            keep: None,
            undelivered: None,
            at_once: false,
            first: None,
        }
    }

    /// A MAD that names us, from the peer with this communication ID.
    pub(crate) fn message(arrival: Pin<KBox<Arrival>>, peer: u32) -> Self {
        With {
            arrival: Some(arrival),
            peer: Some(peer),
            at_once: true,
            ..With::nothing()
        }
    }

    /// Whether the input is meant for the identifier as it is now.
    fn is_for(&self, inner: &Inner) -> bool {
        let same_record = |record: &Arc<Record>| {
            inner
                .record()
                .is_some_and(|in_flight| Arc::ptr_eq(in_flight, record))
        };
        self.peer.is_none_or(|peer| inner.conn.remote_id == peer)
            && self.record.as_ref().is_none_or(same_record)
            && self
                .deadline
                .as_ref()
                .is_none_or(|(deadline, _)| inner.timer.is(deadline))
    }
}

/// What became of an input.
pub(crate) struct Outcome {
    /// What the state machine decided; none when the input was not meant for the identifier.
    pub(crate) step: Option<Step>,
    /// Whether what it said could be sent.
    pub(crate) sent: Result,
    /// Events wait, and nobody delivers them yet: the caller has to see to it.
    pub(crate) deliver: bool,
}

/// Whether a decision could be carried out.
enum Attempt {
    Done(Outcome),
    /// More messages than were prepared: this many.
    Short(usize),
}

impl Id {
    /// Gives an input to the identifier and does what follows from it.
    pub(crate) fn act(self: &Arc<Self>, input: Input, with: &mut With<'_>) -> Outcome {
        self.act_and_send(input, with, 0)
    }

    /// As [`Id::act`], for an input that is expected to send `wanted` messages.
    pub(crate) fn act_and_send(
        self: &Arc<Self>,
        input: Input,
        with: &mut With<'_>,
        mut wanted: usize,
    ) -> Outcome {
        if wanted == 0 {
            match self.attempt(input, with, None) {
                Attempt::Done(outcome) => return outcome,
                Attempt::Short(more) => wanted = more,
            }
        }
        loop {
            let mut ways = [const { Way::None }; MOST];
            let mut mail = self.prepare(&mut ways, with, wanted);
            match self.attempt(input, with, Some(&mut mail)) {
                Attempt::Done(outcome) => return outcome,
                Attempt::Short(more) => wanted = more,
            }
        }
    }

    /// Begins `wanted` messages: answers to the MAD, else along the path.
    fn prepare<'way>(
        &self,
        ways: &'way mut [Way; MOST],
        with: &With<'_>,
        wanted: usize,
    ) -> Mail<'way> {
        let mut mail = Mail::new(wanted);
        for way in ways.iter_mut().take(wanted) {
            mail.add(match &with.arrival {
                Some(arrival) => send::begin_reply(way, arrival),
                None => send::begin(self, way, send::main_agent, None).map_err(Error::from),
            });
        }
        mail
    }

    fn attempt(
        self: &Arc<Self>,
        input: Input,
        with: &mut With<'_>,
        mail: Option<&mut Mail<'_>>,
    ) -> Attempt {
        // Dropped after the lock, which is declared later.
        let mut done_with = None;
        let mut inner = self.lock();
        if !with.is_for(&inner) {
            return Attempt::Done(Outcome {
                step: None,
                sent: Ok(()),
                deliver: false,
            });
        }
        let mut next = inner.conn;
        let step = next.step(input);
        let was = inner.conn.state;
        let wanted = messages(&step);
        if wanted > mail.as_ref().map_or(0, |mail| mail.wanted()) {
            return Attempt::Short(wanted);
        }
        if let (Input::Mra(_), false) = (input, step.unexpected) {
            // The message may just be failing: then there is nothing to be patient about.
            let patience_ms = time::ms_from_iba(with.service_timeout)
                .saturating_add(time::ms_from_iba(inner.conn.ack_timeout));
            let extended = inner.record().is_some_and(|record| {
                let extended = record.modify_timeout(patience_ms).is_ok();
                if extended {
                    record.after_mra(patience_ms);
                }
                extended
            });
            if !extended {
                return Attempt::Done(Outcome {
                    step: None,
                    sent: Ok(()),
                    deliver: false,
                });
            }
        }
        inner.conn = next;
        self.note(&next, Cause::Input(input));
        if let (Some(tid), false) = (with.tid, step.unexpected) {
            inner.conn.tid = tid;
        }
        if step.drep && was != State::Timewait && with.keep.is_none() {
            // A DREP that nobody gave private data for carries none, not that of an earlier message.
            with.keep = Some(KVec::new());
        }
        if let (Some(private_data), None) = (with.keep.as_mut(), step.refused) {
            // What was kept before is freed with what came with the input.
            inner.swap_private_data(private_data);
        }
        if let (Input::Lap, Some(Report::Message)) = (input, step.report) {
            inner.swap_paths(&mut with.lap);
        }
        if let Some((_, device)) = &with.deadline {
            device.timers.stop(&mut inner.timer, self);
        }
        if step.cancel {
            done_with = inner.take_record();
            if let Some(record) = &done_with {
                record.cancel();
            }
        }
        let repeat = if input == Input::Timer {
            Repeat::Module
        } else {
            Repeat::No
        };
        if was == State::Timewait && next.state == State::Idle {
            trace::timewait_exit(self.public.raw(), next.local_qpn);
        }
        let sent = match mail {
            Some(mail) => self.send_all(&inner, &step, with, mail, repeat),
            None => Ok(()),
        };
        let deliver = self.conclude(&mut inner, &step, with);
        if let (Some(events), Some(undelivered)) = (inner.events(), &mut with.undelivered) {
            core::mem::swap(events, *undelivered);
            // Whoever delivers still does.
            events.delivering = undelivered.delivering;
        }
        let not_needed = inner.shed();
        drop(inner);
        drop((done_with, not_needed));
        Attempt::Done(Outcome {
            step: Some(step),
            sent,
            deliver,
        })
    }

    /// Sends the messages of a step, in the order that [`Step`] states.
    fn send_all(
        &self,
        inner: &Inner,
        step: &Step,
        with: &With<'_>,
        mail: &mut Mail<'_>,
        repeat: Repeat,
    ) -> Result {
        let mut sent = Ok(());
        let conn = &inner.conn;
        if let Some(reject) = step.rej {
            trace::send_rej(self.public.raw(), reject.reason.0.into());
            let guid = self.guid_of_device(inner);
            let ari = match reject.reason {
                // The peer finds its identifier by our GUID (IBA 12.6.7.2).
                RejReason::TIMEOUT if with.ari.is_empty() => &guid[..],
                _ => with.ari,
            };
            sent = mail.post(repeat, |mad, _| {
                conn.rej_message(reject, ari).emit(mad, with.private_data)
            });
        }
        if step.dreq {
            trace::send_dreq(self.public.raw());
            sent = mail.post(repeat, |mad, hi_tid| {
                conn.dreq_message(tid_of(hi_tid, conn.local_id))
                    .emit(mad, &[])
            });
            if let (Ok(()), Repeat::Module, Some(port)) = (sent, repeat, inner.port()) {
                port.count(CounterGroup::TxRetries, AttrId::Dreq, 1);
            }
        }
        if step.drep {
            let again = if step.duplicate {
                Repeat::Direct
            } else {
                Repeat::No
            };
            if !step.duplicate {
                // The event tells of TimeWait already, as in C.
                self.public.show(conn);
                trace::send_drep(self.public.raw());
            }
            let private_data = inner.private_data();
            sent = mail.post(again, |mad, _| conn.drep_message().emit(mad, private_data));
        }
        if let Some(message) = step.mra {
            let private_data = inner.private_data();
            sent = mail.post(Repeat::Direct, |mad, _| {
                conn.mra_message(message).emit(mad, private_data)
            });
        }
        sent
    }

    fn guid_of_device(&self, inner: &Inner) -> [u8; 8] {
        let guid = inner.port().map_or(0, |port| port.device.node_guid);
        guid.to_be_bytes()
    }

    /// Does the rest of a step: timer, indices, report. Returns whether the caller has to see to
    /// delivery.
    pub(crate) fn conclude(
        self: &Arc<Self>,
        inner: &mut Inner,
        step: &Step,
        with: &mut With<'_>,
    ) -> bool {
        self.report(inner, step, with);
        if let Some(timer) = step.timer {
            let (port, ours) = inner.port_and_timer();
            let set = match (timer, port) {
                (Timer::Dreq(ms) | Timer::Timewait(ms), Some(port)) => {
                    port.device.set_timer(ours, self, ms)
                }
                (Timer::Stop, Some(port)) => {
                    port.device.timers.stop(ours, self);
                    Ok(())
                }
                (_, None) => Err(ENODEV),
            };
            if set.is_err() {
                // Nothing will ever happen by itself again: be done with it now.
                while let step @ Step { timer: Some(_), .. } = inner.conn.step(Input::DeviceGone) {
                    self.report(inner, &step, with);
                }
                self.note(&inner.conn, Cause::Other);
                trace::timewait_exit(self.public.raw(), inner.conn.local_qpn);
                self.leave_indices(inner, Indices::DropAll);
            }
        }
        self.leave_indices(inner, step.indices);
        self.public.show(&inner.conn);
        let deliver = inner.events().is_some_and(Events::begin_delivery);
        if deliver && with.at_once {
            with.first = deliver::take(self, inner);
        }
        deliver
    }

    /// Queues the event of a step.
    fn report(&self, inner: &mut Inner, step: &Step, with: &mut With<'_>) {
        let (Some(report), Some(events)) = (step.report, inner.events()) else {
            return;
        };
        match report {
            Report::Message => {
                if let Some(arrival) = with.arrival.take() {
                    events.push_arrival(arrival);
                }
            }
            report => events.push_note(report, with.status),
        }
    }
}

/// How many messages a step sends.
fn messages(step: &Step) -> usize {
    let messages = [step.rej.is_some(), step.dreq, step.drep, step.mra.is_some()];
    messages.iter().filter(|message| **message).count()
}

/// The transaction ID that an agent with these high bits begins for an identifier.
pub(crate) fn tid_of(hi_tid: u32, local_id: u32) -> u64 {
    // C puts the ID there in network byte order; only the sender ever looks at it.
    (u64::from(hi_tid) << 32) | u64::from(local_id.to_be())
}
