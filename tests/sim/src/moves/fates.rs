// SPDX-License-Identifier: GPL-2.0
//! What becomes of the MADs that are sent, and which of them nobody need wait for.

use ib_cm_proto::wire::AttrId;

use super::Action;
use super::Flying;
use super::State;
use crate::deaf::Effect;
use crate::digest::ids_of;
use crate::fx::Fx;
use crate::fx::Packet;

/// What becomes of the MADs that an action sends: a digit to the base of 4 for each, the first
/// one's last. 0: it goes its way.
pub(crate) type Fates = u32;
/// The MAD gets lost.
const LOST: u32 = 1;
/// The MAD gets lost, but a duplicate may come, however late.
const DELAYED: u32 = 2;
/// The MAD is taken at once, and a duplicate may come, however late.
const TWICE: u32 = 3;

impl State {
    /// MADs leave hosts.
    ///
    /// Those that can do nothing vanish: whatever else happens can happen without them, and timers
    /// need not wait. Those that do nothing but get the same answer at any time are taken at once:
    /// timers have to wait for them and then for the answer, and nothing else depends on when they
    /// are taken. Timers do not wait for a late one, but for its answer: so it stays, unless the
    /// answer can do nothing.
    pub(super) fn spread(&mut self, fx: &mut Fx) {
        loop {
            if let Some(packet) = self.leaving.pop_front() {
                match self.effect(&packet) {
                    Effect::None => self.vanish(packet, fx),
                    Effect::Answer => self.take(packet, fx),
                    Effect::Any => self.launch(packet),
                }
                continue;
            }
            let mut net = self.net.iter().enumerate();
            let dull = net.find_map(|(at, flying)| match self.effect(&flying.packet) {
                Effect::Any => None,
                Effect::Answer if flying.late => None,
                effect => Some((at, effect)),
            });
            let Some((at, effect)) = dull else {
                return;
            };
            let packet = self.net.swap_remove(at).packet;
            match effect {
                Effect::Answer => self.take(packet, fx),
                _ => self.vanish(packet, fx),
            }
        }
    }

    /// Whether a MAD under way can do nothing any more.
    pub(super) fn is_dead(&self, packet: &Packet) -> bool {
        self.effect(packet) == Effect::None
    }

    fn effect(&self, packet: &Packet) -> Effect {
        if self.budget.whole {
            return Effect::Any;
        }
        self.judge(packet)
    }

    fn judge(&self, packet: &Packet) -> Effect {
        let net = self.net.iter().map(|flying| &flying.packet);
        self.ears.borrow_mut().effect(&self.hosts, packet, net)
    }

    /// What the next MAD's fate is, of those that the budget allows.
    fn fate(&mut self, fates: &[u32]) -> u32 {
        let (losses, duplicates) = (self.budget.losses > 0, self.budget.duplicates > 0);
        for fate in fates {
            let allowed = match *fate {
                LOST => losses,
                DELAYED => losses && duplicates,
                _ => duplicates,
            };
            self.open |= u64::from(allowed) << (4 * self.asked + fate);
        }
        let fate = (self.fates >> (2 * self.asked)) & 3;
        self.asked += 1;
        self.budget.losses -= u8::from(fate == LOST || fate == DELAYED);
        self.budget.duplicates -= u8::from(fate == DELAYED || fate == TWICE);
        fate
    }

    /// Fates to be tried as well: those of the last action and one digit more, beyond the last that
    /// is not 0, so that each is tried once.
    pub(crate) fn others(&self, fates: Fates) -> impl Iterator<Item = Fates> + '_ {
        let decided = (Fates::BITS - fates.leading_zeros()).div_ceil(2);
        let digits = decided..self.asked;
        digits.flat_map(move |at| {
            let open = move |fate: &u32| (self.open >> (4 * at + fate)) & 1 != 0;
            (LOST..=TWICE)
                .filter(open)
                .map(move |fate| fates | (fate << (2 * at)))
        })
    }

    /// A MAD is under way from now on, or is lost.
    fn launch(&mut self, packet: Packet) {
        let fate = self.fate(&[LOST, DELAYED]);
        if fate != LOST {
            self.net.push(Flying::new(packet, fate == DELAYED));
        }
    }

    /// A MAD is answered at once. To lose it is to lose its answer, which has a fate of its own.
    fn take(&mut self, packet: Packet, fx: &mut Fx) {
        if self.fate(&[TWICE]) == TWICE {
            self.net.push(Flying::new(packet.clone(), true));
        }
        self.vanish(packet, fx);
    }

    /// A MAD arrives that changes nothing. If it is answered the monitor hears that.
    fn vanish(&mut self, packet: Packet, fx: &mut Fx) {
        self.arrive(packet, fx);
        self.settle(fx);
    }

    /// What a step shows to be wrong with how MADs were judged: one that could do nothing can do
    /// something now, or one that was taken has done more than was said of it. All steps together
    /// show by induction that the judgements are right.
    pub(crate) fn belies(&self, before: &State, action: Action) -> Option<String> {
        let judge = |state: &State, flying: &Flying| state.judge(&flying.packet);
        for flying in &self.net {
            let was = before.net.iter().find(|was| was.same(flying));
            if was.is_some_and(|was| judge(before, was) < judge(self, flying)) {
                return Some(format!("{} can do something again", told(flying)));
            }
        }
        let (Action::Arrive(at) | Action::ArriveTwice(at)) = action else {
            return None;
        };
        let taken = &before.net[at];
        let effect = judge(before, taken);
        if effect == Effect::Any {
            return None;
        }
        // What was under way still is, without the one that was taken.
        let still = before.net.len() - 1;
        let answers = &self.net[still.min(self.net.len())..];
        let dull = |answer: &Flying| judge(self, answer) == Effect::None;
        let mut was = before.clone();
        was.net.swap_remove(at);
        let mut is = self.clone();
        is.net.truncate(still);
        is.budget = was.budget;
        let wrong = was.key() != is.key() || effect == Effect::None && !answers.iter().all(dull);
        wrong.then(|| format!("{} does something", told(taken)))
    }
}

/// A MAD in words.
fn told(flying: &Flying) -> String {
    let mad = &flying.packet.mad;
    let message = AttrId::of(mad);
    format!(
        "{message:?} with the IDs {:x?}, late: {},",
        ids_of(mad),
        flying.late
    )
}
