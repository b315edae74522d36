// SPDX-License-Identifier: GPL-2.0
//! Who listens on the wire: it knows the MADs that were sent and that arrived, and what they must
//! look like.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use ib_cm_proto::wire::AttrId;
use ib_cm_proto::wire::Msg;
use ib_cm_proto::wire::RejReason;
use ib_cm_proto::wire::RejView;

use crate::fx::Lid;
use crate::fx::Packet;
use crate::fx::Time;
use crate::world::guid_of;

/// The DREQs of one side of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Release {
    sent: u32,
    /// The host has forgotten it.
    done: bool,
}

/// Two devices and the communication IDs of both sides, the sender's first.
type Pair = (Lid, Lid, u32, u32);

/// The monitor.
#[derive(Clone, Debug, Default)]
pub struct Monitor {
    /// Hosts use the same communication IDs again after a boot, and take answers to what they were
    /// before for answers to what they are.
    same_ids: bool,
    reqs: BTreeSet<(Lid, Lid, u32)>,
    reps: BTreeSet<Pair>,
    releases: BTreeMap<Pair, Release>,
    /// Devices, and the peers who have answered there.
    answered: BTreeSet<(Lid, u32)>,
    /// When a device went away last.
    gone: BTreeMap<Lid, Time>,
}

impl Monitor {
    /// Nothing has been heard yet.
    pub fn new(same_ids: bool) -> Self {
        Monitor {
            same_ids,
            ..Monitor::default()
        }
    }

    /// A MAD is on the wire. Returns what is wrong about it.
    pub fn sent(&mut self, packet: &Packet, now: Time) -> Option<&'static str> {
        // All messages of connections begin with the same two IDs.
        let view = RejView(&packet.mad);
        let (from, to) = (packet.from, packet.to);
        let (ours, theirs) = (view.local_comm_id(), view.remote_comm_id());
        match AttrId::of(&packet.mad)? {
            AttrId::Req => {
                self.reqs.insert((from, to, ours));
            }
            AttrId::Rep => {
                self.reps.insert((from, to, ours, theirs));
            }
            AttrId::Dreq => {
                let release = self.releases.entry((from, to, ours, theirs)).or_default();
                release.sent += 1;
                // It was sent in the last moment.
                release.done |= self.gone.get(&from) == Some(&now);
            }
            AttrId::Rej if !self.same_ids => return self.rej(packet),
            _ => {}
        }
        None
    }

    /// A MAD has been forged: answers to it are answers.
    pub fn forged(&mut self, packet: &Packet) {
        if let Some(AttrId::Req | AttrId::Rep) = AttrId::of(&packet.mad) {
            let _ = self.sent(packet, 0);
        }
    }

    /// IBA 12.6.7, and what peers match a REJ by.
    fn rej(&self, packet: &Packet) -> Option<&'static str> {
        let view = RejView(&packet.mad);
        let (from, to) = (packet.from, packet.to);
        let (ours, theirs) = (view.local_comm_id(), view.remote_comm_id());
        let rejects_req = self.reqs.contains(&(to, from, theirs));
        let rejects_rep = self.reps.contains(&(to, from, theirs, ours));
        let withdraws_rep = self.reps.contains(&(from, to, ours, theirs));
        match Msg::from_raw(view.message_rejected()) {
            Some(Msg::Req) if !rejects_req => Some("a REJ to a REQ that was never sent"),
            Some(Msg::Rep) if !rejects_rep => Some("a REJ to a REP that was never sent"),
            Some(Msg::Other) if view.reason() == RejReason::TIMEOUT => {
                // The REQ itself may still wait for the window.
                let guid = guid_of(from).to_be_bytes();
                (view.ari() != guid).then_some("a REJ 4 without the GUID of its sender")
            }
            Some(Msg::Other) if !rejects_rep && !withdraws_rep => {
                Some("a REJ to a connection that nobody has heard of")
            }
            Some(_) => None,
            None => Some("a REJ to a message that does not exist"),
        }
    }

    /// A MAD has reached its host.
    pub fn arrived(&mut self, packet: &Packet) {
        let view = RejView(&packet.mad);
        let ours = view.local_comm_id();
        let message = AttrId::of(&packet.mad);
        if !matches!(message, Some(AttrId::Drep | AttrId::Dreq | AttrId::Rej)) {
            return;
        }
        // Whoever takes it may be slow, and send a DREQ before that. A REJ may come from somebody who
        // never knew our ID.
        self.answered.insert((packet.to, ours));
    }

    /// Nothing more can be asked of a device: it, or its host, has gone for a while.
    pub fn device_gone(&mut self, lid: Lid, now: Time) {
        self.gone.insert(lid, now);
        for (pair, release) in &mut self.releases {
            release.done |= pair.0 == lid;
        }
    }

    /// DREQs that nobody has answered and that were not repeated as often as they should.
    pub fn given_up_early(&self, retries: u8) -> Option<String> {
        let sends = u32::from(retries) + 1;
        let early = |(pair, release): &(&Pair, &Release)| {
            let done = release.done || self.answered.contains(&(pair.0, pair.3));
            !done && release.sent < sends
        };
        let (pair, release) = self.releases.iter().find(early)?;
        Some(format!(
            "the DREQ of {pair:?} was sent {} times, not {sends}",
            release.sent
        ))
    }
}
