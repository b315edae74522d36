// SPDX-License-Identifier: GPL-2.0
//! Runs worlds: `ib_cm_sim COUNT [FIRST]` many, `ib_cm_sim --seed SEED` one, with its log.
//! `ib_cm_sim --all LOSSES DUPLICATES CRASHES DESTROYS [prompt] [whole]` runs all interleavings of
//! one connection, whose consumers hear of everything at once or after any time; with the MADs too
//! that can do nothing.

use std::process::ExitCode;
use std::time::Instant;

use ib_cm_sim::exhaustive::search;
use ib_cm_sim::exhaustive::Budget;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("--seed") => replay(args.get(1).and_then(|seed| seed.parse().ok())),
        Some("--all") => all(&args[1..]),
        count => {
            let count = count.and_then(|count| count.parse().ok()).unwrap_or(20_000);
            let first = args
                .get(1)
                .and_then(|first| first.parse().ok())
                .unwrap_or(0);
            many(first, count)
        }
    }
}

fn all(budget: &[String]) -> ExitCode {
    let numbers: Vec<u8> = budget
        .iter()
        .filter_map(|number| number.parse().ok())
        .collect();
    let [losses, duplicates, crashes, destroys] = numbers[..] else {
        eprintln!("--all wants four numbers: losses, duplicates, crashes and destroys");
        return ExitCode::FAILURE;
    };
    let budget = Budget {
        losses,
        duplicates,
        crashes,
        destroys,
        prompt: budget.iter().any(|word| word == "prompt"),
        whole: budget.iter().any(|word| word == "whole"),
    };
    let began = Instant::now();
    let found = search(budget, usize::MAX);
    println!(
        "{} states, {} steps, at most {} attempts to connect, {:.1} s",
        found.states,
        found.steps,
        found.attempts,
        began.elapsed().as_secs_f64()
    );
    match found.broken {
        None => ExitCode::SUCCESS,
        Some((what, story)) => {
            println!("{what}, after:\n  {}", story.join("\n  "));
            ExitCode::FAILURE
        }
    }
}

fn replay(seed: Option<u64>) -> ExitCode {
    let Some(seed) = seed else {
        eprintln!("--seed wants a number: the one that a failure has printed");
        return ExitCode::FAILURE;
    };
    let outcome = ib_cm_sim::world::run(seed, true);
    for line in &outcome.log {
        println!("{line}");
    }
    println!(
        "{} tasks, {} attempts",
        outcome.tasks, outcome.most_attempts
    );
    if outcome.broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn many(first: u64, count: u64) -> ExitCode {
    let began = Instant::now();
    let runs = ib_cm_sim::run_seeds(first, count);
    print!("{}", runs.seen.table());
    for missing in runs.seen.missing() {
        println!("never: {missing}");
    }
    println!(
        "{count} seeds from {first}, {} tasks, at most {} attempts to connect, {:.1} s",
        runs.tasks,
        runs.most_attempts,
        began.elapsed().as_secs_f64()
    );
    for (seed, what) in &runs.broken {
        println!("seed {seed}: {}", what.join("; "));
        println!("  replay: scripts/sim --seed {seed}");
    }
    if runs.broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
