// SPDX-License-Identifier: GPL-2.0
//! The rules that worlds are judged by. What is wrong begins with the name of the rule.

use core::fmt;

macro_rules! rules {
    ($( $name:ident, $text:literal; )*) => {
        /// A rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Rule {
            $( #[doc = $text] $name, )*
        }

        impl fmt::Display for Rule {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $( Rule::$name => $text, )*
                })
            }
        }
    };
}

rules! {
    NoEventAfterDestroy, "no event after destroy";
    OneTerminalEvent, "one terminal event";
    OneTimewaitExit, "exactly one TIMEWAIT_EXIT";
    OnlyExitAfterEnd, "nothing but TIMEWAIT_EXIT after an error or REJ event";
    EventsInTurn, "no event that the calls and events before it do not allow";
    QpsOutliveTimewait, "no QP destroyed or reused inside TimeWait";
    TimewaitLasts, "no TimeWait shorter than a packet lives";
    NoStrangersPacket, "no packet accepted by a QP it was not meant for";
    LateReqsKnown, "no connection made by a late duplicate of a REQ";
    KeysUnique, "two ids never share an index key";
    MadsInOrder, "MADs of one source take effect in order";
    RejsFit, "a REJ names what was sent, as its receiver looks for it";
    DreqsRepeated, "a DREQ without an answer is repeated to the end";
    ListenersWaited, "no request for a listener that is destroyed";
    Rest, "the world comes to rest";
    EmptyAtEnd, "everything empty at the end";
    PeersConnect, "an honest peer connects within N attempts after any crash";
}
