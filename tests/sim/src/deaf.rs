// SPDX-License-Identifier: GPL-2.0
//! MADs under way that can do nothing any more, whenever they arrive.
//!
//! Communication IDs only grow, so an identifier that is gone does not come back, and one that has
//! ended does not begin again: the consumers of [`crate::moves`] take a new one. What a connection
//! makes of a message now and later is not written down here but tried: each input is given to it,
//! and to what becomes of it by any inputs.

use std::collections::HashMap;
use std::rc::Rc;

use ib_cm_proto::connection::Connection;
use ib_cm_proto::lookup::addressed;
use ib_cm_proto::lookup::refuse_rep;
use ib_cm_proto::lookup::Addressed;
use ib_cm_proto::lookup::Answer;
use ib_cm_proto::lookup::Named;
use ib_cm_proto::lookup::Recipient;
use ib_cm_proto::lookup::Verdict;
use ib_cm_proto::step::Call;
use ib_cm_proto::step::Flight;
use ib_cm_proto::step::Input;
use ib_cm_proto::step::Step;
use ib_cm_proto::wire::AttrId;
use ib_cm_proto::wire::DreqView;
use ib_cm_proto::wire::Msg;
use ib_cm_proto::wire::RejReason;

use crate::cm::Cm;
use crate::digest::ids_of;
use crate::fx::Packet;
use crate::world::lid;

/// What a MAD under way can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// Nothing, and if it is answered the answer does nothing either.
    None,
    /// It changes nothing and gets the same answer whenever it arrives, which can do something.
    Answer,
    /// Anything, for all that is known.
    Any,
}

/// What a connection makes of messages from now on, whatever else happens to it.
#[derive(Clone, Debug, Default)]
struct Future {
    /// They change nothing and are not answered.
    ignored: Vec<Input>,
    /// A DREQ for it changes nothing and is answered.
    only_drep: bool,
    /// What a REP for it meets, from its peer and from others.
    reps: [Vec<Option<Verdict>>; 2],
}

/// Remembers what connections do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ears {
    futures: HashMap<Connection, Future>,
}

/// The IDs of a connection's peer and of another, where all connections are given the same.
const PEER: u32 = 1;
const OTHER: u32 = 2;

/// What can come in for a connection.
const MESSAGES: [Input; 9] = [
    Input::Rtu,
    Input::Drep,
    Input::Rej(RejReason::STALE_CONN),
    Input::Rej(RejReason::TIMEOUT),
    Input::Rej(RejReason::INVALID_COMM_ID),
    Input::Rej(RejReason::CONSUMER_DEFINED),
    Input::Rej(RejReason::DUPLICATE_LOCAL_COMM_ID),
    Input::Mra(Msg::Req),
    Input::Mra(Msg::Rep),
];

/// What else can happen to it; all but what begins something.
const OTHERS: [Input; 18] = [
    Input::Call(Call::SendRep),
    Input::Call(Call::SendRtu),
    Input::Call(Call::SendDreq),
    Input::Call(Call::SendDrep),
    Input::Call(Call::SendRej(RejReason::CONSUMER_DEFINED)),
    Input::Call(Call::PrepareMra),
    Input::Call(Call::Established),
    Input::DreqNotSent,
    Input::Destroy { silent: false },
    Input::Destroy { silent: true },
    Input::Rep,
    Input::StaleRep,
    Input::Stale,
    Input::SendError(Flight::Req),
    Input::SendError(Flight::Rep),
    Input::SendError(Flight::Dreq),
    Input::Timer,
    Input::DeviceGone,
];

impl Future {
    fn of(conn: Connection) -> Self {
        let mut all = vec![conn];
        let mut future = Future {
            ignored: MESSAGES.to_vec(),
            only_drep: true,
            reps: [Vec::new(), Vec::new()],
        };
        let mut at = 0;
        while let Some(&conn) = all.get(at) {
            at += 1;
            let mut after = |input: Input| {
                let mut next = conn;
                let step = next.step(input);
                if !all.contains(&next) {
                    all.push(next);
                }
                (step, next == conn)
            };
            let dreq = Input::Dreq {
                qpn: conn.local_qpn,
            };
            let (step, same) = after(dreq);
            let drep = Step {
                drep: true,
                duplicate: step.duplicate,
                ..Step::NONE
            };
            future.only_drep &= same && step == drep;
            OTHERS.iter().for_each(|input| _ = after(*input));
            for input in MESSAGES {
                let (step, same) = after(input);
                let nothing = Step {
                    unexpected: true,
                    duplicate: step.duplicate,
                    ..Step::NONE
                };
                if !same || step != nothing {
                    future.ignored.retain(|ignored| *ignored != input);
                }
            }
            for (reps, from) in future.reps.iter_mut().zip([PEER, OTHER]) {
                let met = refuse_rep(Named::Known(&conn), from);
                if !reps.contains(&met) {
                    reps.push(met);
                }
            }
        }
        future
    }
}

impl Ears {
    fn future(&mut self, conn: &Connection) -> &Future {
        let mut conn = *conn;
        (conn.local_id, conn.tid) = (PEER, 0);
        conn.remote_id = conn.remote_id.min(PEER);
        self.futures.entry(conn).or_insert_with(|| Future::of(conn))
    }

