# SPDX-License-Identifier: GPL-2.0
# title: an NVMe host that lost its power connects to its target again, with the same GID and QPNs
# guests: 2
# modules: test c
# cpus: 1
# fresh: yes
# timeout: 300

. /vm/lib.sh
. /vm/storage.sh
. /vm/crash.sh

LIMIT_MS=5000
# Longer than the reboot, or the target would have ended the connections by itself.
KEEP_ALIVE_S=120
# The host has two connections, of the admin queue and of the one I/O queue, with the first two QPNs
# of its device: 17 and 18. A connection is stale when its own QPN comes again, and nothing else
# tells the target of it: NVMe over RDMA makes each queue a connection of its own, and the end of
# the admin queue's does not end the others. So each refuses one attempt. A soft-RoCE device
# gives out QPNs in turn, and which attempt comes with which QPN depends on who comes first:
#
# boot 2	Another program makes the first QP, and is refused with 17. The host comes with 18, is
#		refused once, and is connected by its second attempt.
# boot 3	The worst case: the host is the first, comes with 17 and with 18, and is connected by
#		its third attempt. With a device that gives the same QPN again the second attempt
#		would connect its admin queue, and its I/O queue would be refused.
OLD=2

connect() {
	timeout 60 nvme connect -t rdma -a $PEER -s 4420 -n $NQN -i 1 -k $KEEP_ALIVE_S "${HOST[@]}"
}

connected() {
	[ -e /sys/class/nvme/nvme0 ]
}

now_ms() {
	echo $((${EPOCHREALTIME/./} / 1000))
}

# attempts MOST TEXT: connects, and says at which attempt.
attempts() {
	local attempt
	for attempt in $(seq "$1"); do
		! connect || break
	done
	check "boot $BOOT: $2: connected at attempt $attempt of at most $1" connected
	took=$(($(now_ms) - start))
	check "boot $BOOT: within $LIMIT_MS ms of the first attempt: $took" \
		[ $took -lt $((LIMIT_MS * SLOW)) ]
}

rping_client() {
	timeout 60 rping -c -a $PEER -p 7174 -C 1 -v
}

# QPNs of the host's queues, in order.
queues() {
	rdma resource show qp | sed -n '/ type RC /s/.* lqpn \([0-9]*\) .*/\1/p' | sort -n | tr '\n' ' '
}

load_stack
setup_rxe

if [ $ROLE = b ]; then
	wait_for 20 ping -c 1 -W 1 $PEER || bail "the other guest ($PEER) does not answer"
	put "gid$BOOT" "$(cat $PORT/gids/0)"
	take listens >/dev/null
	modprobe nvme_rdma || bail "nvme_rdma does not load"
	start=$(now_ms)
	case $BOOT in
	1)
		check "boot 1: connected" connect
		assert_eq "boot 1: QPNs of the two queues" "$(queues)" "17 18 "
		;;
	2)
		check "boot 2: another program is the first, and is refused" eval '! rping_client'
		assert_eq "boot 2: rej received by it" "$(counter rx_msgs rej)" 1
		attempts 2 "the host comes with one QPN that is stale"
		assert_eq "boot 2: each old connection refused one attempt, rej received" \
			"$(counter rx_msgs rej)" $OLD
		put done2 yes
		take judged2 >/dev/null
		check "boot 2: the other program's second attempt is accepted" rping_client
		# The same QPNs once more, for the next time.
		timeout 30 nvme disconnect -n $NQN
		rdma link delete rxe0
		setup_rxe
		check "boot 2: connected again" connect
		assert_eq "boot 2: QPNs of the two queues" "$(queues)" "17 18 "
		;;
	3)
		attempts $((OLD + 1)) "the host comes with both"
		assert_eq "boot 3: each old connection refused one attempt, rej received" \
			"$(counter rx_msgs rej)" $OLD
		dmesg | grep -i 'nvme.*reject' | sed 's/^/# /'
		put done3 yes
		take judged3 >/dev/null
		timeout 30 nvme disconnect -n $NQN
		barrier end
		exit 0
		;;
	esac
	put "ready$BOOT" yes
	# The other guest switches this one off now.
	sleep 1000
fi

# judge_boot N: switches the host off, and says what became of its connections when it was back.
judge_boot() {
	oracle_on rdma_cma:cm_event_handler
	vmctl reset b
	take "done$1" >/dev/null
	assert_eq "boot $1: the same GID after the reboot" "$(take "gid$1")" "$(take gid1)"
	wait_for 20 seen DISCONNECTED
	oracle_off >/dev/null
	note "boot $1:"
	# The target destroys its id as soon as it is told, and so hears no more.
	timeline no-exit
	# Which attempt ends which connection: of each a REJ, then a DREQ.
	assert_eq "boot $1: old connections that were ended, each after a REJ of its own" \
		"$(grep -Eo 'icm_issue_rej|icm_send_dreq' $RUN/trace | tr '\n' ' ')" \
		"icm_issue_rej icm_send_dreq icm_issue_rej icm_send_dreq "
	put "judged$1" yes
}

check "a target on $SELF" nvmet_on
background server rping -s -P -a $SELF -p 7174
wait_for 30 listening 7174 || bail "rping does not listen"
put listens yes
take ready1 >/dev/null
judge_boot 2
take ready2 >/dev/null
judge_boot 3
barrier end
stop server
check "the target goes" nvmet_off
