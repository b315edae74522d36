// SPDX-License-Identifier: GPL-2.0
//! What a host does to the world around it: things that happen later, and notes.

use std::rc::Rc;

use ib_cm_proto::step::Flight;
use ib_cm_proto::Mad;

use crate::apps::AppTask;
use crate::mad::Status;
use crate::rng::Rng;
use crate::rules::Rule;
use crate::seen::Mark;
use crate::seen::Seen;

/// A number that nothing else in the simulation has.
pub type Uid = u64;

/// Microseconds of virtual time.
pub type Time = u64;

/// The address of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lid(pub u16);

/// A MAD on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    /// Whose it is.
    pub from: Lid,
    /// Whom it is for.
    pub to: Lid,
    /// What it says.
    pub mad: Rc<Mad>,
}

/// A MAD that has come in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Arrival {
    /// Where it came from.
    pub from: Lid,
    /// When.
    pub at: Time,
    /// Its place among the MADs that the device has received.
    pub turn: u64,
    /// What it says.
    pub mad: Rc<Mad>,
    /// The listener that it asks for, if it begins something.
    pub listener: Option<Uid>,
}

/// A device of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The host.
    pub host: usize,
    /// Its device.
    pub dev: usize,
}

/// What happens later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// A MAD leaves the host.
    Wire(Packet),
    /// A MAD reaches a host.
    Arrive(Packet),
    /// The adapter has sent, or not.
    AdapterDone(Place, Uid, bool),
    /// No answer has come in time.
    Retry(Place, Uid, Time),
    /// The MAD layer is done with a send.
    Completed(Place, Uid, Status, Option<(Uid, Flight)>),
    /// A worker deals with a send that has failed.
    SendFailed(usize, Uid, Uid, Flight),
    /// A worker takes the next MAD of a source.
    Lane(Place, Lid),
    /// A worker goes on with a REQ whose identifier stands in the indices.
    Complete(Place, Uid, Arrival),
    /// The timer of an identifier.
    Timer(usize, Uid, Time),
    /// A worker delivers the next event of an identifier.
    Deliver(usize, Uid),
    /// Something of the consumers or the world.
    App(AppTask),
}

/// How long until it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// As long as the network takes.
    Wire,
    /// As long as the adapter takes.
    Adapter,
    /// As long as it takes to get a worker.
    Worker,
    /// Until then.
    At(Time),
}

/// The surroundings of whoever acts.
#[derive(Clone, Debug)]
pub struct Fx {
    /// The time.
    pub now: Time,
    /// What is to happen later.
    pub out: Vec<(Delay, Task)>,
    /// Where all chance comes from.
    pub rng: Rng,
    /// How many of 10,000 allocations fail.
    pub allocation_fails: u32,
    /// What has happened.
    pub seen: Seen,
    /// What should not have happened.
    pub broken: Vec<String>,
    /// The log, if anybody wants it.
    pub log: Option<Vec<String>>,
    /// Gives communication IDs back that nobody has seen, so that states compare.
    pub tidy: bool,
    /// The next number.
    pub next: Uid,
}

/// Writes a line of the log, if there is one.
#[macro_export]
macro_rules! say {
    ($fx:expr, $($text:tt)*) => {
        if $fx.log.is_some() {
            $fx.line(format!($($text)*));
        }
    };
}

impl Fx {
    /// Nothing has happened yet.
    pub fn new(rng: Rng, log: bool) -> Self {
        Fx {
            now: 0,
            out: Vec::new(),
            rng,
            allocation_fails: 0,
            seen: Seen::default(),
            broken: Vec::new(),
            log: log.then(Vec::new),
            tidy: false,
            next: 1,
        }
    }

    /// A new number.
    pub fn uid(&mut self) -> Uid {
        self.next += 1;
        self.next - 1
    }

    /// Something happens later.
    pub fn later(&mut self, delay: Delay, task: Task) {
        self.out.push((delay, task));
    }

    /// Something of the world happens at a time.
    pub fn at(&mut self, time: Time, task: AppTask) {
        self.out.push((Delay::At(time), Task::App(task)));
    }

    /// Something of the world happens after a time.
    pub fn after(&mut self, time: Time, task: AppTask) {
        self.at(self.now + time, task);
    }

    /// Whether an allocation fails.
    pub fn no_memory(&mut self) -> bool {
        let fails = self.rng.chance(self.allocation_fails);
        if fails {
            self.seen.mark(Mark::AllocationFailed);
        }
        fails
    }

    /// A rule is broken.
    pub fn broken(&mut self, rule: Rule, what: impl core::fmt::Display) {
        say!(self, "BROKEN: {rule}: {what}");
        self.broken.push(format!("{rule}: {what}"));
    }

    /// Adds a line to the log; see [`say`].
    pub fn line(&mut self, text: String) {
        let now = self.now;
        if let Some(log) = &mut self.log {
            log.push(format!(
                "{:>6}.{:06} {text}",
                now / 1_000_000,
                now % 1_000_000
            ));
        }
    }
}
