#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What scripts/mutants runs in the build root. A mutant is an edit of one file; it has to change
# something, to compile, and to be found: those of the protocol and of the simulated manager by the
# simulation, those of the module's locking by the models.

set -euo pipefail
cd "$(dirname "$0")/../.."
only=${1:-}
seeds=${SEEDS:-20000}
copy=out/mutants/src
export CARGO_TARGET_DIR=$PWD/out/mutants/target
found=0 missed=0

fresh() {
	rm -rf "$copy"
	mkdir -p "$copy/rust" "$copy/tests/sim"
	cp -r rust/ib_cm_proto.rs rust/proto "$copy/rust/"
	cp -r tests/sim/Cargo.toml tests/sim/src "$copy/tests/sim/"
	perl -0pe 's/members = \[.*?\]/members = ["tests\/sim"]/s' Cargo.toml >"$copy/Cargo.toml"
	cp Cargo.lock "$copy/"
}

simulate() {
	(cd "$copy" && cargo run --quiet --offline --release --config 'profile.release.opt-level=1' \
		--config 'profile.release.incremental=true' -p ib_cm_sim -- "$seeds")
}

# mutant NAME FILE EDIT: EDIT is a substitution of perl over the whole file.
mutant() {
	local name=$1 file=$2 edit=$3 log=out/mutants/$1.log
	[[ $name == *"$only"* ]] || return 0
	fresh
	perl -0pi -e "$edit" "$copy/$file"
	if cmp -s "$file" "$copy/$file"; then
		echo "not ok - $name: the edit of $file does not apply any more"
		missed=$((missed + 1))
		return 0
	fi
	if simulate >"$log" 2>&1 && ! grep -q '^never' "$log"; then
		echo "not ok - $name: $seeds worlds do not show it"
		missed=$((missed + 1))
	elif grep -q '^seed ' "$log"; then
		echo "ok - $name: $(grep -m 1 '^seed ' "$log")"
		found=$((found + 1))
	elif grep -q '^never' "$log"; then
		echo "ok - $name: $(grep -m 1 '^never' "$log")"
		found=$((found + 1))
	else
		echo "not ok - $name: does not run: $(grep -m 1 '^error' "$log" || tail -n 1 "$log")"
		missed=$((missed + 1))
	fi
}

# The manager with its models.
fresh_models() {
	rm -rf "$copy"
	mkdir -p "$copy/rust" "$copy/tests"
	cp -r rust/ib_cm_proto.rs rust/proto rust/cm rust/rdma "$copy/rust/"
	cp -r tests/models "$copy/tests/"
	# The compiler takes longer than the models do: it need not try hard.
	perl -0pe 's{members = \[.*?\]}{members = ["tests/models", "tests/models/kernel",
		"tests/models/macros"]}s;
		s{(package\.ib_cm_models\]\nopt-level = )2}{${1}0}' Cargo.toml >"$copy/Cargo.toml"
	cp Cargo.lock "$copy/"
}

# A model without an end is found too, but not by waiting for the compiler.
run_models() (
	cd "$copy"
	export RUST_BACKTRACE=0
	cargo test --quiet --offline --lib --test hash --test treap --no-run -p ib_cm_models &&
		timeout 900 cargo test --quiet --offline --no-fail-fast --lib --test hash --test treap -p ib_cm_models
)

# model NAME FILE EDIT: a mutant that one of the models has to find, or the model checker itself,
# which knows threads that wait for ever and memory that two use at a time.
model() {
	local name=$1 file=$2 edit=$3 log=out/mutants/$1.log
	[[ $name == *"$only"* ]] || return 0
	fresh_models
	perl -0pi -e "$edit" "$copy/$file"
	if cmp -s "$file" "$copy/$file"; then
		echo "not ok - $name: the edit of $file does not apply any more"
		missed=$((missed + 1))
		return 0
	fi
	if run_models >"$log" 2>&1; then
		echo "not ok - $name: no model shows it"
		missed=$((missed + 1))
	elif grep -q '^test result: FAILED' "$log"; then
		echo "ok - $name: $(sed -nE 's/^    (tests::)?(\w+)$/\2/p' "$log" | sort -u | xargs)"
		found=$((found + 1))
	else
		echo "not ok - $name: does not run: $(grep -m 1 '^error' "$log" || tail -n 1 "$log")"
		missed=$((missed + 1))
	fi
}

connection=rust/proto/connection.rs
incoming=rust/proto/incoming.rs
lookup=rust/proto/lookup.rs
messages=rust/proto/messages.rs
cm=tests/sim/src/cm.rs
calls=tests/sim/src/calls.rs
receive=tests/sim/src/receive.rs

mutant index-remote-qpn-stays $lookup \
	's/remote_qpn: indices != Indices::Keep/remote_qpn: indices == Indices::DropRemoteQpn/'
mutant index-remote-id-leaves-early $lookup 's/remote_id: all,/remote_id: indices != Indices::Keep,/'
mutant index-local-qpn-stays $lookup 's/local_qpn: all,/local_qpn: false,/'
mutant index-local-id-stays $lookup 's/local_id: all && [^,]*,/local_id: false,/'
mutant index-not-both-or-none $receive \
	's/(Meeting::KnownQpn => )\(meeting, known_qpn\)/$1\{ self.remote_ids.insert(id_key, uid); (meeting, known_qpn) }/'
mutant index-known-qpn-ignored $lookup 's/\(false, true\) => Meeting::KnownQpn/(false, true) => Meeting::Nobody/'

mutant timewait-too-short $connection \
	's/Timer::Timewait\(time::ms_from_iba\(self.ack_timeout\)\)/Timer::Timewait(1)/'
