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
pub mod consumer;
mod deaf;
pub mod digest;
pub mod exhaustive;
pub mod forge;
pub mod fx;
pub mod mad;
pub mod monitor;
mod moves;
pub mod note;
pub mod probe;
pub mod process;
pub mod qp;
pub mod receive;
pub mod rng;
pub mod rules;
pub mod seen;
pub mod transitions;
pub mod world;

use seen::Seen;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::sync::Mutex;
use std::sync::PoisonError;

/// After so many failures a thread looks for no more.
const ENOUGH: usize = 10;

/// How the worlds of many seeds went.
#[derive(Debug, Default)]
pub struct Runs {
    /// Seeds that fail, and why.
    pub broken: Vec<(u64, Vec<String>)>,
    /// What was seen.
    pub seen: Seen,
    /// Tasks done.
    pub tasks: u64,
    /// The most attempts that a peer needed to connect.
    pub most_attempts: u32,
}

/// Runs `count` seeds from `first` on, on all processors.
pub fn run_seeds(first: u64, count: u64) -> Runs {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let next = AtomicU64::new(0);
    let all = Mutex::new(Runs::default());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut runs = Runs::default();
                while runs.broken.len() < ENOUGH {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    runs.add_world(first + number);
                }
                all.lock().unwrap_or_else(PoisonError::into_inner).add(runs);
            });
        }
    });
    let mut runs = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    runs.broken.sort();
    runs
}

impl Runs {
    fn add_world(&mut self, seed: u64) {
        // A panic is a failure like others: the seed matters.
        let Ok(outcome) = std::panic::catch_unwind(|| world::run(seed, false)) else {
            self.broken.push((seed, vec!["panic".to_owned()]));
            return;
        };
        self.seen.add(&outcome.seen);
        self.tasks += outcome.tasks;
        self.most_attempts = self.most_attempts.max(outcome.most_attempts);
        if !outcome.broken.is_empty() {
            self.broken.push((seed, outcome.broken));
        }
    }

    fn add(&mut self, mut other: Runs) {
        self.broken.append(&mut other.broken);
        self.seen.add(&other.seen);
        self.tasks += other.tasks;
        self.most_attempts = self.most_attempts.max(other.most_attempts);
    }
}
