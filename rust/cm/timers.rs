// SPDX-License-Identifier: GPL-2.0
//! The timers of a device: when TimeWaits end and DREQs are repeated.
//!
//! All deadlines of a device stand in one tree, and one delayed work serves the earliest. So a
//! timer costs no more than a node, and device removal can end all of them at once.

use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        msecs_to_jiffies,
        Jiffies, //
    },
};

use super::id::Id;
use super::index::mix;
use super::memory::Reserved;
use super::treap::{
    Entry,
    Node,
    Treap, //
};
use crate::rdma::{
    clock::now_ns,
    spinlock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
};

const NS_PER_MS: u64 = 1_000_000;

/// When.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline {
    at_ns: i64,
}

/// An identifier that waits.
pub(crate) struct Waiting {
    deadline: Deadline,
    id: Arc<Id>,
}

/// What a deadline of an identifier is found by. An identifier has one timer.
fn key(deadline: Deadline, id: &Arc<Id>) -> (i64, usize) {
    (deadline.at_ns, Arc::as_ptr(id) as usize)
}

impl Entry for Waiting {
    type Key = (i64, usize);

    fn key(&self) -> Self::Key {
        key(self.deadline, &self.id)
    }

    fn rank(&self) -> u64 {
        mix(Arc::as_ptr(&self.id) as u64)
    }
}

/// The timer of one identifier.
pub(crate) enum Timer {
    /// No memory was set aside: the identifier has no connection.
    None,
    /// Not set; the memory for it waits.
    Idle(Reserved<Node<Waiting>>),
    /// Set.
    Set(Deadline),
}

struct Pending {
    tree: Treap<Waiting>,
    /// When the work will run next.
    next_ns: Option<i64>,
    /// The device goes away: no timer is set any more.
    closed: bool,
}

/// All timers of a device.
#[pin_data]
pub(crate) struct Timers {
    #[pin]
    pending: SpinLockIrq<Pending>,
}

/// Milliseconds until the work has to run.
pub(crate) type Milliseconds = u32;

/// A time span in jiffies, at least one.
pub(crate) fn jiffies(ms: Milliseconds) -> Jiffies {
    msecs_to_jiffies(ms).max(1)
}

/// Milliseconds from now until `at_ns`, rounded up.
fn ms_until(at_ns: i64) -> Milliseconds {
    let ns = at_ns.saturating_sub(now_ns()).max(0).unsigned_abs();
    Milliseconds::try_from(ns.div_ceil(NS_PER_MS)).unwrap_or(Milliseconds::MAX)
}

impl Timers {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            pending <- new_spinlock_irq!(
                Pending { tree: Treap::new(), next_ns: None, closed: false },
                "ib_cm timers"
            ),
        })
    }

    /// Sets `timer`, which belongs to `id` and is protected by its lock. Calls `run_in` if the work
    /// has to run earlier than it would; not once the timers are closed.
    ///
    /// # Errors
    ///
    /// `ENODEV` when the device goes away, `ENOMEM` where no memory was set aside.
    pub(crate) fn set(
        &self,
        timer: &mut Timer,
        id: &Arc<Id>,
        delay: Milliseconds,
        run_in: impl FnOnce(Milliseconds),
    ) -> Result {
        let at_ns = now_ns().saturating_add(i64::from(delay).saturating_mul(1_000_000));
        let deadline = Deadline { at_ns };
        let mut pending = self.pending.lock();
        *timer = match core::mem::replace(timer, Timer::None) {
            Timer::Set(old) => removed(&mut pending, old, id),
            other => other,
        };
        if pending.closed {
            // Nothing serves the tree any more: what is in it would never leave.
            return Err(ENODEV);
        }
        let Timer::Idle(memory) = core::mem::replace(timer, Timer::None) else {
            return Err(ENOMEM);
        };
        let id = id.clone();
        pending.tree.insert(Waiting { deadline, id }, memory);
        *timer = Timer::Set(deadline);
        if pending.next_ns.is_none_or(|next| next > at_ns) {
            pending.next_ns = Some(at_ns);
            run_in(delay);
        }
        Ok(())
    }

    /// Stops `timer`, which belongs to `id`.
    pub(crate) fn stop(&self, timer: &mut Timer, id: &Arc<Id>) {
        if let Timer::Set(deadline) = *timer {
            *timer = removed(&mut self.pending.lock(), deadline, id);
        }
    }

    /// The first identifier whose time is up.
    pub(crate) fn expired(&self) -> Option<(Deadline, Arc<Id>)> {
        let now = now_ns();
        let pending = self.pending.lock();
        let first = pending.tree.first()?;
        (first.deadline.at_ns <= now).then(|| (first.deadline, first.id.clone()))
    }

    /// Calls `run_in` if timers are set; not once they are closed. For the work, when no timer is
    /// expired.
    pub(crate) fn rearm(&self, run_in: impl FnOnce(Milliseconds)) {
        let mut pending = self.pending.lock();
        let first = pending.tree.first();
        let at_ns = first.map(|first| first.deadline.at_ns);
        pending.next_ns = at_ns;
        if let (Some(at_ns), false) = (at_ns, pending.closed) {
            run_in(ms_until(at_ns));
        }
    }

    /// Any identifier whose timer is set.
    pub(crate) fn first(&self) -> Option<Arc<Id>> {
        let pending = self.pending.lock();
        Some(pending.tree.first()?.id.clone())
    }

    /// Sets no timer any more.
    pub(crate) fn close(&self) {
        self.pending.lock().closed = true;
    }
}

