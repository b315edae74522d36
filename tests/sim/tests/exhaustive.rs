// SPDX-License-Identifier: GPL-2.0
//! All interleavings of one connection between two hosts.

use ib_cm_sim::exhaustive::search;
use ib_cm_sim::exhaustive::Budget;

fn check(budget: Budget) {
    let found = search(budget, 200_000_000);
    eprintln!(
        "{budget:?}: {} states, {} steps, at most {} attempts to connect",
        found.states, found.steps, found.attempts
    );
    if let Some((what, story)) = found.broken {
        panic!("{what}, after:\n  {}", story.join("\n  "));
    }
}

#[test]
fn one_loss_one_duplicate_one_destroy() {
    check(Budget {
        losses: 1,
        duplicates: 1,
        crashes: 0,
        destroys: 1,
        prompt: false,
    });
}

#[test]
fn one_loss_one_crash() {
    check(Budget {
        losses: 1,
        duplicates: 0,
        crashes: 1,
        destroys: 0,
        prompt: false,
    });
}

#[test]
fn one_of_each_with_prompt_consumers() {
    check(Budget {
        losses: 1,
        duplicates: 1,
        crashes: 1,
        destroys: 1,
        prompt: true,
    });
}

#[test]
fn two_losses_and_one_of_each_other_fault() {
    check(Budget {
        losses: 2,
        duplicates: 1,
        crashes: 1,
        destroys: 1,
        prompt: true,
    });
}

#[test]
fn two_losses_two_duplicates_one_destroy() {
    check(Budget {
        losses: 2,
        duplicates: 2,
        crashes: 0,
        destroys: 1,
        prompt: true,
    });
}
