# SPDX-License-Identifier: GPL-2.0
# title: the tables in debugfs: columns, rows of every kind, and reads during a storm
# only: rust
# timeout: 120

. /vm/lib.sh

DEBUG=/sys/kernel/debug/ib_cm
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug

# table NAME COLUMN...: these columns of each row
table() {
	local file=$DEBUG/$1
	shift
	awk -v want="$*" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; n = split(want, name); next }
		{
			line = $at[name[1]]
			for (i = 2; i <= n; i++) line = line " " $at[name[i]]
			print line
		}
	' $file
}

rows() {
	table "$@" | wc -l
}

# ragged: lines of any table that have not as many words as there are columns
ragged() {
	local name
	for name in connections timewait holds listeners history; do
		awk -v name=$name 'NR == 1 { n = NF } NF != n { print name ": " $0 }' $DEBUG/$name
	done
}

established() {
	[ "$(table connections state | grep -c '^ESTABLISHED$')" = "$1" ]
}

has_rows() {
	[ "$(rows "$1" local_id)" -ge "$2" ]
}

is_empty() {
	[ "$(rows "$1" local_id)" = 0 ]
}

load_stack history=256
setup_rxe

assert_eq "columns of connections" "$(head -n 1 $DEBUG/connections)" \
	"local_id remote_id device port type state lap local_qpn remote_qpn peer remote_guid$(
	) service_id age_s waits left_ms timeout_ms retries handler owner"
assert_eq "columns of timewait" "$(head -n 1 $DEBUG/timewait)" \
	"local_id remote_id device local_qpn remote_qpn age_s left_ms held owner"
assert_eq "columns of holds" "$(head -n 1 $DEBUG/holds)" \
	"local_id remote_id device local_qpn remote_qpn state held_ms left_ms limit_ms pid command"
assert_eq "columns of listeners" "$(head -n 1 $DEBUG/listeners)" \
	"device service_id shares requests age_s local_id owner"
assert_eq "columns of history" "$(head -n 1 $DEBUG/history)" "local_id number time_s from to cause"
assert_eq "mode of the files" "$(stat -c %a $DEBUG/* | sort -u)" 444
assert_eq "nothing yet" "$(cat $DEBUG/live) $(rows connections local_id)" "0 0"

N=40
background server /vm/tools/cmtool serve $SELF 7300 $N
wait_for 20 listening 7300 || bail "cmtool does not listen"
assert_eq "the listener" "$(table listeners device service_id shares owner)" \
	"rxe0 $(printf '0x%016x' $((0x1060000 + 7300))) 1 rdma_cm"
background client /vm/tools/cmtool hold $SELF 7300 $N $RUN/end
wait_for 60 grep -q held $RUN/client.log || bail "no connections"
wait_for 10 established $((2 * N)) || bail "they are not established"

assert_eq "rows have all columns" "$(ragged)" ""
assert_eq "device, port, type, waits for, handler, owner" \
	"$(table connections device port type waits handler owner | sort | uniq -c | xargs)" \
	"$((2 * N)) rxe0 1 RC - idle rdma_cm"
assert_eq "each peer is the other's peer" \
	"$(table connections local_id remote_id local_qpn remote_qpn | sort)" \
	"$(table connections remote_id local_id remote_qpn local_qpn | sort)"
assert_eq "as many ids as rows" "$(table connections local_id | sort -u | wc -l)" $((2 * N))
assert_eq "the peer's address" "$(table connections peer | sort -u)" "::ffff:$SELF"
one=$(table connections local_id | head -n 1)
changes=$(table history local_id from to cause | sed -n "s/^$one //p" | xargs)
# MRAs come and go with the load.
active="IDLE REQ_SENT call_req( REQ_SENT MRA_REQ_RCVD received_mra)?"
active+=" (MRA_REQ_RCVD|REQ_SENT) REP_RCVD received_rep( REP_RCVD MRA_REP_SENT call_mra)?"
active+=" (MRA_REP_SENT|REP_RCVD) ESTABLISHED call_rtu"
passive="IDLE REQ_RCVD received_request( REQ_RCVD MRA_REQ_SENT call_mra)?"
passive+=" (MRA_REQ_SENT|REQ_RCVD) REP_SENT call_rep( REP_SENT MRA_REP_RCVD received_mra)?"
passive+=" (MRA_REP_RCVD|REP_SENT) ESTABLISHED received_rtu"
check "history of an id: $changes" grep -qxE "$active|$passive" <<<"$changes"

# In pieces, as a reader with a small buffer gets it.
first_words() {
	cut -d' ' -f1 | sort | cksum
}
assert_eq "read in pieces" "$(dd if=$DEBUG/connections bs=77 2>/dev/null | first_words)" \
	"$(first_words <$DEBUG/connections)"
exec 7<$DEBUG/connections
read -r -u 7 first
rmmod rdma_ucm 2>/dev/null
check "an open file keeps the module" [ "$(cat /sys/module/ib_cm/refcnt)" -ge 2 ]
exec 7<&-

touch $RUN/end
wait_for 20 has_rows timewait 1 || bail "no TimeWait"
assert_eq "owners of those in TimeWait" \
	"$(table timewait owner | grep -vxE 'none|consumer')" ""
finish client 60
finish server 60
wait_for 60 is_empty connections || bail "rows stay"
assert_eq "the dead have a history" \
	"$(table history local_id to | sed -n "s/^$one //p" | tail -n 2 | xargs)" "TIMEWAIT IDLE"

# A process that dies with its connection: its hold, and who waits.
background server /vm/tools/hold_peer serve $SELF 7301 answer
wait_for 30 listening 7301 || bail "hold_peer does not listen"
background victim /vm/tools/hold_peer client $SELF 7301 stay 1 20
wait_for 30 established 2 || bail "no connection"
pid=$(cat $RUN/victim.pid)
kill -KILL $pid
wait_for 20 has_rows holds 1 || bail "no hold is shown"
assert_eq "the hold: device, pid, command" "$(table holds device pid command)" "rxe0 $pid hold_peer"
assert_eq "the TimeWait of a held queue pair" "$(table timewait held | sort -u | grep -c yes)" 1
wait_for 20 is_empty holds || bail "the hold stays"
ok "the hold goes"
stop server

# Connections come and go all the while that all tables are read.
background server /vm/tools/cmtool serve $SELF 7302 150
wait_for 20 listening 7302 || bail "cmtool does not listen"
background client /vm/tools/cmtool cycle $SELF 7302 150
reads=0
until gone "$(cat $RUN/client.pid)"; do
	ragged >>$RUN/ragged
	reads=$((reads + 1))
done
finish client 60
finish server 60
assert_eq "$reads reads of all tables during a storm: rows that are torn" "$(cat $RUN/ragged)" ""
