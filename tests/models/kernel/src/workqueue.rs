// SPDX-License-Identifier: GPL-2.0
//! Work: queued here, and run by whichever threads of a model take it.

use core::pin::Pin;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use loom::sync::Mutex;

use crate::alloc::KBox;

pub use crate::impl_has_work;
pub use crate::new_work;

/// What an object needs to be queued.
#[derive(Debug)]
pub struct Work<T> {
    queued: AtomicBool,
    of: core::marker::PhantomData<fn(T)>,
}

impl<T> Work<T> {
    /// Not queued.
    pub fn new() -> Self {
        Work {
            queued: AtomicBool::new(false),
            of: core::marker::PhantomData,
        }
    }
}

impl<T> Default for Work<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// An object with work.
pub trait HasWork<T> {
    /// The work.
    fn work(&self) -> &Work<T>;
}

/// What the work does.
pub trait WorkItem {
    /// Who owns the object meanwhile.
    type Pointer;

    /// Does it.
    fn run(this: Self::Pointer);
}

/// A piece of work that is queued.
type Job = Box<dyn FnOnce()>;

/// Something that can be queued.
pub trait Enqueue {
    /// What a worker does.
    fn job(self) -> Job;
}

fn mark<T: HasWork<T>>(object: &T) {
    let was = object.work().queued.swap(true, Ordering::Relaxed);
    assert!(!was, "work is queued that is queued already");
}

impl<T: WorkItem<Pointer = Arc<T>> + HasWork<T> + 'static> Enqueue for Arc<T> {
    fn job(self) -> Job {
        mark(&*self);
        Box::new(move || {
            self.work().queued.store(false, Ordering::Relaxed);
            T::run(self);
        })
    }
}

impl<T: WorkItem<Pointer = Pin<KBox<T>>> + HasWork<T> + 'static> Enqueue for Pin<KBox<T>> {
    fn job(self) -> Job {
        mark(&*self);
        Box::new(move || {
            self.work().queued.store(false, Ordering::Relaxed);
            T::run(self);
        })
    }
}

/// A work queue.
pub struct Queue(Mutex<VecDeque<Job>>);

impl Queue {
    /// An empty one.
    pub fn new() -> Self {
        Queue(Mutex::new(VecDeque::new()))
    }

    /// Queues.
    pub fn enqueue<P: Enqueue>(&self, object: P) {
        let job = object.job();
        if let Ok(mut jobs) = self.0.lock() {
            jobs.push_back(job);
        }
    }

    /// Runs the next piece of work. Returns whether there was one.
    pub fn run_one(&self) -> bool {
        let job = self.0.lock().ok().and_then(|mut jobs| jobs.pop_front());
        match job {
            Some(job) => {
                job();
                true
            }
            None => false,
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Queue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Queue")
    }
}

/// Work of an object.
#[macro_export]
macro_rules! new_work {
    ($name:literal) => {
        $crate::init::from_fn(|| Ok($crate::workqueue::Work::new()))
    };
}

/// Where an object has its work.
#[macro_export]
macro_rules! impl_has_work {
    (impl HasWork<Self> for $type:ident { self.$field:ident }) => {
        impl $crate::workqueue::HasWork<$type> for $type {
            fn work(&self) -> &$crate::workqueue::Work<$type> {
                &self.$field
            }
        }
    };
}
