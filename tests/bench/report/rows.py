# SPDX-License-Identifier: GPL-2.0
"""Which figures of a run are compared, in the order of the table."""

import dataclasses

UNITS = {  # how a number is written: factor and suffix
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns")),
    "per s": ((1, "/s"),),
    "bytes": ((1, "bytes"),),
    "number": ((1e6, "million"), (1e3, "thousand"), (1, "")),
}


@dataclasses.dataclass
class Row:
    group: str
    label: str
    case: str
    name: str
    unit: str = "ns"
    better: str = "lower"


def rate(label, case, group="Connections per second"):
    return Row(group, label, case, "rate", "per s", "higher")


def memory(label, case):
    return Row("Memory in slabs", label, case, "slab_per_end", "bytes")


def executed(where, case, *modules):
    """Instructions of each of these parts of the machine."""
    parts = {"core": "the core kernel", "all": "all of the kernel", "user": "the programs"}
    for module in modules:
        label = f"{where}: {parts.get(module, module)}"
        yield Row("Instructions per connection", label, f"count_{case}", f"insns_{module}", "number")


def locks(label, case, name):
    return Row("Spinlocks of ib_cm", label, f"count_{case}", name, "number")


ROWS = [
    rate("1 in flight", "flight1"),
    rate("16 in flight", "flight16"),
    rate("256 in flight", "flight256"),
    rate("4,096 in flight", "flight4096"),
    rate("1,000 made and kept", "keep1000"),
    rate("10,000 made and kept", "keep10000"),
    rate("100,000 made and kept", "keep100000"),
    rate("16 in flight beside 10,000 kept", "beside10000"),
    rate("16 in flight beside 100,000 kept", "beside100000"),
    rate("16 in flight, 10,000 listeners", "listeners"),
    Row("Time to connect", "1 in flight, p50", "flight1", "connect_p50"),
    Row("Time to connect", "1 in flight, p99", "flight1", "connect_p99"),
    Row("Time to connect", "16 in flight, p50", "flight16", "connect_p50"),
    Row("Time to connect", "16 in flight, p99", "flight16", "connect_p99"),
    Row("Time to connect", "256 in flight, p50", "flight256", "connect_p50"),
    Row("Time to connect", "256 in flight, p99", "flight256", "connect_p99"),
    Row("Time to connect", "256 in flight, p99.9", "flight256", "connect_p999"),
    Row("Time to connect", "4,096 in flight, p99", "flight4096", "connect_p99"),
    Row("Time to connect", "16 in flight beside 1,000 kept, p50", "beside1000", "connect_p50"),
    Row("Time to connect", "16 in flight beside 10,000 kept, p50", "beside10000", "connect_p50"),
    Row("Time to connect", "16 in flight beside 100,000 kept, p50", "beside100000", "connect_p50"),
    Row("Beside a consumer that sleeps", "64 in flight, rate", "sleeper", "rate", "per s", "higher"),
    Row("Beside a consumer that sleeps", "64 in flight, connect p50", "sleeper", "connect_p50"),
    Row("Beside a consumer that sleeps", "64 in flight, connect p99", "sleeper", "connect_p99"),
    Row("Own CPU time", "per connection made and ended", "own", "cpu_ib_cm"),
    Row("Own CPU time", "the whole machine, per connection", "own", "cpu_all"),
    memory("one established end of 1,000 connections", "keep1000"),
    memory("one established end of 10,000", "keep10000"),
    memory("one established end of 100,000", "keep100000"),
    memory("one destroyed end in TimeWait, of 1,000", "timewait1000"),
    memory("one destroyed end in TimeWait, of 10,000", "timewait10000"),
    memory("one destroyed end in TimeWait, of 100,000", "timewait100000"),
    Row("Taking down", "disconnect 1,000", "timewait1000", "elapsed"),
    Row("Taking down", "disconnect 10,000", "timewait10000", "elapsed"),
    Row("Taking down", "disconnect 100,000", "timewait100000", "elapsed"),
    Row("Taking down", "destroy 1,000 in TimeWait", "timewait1000", "destroy_elapsed"),
    Row("Taking down", "destroy 10,000 in TimeWait", "timewait10000", "destroy_elapsed"),
    Row("Taking down", "destroy 100,000 in TimeWait", "timewait100000", "destroy_elapsed"),
    Row("Taking down", "destroy 1,000 connected", "drop1000", "destroy_elapsed"),
    Row("Taking down", "destroy one end in TimeWait, p50", "flight16", "destroy_p50"),
    Row("Taking down", "destroy one end in TimeWait, p99", "flight16", "destroy_p99"),
    Row("Taking down", "destroy one connected end, p50", "drop1000", "destroy_p50"),
    Row("Taking down", "destroy one connected end, p99", "drop1000", "destroy_p99"),
    Row("Listeners", "create one of 10,000, p50", "listeners", "listen_p50"),
    # What runs while a processor waits is not the connection's: so no core kernel here.
    *executed("1 in flight", "flight1", "ib_cm", "ib_core", "rdma_rxe"),
    *executed("256 in flight", "flight256", "ib_cm", "core", "ib_core", "rdma_rxe", "all"),
    *executed("beside 1,000 listeners", "beside1000", "ib_cm"),
    *executed("beside 1,000,000 listeners", "beside1000000", "ib_cm"),
    *executed("8 x ucmatose -c 32", "programs", "ib_cm", "core", "ib_core", "rdma_cm", "rdma_ucm"),
    *executed("8 x ucmatose -c 32", "programs", "ib_uverbs", "rdma_rxe", "user"),
    locks("taken, per connection, 256 in flight", "flight256", "hold_times"),
    locks("instructions with one held, per connection", "flight256", "hold_sum"),
    locks("instructions with interrupts off, per connection", "flight256", "off_sum"),
    locks("longest hold, in instructions", "everything", "hold_longest"),
    locks("longest time with interrupts off, in instructions", "everything", "off_longest"),
    Row("Programs", "cmtime, with queue pairs", "cmtime", "qp_conn"),
    Row("Programs", "cmtime, without", "cmtime", "cm_conn"),
]


def write(number, unit):
    for factor, suffix in UNITS[unit]:
        if number >= factor:
            break
    scaled = number / factor
    digits = 0 if scaled >= 100 else 1 if scaled >= 10 else 2
    space = "" if suffix[:1] in ("", "/") else " "
    return f"{scaled:,.{digits}f}{space}{suffix}"
