# SPDX-License-Identifier: GPL-2.0
"""One or two guests that run scenarios together, and the judgement of what they did."""

import os
import queue
import re
import threading
import time

import pace
from guest import Guest, GuestDied
from scenario import Result

# What a healthy kernel does not say. Any of it during a scenario fails the scenario.
BAD = re.compile(
    r"WARNING: |BUG: |BUG at |Oops|KASAN|UBSAN|general protection|refcount_t|possible circular"
    r"|possible recursive|inconsistent lock state|suspicious RCU|blocked for more than"
    r"|INFO: task|soft lockup|hard LOCKUP|detected stall|self-detected stall"
    r"|sleeping function|scheduling while atomic|ODEBUG|corruption|unable to handle|Kernel panic"
    r"|non-static key|locking correctness validator|suspected memory leak|unreferenced object"
    r"|waiting for .* to become free|\[ib_cm\] enqueued on deprecated"
    r"|rust_kernel: panicked|ib_cm: .*(still live|leaked|not freed)"
)
INT3 = "Oops: int3"
LEAK_SECONDS = 60


class Group:
    def __init__(self, image, folder, shape):
        self.image, self.folder, self.shape = image, folder, shape
        self.logs = os.path.dirname(folder)
        size, cpus, memory, counted = shape
        self.events = queue.Queue()
        roles = "ab"[:size]
        self.guests = {
            role: Guest(image, folder, role, cpus, memory, size == 2, counted, self.events)
            for role in roles
        }
        self.usable = False  # its guests answer
        self.reusable = False  # for another scenario
        self.last_died_of_int3 = False
        self.ran = []  # names of scenarios

    def boot(self):
        # One after the other would double the time; QEMU starts at once and boots beside.
        errors = []

        def start(guest):
            try:
                guest.boot()
            except GuestDied as error:
                errors.append(error)

        threads = [threading.Thread(target=start, args=(each,)) for each in self.guests.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            self.kill()
            raise errors[0]
        self.usable = True

    def close(self):
        """Returns the lines of the guests' leak reports, None when none has looked for leaks."""
        lines = self.find_leaks() if self.usable and self.ran else None
        for guest in self.guests.values():
            guest.power_off()
        self.usable = False
        return lines

    def find_leaks(self):
        # One may have been switched off by its scenario.
        waiting = {guest for guest in self.guests.values() if guest.channel}
        for guest in waiting:
            guest.say("leaks")
        deadline = time.monotonic() + pace.scaled(LEAK_SECONDS)
        lines, searched = [], False
        while waiting:
            try:
                event = self.events.get(timeout=max(0.1, deadline - time.monotonic()))
            except queue.Empty:
                return lines + ["the search for leaks does not end"]
            guest, boot, verb, rest = event
            if boot != guest.boots:
                continue
            if verb == "leak":
                lines.append(rest)
            elif verb == "leaks":
                searched |= rest == "searched"
                waiting.discard(guest)
            elif verb == "eof":
                lines.append(f"guest {guest.role} ended during the search for leaks")
                waiting.discard(guest)
        return lines if searched or lines else None

    def kill(self):
        for guest in self.guests.values():
            guest.kill()
        self.usable = False

    def run(self, scenario, under_test):
        run = _Run(self, scenario, under_test)
        result = run.go()
        self.last_died_of_int3 = run.died and any(
            INT3 in guest.console() for guest in self.guests.values()
        )
        self.ran.append(scenario.name)
        self.reusable = result.outcome == "ok" and not scenario.fresh and not run.was_switched
        if run.died:
            self.kill()
        return result


class _Run:
    """One run of one scenario."""

    def __init__(self, group, scenario, under_test):
        self.group, self.scenario = group, scenario
        self.kinds = dict(zip("ab", scenario.kinds(under_test)))
        self.result = Result(scenario, "ok")
        self.values, self.takers, self.at_barrier = {}, {}, {}
        self.running, self.switched_off, self.was_switched = set(), set(), False
        self.boots = dict.fromkeys(group.guests, 1)
        self.died = False
        # One guest has failed and ended.
        self.alone = False
        self.logs = {
            role: open(f"{group.logs}/{scenario.name}.{role}.log", "w", encoding="utf-8")
            for role in group.guests
        }

    def go(self):
        start = time.monotonic()
        # The guest ends the scenario itself at its time limit and can then still tell why.
        deadline = start + pace.scaled(self.scenario.timeout + 100)
        for role in self.group.guests:
            self.start(role)
        while self.running:
            try:
                event = self.group.events.get(timeout=max(0.1, deadline - time.monotonic()))
            except queue.Empty:
                reason = f"no end {deadline - start:.0f} s after the start: the guest hangs"
                self.failed(reason, serious=True)
                self.died = True
                break
            self.handle(*event)
        for log in self.logs.values():
            log.close()
        self.result.seconds = time.monotonic() - start
        if self.result.outcome == "ok" and not self.result.lines:
            self.failed("it checked nothing")
        return self.result

    def start(self, role):
        scenario = self.scenario
        self.running.add(role)
        self.group.guests[role].say(
            f"run {scenario.name} {self.kinds[role]} {pace.scaled(scenario.timeout)} "
            f"{scenario.guests} "
            f"{self.boots[role]}"
        )

    def failed(self, reason, serious=False):
        self.result.outcome = "failed"
        foreign = self.scenario.foreign
        if serious and not self.result.serious:
            self.result.foreign = bool(foreign) and re.search(foreign, reason) is not None
        self.result.serious |= serious
        if reason not in self.result.reasons:
            self.result.reasons.append(reason)

    def handle(self, guest, boot, verb, rest):
        if boot != guest.boots:
            return  # a late word of a guest that was reset
        role = guest.role
        who = f"{role}: " if self.scenario.guests == 2 else ""
        match verb:
            case "ktap":
                self.result.lines.append((role, rest))
                self.logs[role].write(f"ktap {rest}\n")
                if rest.startswith("not ok"):
                    self.failed(who + rest)
            case "log":
                self.logs[role].write(rest + "\n")
            case "klog":
                self.logs[role].write(f"kernel: {rest}\n")
                if BAD.search(rest):
                    self.failed(f"{who}kernel: {rest}", serious=True)
            case "say":
                # For people: at once, beside the KTAP.
                print(rest, flush=True)
            case "done":
                self.running.discard(role)
                self.judge(who, rest)
            case "eof" if role in self.switched_off:
                pass
            case "eof":
                self.running.discard(role)
                self.died = True
                self.guest_died(guest, who)
            case "barrier" | "put" | "take" | "vmctl":
                self.answer(guest, verb, rest)

    def judge(self, who, status):
        match status:
            case "0":
                pass
            case "124" | "137":
                self.failed(f"{who}not done after {pace.scaled(self.scenario.timeout)} s")
            case "unload":
                self.failed(f"{who}the modules do not unload afterwards", serious=True)
            case _:
                if self.result.outcome == "ok":
                    self.failed(f"{who}exit status {status}")
        if self.result.outcome != "ok":
            # The other guest may wait for this one. It ends, and its log is told.
            self.alone = True
            for waiter in self.waiters():
                waiter.say("alone")

    def waiters(self):
        """Empties the lists of guests that wait for an answer."""
        roles = {role for waiting in self.at_barrier.values() for role in waiting}
        found = [self.group.guests[role] for role in roles]
        found += [guest for guests in self.takers.values() for guest in guests]
        self.at_barrier, self.takers = {}, {}
        return found

    def guest_died(self, guest, who):
        lines = [line for line in guest.console().splitlines() if BAD.search(line)]
        cause = lines[0] if lines else "see its console"
        self.failed(f"{who}the guest died: {cause}", serious=True)
        self.running.clear()

    def answer(self, guest, verb, rest):
        role = guest.role
        if self.alone and (verb == "barrier" or verb == "take" and rest not in self.values):
            guest.say("alone")
        elif verb == "barrier":
            waiting = self.at_barrier.setdefault(rest, set())
            waiting.add(role)
            if len(waiting) == len(self.group.guests):
                del self.at_barrier[rest]
                for each in waiting:
                    self.group.guests[each].say("go")
        elif verb == "put":
            key, _, value = rest.partition(" ")
            self.values[key] = value.strip()
            guest.say("go")
            for waiter in self.takers.pop(key, []):
                waiter.say(f"value {self.values[key]}")
        elif verb == "take":
            if rest in self.values:
                guest.say(f"value {self.values[rest]}")
            else:
                self.takers.setdefault(rest, []).append(guest)
        else:
            guest.say(self.vmctl(*rest.split()))

    def vmctl(self, verb, role):
        guest = self.group.guests.get(role)
        if guest is None:
            return f"value there is no guest {role}"
        if verb in ("kill", "reset"):
            self.switched_off.add(role)
            self.was_switched = True
            guest.kill()
            self.running.discard(role)
            for waiting in self.at_barrier.values():
                waiting.discard(role)
        if verb in ("boot", "reset"):
            guest.boot()
            self.switched_off.discard(role)
            self.boots[role] += 1
            self.start(role)
        return "go"
