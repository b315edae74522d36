// SPDX-License-Identifier: GPL-2.0
//! The timers of a device: when TimeWaits end and DREQs are repeated.
//!
//! All deadlines of a device stand in one tree, and one delayed work serves the earliest. So a
//! timer costs no more than a node, and device removal can end all of them at once.

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::Arc,
    time::{
        msecs_to_jiffies,
        Jiffies, //
    },
};

use super::id::Id;
use crate::rdma::{
    clock::now_ns,
    spinlock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
};

const NS_PER_MS: u64 = 1_000_000;

/// When, and for which local ID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline {
    at_ns: i64,
    local_id: u32,
}

/// The timer of one identifier.
pub(crate) enum Timer {
    /// No memory was set aside: the identifier has no connection.
    None,
    /// Not set; the memory for it waits.
    Idle(Reservation),
    /// Set.
    Set(Deadline),
}

type Reservation = RBTreeNodeReservation<Deadline, Arc<Id>>;

struct Pending {
    tree: RBTree<Deadline, Arc<Id>>,
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
                Pending { tree: RBTree::new(), next_ns: None, closed: false },
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
        local_id: u32,
        delay: Milliseconds,
        run_in: impl FnOnce(Milliseconds),
    ) -> Result {
        let at_ns = now_ns().saturating_add(i64::from(delay).saturating_mul(1_000_000));
        let deadline = Deadline { at_ns, local_id };
        let mut pending = self.pending.lock();
        if pending.closed {
            // Nothing serves the tree any more: what is in it would never leave.
            *timer = match core::mem::replace(timer, Timer::None) {
                Timer::Set(old) => removed(&mut pending, &old),
                other => other,
            };
            return Err(ENODEV);
        }
        let memory = match core::mem::replace(timer, Timer::None) {
            Timer::None => return Err(ENOMEM),
            Timer::Idle(memory) => memory,
            Timer::Set(old) => pending
                .tree
                .remove_node(&old)
                .ok_or(ENOMEM)?
                .into_reservation(),
        };
        // The key is unique: it carries the local ID, and the identifier has one timer.
        drop(pending.tree.insert(memory.into_node(deadline, id.clone())));
        *timer = Timer::Set(deadline);
        if pending.next_ns.is_none_or(|next| next > at_ns) {
            pending.next_ns = Some(at_ns);
            run_in(delay);
        }
        Ok(())
    }

    /// Stops `timer`, which belongs to `_id`: the caller's reference is what makes sure that the
    /// one which the timer gives up is not the last.
    pub(crate) fn stop(&self, timer: &mut Timer, _id: &Arc<Id>) {
        if let Timer::Set(deadline) = *timer {
            *timer = removed(&mut self.pending.lock(), &deadline);
        }
    }

    /// The first identifier whose time is up.
    pub(crate) fn expired(&self) -> Option<(Deadline, Arc<Id>)> {
        let now = now_ns();
        let pending = self.pending.lock();
        let cursor = pending.tree.cursor_front()?;
        let (deadline, id) = cursor.current();
        (deadline.at_ns <= now).then(|| (*deadline, id.clone()))
    }

    /// Calls `run_in` if timers are set; not once they are closed. For the work, when no timer is
    /// expired.
    pub(crate) fn rearm(&self, run_in: impl FnOnce(Milliseconds)) {
        let mut pending = self.pending.lock();
        let at_ns = pending
            .tree
            .cursor_front()
            .map(|cursor| cursor.current().0.at_ns);
        pending.next_ns = at_ns;
        if let (Some(at_ns), false) = (at_ns, pending.closed) {
            run_in(ms_until(at_ns));
        }
    }

    /// Any identifier whose timer is set.
    pub(crate) fn first(&self) -> Option<Arc<Id>> {
        let pending = self.pending.lock();
        let cursor = pending.tree.cursor_front()?;
        Some(cursor.current().1.clone())
    }

    /// Sets no timer any more.
    pub(crate) fn close(&self) {
        self.pending.lock().closed = true;
    }
}

/// Takes a deadline out of the tree. What is left is the memory for it.
///
/// The caller holds a reference on the identifier, so the one that goes is not the last.
fn removed(pending: &mut Pending, deadline: &Deadline) -> Timer {
    let node = pending.tree.remove_node(deadline);
    node.map_or(Timer::None, |node| Timer::Idle(node.into_reservation()))
}

impl Timer {
    /// Sets memory aside.
    pub(crate) fn reserve() -> Result<Self> {
        Ok(Timer::Idle(RBTreeNodeReservation::new(GFP_KERNEL)?))
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
        timers.set(&mut second, &late, 2, 60_000, |ms| runs.0 = ms)?;
        assert_eq!(runs.0, 60_000);
        // Only what is earlier makes the work run earlier.
        timers.set(&mut first, &early, 1, 70_000, |ms| runs.1 = ms)?;
        assert_eq!(runs.1, 0);
        assert!(timers.expired().is_none());
        timers.set(&mut first, &early, 1, 0, |_| runs.1 = 1)?;
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
            timers.set(&mut timer, &id, 1, 60_000, |_| {})?;
            timers.stop(&mut timer, &id);
            assert!(matches!(timer, Timer::Idle(_)));
        }
        let mut none = Timer::None;
        assert!(timers.set(&mut none, &id, 1, 1, |_| {}) == Err(ENOMEM));
        Ok(())
    }

    #[test]
    fn nothing_is_set_once_they_are_closed() -> Result {
        let (all, id) = (timers()?, id()?);
        let timers = &*all;
        let mut timer = Timer::reserve()?;
        timers.set(&mut timer, &id, 1, 60_000, |_| {})?;
        timers.close();
        let mut ran = false;
        timers.rearm(|_| ran = true);
        assert!(timers.set(&mut timer, &id, 1, 0, |_| ran = true) == Err(ENODEV));
        assert!(!ran);
        // What was in the tree has left it.
        assert!(timers.first().is_none());
        Ok(())
    }
}
