// SPDX-License-Identifier: GPL-2.0
//! Which SIDR_REQ repeats one that has been answered.
//!
//! The C module forgets a SIDR_REQ with its answer. If the answer is lost, the repetition of the
//! request is a new one to it, and the consumer is called again.

use super::wire::SidrReqView;

/// How long an answer may be said again, in milliseconds: rdma_cm repeats its request for 66 s.
pub const KEEP_MS: u32 = 120_000;

const NS_PER_MS: i64 = 1_000_000;

/// What tells a SIDR_REQ from others of the same source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// ID by which the sender knows it.
    pub request_id: u32,
    /// Transaction ID, which repetitions share.
    pub tid: u64,
    /// The service asked for.
    pub service_id: u64,
}

impl Question {
    /// The question of a MAD.
    pub fn of(req: SidrReqView<'_>) -> Self {
        Question {
            request_id: req.request_id(),
            tid: req.tid(),
            service_id: req.service_id(),
        }
    }

    /// Whether `other`, of the same source, repeats this one, which was answered at `answered_ns`,
    /// and still may now.
    pub fn is_repeated_by(&self, other: &Question, answered_ns: i64, now_ns: i64) -> bool {
        let age_ns = now_ns.saturating_sub(answered_ns);
        self == other && age_ns <= i64::from(KEEP_MS).saturating_mul(NS_PER_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::SidrReq;

    const FIRST: Question = Question {
        request_id: 7,
        tid: 0x1_0000_0007,
        service_id: 0x0106_1c20,
    };

    #[test]
    fn of_a_message() {
        let mut mad = [0; crate::MAD_SIZE];
        let message = SidrReq {
            tid: FIRST.tid,
            request_id: FIRST.request_id,
            partition_key: 0xffff,
            service_id: FIRST.service_id,
        };
        message.emit(&mut mad, &[]);
        assert_eq!(Question::of(SidrReqView(&mad)), FIRST);
    }

    #[test]
    fn only_the_same_question_repeats() {
        assert!(FIRST.is_repeated_by(&FIRST, 5, 5));
        for other in [
            Question {
                request_id: 8,
                ..FIRST
            },
            Question { tid: 8, ..FIRST },
            Question {
                service_id: 8,
                ..FIRST
            },
        ] {
            assert!(!FIRST.is_repeated_by(&other, 5, 5));
        }
    }

    #[test]
    fn an_answer_is_said_again_for_two_minutes() {
        let last = i64::from(KEEP_MS) * NS_PER_MS;
        assert!(FIRST.is_repeated_by(&FIRST, 0, last));
        assert!(!FIRST.is_repeated_by(&FIRST, 0, last + 1));
        assert!(!FIRST.is_repeated_by(&FIRST, i64::MIN, i64::MAX));
    }
}
