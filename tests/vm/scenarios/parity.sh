# SPDX-License-Identifier: GPL-2.0
# title: the same day on the C module and on the one under test, against a C peer
# guests: 2
# modules: test c
# cpus: 1
# timeout: 150

. /vm/lib.sh

# What happens in that day is the table in tests/api/parity.c. Guest a goes through it with the C
# module, then with the one under test; guest b has the C module and goes through it too, each time,
# so that a is on the passive side as well. Compared is what a counted, traced, called, got and was
# told, and what b counted, got and was told. With CM=c both days are of the C module: the control.
API=/sys/kernel/debug/ib_cm_api_test
TEST=$MODULE_KIND

# In UDP, behind transport headers of 12 and 8 bytes: class and attribute of the MAD, and the first
# bytes of private data, which begin at BYTE of the MAD.
CM_CLASS="@th,232,8 0x07"

# network ATTRIBUTE BYTE: what its private data says is done to messages of that kind.
network() {
	local what="udp dport 4791 $CM_CLASS @th,352,16 $1 @th,$((224 + $2 * 8)),32"

	# One packet: 256 bytes of MAD, 20 and 8 of IP and UDP, 20 of transport headers, 4 of check sum.
	nft add rule ip lossy in $what 0x44524f50 quota until 308 bytes counter drop &&
		nft add rule ip lossy in $what 0x4c4f5354 counter drop &&
		nft add rule ip lossy out $what 0x5457494e counter dup to $PEER device eth0 ||
		bail "nft does not take the rules"
}

network_of_the_day() {
	nft delete table ip lossy 2>/dev/null
	nft add table ip lossy
	nft add chain ip lossy in "{ type filter hook input priority 0; }"
	nft add chain ip lossy out "{ type filter hook output priority 0; }"
	network 0x0010 164	# REQ
	network 0x0013 60	# REP
	network 0x0014 32	# RTU
	network 0x0015 36	# DREQ
	network 0x0016 32	# DREP
	network 0x0017 40	# SIDR_REQ
	network 0x0018 120	# SIDR_REP
}

# day NAME: in both guests; leaves $RUN/NAME.
day() {
	barrier "$1.up"
	network_of_the_day
	ping -c 1 -W 5 $PEER >/dev/null
	insmod $VM/api/ib_cm_api_test.ko netdev=eth0 under_test=$MODULE_KIND peer=$PEER \
		peer_mac="$(take "$1.mac.$OTHER")" || bail "ib_cm_api_test does not load"
	echo parity-listen >$API/run || bail "no listener"
	mark_counters
	trace_on ib_cma || bail "no trace events"
	barrier "$1.begins"
	SECONDS=0
	background passive sh -c "echo parity-passive >$API/run"
	echo parity >$API/run || bail "the day does not begin"
	finish passive 10
	barrier "$1.over"
	note "the $1 day took $SECONDS s"
	wait_for 10 quiet
	barrier "$1.quiet"
	trace_off
	{
		sed 's/^/result /' $API/results
		for group in tx_msgs tx_retries rx_msgs rx_duplicates; do
			for name in $(ls $PORT/cm_$group); do
				echo "counter $group $name $(counter_delta $group $name)"
			done
		done
		trace_lines | sed -n 's/^.*\(icm_[a-z_]*: .*\)$/trace \1/p'
	} >$RUN/$1
	cat $RUN/$1
	rmmod ib_cm_api_test
	barrier "$1.ends"
}

# compare WHO: the days of one guest. Differences that are meant are in a file.
compare() {
	python3 /vm/tools/parity.py $RUN/first $RUN/second /vm/tools/parity-$1.txt $TESTED >$RUN/compared
	status=$?
	cat $RUN/compared
	grep meant, $RUN/compared | head -n 60 | while read -r line; do note "$line"; done
	assert_eq "$2: lines compared, $(sed -n 's/^compared //p' $RUN/compared); not as meant, status" \
		$status 0
}

OTHER=b
[ $ROLE = a ] || OTHER=a
put "tested.$ROLE" $TEST
TESTED=$(take tested.a)

MODULE_KIND=c
load_stack
setup_rxe
for when in first second; do
	put "$when.mac.$ROLE" "$(cat /sys/class/net/eth0/address)"
	day $when
	[ $ROLE.$when = a.first ] || continue
	unload_stack || bail "the C module does not unload"
	MODULE_KIND=$TEST
	load_stack
	setup_rxe
done
if [ $ROLE = a ]; then
	compare module "of the $TEST module and the C module"
else
	compare peer "of their peer"
fi
# The first that fails ends the other one, whose differences are wanted too.
barrier compared
