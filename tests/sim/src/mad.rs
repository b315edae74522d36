// SPDX-License-Identifier: GPL-2.0
//! The MAD layer of a device as the kernel's does it: a window for sends that expect an answer,
//! repetitions, cancellation and completions.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use ib_cm_proto::step::Flight;

use crate::fx::Delay;
use crate::fx::Fx;
use crate::fx::Packet;
use crate::fx::Place;
use crate::fx::Task;
use crate::fx::Time;
use crate::fx::Uid;
use crate::seen::Mark;

/// How a send has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Sent, and no answer was expected.
    Success,
    /// Cancelled.
    Flushed,
    /// No answer came.
    TimedOut,
    /// The adapter failed.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Backlog,
    OnWire,
    Waiting,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Send {
    packet: Packet,
    timeout: Time,
    retries: u8,
    owner: Option<(Uid, Flight)>,
    windowed: bool,
    phase: Phase,
    cancelled: bool,
    due: Time,
}

/// How a MAD is to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How long to wait for the answer, in milliseconds; 0 if none is expected.
    pub timeout_ms: u32,
    /// How often to send again.
    pub retries: u8,
    /// Whose it is.
    pub owner: Option<(Uid, Flight)>,
    /// By the agent that has no window.
    pub unlimited: bool,
}

/// The sends of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sends {
    at: Place,
    window: usize,
    live: BTreeMap<Uid, Send>,
    backlog: VecDeque<Uid>,
    outstanding: usize,
}

impl Sends {
    /// None yet; `window` of them may expect an answer at a time.
    pub fn new(at: Place, window: usize) -> Self {
        Sends {
            at,
            window,
            live: BTreeMap::new(),
            backlog: VecDeque::new(),
            outstanding: 0,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Sends a MAD.
    pub fn post(&mut self, packet: Packet, options: Options, fx: &mut Fx) -> Uid {
        let number = fx.uid();
        let windowed = options.timeout_ms != 0 && !options.unlimited;
        let send = Send {
            packet,
            timeout: Time::from(options.timeout_ms) * 1000,
            retries: options.retries,
            owner: options.owner,
            windowed,
            phase: Phase::Backlog,
            cancelled: false,
            due: 0,
        };
        self.live.insert(number, send);
        if windowed && (self.outstanding >= self.window || !self.backlog.is_empty()) {
            fx.seen.mark(Mark::WindowFull);
            self.backlog.push_back(number);
        } else {
            self.outstanding += usize::from(windowed);
            self.transmit(number, fx);
        }
        number
    }

    fn transmit(&mut self, number: Uid, fx: &mut Fx) {
        if let Some(send) = self.live.get_mut(&number) {
            send.phase = Phase::OnWire;
            fx.later(Delay::Wire, Task::Wire(send.packet.clone()));
            fx.later(Delay::Adapter, Task::AdapterDone(self.at, number, true));
        }
    }

    fn finish(&mut self, number: Uid, status: Status, fx: &mut Fx) {
        let Some(send) = self.live.remove(&number) else {
            return;
        };
        if send.phase == Phase::Backlog {
            self.backlog.retain(|waiting| *waiting != number);
        } else if send.windowed {
            self.outstanding -= 1;
            if let Some(next) = self.backlog.pop_front() {
                self.outstanding += 1;
                self.transmit(next, fx);
            }
        }
        fx.later(
            Delay::Worker,
            Task::Completed(self.at, number, status, send.owner),
        );
    }

    /// The adapter is done with a send.
    pub fn adapter_done(&mut self, number: Uid, ok: bool, fx: &mut Fx) {
        let Some(send) = self.live.get_mut(&number) else {
            return;
        };
        if send.cancelled {
            self.finish(number, Status::Flushed, fx);
        } else if !ok {
            self.finish(number, Status::Failed, fx);
        } else if send.timeout == 0 {
            self.finish(number, Status::Success, fx);
        } else {
            send.phase = Phase::Waiting;
            send.due = fx.now + send.timeout;
            fx.later(Delay::At(send.due), Task::Retry(self.at, number, send.due));
        }
    }

    /// The sends whose answers are waited for.
    pub fn waiting(&self) -> Vec<Uid> {
        let waits = |(_, send): &(&Uid, &Send)| send.phase == Phase::Waiting;
        self.live
            .iter()
            .filter(waits)
            .map(|(number, _)| *number)
            .collect()
    }

    /// No answer to a send will come in time, whenever that is.
    pub fn time_out(&mut self, number: Uid, fx: &mut Fx) {
        if let Some(due) = self.live.get(&number).map(|send| send.due) {
            self.retry(number, due, fx);
        }
    }

    /// How often a send will be repeated, for whoever compares states.
    pub fn retries_left(&self, number: Uid) -> Option<u8> {
        self.live.get(&number).map(|send| send.retries)
    }

    /// No answer has come in time.
    pub fn retry(&mut self, number: Uid, due: Time, fx: &mut Fx) {
        let Some(send) = self.live.get_mut(&number) else {
            return;
        };
        if send.phase != Phase::Waiting || send.due != due {
            return;
        }
        if send.retries == 0 {
            fx.seen.mark(Mark::SendTimedOut);
            self.finish(number, Status::TimedOut, fx);
        } else {
            send.retries -= 1;
            fx.seen.mark(Mark::SendRetried);
            self.transmit(number, fx);
        }
    }

    /// Ends a send. Its completion says so.
    pub fn cancel(&mut self, number: Uid, fx: &mut Fx) {
        let Some(send) = self.live.get_mut(&number) else {
            return;
        };
        if send.phase == Phase::OnWire {
            fx.seen.mark(Mark::CancelOnWire);
            send.cancelled = true;
        } else {
            self.finish(number, Status::Flushed, fx);
        }
    }

    /// Gives the answer more time. Returns whether the send is still going on.
    pub fn modify_timeout(&mut self, number: Uid, timeout_ms: u32, fx: &mut Fx) -> bool {
        let Some(send) = self.live.get_mut(&number) else {
            return false;
        };
        if send.cancelled {
            return false;
        }
        send.timeout = Time::from(timeout_ms) * 1000;
        if send.phase == Phase::Waiting {
            send.due = fx.now + send.timeout;
            fx.later(Delay::At(send.due), Task::Retry(self.at, number, send.due));
        }
        true
    }

    /// Ends all sends, those too whose completions the adapter owes.
    pub fn close(&mut self, fx: &mut Fx) {
        self.backlog.clear();
        self.outstanding = 0;
        let at = self.at;
        for (number, send) in core::mem::take(&mut self.live) {
            let task = Task::Completed(at, number, Status::Flushed, send.owner);
            fx.later(Delay::Worker, task);
        }
    }
}
