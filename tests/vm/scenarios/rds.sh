# SPDX-License-Identifier: GPL-2.0
# title: RDS over RDMA: 100 datagrams and their echoes
# timeout: 60

. /vm/lib.sh

cat >$RUN/echo.py <<'END'
import socket
import sys

address, role = sys.argv[1:]
sock = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET)
sock.bind((address, 4000 if role == "server" else 4001))
print("bound", flush=True)
sock.settimeout(30)
for i in range(100):
    if role == "client":
        text = f"{i} ".encode() * 500
        sock.sendto(text, (address, 4000))
        got, _ = sock.recvfrom(65536)
        if got != text[::-1]:
            sys.exit(f"datagram {i} came back wrong")
    else:
        got, source = sock.recvfrom(65536)
        sock.sendto(got[::-1], source)
print("echoed", i + 1)
END

# What an earlier scenario in this guest has left must not pass for this one's.
rm -f $RUN/*.log $RUN/enough
no_lock_orders "rds_trans_sem and rdma_cm's handler_mutex"
load_stack
setup_rxe
modprobe rds_rdma || bail "rds_rdma does not load"
mark_counters

background server python3 $RUN/echo.py $SELF server
wait_for 15 grep -q bound $RUN/server.log || bail "the server does not bind"
check "the client gets its echoes" timeout 40 python3 $RUN/echo.py $SELF client
finish server 20
assert_eq "server ends well, status" $? 0
# Both ends of a connection to the own address are RDS: a crossing pair may be made first.
assert_ge "connections made by RDS" "$(unique rtu tx)" 1
assert_eq "REQs answered" "$(unique rep tx)" "$(unique rtu tx)"

# The device first: RDS ends and waits for the connections of a device that goes, but not for
# those that it has when it is unloaded.
check "the device goes under RDS" rdma link delete rxe0
check "RDS unloads" wait_for 20 modprobe -r rds_rdma
