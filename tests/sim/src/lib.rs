// SPDX-License-Identifier: GPL-2.0
//! Deterministic simulation of whole hosts that run the protocol crate.
//!
//! A seed draws a world: hosts with devices, processes and consumers, a network, and which faults
//! it has at what rates. First things go wrong and nothing may break, then nothing goes wrong any
//! more and everything has to come right. The same seed always makes the same world.

pub mod apps;
pub mod calls;
pub mod checker;
pub mod cm;
pub mod config;
pub mod forge;
pub mod fx;
pub mod mad;
pub mod process;
pub mod qp;
pub mod receive;
pub mod rng;
pub mod seen;
pub mod transitions;
pub mod world;

/// Runs the seeds from `first` on, `count` of them, on all processors. Returns the first seed that
/// fails with what is wrong, and what was seen.
pub fn run_seeds(first: u64, count: u64) -> (Vec<(u64, Vec<String>)>, seen::Seen, u64, u32) {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let next = std::sync::atomic::AtomicU64::new(0);
    let results = std::sync::Mutex::new((Vec::new(), seen::Seen::default(), 0, 0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut seen = seen::Seen::default();
                let (mut tasks, mut most) = (0, 0);
                let mut broken = Vec::new();
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if number >= count || broken.len() > 20 {
                        break;
                    }
                    let outcome = world::run(first + number, false);
                    seen.add(&outcome.seen);
                    tasks += outcome.tasks;
                    most = most.max(outcome.most_attempts);
                    if !outcome.broken.is_empty() {
                        broken.push((first + number, outcome.broken));
                    }
                }
                let mut results = results.lock().unwrap_or_else(|error| error.into_inner());
                results.0.append(&mut broken);
                results.1.add(&seen);
                results.2 += tasks;
                results.3 = results.3.max(most);
            });
        }
    });
    let mut results = results
        .into_inner()
        .unwrap_or_else(|error| error.into_inner());
    results.0.sort();
    results
}