/// Takes a deadline of `id` out of the tree. What is left is the memory for it.
///
/// The caller holds a reference on the identifier, so the one that goes is not the last.
fn removed(pending: &mut Pending, deadline: Deadline, id: &Arc<Id>) -> Timer {
    let node = pending.tree.remove(&key(deadline, id));
    node.map_or(Timer::None, |node| Timer::Idle(Reserved::from_used(node)))
}

impl Timer {
    /// Sets memory aside.
    pub(crate) fn reserve() -> Result<Self> {
        Ok(Timer::Idle(Reserved::new(GFP_KERNEL)?))
    }

    /// How long until it runs out, if it is set.
    pub(crate) fn left_ms(&self) -> Option<Milliseconds> {
        match self {
            Timer::Set(deadline) => Some(ms_until(deadline.at_ns)),
            Timer::None | Timer::Idle(_) => None,
        }
    }

    /// Whether this is the timer that was set for `deadline`.
    pub(crate) fn is(&self, deadline: &Deadline) -> bool {
        matches!(self, Timer::Set(set) if set == deadline)
    }
}

#[kunit_tests(ib_cm_timers)]
mod tests {
    use super::*;

    fn timers() -> Result<Pin<KBox<Timers>>> {
        KBox::pin_init(Timers::new(), GFP_KERNEL)
    }

    fn id() -> Result<Arc<Id>> {
        Id::new(core::ptr::null_mut(), None, core::ptr::null_mut())
    }

    #[test]
    fn the_earliest_is_served_first() -> Result {
        let (all, early, late) = (timers()?, id()?, id()?);
        let timers = &*all;
        let (mut first, mut second) = (Timer::reserve()?, Timer::reserve()?);
        let mut runs = (0, 0);
        timers.set(&mut second, &late, 60_000, |ms| runs.0 = ms)?;
        assert_eq!(runs.0, 60_000);
        // Only what is earlier makes the work run earlier.
        timers.set(&mut first, &early, 70_000, |ms| runs.1 = ms)?;
        assert_eq!(runs.1, 0);
        assert!(timers.expired().is_none());
        timers.set(&mut first, &early, 0, |_| runs.1 = 1)?;
        assert_eq!(runs.1, 1);
        let expired = timers.expired();
        assert!(expired.is_some_and(|(deadline, id)| {
            first.is(&deadline) && !second.is(&deadline) && Arc::ptr_eq(&id, &early)
        }));
        timers.stop(&mut first, &early);
        assert!(timers.expired().is_none());
        assert_eq!(first.left_ms(), None);
        assert!(second.left_ms().is_some_and(|ms| ms <= 60_000));
        timers.stop(&mut second, &late);
        assert!(timers.first().is_none());
        Ok(())
    }

    #[test]
    fn memory_is_kept_for_the_next_time() -> Result {
        let (all, id) = (timers()?, id()?);
        let timers = &*all;
        let mut timer = Timer::reserve()?;
        for _ in 0..3 {
            timers.set(&mut timer, &id, 60_000, |_| {})?;
            timers.stop(&mut timer, &id);
            assert!(matches!(timer, Timer::Idle(_)));
        }
        let mut none = Timer::None;
        assert!(timers.set(&mut none, &id, 1, |_| {}) == Err(ENOMEM));
        Ok(())
    }

    #[test]
    fn nothing_is_set_once_they_are_closed() -> Result {
        let (all, id) = (timers()?, id()?);
        let timers = &*all;
        let mut timer = Timer::reserve()?;
        timers.set(&mut timer, &id, 60_000, |_| {})?;
        timers.close();
        let mut ran = false;
        timers.rearm(|_| ran = true);
        assert!(timers.set(&mut timer, &id, 0, |_| ran = true) == Err(ENODEV));
        assert!(!ran);
        // What was in the tree has left it.
        assert!(timers.first().is_none());
        Ok(())
    }
}
