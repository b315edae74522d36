// SPDX-License-Identifier: GPL-2.0
//! What comes from nowhere: partitions, and MADs that nobody honest has sent.

use std::rc::Rc;

use ib_cm_proto::wire::Apr;
use ib_cm_proto::wire::AttrId;
use ib_cm_proto::wire::Drep;
use ib_cm_proto::wire::Dreq;
use ib_cm_proto::wire::Header;
use ib_cm_proto::wire::Lap;
use ib_cm_proto::wire::Mra;
use ib_cm_proto::wire::Rej;
use ib_cm_proto::wire::RejEdit;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto::wire::Rtu;
use ib_cm_proto::MAD_SIZE;

use crate::apps::AppTask;
use crate::fx::Delay;
use crate::fx::Packet;
use crate::fx::Task;
use crate::rng::Rng;
use crate::seen::Mark;
use crate::world::lid;
use crate::world::place;
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
        let mut rng = Rng::new(seed);
        if rng.chance(6000) {
            self.meddle(host, &mut rng);
            return;
        }
        self.fx.seen.mark(Mark::ForgedMad);
        let mut mad = [0; MAD_SIZE];
        for byte in mad.iter_mut() {
            *byte = rng.draw() as u8;
        }
        let message = rng.pick(&AttrId::ALL);
        Header::new(message, rng.draw()).emit(&mut mad);
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
        self.monitor.forged(&packet);
        self.fx.later(Delay::At(self.fx.now), Task::Arrive(packet));
    }

    /// Somebody who knows all IDs forges a MAD for a connection of a host.
    fn meddle(&mut self, host: usize, rng: &mut Rng) {
        let cm = &self.hosts[host].cm;
        let ids: Vec<_> = cm
            .ids
            .values()
            .filter(|id| id.conn.remote_id != 0)
            .collect();
        if ids.is_empty() {
            return;
        }
        let id = ids[rng.below(ids.len() as u64) as usize];
        let (local_comm_id, remote_comm_id) = (id.conn.remote_id, id.conn.local_id);
        let (from, mut to) = (id.peer, cm.devs[id.dev].lid);
        let (qpn, guid) = (id.conn.local_qpn, id.conn.remote_ca_guid);
        if rng.chance(1000) {
            // To the right host by the wrong device.
            let at = place(to);
            to = lid(at.host, self.config.devs - 1 - at.dev);
        }
        let tid = rng.draw();
        let mut mad = [0; MAD_SIZE];
        match rng.below(8) {
            0 => Mra {
                tid,
                local_comm_id,
                remote_comm_id,
                message_mraed: rng.below(4) as u8,
                service_timeout: rng.below(18) as u8,
            }
            .emit(&mut mad, &[]),
            1 | 2 => {
                let reasons = [RejReason::STALE_CONN, RejReason::CONSUMER_DEFINED];
                let mut rej = Rej {
                    tid,
                    local_comm_id,
                    remote_comm_id,
                    message_rejected: rng.below(4) as u8,
                    reason: rng.pick(&reasons),
                    ..Rej::ZERO
                };
                rej.set_ari(&guid.to_be_bytes()[..rng.below(9) as usize]);
                rej.emit(&mut mad, &[]);
            }
            3 => Rtu {
                tid,
                local_comm_id,
                remote_comm_id,
            }
            .emit(&mut mad, &[]),
            4 => Dreq {
                tid,
                local_comm_id,
                remote_comm_id,
                remote_qpn_eecn: qpn + u32::from(rng.chance(3000)),
            }
            .emit(&mut mad, &[]),
            5 => Drep {
                tid,
                local_comm_id,
                remote_comm_id,
            }
            .emit(&mut mad, &[]),
            6 => Apr {
                tid,
                local_comm_id,
                remote_comm_id,
                info_length: 127,
                ..Apr::ZERO
            }
            .emit(&mut mad, &[]),
            _ => Lap {
                tid,
                local_comm_id,
                remote_comm_id,
                ..Lap::ZERO
            }
            .emit(&mut mad, &[]),
        }
        self.fx.seen.mark(Mark::Meddled);
        let packet = Packet {
            from,
            to,
            mad: Rc::new(mad),
        };
        self.monitor.forged(&packet);
        self.fx.later(Delay::At(self.fx.now), Task::Arrive(packet));
    }
}
