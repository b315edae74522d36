// SPDX-License-Identifier: GPL-2.0
//! Worlds of many seeds: nothing breaks, everything comes right, and nothing was out of reach.

use ib_cm_sim::run_seeds;
use ib_cm_sim::world;

/// Worlds to simulate, unless `IB_CM_SEEDS` says otherwise.
const SEEDS: u64 = 20_000;

#[test]
fn worlds_of_many_seeds_come_right_and_show_everything() {
    let seeds = std::env::var("IB_CM_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok());
    let runs = run_seeds(0, seeds.unwrap_or(SEEDS));
    for (seed, what) in &runs.broken {
        eprintln!(
            "seed {seed}: {}\n  replay: scripts/sim --seed {seed}",
            what.join("; ")
        );
    }
    assert!(runs.broken.is_empty(), "{} worlds break", runs.broken.len());
    let missing = runs.seen.missing();
    assert!(
        missing.is_empty(),
        "never seen: {missing:?}\n{}",
        runs.seen.table()
    );
}

#[test]
fn the_same_seed_makes_the_same_world() {
    for seed in 1_000_000..1_000_100 {
        let (once, again) = (world::run(seed, true), world::run(seed, true));
        assert!(once.log.len() > 1);
        assert_eq!(once.log, again.log, "seed {seed}");
        assert_eq!(once.seen, again.seen, "seed {seed}");
    }
}

#[test]
fn a_log_changes_nothing() {
    for seed in 2_000_000..2_000_050 {
        assert_eq!(
            world::run(seed, true).seen,
            world::run(seed, false).seen,
            "seed {seed}"
        );
    }
}
