// SPDX-License-Identifier: GPL-2.0
//! All interleavings of one connection between two hosts, with a few losses, duplicates, a crash
//! and a destroy. Time has no length here: a timer may run out whenever nothing is under way but
//! late duplicates.
//!
//! What cannot make a difference is tried in one order only. A MAD that will be lost is lost when
//! it is sent: as long as it is under way it can only keep timers from running out. A MAD is
//! repeated when it is taken, and of equal ones the late one is taken last. One that can do nothing
//! any more is not under way, and one that only gets an answer, always the same, is taken at once;
//! `whole` leaves them where they are and checks that. States are compared by fingerprints in which
//! communication IDs are ranks.

use crate::cm::Cm;
use crate::digest::Key;
use crate::digest::Table;
use crate::fx::Fx;
use crate::moves::Action;
use crate::moves::Fates;
use crate::moves::State;
use crate::rng::Rng;
use crate::seen::Seen;

/// What may go wrong, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// MADs lost.
    pub losses: u8,
    /// MADs delivered twice.
    pub duplicates: u8,
    /// Hosts that lose their power.
    pub crashes: u8,
    /// Identifiers destroyed by their consumers at any time.
    pub destroys: u8,
    /// Whether consumers hear of everything at once, else after any time.
    pub prompt: bool,
    /// MADs that can do nothing are under way as well, and it is checked that they do nothing.
    pub whole: bool,
}

/// How the search went.
#[derive(Debug, Default)]
pub struct Found {
    /// Different states.
    pub states: usize,
    /// Steps from one to another.
    pub steps: u64,
    /// The most attempts that a host needed to connect after it had come up.
    pub attempts: u8,
    /// What was seen.
    pub seen: Seen,
    /// What is wrong, and how it came about.
    pub broken: Option<(String, Vec<String>)>,
}

/// A state on the way to the one that is looked at.
struct Frame {
    state: State,
    key: Key,
    /// What led here.
    by: Option<(Action, Fates)>,
    todo: Vec<(Action, Fates)>,
    /// The most attempts from here on.
    attempts: u8,
}

/// The mark of a state whose successors are still being looked at.
const OPEN: u8 = u8::MAX;

/// Searches all states within a budget; `most` of them at most.
pub fn search(budget: Budget, most: usize) -> Found {
    let mut found = Found::default();
    let mut fx = Fx::new(Rng::new(0), false);
    fx.tidy = true;
    let mut path = Vec::new();
    let broken = explore(budget, most, &mut path, &mut found, &mut fx);
    found.broken = broken.map(|what| (what, story(&path)));
    found.seen = fx.seen;
    found
}

/// Returns what is wrong at the end of the path.
fn explore(
    budget: Budget,
    most: usize,
    path: &mut Vec<Frame>,
    found: &mut Found,
    fx: &mut Fx,
) -> Option<String> {
    // Each state with the most attempts from there on.
    let mut known: Table<u8> = Table::default();
    let first = State::begin(budget, fx);
    let key = first.key();
    let first = Frame::new(first, key, None);
    known.insert(first.key, OPEN);
    path.push(first);
    while let Some(top) = path.last_mut() {
        let Some((action, fates)) = top.todo.pop() else {
            let done = path.pop()?;
            known.insert(done.key, done.attempts);
            found.states += 1;
            let attempts = found.weigh(done.by, done.attempts);
            if let Some(before) = path.last_mut() {
                before.attempts = before.attempts.max(attempts);
            }
            continue;
        };
        let mut next = top.state.clone();
        next.act(action, fates, fx);
        found.steps += 1;
        let changed = next.changed(&top.state);
        let wrong = changed.filter_map(Cm::check_indices).next();
        let mut wrong = fx.broken.pop().or(wrong);
        if budget.whole {
            wrong = wrong.or_else(|| next.belies(&top.state, action));
        }
        if next.over && wrong.is_none() {
            continue;
        }
        top.todo
            .extend(next.others(fates).map(|fates| (action, fates)));
        let key = next.key();
        let by = Some((action, fates));
        let wrong = match known.insert(key, OPEN) {
            Some(_) if wrong.is_some() => wrong,
            Some(OPEN) => Some("the hosts never stop trying to connect".to_owned()),
            Some(attempts) => {
                known.insert(key, attempts);
                let attempts = found.weigh(by, attempts);
                top.attempts = top.attempts.max(attempts);
                continue;
            }
            None => wrong,
        };
        let next = Frame::new(next, key, by);
        let wrong = wrong.or_else(|| next.state.end(&next.todo));
        path.push(next);
        if wrong.is_some() {
            return wrong;
        }
        if known.len() > most {
            return Some("there are more states than expected".to_owned());
        }
    }
    None
}

impl Found {
    /// The attempts before a step that are followed by so many after it.
    fn weigh(&mut self, by: Option<(Action, Fates)>, after: u8) -> u8 {
        match by {
            Some((Action::Ask, _)) => after + 1,
            // Host 0 begins anew, and asks at once.
            Some((Action::Crash(0), _)) => {
                self.attempts = self.attempts.max(after + 1);
                0
            }
            Some(_) => after,
            None => {
                self.attempts = self.attempts.max(after);
                0
            }
        }
    }
}

impl Frame {
    fn new(state: State, key: Key, by: Option<(Action, Fates)>) -> Self {
        Frame {
            key,
            todo: state
                .actions()
                .into_iter()
                .map(|action| (action, 0))
                .collect(),
            state,
            by,
            attempts: 0,
        }
    }
}

/// How the state at the end of a path came about.
fn story(path: &[Frame]) -> Vec<String> {
    let told = |(action, fates): (Action, Fates)| match fates {
        0 => format!("{action:?}"),
        _ => format!("{action:?}, what it sends is lost or late: {fates}"),
    };
    path.iter().filter_map(|frame| frame.by).map(told).collect()
}
