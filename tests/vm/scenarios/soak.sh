# SPDX-License-Identifier: GPL-2.0
# title: connections come and go for MINUTES, with their processes, the device and the modules
# timeout: 600
# soak: yes
# manual: yes
#
# make soak runs it. After each pass everything has to be as before, also the kernel's memory.

. /vm/lib.sh
. /vm/crash.sh
. /vm/storm.sh

# Of the kernel's memory, since the second pass; what the first ones make grow stays.
LIMIT_KB=4096

kernel_healthy() {
	! dmesg | sed -n "/vm: start $SCENARIO\$/,\$p" |
		grep -E 'WARNING: |BUG: |Oops|KASAN|possible circular|refcount_t|blocked for more than'
}

load_stack
setup_rxe
before=$(resources)
idle=$(live_objects)
references=$(cat /sys/module/ib_cm/refcnt)
end=$((SECONDS + MINUTES * 60))
pass=0 worst=0
while [ $SECONDS -lt $end ]; do
	for round in cycles "kill 20" "death 200" "removal $((2 * pass))" "death 20" cycles \
		"removal $((2 * pass + 1))" "kill 5" "unload $pass" cycles; do
		set -- $round
		"$1_round" ${2:-} >$RUN/round.out 2>&1 ||
			{ cat $RUN/*.out $RUN/*.log; resources; bail "pass $pass: $round fails"; }
	done
	settle
	[ "$(cat /sys/module/ib_cm/refcnt)" = "$references" ] ||
		bail "references on the module: $(cat /sys/module/ib_cm/refcnt), were $references"
	kernel_healthy || bail "the kernel complains in pass $pass"
	pass=$((pass + 1))
	memory=$(kernel_kb)
	[ $pass -gt 2 ] || first=$memory
	[ $((memory - first)) -le $worst ] || worst=$((memory - first))
	[ $worst -le $LIMIT_KB ] ||
		bail "pass $pass: the kernel's memory has grown from $first by $worst KiB"
	say "pass $pass, $((SECONDS / 60)) minutes: the kernel uses $memory KiB for itself"
done
ok "passes with nothing left: $pass"
ok "memory of the kernel grows by at most $worst KiB"
check "everything unloads" unload_stack
