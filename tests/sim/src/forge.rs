// SPDX-License-Identifier: GPL-2.0
//! What comes from nowhere: partitions, and MADs that nobody honest has sent.

use std::rc::Rc;

use ib_cm_proto::wire::AttrId;
use ib_cm_proto::wire::Header;
use ib_cm_proto::wire::RejEdit;
use ib_cm_proto::MAD_SIZE;

use crate::apps::AppTask;
use crate::fx::Delay;
use crate::fx::Packet;
use crate::fx::Task;
use crate::rng::Rng;
use crate::seen::Mark;
use crate::world::lid;
use crate::world::Phase;
use crate::world::World;

impl World {
    /// Two hosts cannot reach each other for a while.
    pub fn part(&mut self, a: usize, b: usize) {
        if a == b || self.phase != Phase::Faulty {
            return;
        }
        self.fx.seen.mark(Mark::Partitioned);
        let pair = (a.min(b), a.max(b));
        self.partitions.insert(pair);
        let until = self.fx.rng.range(1000, 2_000_000);
        self.fx.after(until, AppTask::Join(pair.0, pair.1));
    }

    /// Somebody sends a MAD to a host that names nobody's identifiers, or whose bytes are random.
    pub fn forge(&mut self, host: usize, seed: u64) {
        if self.phase != Phase::Faulty {
            return;
        }
        self.fx.seen.mark(Mark::ForgedMad);
        let mut rng = Rng::new(seed);
        let mut mad = [0; MAD_SIZE];
        for byte in mad.iter_mut() {
            *byte = rng.next() as u8;
        }
        let message = rng.pick(&AttrId::ALL);
        Header::new(message, rng.next()).emit(&mut mad);
        // A REQ or SIDR_REQ for our service would be a request like others, whose sender never
        // answers; all the rest must find nobody.
        if rng.chance(5000) {
            RejEdit(&mut mad).remote_comm_id(0);
        }
        let from = lid((host + 1) % self.config.hosts, 0);
        let packet = Packet {
            from,
            to: lid(host, 0),
            mad: Rc::new(mad),
        };
        self.fx.later(Delay::At(self.fx.now), Task::Arrive(packet));
    }
}
