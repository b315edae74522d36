# SPDX-License-Identifier: GPL-2.0
# title: an NVMe host that lost its power connects to its target again, with the same GID and QPNs
# guests: 2
# modules: test c
# cpus: 1
# fresh: yes
# timeout: 240

. /vm/lib.sh
. /vm/storage.sh
. /vm/crash.sh

LIMIT_MS=5000
# Longer than the reboot, or the target would have ended the connections by itself.
KEEP_ALIVE_S=120
# The host had two connections, of the admin queue and of the one I/O queue, with the first two
# QPNs of its device. A connection is stale when its own QPN comes again, and nothing else tells the
# target of it: NVMe over RDMA makes each queue a connection of its own, and the end of the admin
# queue's does not end the others. A soft-RoCE device gives out QPNs in turn, so the first attempt
# comes with the QPN of the admin queue, the second one with that of the I/O queue: each is refused
# once, by that connection, and the third attempt finds none. With a device that gives the same
# QPN again the second attempt would connect its admin queue, and its I/O queue would be refused.
OLD=2
ATTEMPTS=$((OLD + 1))

connect() {
	timeout 60 nvme connect -t rdma -a $PEER -s 4420 -n $NQN -i 1 -k $KEEP_ALIVE_S "${HOST[@]}"
}

load_stack
setup_rxe

if [ $ROLE = b ]; then
	wait_for 20 ping -c 1 -W 1 $PEER || bail "the other guest ($PEER) does not answer"
	put "gid$BOOT" "$(cat $PORT/gids/0)"
	take listens >/dev/null
	modprobe nvme_rdma || bail "nvme_rdma does not load"
	if [ $BOOT = 1 ]; then
		check "boot 1: connected" connect
		put done1 yes
		# The other guest switches this one off now.
		sleep 1000
	fi
	start=${EPOCHREALTIME/./}
	for attempt in $(seq $ATTEMPTS); do
		! connect || break
	done
	took=$(((${EPOCHREALTIME/./} - start) / 1000))
	check "boot 2: connected at attempt $attempt" [ -e /sys/class/nvme/nvme0 ]
	check "within $LIMIT_MS ms: $took" [ $took -lt $((LIMIT_MS * SLOW)) ]
	assert_eq "each old connection refused one attempt, rej received" "$(counter rx_msgs rej)" $OLD
	dmesg | grep -i 'nvme.*reject' | sed 's/^/# /'
	put done2 yes
	take judged >/dev/null
	timeout 30 nvme disconnect -n $NQN
	barrier end
	exit 0
fi

check "a target on $SELF" nvmet_on
put listens yes
take done1 >/dev/null
oracle_on rdma_cma:cm_event_handler
vmctl reset b
take done2 >/dev/null
assert_eq "the same GID after the reboot" "$(take gid2)" "$(take gid1)"
wait_for 20 seen DISCONNECTED
oracle_off >/dev/null
# The target destroys its id as soon as it is told, and so hears no more.
timeline no-exit
# Which attempt ends which connection: of each a REJ, then a DREQ.
assert_eq "old connections that were ended, each after a REJ of its own" \
	"$(grep -Eo 'icm_issue_rej|icm_send_dreq' $RUN/trace | tr '\n' ' ')" \
	"icm_issue_rej icm_send_dreq icm_issue_rej icm_send_dreq "
put judged yes
barrier end
check "the target goes" nvmet_off
