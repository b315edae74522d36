// SPDX-License-Identifier: GPL-2.0
//! Whom a message is for, and what it meets in the indices.
//!
//! The glue owns the indices and their locks; what a look-up means is decided here. A message
//! that names one of our communication IDs goes to that identifier ([`addressed`]), and when there
//! is none the sender is told, or not ([`to_stranger`]). REQs and REPs begin something: they are
//! held against the remote IDs and remote queue pairs that are known ([`meet`]), and what follows
//! is a [`Verdict`].

use super::connection::Connection;
use super::state::State;
use super::step::DuplicateReq;
use super::step::Indices;
use super::step::Input;
use super::step::RepMatch;
use super::wire::AprView;
use super::wire::AttrId;
use super::wire::DrepView;
use super::wire::DreqView;
use super::wire::LapView;
use super::wire::Mad;
use super::wire::MraView;
use super::wire::Msg;
use super::wire::RejReason;
use super::wire::RejView;
use super::wire::RtuView;
use super::wire::SidrRepView;

/// The shortest time that a peer gets to answer the DREQ of a process that is gone, in
/// milliseconds.
pub const LEAST_PATIENCE_MS: u32 = 1000;

/// Key of the index of remote IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteId {
    /// The peer's communication ID.
    pub id: u32,
    /// GUID of the peer's channel adapter.
    pub ca_guid: u64,
}

/// Key of the index of remote queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteQpn {
    /// The peer's queue pair, 24 bits.
    pub qpn: u32,
    /// GUID of the peer's channel adapter.
    pub ca_guid: u64,
}

impl Connection {
    /// Where the connection stands in the index of remote IDs.
    pub fn remote_id_key(&self) -> RemoteId {
        RemoteId {
            id: self.remote_id,
            ca_guid: self.remote_ca_guid,
        }
    }

    /// Where the connection stands in the index of remote queue pairs.
    pub fn remote_qpn_key(&self) -> RemoteQpn {
        RemoteQpn {
            qpn: self.remote_qpn,
            ca_guid: self.remote_ca_guid,
        }
    }

    /// The indices that the connection leaves.
    pub fn leaves(&self, indices: Indices) -> Leaves {
        let all = indices == Indices::DropAll;
        Leaves {
            remote_qpn: indices != Indices::Keep,
            remote_id: all,
            local_qpn: all,
            // A consumer that still has the identifier may use it again.
            local_id: all && self.is_orphan() && self.state == State::Idle,
        }
    }
}

/// The indices that a connection leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaves {
    /// That of remote queue pairs.
    pub remote_qpn: bool,
    /// That of remote IDs.
    pub remote_id: bool,
    /// That of local queue pairs.
    pub local_qpn: bool,
    /// That of local IDs.
    pub local_id: bool,
}

/// The identifier that a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// The one with this local ID, if it belongs to the device that the message came in by.
    Local(u32),
    /// The one with this remote ID, whatever its device.
    Remote(RemoteId),
}

/// A message that goes to one identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addressed {
    /// Which.
    pub to: Recipient,
    /// The remote ID that the identifier must have; 0 while it may not know the peer's.
    pub peer: u32,
    /// What the message says to it.
    pub input: Input,
}

/// Whom a message is for. None for REQ, REP and SIDR_REQ, and for what cannot be understood.
pub fn addressed(message: AttrId, mad: &Mad) -> Option<Addressed> {
    let (local, peer, input) = match message {
        AttrId::Req | AttrId::Rep | AttrId::SidrReq => return None,
        AttrId::Mra => {
            let view = MraView(mad);
            let message = Msg::from_raw(view.message_mraed())?;
            // As long as no REP has come we do not know the peer's ID.
            let peer = if message == Msg::Req {
                0
            } else {
                view.local_comm_id()
            };
            (view.remote_comm_id(), peer, Input::Mra(message))
        }
        AttrId::Rej => {
            let view = RejView(mad);
            let sender = view.local_comm_id();
            let input = Input::Rej(view.reason());
            if view.reason() == RejReason::TIMEOUT {
                // The sender has given up before it knew our ID: it tells its GUID instead.
                let guid: &[u8; 8] = view.ari().first_chunk()?;
                return Some(Addressed {
                    to: Recipient::Remote(RemoteId {
                        id: sender,
                        ca_guid: u64::from_be_bytes(*guid),
                    }),
                    peer: sender,
                    input,
                });
            }
            let rejects_req = view.message_rejected() == Msg::Req.raw();
            (
                view.remote_comm_id(),
                if rejects_req { 0 } else { sender },
                input,
            )
        }
        AttrId::Rtu => {
            let view = RtuView(mad);
            (view.remote_comm_id(), view.local_comm_id(), Input::Rtu)
        }
        AttrId::Dreq => {
            let view = DreqView(mad);
            let qpn = view.remote_qpn_eecn();
            (
                view.remote_comm_id(),
                view.local_comm_id(),
                Input::Dreq { qpn },
            )
        }
        AttrId::Drep => {
            let view = DrepView(mad);
            (view.remote_comm_id(), view.local_comm_id(), Input::Drep)
        }
        AttrId::SidrRep => (SidrRepView(mad).request_id(), 0, Input::SidrRep),
        AttrId::Lap => {
            let view = LapView(mad);
            (view.remote_comm_id(), view.local_comm_id(), Input::Lap)
        }
        AttrId::Apr => {
            let view = AprView(mad);
            (view.remote_comm_id(), view.local_comm_id(), Input::Apr)
        }
    };
    Some(Addressed {
        to: Recipient::Local(local),
        peer,
        input,
    })
}

