# SPDX-License-Identifier: GPL-2.0
# title: instructions of both modules, and how long they hold locks, alternating in one boot
# timeout: 2400
# memory: 4096
# counted: yes
# manual: yes
#
# The emulator counts what the guest executes (count/count.c). What it counted is in the file
# guest*/a.count; the log says what was loaded where, and how many connections there were.

. /vm/lib.sh
. /vm/bench/bench.sh

ROUNDS=7
COUNT1=300
COUNT256=1000
KEPT=1000
# Not so many that they have to repeat messages because they are slow here.
CLIENTS=8
EACH=32
LISTENERS="1000 1000000"
# As in bench.sh: TimeWaits end when the device goes.
LONG_LIFE=24

# addresses NAME: of a function of the kernel, and of the next one.
addresses() {
	sort /proc/kallsyms | awk -v name=$1 '
		found && $1 != start { print start, $1; exit }
		$3 == name { found = 1; start = $1 }'
}

# tell_role ROLE NAME...: what these functions of the kernel are.
tell_role() {
	local role=$1 name start end
	shift
	for name in "$@"; do
		read -r start end < <(addresses $name) || bail "the kernel has no $name"
		/vm/tools/mark "role $role $start"
	done
}

# counted CASE COMMAND: counts what the command makes the guest execute.
counted() {
	local case=$1
	shift
	/vm/tools/mark begin
	"$@"
	/vm/tools/mark "dump $round $MODULE_KIND $case"
}

# counted_load CASE NAME=NUMBER...: connections that are made and ended.
counted_load() {
	local case=$1
	shift
	counted $case load cycle "$@"
	echo "connections $round $MODULE_KIND $case $(figure connections)"
}

# What holds locks for long: many that come, stay, go, are listened for, and lose their device.
everything() {
	load cycle count=$COUNT256 in_flight=256 listeners=1000
	load keep count=$KEPT in_flight=64 life=$LONG_LIFE
	load drop
	load keep count=$KEPT in_flight=64 life=$LONG_LIFE
	load disconnect in_flight=64
	# Those in TimeWait are ended one after the other.
	rdma link delete rxe0
	wait_for 20 device_gone
}

tell_role lock_irq _raw_spin_lock_irqsave _raw_spin_lock_irq
tell_role lock _raw_spin_lock _raw_spin_lock_bh
tell_role unlock _raw_spin_unlock_irqrestore _raw_spin_unlock_irq _raw_spin_unlock \
	_raw_spin_unlock_bh
/vm/tools/mark "wait $(addresses native_queued_spin_lock_slowpath)"

for round in $(seq $ROUNDS); do
	order="c rust"
	[ $((round % 2)) = 1 ] || order="rust c"
	for MODULE_KIND in $order; do
		say "round $round: $MODULE_KIND"
		load_bench
		awk -v tag="module $round $MODULE_KIND" '{ print tag, $1, $6, $2 }' /proc/modules
		awk -v tag="symbol $round $MODULE_KIND" \
			'$4 == "[ib_cm]" && $2 ~ /[tT]/ { print tag, $1, $3 }' /proc/kallsyms
		# What runs for the first time runs through other code.
		load cycle count=50 in_flight=16
		counted_load flight1 count=$COUNT1 in_flight=1
		counted_load flight256 count=$COUNT256 in_flight=256
		if [ $round = 1 ]; then
			counted programs storm $CLIENTS $EACH
			echo "connections $round $MODULE_KIND programs $((CLIENTS * EACH))"
			for listeners in $LISTENERS; do
				load keep count=1 in_flight=1 listeners=$listeners
				counted_load beside$listeners count=$COUNT1 in_flight=1
				load drop
			done
		fi
		counted everything everything
		rmmod ib_cm_bench
		unload_stack || bail "the $MODULE_KIND module does not unload"
	done
done
ok "all connections were made"
