// SPDX-License-Identifier: GPL-2.0
//! Atomics with the kernel's orderings.

use core::cell::OnceCell;
use core::cell::RefCell;
use core::marker::PhantomData;
use std::rc::Rc;

use loom::sync::atomic::fence;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering;

pub use ordering::Acquire;
pub use ordering::Full;
pub use ordering::Relaxed;
pub use ordering::Release;

/// The orderings.
pub mod ordering {
    /// None.
    #[derive(Clone, Copy, Debug)]
    pub struct Relaxed;
    /// Acquire.
    #[derive(Clone, Copy, Debug)]
    pub struct Acquire;
    /// Release.
    #[derive(Clone, Copy, Debug)]
    pub struct Release;
    /// Before everything that follows, after everything that went before.
    #[derive(Clone, Copy, Debug)]
    pub struct Full;
}

/// An ordering.
pub trait Order: Copy {
    /// Of one that reads and writes.
    const BOTH: Ordering;
    /// Of one that only reads.
    const READ: Ordering;
    /// Of one that only writes.
    const WRITE: Ordering;
    /// Whether nothing may move across in either direction.
    const FULL: bool = false;
}

impl Order for Relaxed {
    const BOTH: Ordering = Ordering::Relaxed;
    const READ: Ordering = Ordering::Relaxed;
    const WRITE: Ordering = Ordering::Relaxed;
}

impl Order for Acquire {
    const BOTH: Ordering = Ordering::Acquire;
    const READ: Ordering = Ordering::Acquire;
    const WRITE: Ordering = Ordering::Relaxed;
}

impl Order for Release {
    const BOTH: Ordering = Ordering::Release;
    const READ: Ordering = Ordering::Relaxed;
    const WRITE: Ordering = Ordering::Release;
}

impl Order for Full {
    const BOTH: Ordering = Ordering::SeqCst;
    const READ: Ordering = Ordering::SeqCst;
    const WRITE: Ordering = Ordering::SeqCst;
    const FULL: bool = true;
}

/// A full barrier, where the ordering asks for one.
fn barrier<O: Order>() {
    if O::FULL {
        fence(Ordering::SeqCst);
    }
}

thread_local! {
    static POOL: RefCell<Vec<Rc<AtomicU32>>> = const { RefCell::new(Vec::new()) };
}

/// More than any model uses.
const MOST: usize = 24;

/// Before a model begins: an atomic of the model checker has to be made before whoever uses it
/// runs, and those of the kernel crate are constants.
pub fn set_up() {
    let zeroes = (0..MOST).map(|_| Rc::new(AtomicU32::new(0))).collect();
    POOL.with(|pool| *pool.borrow_mut() = zeroes);
}

/// After it has ended.
pub fn tear_down() {
    let left = POOL.with(|pool| core::mem::take(&mut *pool.borrow_mut()));
    drop(left);
}

fn take() -> Rc<AtomicU32> {
    let one = POOL.with(|pool| pool.borrow_mut().pop());
    one.expect("no model uses so many atomics")
}

/// A type that atomics exist for.
pub trait Number: Copy {
    /// As the model checker has it.
    fn to(self) -> u32;
    /// Back again.
    fn from(number: u32) -> Self;
}

impl Number for u32 {
    fn to(self) -> u32 {
        self
    }

    fn from(number: u32) -> Self {
        number
    }
}

impl Number for i32 {
    fn to(self) -> u32 {
        self as u32
    }

    fn from(number: u32) -> Self {
        number as i32
    }
}

/// An atomic number, which begins as zero.
#[derive(Debug)]
pub struct Atomic<T: Number> {
    place: OnceCell<Rc<AtomicU32>>,
    of: PhantomData<T>,
}

impl<T: Number> Atomic<T> {
    /// Zero: the models need no other.
    pub const fn new(_zero: T) -> Self {
        Atomic {
            place: OnceCell::new(),
            of: PhantomData,
        }
    }

    fn place(&self) -> &AtomicU32 {
        self.place.get_or_init(take)
    }

    /// Reads.
    pub fn load<O: Order>(&self, _order: O) -> T {
        T::from(self.place().load(O::READ))
    }

    /// Writes.
    pub fn store<O: Order>(&self, value: T, _order: O) {
        self.place().store(value.to(), O::WRITE);
    }

    /// Adds, whatever was there.
    pub fn add(&self, value: T, order: Relaxed) {
        self.fetch_add(value, order);
    }

    /// Adds; returns what was there.
    pub fn fetch_add<O: Order>(&self, value: T, _order: O) -> T {
        barrier::<O>();
        let was = self.place().fetch_add(value.to(), O::BOTH);
        barrier::<O>();
        T::from(was)
    }

    /// Subtracts; returns what was there.
    pub fn fetch_sub<O: Order>(&self, value: T, _order: O) -> T {
        barrier::<O>();
        let was = self.place().fetch_sub(value.to(), O::BOTH);
        barrier::<O>();
        T::from(was)
    }

    /// Compares and exchanges.
    ///
    /// # Errors
    ///
    /// What was there.
    pub fn cmpxchg<O: Order>(&self, old: T, new: T, _order: O) -> Result<T, T> {
        barrier::<O>();
        let place = self.place();
        let was = place.compare_exchange(old.to(), new.to(), O::BOTH, Ordering::Relaxed);
        if was.is_ok() {
            barrier::<O>();
        }
        was.map(T::from).map_err(T::from)
    }
}
