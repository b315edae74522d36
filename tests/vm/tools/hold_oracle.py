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

LINE = re.compile(
    r"^\s*(?P<comm>.+)-(?P<pid>\d+)\s+\[\d+\]\s+\S+\s+(?P<at>[\d.]+): (?P<name>\w+): (?P<rest>.*)$"
)
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

    def verdict(self, closed):
        if self.expired:
            return "expired"
        if not self.connection or not self.connected:
            return "free"
        if self.timewait_exit and self.error:
            return "kept"
        # The connection ended, and TimeWait with it, before anyone closed the device's file.
        if self.timewait_exit and self.timewait_exit < closed:
            return "over"
        return "broken"


class Story:
    """What a trace says of each queue pair that a process left behind."""

    def __init__(self, events):
        self.events = list(events)
        self.killed = 0.0
        self.closed = {}  # thread: when it began to close a file of a device
        self.qps = {}
        self.of_id = {}
        self.left = []  # (queue pair as it was then, when destroyed, when its file was closed)
        self.ends = []  # the same queue pairs, and what became of their connections later
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
                    self.ends.append(qp)


def judge(path):
    story = Story(read(path))
    counts = dict.fromkeys(("kept", "broken", "expired", "over", "free"), 0)
    longest = 0.0
    for qp, destroyed, closed in story.left:
        verdict = qp.verdict(closed)
        counts[verdict] += 1
        longest = max(longest, destroyed - closed)
        parts = [f"QP {qp.qpn}: {verdict}"]
        for what in ("held", "error", "timewait_exit", "expired"):
            if getattr(qp, what):
                parts.append(f"{what} {getattr(qp, what) - closed:.1f}")
        parts.append(f"destroyed {destroyed - closed:.1f} ms after the close")
        print("# " + ", ".join(parts))
    print(" ".join(f"{name}={count}" for name, count in counts.items()), f"longest={longest:.0f}")


@dataclasses.dataclass
class Crash:
    """One queue pair of a process that was killed, in ms after the signal; 0 is never."""

    qpn: int
    closed: float
    error: float
    destroyed: float
    dreq: float
    drep: float
    timewait_exit: float

    def steps(self):
        early = self.destroyed < self.timewait_exit
        return sorted(
            (at, text)
            for at, text in (
                (0.0, "SIGKILL"),
                (self.closed, "the kernel closes the device's file"),
                (self.error, f"QP {self.qpn} goes to the Error state"),
                (self.dreq, "DREQ is sent"),
                (self.drep, "DREP: TimeWait begins"),
                (self.timewait_exit, "TimeWait ends"),
                (
                    self.destroyed,
                    f"QP {self.qpn} is destroyed" + (", its number is free" if early else ""),
                ),
            )
            if at or text == "SIGKILL"
        )


def crash_of(path):
    story = Story(read(path))
    for number, (qp, destroyed, closed) in enumerate(story.left):
        if qp.connection and qp.connected:
            break
    else:
        sys.exit(f"{path} shows no queue pair that a process left behind")
    zero = story.killed

    def first(name):
        return next((e.ms - zero for e in story.events if e.name == name and e.ms > zero), 0.0)

    def since(at):
        return at - zero if at else 0.0

    return Crash(
        qp.qpn, since(closed), since(qp.error), since(destroyed),
        first("icm_send_dreq"), first("icm_send_drep"),
        since(story.ends[number].timewait_exit),
    )  # fmt: skip


def timeline(path):
    for at, text in crash_of(path).steps():
        print(f"{at:8.1f} ms  {text}")


LEFT, WIDTH, LANE = 150, 880, 26
COLOURS = {
    "up": "#3b7dd8", "error": "#e0a030", "end": "#7a7a7a", "wait": "#8fbf6f", "risk": "#d94040",
}  # fmt: skip


class Drawing:
    def __init__(self, span_ms):
        self.span = span_ms
        self.parts = []

    def x(self, ms):
        return LEFT + WIDTH * ms / self.span

    def text(self, x, y, text, size=13, anchor="start", colour="#222222"):
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(
            f'<text x="{x:.1f}" y="{y}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{colour}">{text}</text>'
        )

    def bar(self, begin, end, y, colour, text=""):
        width = max(1.5, self.x(end) - self.x(begin))
        self.parts.append(
            f'<rect x="{self.x(begin):.1f}" y="{y}" width="{width:.1f}" height="{LANE - 6}" '
            f'fill="{COLOURS[colour]}"/>'
        )
        if text and width > 7 * len(text):
            self.text(self.x(begin) + 6, y + 15, text, 12, colour="#ffffff")

    def mark(self, at, top, bottom, text, colour="#222222"):
        x = self.x(at)
        self.parts.append(
            f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="{colour}"/>'
        )
        anchor = "end" if x > LEFT + WIDTH * 0.7 else "start"
        self.text(x + (-4 if anchor == "end" else 4), bottom, text, 12, anchor, colour)

    def module(self, y, title, crash):
        """A queue pair above its connection, and what they mean together below."""
        self.text(10, y, title, 15)
        self.text(10, y + 24, f"QP {crash.qpn}")
        ready = min(at for at in (crash.error, crash.destroyed) if at)
        self.bar(0, ready, y + 10, "up", "ready")
        if crash.error:
            self.bar(crash.error, crash.destroyed, y + 10, "error", "Error: discards packets")
        self.text(10, y + 24 + LANE, "connection")
        ended = crash.timewait_exit or self.span
        self.bar(0, crash.dreq, y + 10 + LANE, "up", "up")
        self.bar(crash.dreq, crash.drep, y + 10 + LANE, "end")
        self.bar(crash.drep, ended, y + 10 + LANE, "wait", "TimeWait")
        below = y + 10 + 2 * LANE
        if crash.destroyed < ended:
            self.bar(crash.destroyed, ended, below, "risk",
                     "the QPN can be given out again, and packets may still arrive")
        self.mark(crash.destroyed, y + 6, below + LANE + 10,
                  f"destroyed {crash.destroyed:.1f} ms after SIGKILL")


def picture(path_c, path_rust):
    crashes = [("C module", crash_of(path_c)), ("Rust module", crash_of(path_rust))]
    span = 1.05 * max(max(each.destroyed, each.timewait_exit) for _, each in crashes)
    drawing = Drawing(span)
    for number, (title, crash) in enumerate(crashes):
        drawing.module(40 + 150 * number, title, crash)
    axis = 345
    step = 100 if span > 300 else 20
    for ms in range(0, int(span) + 1, step):
        drawing.mark(ms, axis - 12, axis, f"{ms}")
    drawing.text(10, axis, "ms after SIGKILL", 12)
    print('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1060 360" '
          'font-family="sans-serif">')
    print('<rect width="1060" height="360" fill="#ffffff"/>')
    print("\n".join(drawing.parts))
    print("</svg>")


def main():
    match sys.argv[1:]:
        case ["judge", path]:
            judge(path)
        case ["timeline", path]:
            timeline(path)
        case ["picture", path_c, path_rust]:
            picture(path_c, path_rust)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
