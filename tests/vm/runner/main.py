# SPDX-License-Identifier: GPL-2.0
"""Runs guest scenarios and prints KTAP. Called by scripts/vm inside the build root."""

import argparse
import os
import queue
import re
import shutil
import sys
import tempfile
import threading
import time
import traceback

import pace
import scenario as scenarios
from group import Group
from guest import Guest, GuestDied
from image import Image

KEEP_RUNS = 10


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/vm")
    parser.add_argument("--guest", required=True, help="folder of the guest's image")
    parser.add_argument("--kernel", choices=sorted(pace.FACTORS), default="stock")
    parser.add_argument("--out", default="out", help="folder of the module, in the checkout")
    parser.add_argument("--module", choices=["rust", "c"], default="rust")
    parser.add_argument("--jobs", type=int, default=2, help="guests at the same time")
    parser.add_argument("--long", action="store_true", help="the long scenarios too")
    parser.add_argument("--selection", action="store_true", help="only those with 'debug: yes'")
    parser.add_argument("--retry", action="store_true", help="run once more what fails once")
    parser.add_argument("--result", help="file for 'passed failed skipped'")
    parser.add_argument("--shell", action="store_true", help="a guest with a shell instead")
    parser.add_argument("--transcript", action="store_true", help="print only what is said")
    parser.add_argument("patterns", nargs="*", help="names of scenarios, as globs")
    return parser.parse_args()


def new_run_folder(checkout):
    """out/vm/RUN, with out/vm/last pointing to it; the oldest ones are removed."""
    base = os.path.join(checkout, "out", "vm")
    os.makedirs(base, exist_ok=True)
    folder = tempfile.mkdtemp(prefix=time.strftime("%m%d-%H%M%S-"), dir=base)
    os.chmod(folder, 0o755)
    link = os.path.join(base, f".last-{os.path.basename(folder)}")
    os.symlink(os.path.basename(folder), link)
    os.rename(link, os.path.join(base, "last"))
    runs = sorted(name for name in os.listdir(base) if name[0].isdigit())
    for name in runs[:-KEEP_RUNS]:
        shutil.rmtree(os.path.join(base, name), ignore_errors=True)
    for name in runs:
        # Left by a run that was killed; no run takes three hours.
        initrd = os.path.join(base, name, "initrd")
        if os.path.exists(initrd) and time.time() - os.path.getmtime(initrd) > 3 * 3600:
            os.unlink(initrd)
    return folder


