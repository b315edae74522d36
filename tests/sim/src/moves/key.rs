// SPDX-License-Identifier: GPL-2.0
//! Which states are the same.

use std::hash::Hash;

use super::State;
use crate::cm::Event;
use crate::digest::body_of;
use crate::digest::ids_of;
use crate::digest::Digest;
use crate::digest::Key;
use crate::digest::Ranks;
use crate::world::lid;

impl State {
    /// The communication IDs that occur, of each host by their age.
    fn ranks(&self) -> [Ranks; 2] {
        let mut ranks = [Ranks::default(), Ranks::default()];
        let mut add = |host: usize, ids: (u32, u32)| {
            ranks[host].add(ids.0);
            ranks[1 - host].add(ids.1);
        };
        for cm in &self.hosts {
            for id in cm.ids.values() {
                add(cm.host, (id.conn.local_id, id.conn.remote_id));
                for event in &id.events {
                    if let Event::Arrival(arrival) = event {
                        add(1 - cm.host, ids_of(&arrival.mad));
                    }
                }
            }
        }
        for flying in &self.net {
            let host = usize::from(flying.packet.from == lid(1, 0));
            add(host, ids_of(&flying.packet.mad));
        }
        ranks.iter_mut().for_each(Ranks::sort);
        ranks
    }

    /// A number that two states share only if the same can happen in both.
    pub(crate) fn key(&self) -> Key {
        let ranks = self.ranks();
        let named =
            |host: usize, ids: (u32, u32)| (ranks[host].of(ids.0), ranks[1 - host].of(ids.1));
        let mut digest = Digest::default();
        (self.budget, self.connected).hash(&mut digest);
        for cm in &self.hosts {
            for (uid, id) in &cm.ids {
                let mut conn = id.conn;
                conn.tid = 0;
                (conn.local_id, conn.remote_id) = named(cm.host, (conn.local_id, conn.remote_id));
                let slots = [id.local_id, id.remote_id, id.remote_qpn, id.local_qpn];
                (conn, slots, id.delivering, id.owned, id.timer.is_some()).hash(&mut digest);
                (id.requests, id.has_path, self.checker.known(*uid)).hash(&mut digest);
                for event in &id.events {
                    match event {
                        Event::Arrival(arrival) => {
                            let ids = named(1 - cm.host, ids_of(&arrival.mad));
                            (body_of(&arrival.mad), ids).hash(&mut digest);
                        }
                        Event::Note(report, _) => (*report as u8).hash(&mut digest),
                    }
                }
                let sends = &cm.devs[0].sends;
                let left = id.record.map(|record| sends.retries_left(record));
                left.hash(&mut digest);
            }
            (cm.ids.len(), cm.devs[0].sends.waiting().len()).hash(&mut digest);
        }
        // In whatever order they are under way.
        let mut net = 0_u128;
        for flying in &self.net {
            let packet = &flying.packet;
            let host = usize::from(packet.from == lid(1, 0));
            let ids = named(host, ids_of(&packet.mad));
            net = net.wrapping_add(Digest::of((host, flying.late, flying.body, ids)));
        }
        net.hash(&mut digest);
        Key::from(digest.sum())
    }
}
