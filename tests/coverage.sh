#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What scripts/coverage runs in the build root, with the compiler's own instrumentation.

set -euo pipefail
cd "$(dirname "$0")/.."
out=out/coverage

die() {
	echo "coverage: $*" >&2
	exit 1
}

# The tools have to read what the compiler writes: they are of its LLVM or a later one.
version=$(rustc --version --verbose | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
for tool in llvm-profdata llvm-cov; do
	command -v "$tool-$version" >/dev/null ||
		die "$tool-$version is not in the build root: add llvm-$version to scripts/packages.sh"
done

rm -rf "$out"
mkdir -p "$out"
# Our own crates only, so that those of others need not be compiled again.
printf '#!/bin/sh\nexec "$@" -Cinstrument-coverage\n' >"$out/rustc"
chmod +x "$out/rustc"
export RUSTC_WORKSPACE_WRAPPER=$PWD/$out/rustc
export LLVM_PROFILE_FILE=$PWD/$out/%p-%m.profraw
export IB_CM_SEEDS=$SEEDS
crates=(-p ib_cm_proto -p ib_cm_proto_tests -p ib_cm_sim -p ib_cm_fuzz -p ib_cm_vectors)

programs=$(cargo test --no-run --message-format=json "${crates[@]}" 2>"$out/build.log" |
	grep -o '"executable":"[^"]*"' | cut -d '"' -f 4) || {
	tail -n 20 "$out/build.log" >&2
	die "the tests do not compile"
}
# What the compiler's own helpers have written says nothing.
rm -f "$out"/*.profraw
# The longest search goes where the shorter ones go.
cargo test "${crates[@]}" -- --skip two_losses >"$out/tests.log" 2>&1 || {
	grep -E '^test .* FAILED|panicked at' "$out/tests.log" >&2
	die "tests fail, see out/coverage/tests.log"
}
"llvm-profdata-$version" merge -sparse "$out"/*.profraw -o "$out/all.profdata"
objects=()
for program in $programs; do
	[ ${#objects[@]} = 0 ] || objects+=(-object)
	objects+=("$program")
done
# What make sim runs is no test.
"llvm-cov-$version" report -instr-profile="$out/all.profdata" "${objects[@]}" \
	-ignore-filename-regex='/main\.rs$|/tests\.rs$' -show-branch-summary=false \
	"$PWD/rust/proto" "$PWD/tests/sim/src" >"$out/report.txt"
"llvm-cov-$version" show -instr-profile="$out/all.profdata" "${objects[@]}" \
	-ignore-filename-regex='/tests\.rs$' "$PWD/rust/proto" >"$out/lines.txt"
# Each file, and the sums: regions of code and lines, those that nothing reaches, what is reached.
awk '
	function row(name, regions, missed, lines, lost) {
		printf "%-30s %7d %6d %7.2f%% %7d %6d %7.2f%%\n", name,
			regions, missed, 100 - 100 * missed / regions, lines, lost, 100 - 100 * lost / lines
	}
	BEGIN {
		printf "%-30s %7s %6s %8s %7s %6s\n", "", "regions", "missed", "", "lines", "missed"
	}
	/\.rs / {
		row($1, $2, $3, $8, $9)
		part = $1 ~ /^rust/ ? "rust/proto" : "tests/sim"
		regions[part] += $2; missed[part] += $3; lines[part] += $8; lost[part] += $9
	}
	END {
		for (part in regions)
			row("all of " part, regions[part], missed[part], lines[part], lost[part])
	}' "$out/report.txt" | (read -r -d $'\n' head; echo "$head"; sort) | tee "$out/table.txt"
if [ "${1:-}" = --missing ]; then
	awk '/^\/.*\.rs:$/ { file = $0; sub(".*/rust/", "rust/", file) }
		/^ *[0-9]+\| +0\|/ { print file $0 }' "$out/lines.txt"
fi
