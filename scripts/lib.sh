# SPDX-License-Identifier: GPL-2.0
# Common to the scripts that run on the host: messages, logs, names in the cache. Sourced by bash.

set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=${IB_CM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ib_cm}
logs=$cache/logs

# The kernel series that everything runs on, of which the newest release is looked up. The module
# builds on 7.2 too: SERIES=7.2.
own_series=7.3
series=${SERIES:-$own_series}
suite=trixie

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

say() {
	printf '==> %s\n' "$*" >&2
}

need_root() {
	[ "$(id -u)" = 0 ] ||
		die "this must run as root (it makes Debian roots and mounts them): use sudo, or a root shell"
}

# need_space MIB: there must be that much room where the cache is.
need_space() {
	local free
	free=$(df -Pm "$cache" | awk 'NR == 2 { print $4 }')
	[ "$free" -ge "$1" ] ||
		die "only $free MiB are free in $cache and $1 MiB are needed: free some, or point IB_CM_CACHE to a larger disk"
}

# logged WHAT LOGNAME CMD...: run CMD with its output in a log; a failure shows the end of it.
logged() {
	local what=$1 log=$logs/$2.log start=$SECONDS
	shift 2
	mkdir -p "$logs"
	say "$what ... log: $log"
	if ! "$@" >"$log" 2>&1 </dev/null; then
		printf -- '--- the end of %s:\n' "$log" >&2
		tail -n 25 "$log" >&2
		if grep -qE 'Could not resolve|Failed to fetch|Unable to connect|Temporary failure|Connection timed out' "$log"; then
			die "no Debian mirror can be reached ($what): check the network, the proxy and apt's sources, then run the same command again. The whole log is $log"
		fi
		die "failed: $what. The whole log is $log; run the same command again to resume"
	fi
	say "  done in $((SECONDS - start)) s"
}

# key TEXT...: a short hash that names an artefact by what it is made from.
key() {
	printf '%s\n' "$@" | sha256sum | cut -c1-12
}

# The paths of one artefact are PREFIX-KEY; those of other keys are of no more use.
drop_others() {
	local keep=$1 prefix=$2 old
	for old in "$cache/$prefix"-*; do
		[ -e "$old" ] && [ "$old" != "$keep" ] || continue
		case $old in *.lock) continue ;; esac
		rm -rf --one-file-system "$old"
	done
}
