// SPDX-License-Identifier: GPL-2.0
//! The transitions that connections make, each of which has to be seen.

use ib_cm_proto::state::State;
use State::*;

/// From, to.
pub const REACHABLE: &[(State, State)] = &[(Idle, ReqSent)];
