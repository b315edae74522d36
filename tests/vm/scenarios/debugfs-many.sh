# SPDX-License-Identifier: GPL-2.0
# title: the tables in debugfs with 100,000 rows, read while connections come and go
# only: rust
# long: yes
# timeout: 300

. /vm/lib.sh
. /vm/api/api.sh

DEBUG=/sys/kernel/debug/ib_cm
MANY=100000
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
dmesg -C

# read_all: rows, ids that come twice, rows that have not as many words as there are columns
read_all() {
	awk 'NR == 1 { n = NF; next } NF != n { torn++ } { if ($1 in ids) twice++; ids[$1] = 1 }
		END { print NR - 1, twice + 0, torn + 0 }' $DEBUG/connections
}

ms() {
	echo $((${EPOCHREALTIME/./} / 1000))
}

load_api
start=$(ms)
run_api many
note "made in $(($(ms) - start)) ms"
assert_eq "ids" "$(cat $DEBUG/live)" $MANY
start=$(ms)
read=$(read_all)
note "all rows are read in $(($(ms) - start)) ms"
assert_eq "rows, ids that come twice, torn rows" "$read" "$MANY 0 0"

# Two readers all the while; each reading must have all rows that are there all the while.
reader() {
	local rows
	until [ -e $RUN/end ]; do
		read -r rows twice torn <<<"$(read_all)"
		cat $DEBUG/timewait $DEBUG/listeners $DEBUG/holds >/dev/null
		echo "$([ "$rows" -ge $MANY ] && echo all || echo "$rows rows") $twice $torn"
	done
}
export -f reader read_all
export DEBUG MANY RUN
# storm TEXT: 100 connections come and go
storm() {
	local start
	background server /vm/tools/cmtool serve $SELF 7302 100
	wait_for 20 listening 7302 || bail "cmtool does not listen"
	start=$(ms)
	check "100 connections $1" timeout 120 /vm/tools/cmtool cycle $SELF 7302 100
	note "100 connections $1: $(($(ms) - start)) ms"
	finish server 60
}
storm "while nobody reads"
background reader1 bash -c reader
background reader2 bash -c reader
storm "while two read all rows"
touch $RUN/end
finish reader1 60
finish reader2 60
assert_ge "readings meanwhile" "$(cat $RUN/reader?.log | wc -l)" 2
assert_eq "readings by what they had: all, no id twice, no row torn" \
	"$(sort $RUN/reader?.log | uniq)" "all 0 0"

# A reader that takes a page and stays keeps nobody from going.
exec 7<$DEBUG/connections
read -r -u 7 columns
run_api many-gone
gone_all() {
	[ "$(cat $DEBUG/live)" = 0 ]
}
check "they go while a reader stands in the middle" wait_for 60 gone_all
rest=$(wc -l <&7)
exec 7<&-
check "the reader gets no more than what it had begun with: $rest" [ "$rest" -lt 200 ]
assert_eq "stalls and lockups in the log" \
	"$(dmesg | grep -ciE 'soft lockup|rcu.*stall|blocked for more')" 0
unload_api
