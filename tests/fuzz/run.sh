#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What scripts/fuzz runs in the build root. The compiler is a released one, which has no
# sanitizers; there is nothing for them to find either, as the protocol crate forbids unsafe code.
# Overflow and debug assertions are checked.

set -euo pipefail
cd "$(dirname "$0")/../.."

# The last one that the build root's compiler can build.
version=0.12.0
tools=/cache/tools/cargo-fuzz-$version
if [ ! -x "$tools/bin/cargo-fuzz" ]; then
	echo "==> building cargo-fuzz $version, once"
	cargo install --quiet --locked --root "$tools" --version "$version" cargo-fuzz
fi
export PATH=$tools/bin:$PATH
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/fuzz

fuzz() {
	local target=$1
	shift
	cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none --features libfuzzer "$target" "$@"
}

if [ "${1:-}" = --replay ]; then
	fuzz "$2" "$3"
	exit
fi
minutes=${1:-10}
targets=${2:-messages connection host}
set -- $targets
seconds=$((minutes * 60 / $#))
status=0
for target in $targets; do
	corpus=out/fuzz/corpus/$target
	mkdir -p "$corpus"
	echo "==> $target, $seconds s ... log: out/fuzz/$target.log"
	if fuzz "$target" "$corpus" "tests/fuzz/corpus/$target" -- -max_total_time="$seconds" -timeout=20 \
		-max_len=1024 -artifact_prefix="out/fuzz/$target-" >"out/fuzz/$target.log" 2>&1; then
		grep -E '^#[0-9]+.*DONE' "out/fuzz/$target.log" | tail -n 1
	else
		status=1
		grep -E 'panicked at|^error' -A 2 "out/fuzz/$target.log" | head -n 8
		grep -o 'out/fuzz/[a-z]*-[a-z]*-[0-9a-f]*' "out/fuzz/$target.log" | tail -n 1 |
			sed "s|^|replay: scripts/fuzz --replay $target |"
	fi
done
exit $status
