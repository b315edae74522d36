# SPDX-License-Identifier: GPL-2.0
"""Judges a trace of crash.sh: were queue pairs kept until TimeWait had ended?

    hold_oracle.py judge TRACE      a line for each queue pair that a process left behind
    hold_oracle.py timeline TRACE   what happened, in ms after the signal that killed
    hold_oracle.py picture C-TRACE RUST-TRACE
                                    both as an SVG
"""

import dataclasses
import re
import sys

LINE = re.compile(r"^\s*(?P<comm>.+)-(?P<pid>\d+)\s+\[\d+\]\s+\S+\s+(?P<at>[\d.]+): (?P<name>\w+): (?P<rest>.*)$")
RTR, ERROR = 2, 6


@dataclasses.dataclass
class Event:
    comm: str
    pid: int
    ms: float
    name: str
    fields: dict
    rest: str


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = LINE.match(line)
            if match:
                rest = match["rest"]
                fields = dict(re.findall(r"(\w+)=(\S+)", rest))
                yield Event(
                    match["comm"], int(match["pid"]), float(match["at"]) * 1000, match["name"],
                    fields, rest,
                )  # fmt: skip


def swapped(number):
    """A communication ID as it stands in memory, in host order."""
    return int.from_bytes(int(number, 0).to_bytes(4, "little"), "big")


@dataclasses.dataclass
class QueuePair:
    qpn: int
    connection: bool = False  # named in a REQ or REP
    connected: float = 0.0  # ready to receive
    error: float = 0.0
    timewait_exit: float = 0.0
    expired: float = 0.0
    held: float = 0.0

    def verdict(self):
        if not self.connection or not self.connected:
            return "free"
        if self.expired:
            return "expired"
        if self.timewait_exit and self.error:
            return "kept"
        return "broken"


class Story:
    """What a trace says of each queue pair that a process left behind."""

    def __init__(self, events):
        self.events = list(events)
        self.killed = 0.0
        self.closed = {}  # thread: when it began to close a file of a device
        self.qps = {}
        self.of_id = {}
        self.left = []  # (queue pair, when destroyed, when its file was closed)
        for event in self.events:
            self.see(event)

    def qp(self, event):
        qpn = int(event.fields["qpn"], 0)
        return self.qps.setdefault(qpn, QueuePair(qpn))

    def see(self, event):
        match event.name:
            case "signal_generate" if not self.killed:
                self.killed = event.ms
            case "uverbs_close":
                self.closed[event.pid] = event.ms
            case "cma_connect" | "cma_accept":
                self.qp(event).connection = True
            case "cm_req" | "cm_rep":
                self.of_id[swapped(event.fields["id"])] = self.qp(event)
            case "qp_modify" | "qp_modify_user" if int(event.fields["mask"], 0) & 1:
                state = int(event.fields["state"], 0)
                if state == RTR:
                    self.qp(event).connected = event.ms
                elif state == ERROR and not self.qp(event).error:
                    self.qp(event).error = event.ms
            case "icm_hold":
                self.qp(event).held = event.ms
            case "icm_hold_expired":
                self.qp(event).expired = event.ms
            case "icm_timewait_exit":
                self.qp(event).timewait_exit = event.ms
            case "cm_work":
                local_id = swapped(event.fields["id"])
                if local_id in self.of_id:
                    self.of_id[local_id].timewait_exit = event.ms
            case "qp_destroy":
                qp = self.qp(event)
                del self.qps[qp.qpn]
                # The exit of TimeWait may come later: so the judgement is of what was known now.
                if event.pid in self.closed:
                    self.left.append((dataclasses.replace(qp), event.ms, self.closed[event.pid]))


def judge(path):
    story = Story(read(path))
    counts = dict.fromkeys(("kept", "broken", "expired", "free"), 0)
    longest = 0.0
    for qp, destroyed, closed in story.left:
        verdict = qp.verdict()
        counts[verdict] += 1
        longest = max(longest, destroyed - closed)
        parts = [f"QP {qp.qpn}: {verdict}"]
        for what in ("held", "error", "timewait_exit", "expired"):
            if getattr(qp, what):
                parts.append(f"{what} {getattr(qp, what) - closed:.1f}")
        parts.append(f"destroyed {destroyed - closed:.1f} ms after the close")
        print("# " + ", ".join(parts))
    print(" ".join(f"{name}={count}" for name, count in counts.items()), f"longest={longest:.0f}")


def main():
    match sys.argv[1:]:
        case ["judge", path]:
            judge(path)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
