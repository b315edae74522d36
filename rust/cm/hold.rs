// SPDX-License-Identifier: GPL-2.0
//! The hold: the queue pair of a process that is gone stays until TimeWait has ended.
//!
//! IBA 12.9.8.4: a queue pair in TimeWait may not be destroyed or reused. uverbs destroys what a
//! dead process leaves behind at once; here it is made to wait. First, for all queue pairs of the
//! file that carry a connection: the queue pair goes to the Error state, in which the adapter
//! discards what still arrives, and the connection is ended. Then one wait for all of them.
//!
//! The number of a queue pair in a REQ or REP is what user space says. So a queue pair is only
//! touched when the driver says that it is connected to the peer of that connection.

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::Arc,
    time::NSEC_PER_MSEC, //
};

use super::act::With;
use super::debug::Described;
use super::id::Id;
use super::index::Reservation;
use super::manager;
use super::manager::{
    LocalId,
    LocalQpn, //
};
use super::timers::Milliseconds;
use crate::rdma::{
    clock::now_ns,
    log::warn_ratelimited,
    params,
    qp::UserQp,
    task::TaskName,
    trace,
    ufile::{
        ClosingFile,
        DestroyedQp,
        HoldEnd,
        TeardownObserver, //
    },
};
use ib_cm_proto::lookup;
use ib_cm_proto::state::State;
use ib_cm_proto::step::Input;
use ib_cm_proto::time;

/// Ends and holds what the processes of a device leave behind.
pub(crate) struct Holder;

impl TeardownObserver for Holder {
    fn file_closing(&self, file: &ClosingFile<'_>) {
        // When the device goes nothing can be sent, and nothing may wait.
        if file.is_removal() || params::hold_max_ms() == 0 {
            return;
        }
        let mut held = Held::new();
        file.for_each_qp(|qp| held.take(qp, file.device().as_ptr() as usize));
        held.end_connections();
        held.wait(|timeout_ms, done| file.hold(timeout_ms, done));
    }

    fn qp_destroying(&self, destroyed: &DestroyedQp<'_>) {
        if destroyed.is_removal() || params::hold_max_ms() == 0 {
            return;
        }
        let mut held = Held::new();
        held.take(destroyed.qp, destroyed.qp.device().as_ptr() as usize);
        held.end_connections();
        held.wait(|timeout_ms, done| destroyed.hold(timeout_ms, done));
    }
}

/// A hold, for those who look what goes on.
#[derive(Clone)]
pub(crate) struct HoldInProgress {
    pub(crate) id: Arc<Id>,
    pub(crate) since_ns: i64,
    /// Who waits.
    pub(crate) task: TaskName,
}

/// Shows a hold. Where memory is short nobody sees it, and it holds all the same.
fn show(id: &Arc<Id>) {
    let Ok(memory) = Reservation::new(GFP_KERNEL) else {
        return;
    };
    let hold = HoldInProgress {
        id: id.clone(),
        since_ns: now_ns(),
        task: TaskName::current(),
    };
    let key = LocalId(id.lock().conn.local_id);
    // Two processes may hold one connection; one of them is shown.
    let _ = manager().held.insert(key, hold, memory);
}

/// The connections whose queue pairs are held.
struct Held(KVec<Arc<Id>>);

impl Held {
    fn new() -> Self {
        Held(KVec::new())
    }

    /// Takes the connections of a queue pair, and stops the queue pair if there are any.
    fn take(&mut self, qp: &UserQp, device: usize) {
        let qpn = qp.qp_num();
        let mut from = LocalQpn {
            device,
            qpn,
            local_id: 0,
        };
        let mut stopped = false;
        while let Some((key, id)) = manager().local_qpns.lower_bound(&from) {
            if key.device != device || key.qpn != qpn {
                return;
            }
            let carries = carries(qp, &id);
            if carries && !stopped {
                if let Err(error) = qp.set_error() {
                    warn_ratelimited!(
                        "queue pair {} does not go to the Error state ({})\n",
                        qpn,
                        error.to_errno()
                    );
                }
                stopped = true;
            }
            if carries && self.0.push(id.clone(), GFP_KERNEL).is_ok() {
                show(&id);
                trace::hold(id.public.raw(), qpn);
                manager().holds.taken.fetch_add(1, Ordering::Relaxed);
            }
            let Some(next) = key.local_id.checked_add(1) else {
                return;
            };
            from.local_id = next;
        }
    }

