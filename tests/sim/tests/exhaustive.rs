// SPDX-License-Identifier: GPL-2.0
//! All interleavings of one connection between two hosts.

use ib_cm_sim::exhaustive::search;
use ib_cm_sim::exhaustive::Budget;

/// Returns the most attempts that a host needs.
fn check(budget: Budget) -> u8 {
    let found = search(budget, 200_000_000);
    eprintln!(
        "{budget:?}: {} states, {} steps, at most {} attempts to connect",
        found.states, found.steps, found.attempts
    );
    if let Some((what, story)) = found.broken {
        panic!("{what}, after:\n  {}", story.join("\n  "));
    }
    found.attempts
}

#[test]
fn two_losses_and_one_of_each_other_fault() {
    check(Budget {
        losses: 2,
        duplicates: 1,
        crashes: 1,
        destroys: 1,
        prompt: false,
        whole: false,
    });
}

#[test]
fn two_losses_two_duplicates_one_crash_one_destroy_with_prompt_consumers() {
    check(Budget {
        losses: 2,
        duplicates: 2,
        crashes: 1,
        destroys: 1,
        prompt: true,
        whole: false,
    });
}

/// With the MADs under way that can do nothing there are more states, but neither other faults nor
/// more attempts.
#[test]
fn mads_that_can_do_nothing_do_nothing() {
    for (losses, duplicates, crashes, destroys, prompt) in [
        (1, 1, 0, 1, false),
        (1, 0, 1, 0, false),
        (1, 1, 1, 1, true),
        (2, 2, 0, 1, true),
    ] {
        let budget = Budget {
            losses,
            duplicates,
            crashes,
            destroys,
            prompt,
            whole: false,
        };
        let whole = Budget {
            whole: true,
            ..budget
        };
        assert_eq!(check(budget), check(whole));
    }
}