mutant timewait-frees-queue-pair $connection \
	's/(self.state = State::Timewait;\s*step.indices = )Indices::DropRemoteQpn/$1Indices::DropAll/'
mutant timewait-exit-not-reported $connection 's/self.report\(Report::TimewaitExit, &mut step\);//'
mutant timewait-never-ends $connection 's/(State::Timewait => \{\s*)self.reset\(&mut step\);/$1/'
mutant timewait-hold-has-no-patience $lookup \
	's/timewait_ms.saturating_mul\(2\).max\(LEAST_PATIENCE_MS\)/timewait_ms.min(0)/'
mutant timewait-of-duplicate-req-unknown $connection \
	's/State::Timewait => DuplicateReq::RejStale/State::Timewait => DuplicateReq::Drop/'

mutant dreq-not-repeated $connection 's/(self.dreqs_left = left;\s*)step.dreq = true;/$1/'
mutant dreq-one-too-few $connection 's/self.dreqs_left = self.max_cm_retries;/self.dreqs_left = self.max_cm_retries.saturating_sub(1);/'
mutant dreq-not-taken-over $connection \
	's/self.max_cm_retries.saturating_add\(1\);\s*step.timer = Some\(self.dreq_timer\(\)\);/self.max_cm_retries;/'
mutant dreq-repeated-for-ever $connection 's/self.dreqs_left = left;/let _ = left;/'

mutant order-last-event-first $calls 's/id.events.pop_front\(\)/id.events.pop_back()/'
mutant order-last-mad-first $receive 's/and_then\(VecDeque::pop_front\)/and_then(VecDeque::pop_back)/'
mutant order-events-after-the-end $connection \
	's/self.orphan \|\| \(self.reported && report != Report::TimewaitExit\)/self.orphan/'
mutant order-events-after-destroy $connection 's/self.orphan = true;(\s*match self.state)/$1/'

mutant rej-to-a-rep-says-req $connection 's/RepRcvd \| MraRepSent => \(Msg::Rep, true\)/RepRcvd | MraRepSent => (Msg::Req, true)/'
mutant rej-ids-not-swapped $messages \
	's/local_comm_id: remote_comm_id,\s*remote_comm_id: local_comm_id,(\s*message_rejected)/local_comm_id, remote_comm_id,$1/'
mutant rej-timeout-without-guid $cm 's/RejReason::TIMEOUT => &guid\[..\],/RejReason::TIMEOUT => &[],/'
mutant rej-stale-without-our-id $connection 's/message: Msg::Other,\s*name_us: true/message: Msg::Other, name_us: false/'
mutant rej-of-timewait-is-no-rej-10 $incoming 's/reason == RejReason::STALE_CONN/false/'

# Publication.
model model-shown-though-ended rust/cm/req.rs \
	's/if !inner.conn.show\(\) \{/inner.conn.show(); if false {/'
model model-published-without-deliverer rust/cm/req.rs 's/inner.events.delivering = true;//'
model model-turn-not-waited-for rust/cm/inbox.rs 's/if lane.serving == arrival.ticket \{/if true {/'
model model-turn-taken-early rust/cm/inbox.rs 's/= ticket == self.serving;/= true;/'
model model-turn-not-passed-on rust/cm/inbox.rs 's/(lane.place\(serving\).take\(\));/$1.filter(|_| false);/'
# Delivery and destruction.
model model-destroy-does-not-wait rust/cm/id.rs 's/while !id.running.is_zero_within\(REPORT_EVERY_MS\) \{/while false {/'
model model-count-does-not-wake rust/cm/count.rs 's/self.await_zero\(\);//'
model model-listener-not-counted rust/cm/listen.rs \
	's/id.running.increment\(\);\s*(Some\(Listener)/$1/; s/self.0.running.decrement\(\);//'
model model-two-deliver rust/cm/event.rs 's/ && !self.delivering;/;/'
model model-delivery-not-given-back rust/cm/deliver.rs \
	's/(is_orphan\(\) \{\s*)end\(inner\);/$1drop(inner);/'
model model-details-gone-under-a-handler rust/cm/inner.rs 's/&& !self.events.delivering//'
model model-details-stay rust/cm/inner.rs 's/if !self.only_waits\(\)/if true/'
# The end of TimeWait.
model model-timer-set-after-removal rust/cm/timers.rs 's/if pending.closed \{/if false {/'
model model-exit-lost-at-removal rust/cm/id.rs 's/deliver \|= outcome.deliver;//'
# The hold, and removal.
model model-hold-not-woken rust/cm/id.rs 's/HoldPoint.wake\(\);//'
model model-gate-does-not-wait rust/rdma/gate.rs \
	's/wait::wait_until\(&self.state, .*?\);//'
model model-gate-left-without-order rust/rdma/gate.rs \
	's/fetch_sub\(1, ordering::Full\)/fetch_sub(1, Relaxed)/'

# Look-ups.
model model-hash-split-forgets rust/cm/hash.rs 's/self.empty_out\(new & [^;]*;//'
model model-hash-merge-forgets rust/cm/hash.rs 's/self.empty_out\(last\);//'
model model-treap-is-a-list rust/cm/treap.rs 's/node.entry.rank\(\) > rank\)/false)/'
model model-treap-loses rust/cm/treap.rs 's/\*link = merge\(node.left.take\(\), node.right.take\(\)\)/*link = node.left.take()/'
model model-hash-walk-out-of-order rust/cm/hash.rs 's/self.hash\(key\).reverse_bits\(\)/self.hash(key)/'

echo "$found mutants found, $missed not"
[ $missed = 0 ]