    /// Ends the connections: to their consumers it looks like a disconnect.
    fn end_connections(&self) {
        for id in &self.0 {
            let outcome = id.act(Input::Abandoned, &mut With::nothing());
            if outcome.deliver {
                Id::deliver_later(id.clone());
            }
        }
    }

    /// Waits until all have left TimeWait, or until for a while no peer answers any more.
    fn wait(mut self, hold: impl Fn(Milliseconds, &mut dyn FnMut() -> bool) -> HoldEnd) {
        if self.0.is_empty() {
            return;
        }
        let longest = self.0.iter().map(timewait_ms).max().unwrap_or(0);
        let patience = lookup::hold_patience_ms(longest);
        let start_ns = now_ns();
        let mut unanswered = usize::MAX;
        let end = loop {
            let waited_ms = now_ns().saturating_sub(start_ns) / NSEC_PER_MSEC;
            let waited_ms = Milliseconds::try_from(waited_ms).unwrap_or(Milliseconds::MAX);
            let left = params::hold_max_ms().saturating_sub(waited_ms);
            let still_unanswered = self.in_state(State::DreqSent);
            if still_unanswered >= unanswered || still_unanswered == 0 {
                // Peers are dead, or have all answered: those in TimeWait see it out, which takes
                // no longer than that.
                break hold(left.min(patience), &mut || {
                    self.release() || self.in_state(State::Timewait) == 0
                });
            }
            unanswered = still_unanswered;
            let end = hold(left.min(patience), &mut || self.release());
            if end != HoldEnd::TimedOut {
                break end;
            }
        };
        self.settle(end);
    }

    /// Lets go of those that have left TimeWait. Returns whether none is left.
    fn release(&mut self) -> bool {
        // Each is looked at until it has left, not more than that: many wait at once.
        while let Some(id) = self.0.last() {
            if is_entered(id) {
                return false;
            }
            released(id);
            self.0.pop();
        }
        true
    }

    /// How many are in a state.
    fn in_state(&self, state: State) -> usize {
        let is_in = |id: &&Arc<Id>| id.lock().conn.state == state;
        self.0.iter().filter(is_in).count()
    }

    /// Lets go of what is left: those queue pairs are destroyed before their time.
    fn settle(&self, end: HoldEnd) {
        let mut stopped = 0_u32;
        for id in &self.0 {
            let described = Described::of(id);
            let mut inner = id.lock();
            let qpn = inner.conn.local_qpn;
            // uverbs may come back for another pass, which must not wait again.
            let expired = id.leave_local_qpn(&mut inner);
            drop(inner);
            if expired {
                hide(id);
                if end == HoldEnd::Stopped {
                    stopped = stopped.wrapping_add(1);
                } else {
                    report_given_up(&described);
                }
                trace::hold_expired(id.public.raw(), qpn);
                manager().holds.expired.fetch_add(1, Ordering::Relaxed);
            } else {
                released(id);
            }
        }
        if stopped != 0 {
            // Somebody wanted it so: one line for all of them.
            warn_ratelimited!(
                "{} queue pairs destroyed before TimeWait has ended: the device or this module \
                 goes, holds were turned off, or a kernel thread closed their file\n",
                stopped
            );
        }
    }
}

/// Says whose queue pair goes too early, and what to do about it.
fn report_given_up(id: &Described) {
    match id.state() {
        State::Timewait => warn_ratelimited!(
            "{}: destroyed before TimeWait has ended; raise the module parameter hold_max_ms\n",
            id
        ),
        _ => warn_ratelimited!(
            "{}: destroyed, since the peer does not answer; look whether the peer is alive\n",
            id
        ),
    }
}

/// A hold is over.
fn hide(id: &Id) {
    let key = LocalId(id.lock().conn.local_id);
    manager().held.remove(&key);
}

/// Counts a hold that ended with TimeWait.
fn released(id: &Arc<Id>) {
    hide(id);
    trace::release(id.public.raw(), id.lock().conn.local_qpn);
    manager().holds.released.fetch_add(1, Ordering::Relaxed);
}

/// Whether a queue pair carries the connection of `id`.
fn carries(qp: &UserQp, id: &Arc<Id>) -> bool {
    let conn = id.lock().conn;
    qp.query()
        .is_ok_and(|info| lookup::carries(info.is_connected_type(), info.dest_qp_num, &conn))
}

/// Whether the queue pair of `id` still has to stay.
fn is_entered(id: &Arc<Id>) -> bool {
    id.lock().entered.local_qpn
}

fn timewait_ms(id: &Arc<Id>) -> Milliseconds {
    time::ms_from_iba(id.lock().conn.ack_timeout)
}
