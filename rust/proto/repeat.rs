// SPDX-License-Identifier: GPL-2.0
//! When a message that waits for an answer is sent again, where the module decides that.
//!
//! As long as nothing else is asked for the MAD layer repeats such messages, as in C: after equal
//! waits, and after an MRA every one of them is as long as the MRA asks for. A [`Plan`] takes its
//! place where a setting differs from that.

/// What is set for all messages. The default is what the C module does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How long to wait before the first repetition, in milliseconds; each further wait is twice as
    /// long, up to the one that the consumer asks for. 0: all are as the consumer asks.
    pub first_retry_ms: u32,
    /// An MRA lengthens the wait that is under way, and not those that follow.
    pub mra_once: bool,
}

/// How one message is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    first_ms: u32,
    most_ms: u32,
    retries: u8,
    mra_once: bool,
}

impl Plan {
    /// The plan of a message that its sender wants to be repeated `retries` times, after
    /// `timeout_ms` each. None where that is what the MAD layer does by itself.
    pub fn new(settings: Settings, timeout_ms: u32, retries: u8) -> Option<Self> {
        let backs_off = settings.first_retry_ms != 0 && settings.first_retry_ms < timeout_ms;
        if timeout_ms == 0 || retries == 0 || !(backs_off || settings.mra_once) {
            return None;
        }
        Some(Plan {
            first_ms: if backs_off {
                settings.first_retry_ms
            } else {
                timeout_ms
            },
            most_ms: timeout_ms,
            retries,
            mra_once: settings.mra_once,
        })
    }

    /// How long to wait after the message was sent for the first time, in milliseconds.
    pub const fn first_ms(&self) -> u32 {
        self.first_ms
    }

    /// How long every further wait takes after an MRA that asked for `patience_ms`; 0 where it
    /// changes nothing for them.
    pub const fn after_mra(&self, patience_ms: u32) -> u32 {
        if self.mra_once {
            0
        } else {
            patience_ms
        }
    }

    /// No answer came, and the message was repeated `made` times so far: whether it is sent again,
    /// and how long to wait then, in milliseconds. `every_ms`: see [`Plan::after_mra`].
    pub fn next_ms(&self, made: u32, every_ms: u32) -> Option<u32> {
        if made >= u32::from(self.retries) {
            return None;
        }
        if every_ms != 0 {
            return Some(every_ms);
        }
        let doublings = made.saturating_add(1);
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        Some(self.first_ms.saturating_mul(factor).min(self.most_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn waits(plan: &Plan, every_ms: u32) -> Vec<u32> {
        let next = |made| plan.next_ms(made, every_ms);
        (0..).map_while(next).collect()
    }

    fn backing_off(first_retry_ms: u32) -> Settings {
        Settings {
            first_retry_ms,
            mra_once: false,
        }
    }

    const ONCE: Settings = Settings {
        first_retry_ms: 0,
        mra_once: true,
    };

    #[test]
    fn by_default_the_mad_layer_repeats() {
        for timeout_ms in [0, 1, 4608, u32::MAX] {
            for retries in 0..16 {
                assert_eq!(Plan::new(Settings::default(), timeout_ms, retries), None);
            }
        }
    }

    #[test]
    fn waits_double_up_to_what_the_consumer_asks_for() {
        let plan = Plan::new(backing_off(1000), 4608, 15).unwrap();
        assert_eq!(plan.first_ms(), 1000);
        let all = waits(&plan, 0);
        assert_eq!(all.len(), 15);
        assert_eq!(all[..4], [2000, 4000, 4608, 4608]);
        assert!(all[4..].iter().all(|wait| *wait == 4608));
    }

    #[test]
    fn nothing_is_ever_waited_for_longer_than_without_a_plan() {
        for first in [1, 2, 3, 1000, 4607, 1 << 31, u32::MAX] {
            for timeout_ms in [1, 2, 4608, 1 << 30, u32::MAX] {
                for mra_once in [false, true] {
                    let settings = Settings {
                        first_retry_ms: first,
                        mra_once,
                    };
                    let Some(plan) = Plan::new(settings, timeout_ms, 15) else {
                        continue;
                    };
                    let all = waits(&plan, 0);
                    assert_eq!(all.len(), 15);
                    let mut before = plan.first_ms();
                    assert!(before > 0);
                    for wait in all {
                        assert!(before <= wait && wait <= timeout_ms);
                        before = wait;
                    }
                }
            }
        }
    }

    #[test]
    fn a_first_wait_that_is_no_shorter_is_no_plan() {
        assert_eq!(Plan::new(backing_off(4608), 4608, 15), None);
        assert_eq!(Plan::new(backing_off(5000), 4608, 15), None);
    }

    #[test]
    fn what_is_never_repeated_or_never_answered_has_no_plan() {
        assert_eq!(Plan::new(backing_off(1), 4608, 0), None);
        assert_eq!(Plan::new(backing_off(1), 0, 15), None);
        assert_eq!(Plan::new(ONCE, 0, 15), None);
    }

    #[test]
    fn an_mra_lengthens_one_wait_or_all() {
        let once = Plan::new(ONCE, 256, 3).unwrap();
        assert_eq!(once.first_ms(), 256);
        assert_eq!(once.after_mra(65_536), 0);
        assert_eq!(waits(&once, once.after_mra(65_536)), [256, 256, 256]);

        let all = Plan::new(backing_off(100), 256, 3).unwrap();
        assert_eq!(waits(&all, all.after_mra(65_536)), [65_536; 3]);
    }
}
