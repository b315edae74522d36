// SPDX-License-Identifier: GPL-2.0
//! What has happened sometimes: each fault, state, transition and rule is counted, so that a test
//! can tell that none was out of reach.

use ib_cm_proto::state::State;

macro_rules! marks {
    ($( $name:ident, $text:literal; )*) => {
        /// Something that has to happen sometimes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mark {
            $( #[doc = $text] $name, )*
        }

        impl Mark {
            /// All of them.
            pub const ALL: &'static [(Mark, &'static str)] = &[$( (Mark::$name, $text), )*];
        }
    };
}

marks! {
    MadLost, "a MAD was lost";
    MadDuplicated, "a MAD was delivered twice";
    MadLate, "a MAD was delivered seconds late";
    MadReordered, "a MAD overtook another of its source";
    Partitioned, "two hosts could not reach each other";
    CompletionLate, "an adapter completed a send late";
    CompletionLost, "an adapter lost the completion of a send";
    CompletionFailed, "an adapter failed to send";
    WindowFull, "a send had to wait for the window";
    SendRetried, "the MAD layer repeated a send";
    SendTimedOut, "a send was repeated in vain";
    CancelOnWire, "a send was cancelled before the adapter had completed it";
    AllocationFailed, "an allocation failed";
    ProcessCrashed, "a process crashed";
    HostRebooted, "a host lost its power and came back";
    DeviceRemoved, "a device went away and came back";
    ConsumerAccepts, "a consumer accepted";
    ConsumerRejects, "a consumer rejected";
    ConsumerSleeps, "a handler slept";
    ConsumerMra, "a consumer asked for time";
    ConsumerNoMemory, "a REQ handler ran out of memory";
    ConsumerError, "a handler returned an error";
    ConsumerDestroysInHandler, "a handler destroyed another identifier";
    ConsumerDestroysRunning, "an identifier was destroyed while its handler ran";
    ConsumerIgnores, "a consumer did not answer";
    ConsumerReuses, "an identifier was used again";
    CallRefused, "a call was refused";
    ListenerDestroyed, "a listener was destroyed";
    ListenerWithdrew, "a request was withdrawn with its listener";
    ReqDuplicateDropped, "a repeated REQ was dropped";
    ReqDuplicateMra, "a repeated REQ was answered with MRA";
    Rej10ById, "REJ 10 for a REQ whose remote ID is in TimeWait";
    Rej10ByQpn, "REJ 10 for a REQ whose remote queue pair is known";
    Rej10ToRep, "REJ 10 for a REP whose remote queue pair is known";
    Rej10ToRepById, "REJ 10 for a REP whose remote ID is in TimeWait";
    Rej30ToRep, "REJ 30 for a REP whose remote ID is used twice";
    Rej30, "REJ 30 for a remote ID that is used twice";
    Rej8, "REJ 8 for a service without listener";
    Rej6, "REJ 6 for a REP to nobody";
    Rej4, "REJ 4 found its identifier by the GUID";
    RepKnownId, "a REP whose remote ID another identifier has";
    RtuAgain, "a repeated REP was answered with RTU";
    RepMraAgain, "a repeated REP was answered with MRA";
    DrepToStranger, "DREP for a connection that does not exist";
    DrepAgain, "DREP again in TimeWait";
    DreqCrossed, "DREQs crossed";
    DreqRepeatedAfterDestroy, "the DREQ of a destroyed identifier was repeated";
    DreqGivenUp, "the DREQ of a destroyed identifier was never answered";
    DreqNotSent, "a DREQ could not be sent";
    StaleReqRcvd, "stale in REQ_RCVD";
    StaleMraReqSent, "stale in MRA_REQ_SENT";
    StaleRepSent, "stale in REP_SENT";
    StaleMraRepRcvd, "stale in MRA_REP_RCVD";
    StaleRepRcvd, "stale in REP_RCVD";
    StaleMraRepSent, "stale in MRA_REP_SENT";
    StaleEstablished, "stale in ESTABLISHED";
    StaleDreqSent, "stale in DREQ_SENT";
    StaleDreqRcvd, "stale in DREQ_RCVD";
    AbandonedReqSent, "a process died in REQ_SENT";
    AbandonedHalfOpen, "a process died half-way";
    AbandonedEstablished, "a process died in ESTABLISHED";
    HoldTaken, "a queue pair was held";
    HoldReleased, "a hold ended with TimeWait";
    HoldExpired, "a hold gave up";
    HoldStopped, "a hold ended with its device";
    TimewaitExit, "TimeWait ended";
    TimewaitOrphan, "TimeWait ended with nobody to tell";
    EventRtuLate, "data came before the RTU";
    PacketAccepted, "a packet was accepted";
    PacketDiscarded, "a packet met no queue pair that takes it";
    SidrAnswered, "a SIDR_REQ was answered";
    SidrDuplicate, "a SIDR_REQ was repeated";
    SidrTimedOut, "a SIDR_REQ was never answered";
    OtherDevice, "a MAD named an identifier of another device";
    ForgedMad, "a forged MAD arrived";
    Meddled, "a MAD was forged with the IDs of a connection";
    ProbeFirst, "a peer connected at the first attempt";
    ProbeLater, "a peer connected at a later attempt";
}

const MARKS: usize = Mark::ALL.len();
const STATES: usize = State::ALL.len();

/// Counts of what has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    marks: [u64; MARKS],
    transitions: [[u64; STATES]; STATES],
}

impl Default for Seen {
    fn default() -> Self {
        Seen {
            marks: [0; MARKS],
            transitions: [[0; STATES]; STATES],
        }
    }
}

impl Seen {
    /// It has happened.
    pub fn mark(&mut self, mark: Mark) {
        self.marks[mark as usize] += 1;
    }

    /// A connection has gone from one state to another, or stayed.
    pub fn transition(&mut self, from: State, to: State) {
        self.transitions[from as usize][to as usize] += 1;
    }

    /// How often it has happened.
    pub fn count(&self, mark: Mark) -> u64 {
        self.marks[mark as usize]
    }

    /// How often a connection has gone from one state to another.
    pub fn transitions(&self, from: State, to: State) -> u64 {
        self.transitions[from as usize][to as usize]
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Seen) {
        for (to, from) in self.marks.iter_mut().zip(other.marks) {
            *to += from;
        }
        for (to, from) in self.transitions.iter_mut().zip(other.transitions) {
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        }
    }

    /// All that never happened.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (mark, text) in Mark::ALL {
            if self.count(*mark) == 0 {
                missing.push((*text).to_owned());
            }
        }
        for (from, to) in crate::transitions::REACHABLE {
            if self.transitions(*from, *to) == 0 {
                missing.push(format!("{from:?} -> {to:?}"));
            }
        }
        missing
    }

    /// The counts as a table, one a line.
    pub fn table(&self) -> String {
        let mut table = String::new();
        for (mark, text) in Mark::ALL {
            table += &format!("{:>12}  {text}\n", self.count(*mark));
        }
        for from in State::ALL {
            for to in State::ALL {
                let count = self.transitions(from, to);
                if count != 0 {
                    table += &format!("{count:>12}  {from:?} -> {to:?}\n");
                }
            }
        }
        table
    }
}
