# SPDX-License-Identifier: GPL-2.0
"""Follows a section of README.md in a system with systemd. Called by scripts/test-readme.

Every indented line of the section is a command. A comment in quotation marks behind it is what has
to be seen, with "..." for anything; a text that begins with the command's name and a colon is an
error, and the command has to fail with it. What cmstat shows may take a while to come: it is asked
again. "reboot" is a real one, of the same machine with the same disk. "make ..." is for the machine
that builds, and was done before.
"""

import argparse
import os
import re
import select
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "runner"))
from group import BAD  # noqa: E402
from guest import Accelerator  # noqa: E402
from image import build_id  # noqa: E402

SECTION = "## Use it"
BOOT_SECONDS = 180
COMMAND_SECONDS = 90
SHOWS_SECONDS = 40
LOADED = "od -An -tx1 -v -j16 /sys/module/ib_cm/notes/.note.gnu.build-id | tr -d ' \\n'"


class Failed(Exception):
    """The machine does not do what it is told."""


def commands(path):
    """(command, what it has to show or None) of each line."""
    found, inside = [], False
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                inside = line.strip() == SECTION
            elif inside and line.startswith("    "):
                command, _, comment = line.strip().partition(" # ")
                quoted = re.search(r'"(.+)"', comment)
                found.append((command.strip(), quoted[1] if quoted else None))
    return found


def qemu(system, files, serial, more_arguments=""):
    """The machine's command. What is written to its disk lasts as long as this process."""
    return [
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
        "-machine", "q35", *Accelerator.options(), "-smp", "2", "-m", "1024",
        "-kernel", f"{system}/vmlinuz", "-initrd", f"{system}/initrd",
        "-append", "console=ttyS0 tsc=reliable loglevel=5 oops=panic panic=-1 mitigations=off "
        "rcupdate.rcu_cpu_stall_timeout=120 net.ifnames=0 root=/dev/vda rw quiet" + more_arguments,
        "-drive", f"file={system}/disk.img,format=raw,if=virtio,snapshot=on,cache=unsafe",
        "-drive", f"file={files},format=raw,if=virtio,readonly=on",
        # A network without anybody else.
        "-netdev", "user,id=n0,restrict=on", "-device", "virtio-net-pci,netdev=n0,romfile=",
        *serial,
    ]  # fmt: skip


def shell(system, files):
    """For a person, on this terminal, until the machine is switched off."""
    print("A system with systemd; its shell takes a minute. Then 'cd /root/ib_cm', the folder that")
    print("holds out. 'poweroff' ends it, and so does Ctrl-A X.", flush=True)
    serial = ["-serial", "mon:stdio", "-serial", "null"]
    return subprocess.call(qemu(system, files, serial, " systemd.debug_shell=ttyS0"))


class Machine:
    def __init__(self, system, files, folder):
        self.console_path = os.path.join(folder, "console")
        path = os.path.join(folder, "control")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(1)
        serial = [
            "-serial", f"file:{self.console_path}",
            "-chardev", f"socket,id=control,path={path}", "-serial", "chardev:control",
        ]  # fmt: skip
        command = qemu(system, files, serial)
        with open(os.path.join(folder, "qemu"), "w", encoding="utf-8") as log:
            log.write(" ".join(command) + "\n")
            log.flush()
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        listener.settimeout(30)
        try:
            self.channel, _ = listener.accept()
        except TimeoutError as error:
            raise Failed(f"QEMU did not start, see {log.name}") from error
        listener.close()
        self.log = open(os.path.join(folder, "log"), "w", encoding="utf-8")
        self.buffer = ""

    def until(self, pattern, seconds):
        """What comes before the pattern, and the match."""
        deadline = time.monotonic() + seconds
        while not (match := re.search(pattern, self.buffer)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.channel], [], [], left)[0]:
                raise Failed(f"nothing more comes within {seconds} s")
            data = self.channel.recv(4096)
            if not data:
                raise Failed("the machine is gone")
            text = data.decode(errors="replace").replace("\r", "")
            self.log.write(text)
            self.buffer += text
        before = self.buffer[: match.start()]
        self.buffer = self.buffer[match.end() :]
        return before, match

    def ready(self):
        self.until(r"(^|\n)ready\n", BOOT_SECONDS)

    def run(self, command):
        """Output and status."""
        self.log.write(f"# {command}\n")
        self.log.flush()
        self.channel.sendall(command.encode() + b"\n")
        output, match = self.until(r"\n\036(\d+)\n", COMMAND_SECONDS)
        return output, int(match[1])

    def reboot(self):
        """What it still says on the way down is lost."""
        self.log.write("# reboot\n")
        self.channel.sendall(b"reboot\n")
        self.ready()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Report:
    def __init__(self):
        self.number, self.bad = 0, 0

    def check(self, good, text, why=""):
        self.number += 1
        self.bad += not good
        reason = f" ({why})" if why and not good else ""
        print(f"{'ok' if good else 'not ok'} {self.number} {text}{reason}", flush=True)