    /// What a MAD can do that is under way to a host, among others.
    pub(crate) fn effect<'a>(
        &mut self,
        hosts: &[Rc<Cm>; 2],
        packet: &Packet,
        net: impl Iterator<Item = &'a Packet>,
    ) -> Effect {
        let (to, from) = match packet.to == lid(1, 0) {
            true => (&hosts[1], &hosts[0]),
            false => (&hosts[0], &hosts[1]),
        };
        let (theirs, ours) = ids_of(&packet.mad);
        // The answer to it goes to whom it names as its sender.
        let answer = |input: Input| Addressed {
            to: Recipient::Local(theirs),
            peer: ours,
            input,
        };
        match AttrId::of(&packet.mad) {
            Some(AttrId::Rep) => {
                let rej = answer(Input::Rej(RejReason::INVALID_COMM_ID));
                let dull = self.is_ignored(from, &rej);
                self.rep(to, ours, theirs, dull)
            }
            Some(AttrId::Dreq) => {
                let qpn = DreqView(&packet.mad).remote_qpn_eecn();
                let answered = match Local::of(to, ours) {
                    Local::Gone => true,
                    Local::Coming => false,
                    Local::Is(conn) if conn.remote_id == theirs => {
                        qpn == conn.local_qpn && self.future(conn).only_drep
                    }
                    // Its peer is another, and stays so.
                    Local::Is(conn) => conn.remote_id != 0,
                };
                match answered {
                    false => Effect::Any,
                    true if self.is_ignored(from, &answer(Input::Drep)) => Effect::None,
                    true => Effect::Answer,
                }
            }
            Some(message) => match addressed(message, &packet.mad) {
                Some(addressed) if may_be_told(from, packet, &addressed.to, net) => Effect::Any,
                Some(addressed) if self.is_ignored(to, &addressed) => Effect::None,
                _ => Effect::Any,
            },
            None => Effect::Any,
        }
    }

    /// What a REP from `theirs` for `ours` can do. `dull`: a REJ to it does nothing.
    fn rep(&mut self, to: &Cm, ours: u32, theirs: u32, dull: bool) -> Effect {
        let gone = refuse_rep(Named::Nobody, theirs);
        let mut met = vec![gone];
        match Local::of(to, ours) {
            Local::Gone => {}
            Local::Coming => return Effect::Any,
            Local::Is(conn) => {
                let reps = &self.future(conn).reps;
                met.extend(&reps[usize::from(conn.remote_id != theirs)]);
            }
        }
        let ends = |verdict: &Verdict| verdict.end_known || verdict.end_ours;
        let is = |verdict: &Option<Verdict>, answer: Answer| {
            verdict.is_some_and(|verdict| verdict.answer == answer && !ends(&verdict))
        };
        let rejected = |met: &Option<Verdict>| is(met, Answer::Rej(RejReason::INVALID_COMM_ID));
        let passed = |met: &Option<Verdict>| rejected(met) || is(met, Answer::Nothing);
        if dull && met.iter().all(passed) {
            Effect::None
        } else if met.iter().all(rejected) {
            Effect::Answer
        } else {
            Effect::Any
        }
    }

    /// Whether a message does nothing, now and later.
    fn is_ignored(&mut self, to: &Cm, message: &Addressed) -> bool {
        let conn = match message.to {
            Recipient::Local(id) => match Local::of(to, id) {
                Local::Gone => return true,
                Local::Coming => return false,
                Local::Is(conn) => conn,
            },
            Recipient::Remote(key) => {
                let known = to.remote_ids.get(&key).and_then(|uid| to.ids.get(uid));
                match known {
                    None => return true,
                    Some(id) => &id.conn,
                }
            }
        };
        // Its peer is another, and stays so; or it makes nothing of the message anyway.
        (conn.remote_id != message.peer && conn.remote_id != 0)
            || self.future(conn).ignored.contains(&message.input)
    }
}

/// Who has one of a host's own IDs.
enum Local<'a> {
    /// Nobody any more.
    Gone,
    /// Nobody yet.
    Coming,
    Is(&'a Connection),
}

impl<'a> Local<'a> {
    fn of(cm: &'a Cm, id: u32) -> Self {
        match cm.local_ids.get(&id).and_then(|uid| cm.ids.get(uid)) {
            Some(id) => Local::Is(&id.conn),
            None if id < cm.next_local_id => Local::Gone,
            None => Local::Coming,
        }
    }
}

/// Whether a host may yet be told of the remote ID that a message is for.
fn may_be_told<'a>(
    from: &Cm,
    packet: &Packet,
    to: &Recipient,
    mut net: impl Iterator<Item = &'a Packet>,
) -> bool {
    let Recipient::Remote(key) = to else {
        return false;
    };
    let tells = |other: &Packet| {
        let begins = matches!(AttrId::of(&other.mad), Some(AttrId::Req | AttrId::Rep));
        begins && other.to == packet.to && ids_of(&other.mad).0 == key.id
    };
    !matches!(Local::of(from, key.id), Local::Gone) || net.any(tells)
}
