# SPDX-License-Identifier: GPL-2.0
# For scenarios on ib_loop, the adapter with two InfiniBand ports. Sourced after lib.sh.
#
# ib_load		the stack and the adapter
# sm_start, sm_stop	a subnet manager on port 1; sm_start waits until both ports are active
# ipoib_start		ib0 (port 1) in the namespace one, ib1 (port 2) in two; 10.9.0.1, 10.9.0.2
# ipoib_mode MODE	datagram, or connected with the largest MTU
# fault, link, next_qpn	what the adapter is told to do wrong (see control.c)

HCA=/sys/class/infiniband/ibloop0
LOOP=/sys/kernel/debug/ib_loop
# Functions of lib.sh that read counters read those of this port.
PORT=$HCA/ports/1
FIRST_ADDRESS=10.9.0.1
SECOND_ADDRESS=10.9.0.2

ib_load() {
	load_ib_cm "$@" || bail "ib_cm ($MODULE_KIND) does not load: $(dmesg | tail -n 3 | tr '\n' ' ')"
	check_build_id
	modprobe -a rdmavt ib_umad ib_uverbs rdma_cm rdma_ucm || bail "the modules above ib_cm do not load"
	adapter_plug
}

adapter_plug() {
	[ -e $VM/hca/ib_loop.ko ] || bail "ib_loop was not built: see the runner's messages"
	insmod $VM/hca/ib_loop.ko || bail "ib_loop does not load: $(dmesg | tail -n 3 | tr '\n' ' ')"
	wait_for 5 umads_ready || bail "the adapter has no umad devices"
}

# Their numbers are new ones when a program still has the old ones open.
umads_ready() {
	local file name found=0
	for file in /sys/class/infiniband_mad/umad*/ibdev; do
		! read -r name 2>/dev/null <$file || [ "$name" != ibloop0 ] || found=$((found + 1))
	done
	[ $found = 2 ]
}

# ib_unload: everything that stands on the adapter, and it; the order of the modules is given.
ib_unload() {
	local module
	ipoib_stop
	# While there is a subnet manager: an interface leaves its multicast groups, and without an
	# answer it takes 14 s to give up.
	for module in "${@:-ib_ipoib}"; do
		[ ! -d /sys/module/$module ] || wait_for 20 rmmod $module || return 1
	done
	sm_stop
	for module in ib_loop rdmavt; do
		[ ! -d /sys/module/$module ] || wait_for 10 rmmod $module || return 1
	done
}

at_the_end() {
	# The status of the scenario is what end_of_scenario looks at.
	local status=$?
	cleanup_processes
	ib_unload >/dev/null 2>&1
	(exit $status)
	end_of_scenario
}
trap at_the_end EXIT

# --- the subnet manager --------------------------------------------------------------------

port_guid() {
	local gid
	gid=$(cat $HCA/ports/$1/gids/0)
	gid=${gid//:/}
	echo "0x${gid: -16}"
}

# sm_run [PORT] [OPTION...]: no traps are sent, so a manager has to sweep often.
sm_run() {
	local port=${1:-1}
	shift
	mkdir -p /var/cache/opensm /var/log
	background opensm opensm -g "$(port_guid "$port")" -s 1 -f $RUN/opensm.messages "$@"
}

sm_start() {
	sm_run "$@"
	wait_for 20 ports_active || bail "opensm does not bring the ports up: $(cat $HCA/ports/*/state)"
}

sm_stop() {
	stop opensm
}

ports_active() {
	local one two
	read -r one <$HCA/ports/1/state && read -r two <$HCA/ports/2/state &&
		[ "$one $two" = "4: ACTIVE 4: ACTIVE" ]
}

# --- what the adapter does -----------------------------------------------------------------

# fault drop|repeat|delay MESSAGE PORT COUNT [MS], or fault clear
fault() {
	echo "$*" >$LOOP/faults
}

faults_left() {
	sed -n "s/^$1 .* left \([0-9]*\) .*/\1/p" $LOOP/faults
}

link() {
	echo "$1" >$LOOP/link
}

next_qpn() {
	echo "$1" >$LOOP/next_qpn
}

# --- counters of both ports ----------------------------------------------------------------

# of_port N CMD...: with the counters of that port
of_port() {
	local PORT=$HCA/ports/$1 RUN=$RUN/port$1
	[ -d $RUN ] || mkdir -p $RUN
	shift
	"$@"
}

mark_both() {
	of_port 1 mark_counters
	of_port 2 mark_counters
}

# both FUNCTION...: its answers for the two ports
both() {
	echo "$(of_port 1 "$@") $(of_port 2 "$@")"
}

# --- IPoIB -----------------------------------------------------------------------------------

one() {
	ip netns exec one "$@"
}

two() {
	ip netns exec two "$@"
}

ipoib_start() {
	modprobe ib_ipoib || bail "ib_ipoib does not load"
	ip netns add one
	ip netns add two
	wait_for 5 test -e /sys/class/net/ib1 || bail "there is no ib1"
	# What IPv6 sends by itself would make connections at times of its own.
	one sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	two sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	ip link set ib0 netns one
	ip link set ib1 netns two
	ip -n one addr add $FIRST_ADDRESS/24 dev ib0
	ip -n two addr add $SECOND_ADDRESS/24 dev ib1
	ipoib_up
}

ipoib_up() {
	ip -n one link set ib0 up
	ip -n two link set ib1 up
	wait_for 20 reaches || bail "no ping from ib0 to ib1"
}

ipoib_stop() {
	# The interfaces are moved to the first namespace, and stay there until the module goes.
	ip netns delete one 2>/dev/null
	ip netns delete two 2>/dev/null
	return 0
}

# reaches [OPTION...]: one ping from the first to the second answers.
reaches() {
	one ping -q -c 1 -W 1 "$@" $SECOND_ADDRESS
}

# ipoib_mode MODE: of both interfaces. Changing it ends their connections.
ipoib_mode() {
	local mtu=65520
	[ "$1" = connected ] || mtu=2044
	one sh -c "echo $1 >/sys/class/net/ib0/mode" && two sh -c "echo $1 >/sys/class/net/ib1/mode" &&
		ip -n one link set ib0 mtu $mtu && ip -n two link set ib1 mtu $mtu
}

# tcp_listening PORT: in the second namespace
tcp_listening() {
	two ss -ltn | grep -q ":$1"
}

# tcp_copy MIB: random data from the first to the second; true when the checksums agree.
tcp_copy() {
	local sent got
	background receiver ip netns exec two python3 -c "
import hashlib, socket
s = socket.create_server(('$SECOND_ADDRESS', 9000))
c, _ = s.accept()
h = hashlib.sha256()
while d := c.recv(1 << 20): h.update(d)
print(h.hexdigest())"
	wait_for 30 tcp_listening 9000 || { show receiver; return 1; }
	sent=$(one python3 -c "
import hashlib, os, socket
s = socket.create_connection(('$SECOND_ADDRESS', 9000))
h = hashlib.sha256()
for _ in range($1): d = os.urandom(1 << 20); h.update(d); s.sendall(d)
print(h.hexdigest())")
	finish receiver 30 || { show receiver; return 1; }
	got=$(cat $RUN/receiver.log)
	[ -n "$sent" ] && [ "$sent" = "$got" ]
}