def follow(machine, command, shows, report):
    """One command, as often as its reader would look."""
    wanted = None
    if shows:
        wanted = ".*".join(re.escape(part) for part in shows.split("..."))
    fails = bool(shows) and shows.startswith(f"{command.split()[0]}:")
    deadline = time.monotonic() + (SHOWS_SECONDS if command.startswith("cmstat") else 0)
    while True:
        output, status = machine.run(command)
        good = (status != 0) == fails and (not wanted or bool(re.search(wanted, output)))
        if good or time.monotonic() >= deadline:
            break
        time.sleep(0.5)
    said = " / ".join(output.split("\n")[-4:]).strip()
    report.check(good, f"{command}" + (f": {shows}" if shows else ""), f"status {status}: {said}")


def play(machine, readme, ours, theirs, report):
    machine.ready()
    kernels_own, _ = machine.run("modinfo -n ib_cm")
    report.check("/updates/" not in kernels_own, "before: the module is the kernel's own")
    expected = None
    for command, shows in readme:
        if command.startswith("make "):
            continue
        if command == "reboot":
            start = time.monotonic()
            machine.reboot()
            report.check(True, f"reboot # {time.monotonic() - start:.0f} s")
            loaded, _ = machine.run("test -d /sys/module/ib_cm && echo yes")
            report.check("yes" not in loaded, "nothing has loaded ib_cm yet")
            continue
        follow(machine, command, shows, report)
        if command.startswith("dpkg"):
            expected = (ours, "this module") if " -i " in command else (theirs, "the C module")
        if command.startswith("modprobe rdma_cm"):
            loaded, _ = machine.run(LOADED)
            report.check(
                loaded.strip() == expected[0], f"it is {expected[1]}, build id {expected[0]}",
                f"it is {loaded.strip()}",
            )  # fmt: skip
    # Whatever the section says, it has to do what it is there for.
    kinds = [command.split()[0] for command, _ in readme]
    report.check(kinds.count("reboot") >= 1 and "cmstat" in kinds, "it boots and asks cmstat")
    report.check(expected and expected[0] == theirs, "it ends with the C module")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("system")
    parser.add_argument("files", help="tar file with the folder that README.md speaks of")
    parser.add_argument("folder", help="for logs")
    parser.add_argument("ours")
    parser.add_argument("theirs")
    parser.add_argument("--shell", action="store_true", help="for a person instead")
    options = parser.parse_args()
    if options.shell:
        return shell(options.system, options.files)
    report = Report()
    machine = None
    start = time.monotonic()
    try:
        machine = Machine(options.system, options.files, options.folder)
        play(
            machine, commands("/src/README.md"), build_id(options.ours),
            build_id(options.theirs), report,
        )  # fmt: skip
    except Failed as error:
        report.check(False, f"README.md is followed to its end: {error}")
    finally:
        if machine:
            machine.kill()
    with open(f"{options.folder}/console", encoding="utf-8", errors="replace") as file:
        complaints = [line.strip() for line in file if BAD.search(line)]
    report.check(not complaints, "the kernel complains of nothing", "; ".join(complaints[:3]))
    print(f"1..{report.number}\n# {time.monotonic() - start:.0f} s")
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main())