class Runner:
    def __init__(self, image, folder, module, kernel, transcript, retry):
        self.image, self.folder, self.module, self.kernel = image, folder, module, kernel
        self.results = []
        # In a run of many, one that fails may try again; they are named at the end.
        self.retry = retry
        self.unstable = []
        self.transcript = transcript
        self.lock = threading.Lock()
        self.groups = 0
        self.leaks = 0  # guests that have lost memory

    def report(self, result):
        with self.lock:
            self.results.append(result)
            number = len(self.results)
            name = result.scenario.name
            if self.transcript:
                for reason in result.reasons:
                    print(f"FAILED: {reason}", flush=True)
                return
            if result.outcome == "skipped":
                print(f"ok {number} {name} # SKIP {'; '.join(result.reasons)}", flush=True)
                return
            print(f"    KTAP version 1\n    # Subtest: {name}")
            for line in numbered(result):
                print(f"    {line}")
            for reason in result.reasons:
                print(f"    # failed: {reason}")
            state = "ok" if result.outcome == "ok" else "not ok"
            print(f"{state} {number} {name}: {result.scenario.title} # {result.seconds:.0f} s")
            if state != "ok":
                print(f"# logs: {self.folder.replace('/src/', '', 1)}/{name}.*.log")
            sys.stdout.flush()

    def new_group(self, scenario):
        with self.lock:
            self.groups += 1
            folder = os.path.join(self.folder, f"guest{self.groups}")
        os.makedirs(folder)
        group = Group(self.image, folder, scenario.shape)
        try:
            group.boot()
        except GuestDied as error:
            # Nothing of ours has run yet: the emulated machine is what failed.
            with self.lock:
                print(f"# {scenario.name}: {error}; booting once more", flush=True)
            group = Group(self.image, folder, scenario.shape)
            group.boot()
        return group

    def run_one(self, group, scenario):
        """Returns the group, which another scenario may use."""
        if group and (scenario.fresh or scenario.shape != group.shape):
            self.close(group)
            group = None
        for attempt in (1, 2):
            try:
                group = group or self.new_group(scenario)
                result = group.run(scenario, self.module)
            except GuestDied as error:
                result = scenarios.Result(scenario, "failed", reasons=[str(error)])
                self.report(result)
                return None
            if scenario.finds:
                result.reasons += group.close() or []
                scenarios.judge_findings(result)
                break
            if result.outcome == "ok" or attempt == 2:
                break
            if group.last_died_of_int3:
                why = "the emulator died with 'Oops: int3'"
            elif self.retry and (result.foreign or not result.serious):
                # Emulated processors and soft-RoCE lose packets and time. What the kernel
                # complains of, what hangs and what dies is never excused, unless the scenario
                # names it as a fault of other code that the C module meets too.
                why = f"failed ({'; '.join(result.reasons)})"
                self.keep_logs(scenario)
                self.unstable.append(scenario.name)
            else:
                break
            with self.lock:
                print(f"# {scenario.name}: {why}, running it again in a fresh guest", flush=True)
            self.close(group)
            group = None
        self.report(result)
        if not group.reusable:
            self.close(group)
            return None
        return group

    def close(self, group):
        leaks = group.close()
        if leaks is None:
            return
        after = " ".join(group.ran)
        with self.lock:
            if not leaks:
                print(f"# no leak after {after}", flush=True)
                return
            self.leaks += 1
            path = f"{group.folder}/leaks.log"
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(leaks) + "\n")
            print(f"not ok - memory is lost after {after}")
            print(f"# log: {path.replace('/src/', '', 1)}", flush=True)

    def keep_logs(self, scenario):
        """The logs of a first attempt stay beside those of the second."""
        for name in os.listdir(self.folder):
            if name.startswith(f"{scenario.name}.") and name.endswith(".log"):
                path = os.path.join(self.folder, name)
                os.rename(path, path.removesuffix(".log") + ".first.log")

    def work(self, jobs):
        group = None
        while True:
            try:
                scenario = jobs.get_nowait()
            except queue.Empty:
                break
            try:
                group = self.run_one(group, scenario)
            except Exception as error:
                # What the runner itself does wrong may not pass for a scenario less.
                traceback.print_exc()
                reason = f"the runner itself fails: {error!r}"
                self.report(scenarios.Result(scenario, "failed", reasons=[reason]))
                if group:
                    group.kill()
                group = None
        if group:
            self.close(group)

    def run_all(self, chosen, workers):
        runnable = []
        for each in chosen:
            if each.only and each.only != self.module:
                reason = f"only for the {each.only} module"
                self.report(scenarios.Result(each, "skipped", reasons=[reason]))
            elif each.kernel and each.kernel != self.kernel:
                reason = f"only on the {each.kernel} kernel"
                self.report(scenarios.Result(each, "skipped", reasons=[reason]))
            else:
                runnable.append(each)
        for size in (1, 2):
            jobs = queue.Queue()
            # Same shapes one after the other, the longest first.
            of_size = [each for each in runnable if each.guests == size]
            for each in sorted(of_size, key=lambda s: (s.fresh, *s.shape, -s.timeout)):
                jobs.put(each)
            count = max(1, min(workers // size, jobs.qsize()))
            threads = [threading.Thread(target=self.work, args=(jobs,)) for _ in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()


def numbered(result):
    """The subtests as one list, which two guests counted each for itself."""
    number = 0
    for role, line in result.lines:
        prefix = f"{role}: " if result.scenario.guests == 2 else ""
        match = re.match(r"(ok|not ok) \d+ (.*)", line)
        if match:
            number += 1
            yield f"{match[1]} {number} {prefix}{match[2]}"
        elif not line.startswith("1.."):
            yield f"# {prefix}{line.removeprefix('# ')}"
    yield f"1..{number}"


def main():
    options = arguments()
    checkout = "/src"
    source = os.path.join(checkout, "tests", "vm", "scenarios")
    chosen = scenarios.select(source, options.patterns, options.long)
    if not options.patterns:
        chosen = [each for each in chosen if each.kernel in ("", options.kernel)]
    if options.selection:
        chosen = [each for each in chosen if each.debug]
    if not chosen and not options.shell:
        sys.exit(f"no scenario in tests/vm/scenarios matches {' '.join(options.patterns)}")
    pace.choose(options.kernel)
    modules = {"c": os.path.join(options.guest, "ib_cm.ko")}
    ours = os.path.join(checkout, options.out, "ib_cm.ko")
    if os.path.exists(ours):
        modules["rust"] = ours
    needed = {kind for each in chosen for kind in each.kinds(options.module)} | {options.module}
    if "rust" in needed and "rust" not in modules:
        sys.exit(f"{options.out}/ib_cm.ko does not exist: run 'make' first, or choose CM=c")
    folder = new_run_folder(checkout)
    image = Image(options.guest, checkout, folder, modules, options.module)
    try:
        if options.shell:
            return Guest(image, folder).shell()
        if not options.transcript:
            print(f"KTAP version 1\n1..{len(chosen)}")
            build_id = image.build_ids[options.module]
            print(f"# module under test: {options.module}, build id {build_id}")
            print(f"# kernel: {options.kernel}", flush=True)
        runner = Runner(
            image, folder, options.module, options.kernel, options.transcript, options.retry
        )
        runner.run_all(chosen, options.jobs)
    finally:
        image.remove()
    counts = {state: 0 for state in ("ok", "failed", "skipped")}
    for result in runner.results:
        counts[result.outcome] += 1
    counts["failed"] += runner.leaks
    missing = len(chosen) - len(runner.results)
    if missing > 0:
        print(f"# {missing} scenarios have no result: the runner itself is broken")
        counts["failed"] += missing
    if not options.transcript:
        if runner.unstable:
            print(f"# at the second attempt, see their .first.log: {' '.join(runner.unstable)}")
        print("# scenarios: {ok} passed, {failed} failed, {skipped} skipped".format(**counts))
    if options.result:
        with open(options.result, "w", encoding="utf-8") as file:
            file.write(f"{counts['ok']} {counts['failed']} {counts['skipped']}\n")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