/// Who has the communication ID that a message names as ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// An identifier of the device that the message came in by.
    Known(&'a Connection),
    /// An identifier of another device: the message is dropped without an answer.
    Elsewhere,
    /// Nobody.
    Nobody,
}

/// Whether a message is answered with DREP whose recipient does not exist, or has another peer:
/// whoever disconnects from nobody may forget the connection too.
pub fn to_stranger(message: AttrId) -> bool {
    message == AttrId::Dreq
}

/// What an identifier met that was about to enter the indices of remote IDs and queue pairs.
///
/// It enters both or none, atomically against others with the same keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// Nobody: it stands in both.
    Nobody,
    /// Another has the remote ID.
    KnownId,
    /// Another has the remote queue pair, and nobody the remote ID.
    KnownQpn,
}

/// The order in which the two indices are asked.
pub fn meet(id_known: bool, qpn_known: bool) -> Meeting {
    match (id_known, qpn_known) {
        (true, _) => Meeting::KnownId,
        (false, true) => Meeting::KnownQpn,
        (false, false) => Meeting::Nobody,
    }
}

/// An answer to a REQ or REP that leads no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// None.
    Nothing,
    /// A REJ with the IDs of the message, swapped.
    Rej(RejReason),
    /// What the known connection says to this message: MRA.
    Mra,
    /// What the known connection says to this message: RTU.
    Rtu,
}

/// What becomes of a REQ or REP that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Count the message as a duplicate.
    pub duplicate: bool,
    /// What its sender is told.
    pub answer: Answer,
    /// The holder of the remote queue pair is stale: it gets [`Input::Stale`].
    pub end_known: bool,
    /// The identifier that the REP is for gets [`Input::StaleRep`].
    pub end_ours: bool,
}

impl Verdict {
    const fn answer(duplicate: bool, answer: Answer) -> Self {
        Verdict {
            duplicate,
            answer,
            end_known: false,
            end_ours: false,
        }
    }
}

/// A REQ with queue pair `qpn` has met somebody. `known` is who has its remote ID, if anybody.
pub fn refuse_req(known: Option<&Connection>, qpn: u32) -> Verdict {
    let Some(known) = known else {
        return Verdict {
            end_known: true,
            ..Verdict::answer(false, Answer::Rej(RejReason::STALE_CONN))
        };
    };
    match known.duplicate_req(qpn) {
        DuplicateReq::Drop => Verdict::answer(true, Answer::Nothing),
        DuplicateReq::Mra => Verdict::answer(true, Answer::Mra),
        DuplicateReq::RejStale => Verdict::answer(true, Answer::Rej(RejReason::STALE_CONN)),
        DuplicateReq::RejIdInUse => {
            Verdict::answer(false, Answer::Rej(RejReason::DUPLICATE_LOCAL_COMM_ID))
        }
    }
}

/// A REQ asks for a service that nobody offers.
pub const NO_SERVICE: Verdict = Verdict::answer(false, Answer::Rej(RejReason::INVALID_SERVICE_ID));

/// What a REP from `remote_id` gets. None if it answers our REQ and the indices have to be asked.
pub fn refuse_rep(ours: Named<'_>, remote_id: u32) -> Option<Verdict> {
    let (matched, counted) = match ours {
        // As in C, what is destroyed has no duplicates.
        Named::Known(conn) => (conn.match_rep(remote_id), !conn.is_orphan()),
        Named::Nobody => (RepMatch::RejInvalidId, false),
        Named::Elsewhere => return Some(Verdict::answer(false, Answer::Nothing)),
    };
    Some(match matched {
        RepMatch::Answer => return None,
        RepMatch::RtuAgain => Verdict::answer(true, Answer::Rtu),
        RepMatch::MraAgain => Verdict::answer(true, Answer::Mra),
        RepMatch::Drop => Verdict::answer(counted, Answer::Nothing),
        RepMatch::RejInvalidId => Verdict::answer(false, Answer::Rej(RejReason::INVALID_COMM_ID)),
    })
}

/// A REP with queue pair `qpn`, which answers our REQ, has met somebody, or nobody: then there is
/// no verdict. `known` is who has its remote ID, if anybody.
pub fn rep_meets(meeting: Meeting, known: Option<&Connection>, qpn: u32) -> Option<Verdict> {
    let stale = Verdict {
        end_ours: true,
        ..Verdict::answer(false, Answer::Rej(RejReason::STALE_CONN))
    };
    match (meeting, known.map(|known| known.duplicate_req(qpn))) {
        (Meeting::Nobody, _) => None,
        (Meeting::KnownQpn, _) => Some(Verdict {
            end_known: true,
            ..stale
        }),
        (Meeting::KnownId, Some(DuplicateReq::RejStale)) => Some(Verdict {
            duplicate: true,
            ..stale
        }),
        (Meeting::KnownId, Some(DuplicateReq::RejIdInUse)) => Some(Verdict::answer(
            false,
            Answer::Rej(RejReason::DUPLICATE_LOCAL_COMM_ID),
        )),
        // It repeats what another identifier was told.
        (Meeting::KnownId, _) => Some(Verdict::answer(true, Answer::Nothing)),
    }
}

/// How long the queue pairs of a dead process wait for their peers, when the longest TimeWait of
/// their connections is `timewait_ms`.
pub fn hold_patience_ms(timewait_ms: u32) -> u32 {
    timewait_ms.saturating_mul(2).max(LEAST_PATIENCE_MS)
}

/// Whether a connected queue pair with this destination carries the connection: the number of our
/// queue pair is only what user space says.
pub fn carries(connected_type: bool, dest_qpn: u32, conn: &Connection) -> bool {
    connected_type && dest_qpn == conn.remote_qpn
}
