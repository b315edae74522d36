// SPDX-License-Identifier: GPL-2.0
//! The shared wait queues, as `wait_var_event()` and `wake_up_var()` use them: one queue for all
//! points, with the barriers of the kernel's code and no more. A wake-up that comes too early is
//! lost, and then the model checker finds that nobody can go on.

use std::cell::RefCell;
use std::rc::Rc;

use loom::sync::atomic::fence;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering;
use loom::sync::Condvar;
use loom::sync::Mutex;

/// The queue.
#[derive(Debug)]
struct Queue {
    /// How many threads stand in it. Wakers look without the lock.
    waiting: AtomicU32,
    /// How often it was woken.
    woken: Mutex<u32>,
    go_on: Condvar,
}

thread_local! {
    static QUEUE: RefCell<Option<Rc<Queue>>> = const { RefCell::new(None) };
}

/// Before a model begins.
pub fn set_up() {
    crate::sync::atomic::set_up();
    let queue = Queue {
        waiting: AtomicU32::new(0),
        woken: Mutex::new(0),
        go_on: Condvar::new(),
    };
    QUEUE.with(|place| *place.borrow_mut() = Some(Rc::new(queue)));
}

/// After it has ended.
pub fn tear_down() {
    let queue = QUEUE.with(|place| place.borrow_mut().take());
    drop(queue);
    crate::sync::atomic::tear_down();
}

fn queue() -> Rc<Queue> {
    match QUEUE.with(|place| place.borrow().clone()) {
        Some(queue) => queue,
        None => unreachable!(),
    }
}

/// Sleeps until a condition holds.
pub fn until(mut condition: impl FnMut() -> bool) {
    if condition() {
        return;
    }
    let queue = queue();
    queue.waiting.fetch_add(1, Ordering::Relaxed);
    loop {
        let seen = queue.woken.lock().map_or(0, |woken| *woken);
        // prepare_to_wait_event() ends with a barrier.
        fence(Ordering::SeqCst);
        if condition() {
            break;
        }
        let Ok(mut woken) = queue.woken.lock() else {
            return;
        };
        while *woken == seen {
            match queue.go_on.wait(woken) {
                Ok(again) => woken = again,
                Err(_) => return,
            }
        }
    }
    queue.waiting.fetch_sub(1, Ordering::Relaxed);
}

/// Lets sleepers look at their conditions again.
pub fn wake() {
    // ib_cm_helper_wake() begins with a barrier.
    fence(Ordering::SeqCst);
    let queue = queue();
    if queue.waiting.load(Ordering::Relaxed) == 0 {
        return;
    }
    if let Ok(mut woken) = queue.woken.lock() {
        *woken += 1;
    }
    queue.go_on.notify_all();
}
