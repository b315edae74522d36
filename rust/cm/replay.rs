// SPDX-License-Identifier: GPL-2.0
//! SIDR_REPs that are kept for a while, to answer a repeated SIDR_REQ without its consumer.
//!
//! Off unless the module parameter `sidr_replay` says for how many. The hash of a request leads to
//! its place in a table, where the newest answer displaces an older one: nothing is allocated for
//! an answer, and what is displaced is answered as without the parameter.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::prelude::*;

use super::index::Key;
use super::manager::SidrRequest;
use crate::rdma::{
    clock::{
        now_ns,
        random_u64, //
    },
    mad::Mad,
    params,
    spinlock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
};
use ib_cm_proto::replay::Question;

/// More than this many answers are never kept: 20 MiB.
const MOST: u32 = 65536;

/// How many answers are looked at under the lock without a break.
const AT_ONCE: usize = 256;

/// An answer.
struct Answered {
    device: usize,
    from: SidrRequest,
    question: Question,
    at_ns: i64,
    mad: Mad,
}

kernel::static_assert!(core::mem::size_of::<Option<Answered>>() <= 336);

/// The table.
#[pin_data]
pub(crate) struct Replays {
    /// For how many answers there is room.
    room: AtomicU32,
    /// Peers choose what they ask, and may not choose which answers displace each other.
    seed: u64,
    #[pin]
    kept: SpinLockIrq<KVVec<Option<Answered>>>,
}

impl Replays {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            room: AtomicU32::new(0),
            seed: random_u64(),
            kept <- new_spinlock_irq!(KVVec::new(), "ib_cm SIDR replay"),
        })
    }

    /// Makes as much room as the parameter asks for. May sleep, unless there is enough.
    pub(crate) fn make_room(&self) {
        let wanted = params::sidr_replay().min(MOST);
        let room = self.room.load(Ordering::Relaxed);
        if wanted == room
            || self
                .room
                .compare_exchange(room, wanted, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
        {
            return;
        }
        let mut kept = KVVec::new();
        for _ in 0..wanted {
            // Without memory less is kept, which is no reason to fail.
            if kept.push(None, GFP_KERNEL | __GFP_NOWARN).is_err() {
                break;
            }
        }
        core::mem::swap(&mut *self.kept.lock(), &mut kept);
        drop(kept);
    }

    /// Whether answers are kept at all.
    pub(crate) fn wanted(&self) -> bool {
        params::sidr_replay() != 0
    }

    /// Keeps what was answered.
    pub(crate) fn keep(&self, device: usize, from: SidrRequest, question: Question, mad: &Mad) {
        self.enter(Answered {
            device,
            from,
            question,
            at_ns: now_ns(),
            mad: *mad,
        });
    }

    fn enter(&self, answered: Answered) {
        let mut kept = self.kept.lock();
        if let Some(slot) = self.slot(&mut kept, &answered.from) {
            *slot = Some(answered);
        }
    }

    /// Writes to `mad` what a question was answered with, if it was.
    pub(crate) fn find(
        &self,
        device: usize,
        from: &SidrRequest,
        question: &Question,
        mad: &mut Mad,
    ) -> bool {
        let mut kept = self.kept.lock();
        match self.slot(&mut kept, from) {
            Some(Some(answered))
                if answered.device == device
                    && answered.from == *from
                    && answered
                        .question
                        .is_repeated_by(question, answered.at_ns, now_ns()) =>
            {
                *mad = answered.mad;
                true
            }
            _ => false,
        }
    }

    /// The place of a request.
    fn slot<'a>(
        &self,
        kept: &'a mut KVVec<Option<Answered>>,
        from: &SidrRequest,
    ) -> Option<&'a mut Option<Answered>> {
        let at = (from.hash(self.seed) as usize).checked_rem(kept.len())?;
        kept.get_mut(at)
    }

    /// Forgets the answers of a device, which name its queue pairs.
    pub(crate) fn forget(&self, device: usize) {
        let of_device = |slot: &Option<Answered>| {
            slot.as_ref()
                .is_some_and(|answered| answered.device == device)
        };
        // In parts: the lock keeps interrupts off.
        let mut from = 0;
        loop {
            let mut kept = self.kept.lock();
            let part = kept.iter_mut().skip(from).take(AT_ONCE);
            let mut seen = 0;
            for slot in part {
                seen += 1;
                if of_device(slot) {
                    *slot = None;
                }
            }
            if seen < AT_ONCE {
                return;
            }
            from = from.saturating_add(AT_ONCE);
        }
    }
}

#[kunit_tests(ib_cm_replay)]
mod tests {
    use super::*;

    fn from(request_id: u32) -> SidrRequest {
        SidrRequest {
            request_id,
            slid: 1,
            sgid: [2; 16],
        }
    }

    fn question(request_id: u32) -> Question {
        Question {
            request_id,
            tid: 3,
            service_id: 4,
        }
    }

    fn answered(device: usize, request_id: u32) -> Answered {
        Answered {
            device,
            from: from(request_id),
            question: question(request_id),
            at_ns: now_ns(),
            mad: [request_id as u8; 256],
        }
    }

    fn replays(room: usize) -> Result<Pin<KBox<Replays>>> {
        let replays = KBox::pin_init(Replays::new(), GFP_KERNEL)?;
        let mut kept = KVVec::new();
        for _ in 0..room {
            kept.push(None, GFP_KERNEL)?;
        }
        core::mem::swap(&mut *replays.kept.lock(), &mut kept);
        Ok(replays)
    }

    fn found(replays: &Replays, device: usize, request_id: u32) -> Option<u8> {
        let mut mad = [0; 256];
        let (from, question) = (from(request_id), question(request_id));
        replays
            .find(device, &from, &question, &mut mad)
            .then_some(mad[0])
    }

    #[test]
    fn the_same_question_has_the_same_answer() -> Result {
        let replays = replays(1)?;
        assert_eq!(found(&replays, 9, 5), None);
        replays.enter(answered(9, 5));
        assert_eq!(found(&replays, 9, 5), Some(5));
        // Another device, another question, and one that displaces it.
        assert_eq!(found(&replays, 8, 5), None);
        assert_eq!(found(&replays, 9, 6), None);
        replays.enter(answered(9, 6));
        assert_eq!(found(&replays, 9, 5), None);
        assert_eq!(found(&replays, 9, 6), Some(6));
        Ok(())
    }

    #[test]
    fn answers_go_with_their_device() -> Result {
        let replays = replays(64)?;
        for request_id in 0..8 {
            replays.enter(answered(request_id as usize % 2, request_id));
        }
        replays.forget(0);
        let left = |device| {
            (0..8)
                .filter(|id| found(&replays, device, *id).is_some())
                .count()
        };
        assert_eq!(left(0), 0);
        assert!(left(1) > 0);
        Ok(())
    }

    #[test]
    fn without_room_nothing_is_kept() -> Result {
        let replays = replays(0)?;
        replays.enter(answered(9, 5));
        assert_eq!(found(&replays, 9, 5), None);
        Ok(())
    }
}
