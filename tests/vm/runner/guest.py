# SPDX-License-Identifier: GPL-2.0
"""One QEMU guest and the line protocol on its second serial port.

The guest says (see guest/init and lib.sh):
    ready RELEASE       it has booted and waits for a command
    ktap LINE           a line of KTAP
    log LINE            output of the scenario, for its log file
    klog LINE           a message of the guest's kernel since the scenario began
    done STATUS         the scenario ended: its exit status, or "unload"
    leak LINE           of a report on memory that nothing points to
    leaks WORD          the end of that report: "searched", or "unknown" without kmemleak
    barrier NAME, put KEY VALUE, take KEY, vmctl VERB ROLE
                        a question of the scenario; the runner answers with one line; it is
                        "alone" when the other guest is waited for, and has failed and ended
The runner says:
    run NAME MODULE SECONDS GUESTS BOOT
    leaks
    poweroff
"""

import os
import queue
import select
import socket
import subprocess
import threading
import time

import pace

MACS = {"a": "52:54:00:00:00:0a", "b": "52:54:00:00:00:0b"}
BOOT_SECONDS = 180


class GuestDied(Exception):
    """The guest ended, or never came up."""


class Accelerator:
    """KVM where it really works, which only a boot can tell; TCG elsewhere.

    That KVM failed is remembered in the cache until the machine is booted again.
    """

    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        marker = f"/cache/no-kvm-{file.read().strip()}"
    kvm = os.access("/dev/kvm", os.R_OK | os.W_OK) and not os.path.exists(marker)

    @classmethod
    def give_up_kvm(cls):
        cls.kvm = False
        with open(cls.marker, "w", encoding="ascii"):
            pass

    @classmethod
    def options(cls, emulated=False):
        if cls.kvm and not emulated:
            return ["-accel", "kvm", "-cpu", "host"]
        return ["-accel", "tcg,thread=multi", "-cpu", "max"]


class Guest:
    def __init__(
        self, image, folder, role="a", cpus=2, memory=2048, network=False, counted=False, events=None
    ):
        self.image, self.folder, self.role = image, folder, role
        self.cpus, self.memory, self.network = cpus, memory, network
        self.counted = counted
        # Lines of all guests of a group go to one queue, as (guest, verb, rest); a guest that
        # ended says (guest, "eof", "").
        self.events = events or queue.Queue()
        self.boots = 0
        self.process = None
        self.channel = None

    def console_path(self):
        return f"{self.folder}/{self.role}{self.boots}.console"

    def command(self, extra):
        options = [
            "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot", "-machine", "q35", *Accelerator.options(self.counted),
            "-smp", str(self.cpus), "-m", str(self.memory + self.image.more_memory),
            "-kernel", self.image.kernel, *self.image.options(),
        ]  # fmt: skip
        if self.network:
            other = "b" if self.role == "a" else "a"
            # Unix sockets: nothing is lost between the guests, and no port is taken on the host.
            options += [
                "-netdev",
                f"dgram,id=n0,local.type=unix,local.path={self.folder}/{self.role}.net,"
                f"remote.type=unix,remote.path={self.folder}/{other}.net",
                "-device",
                f"virtio-net-pci,netdev=n0,mac={MACS[self.role]},romfile=",
            ]
        if self.counted:
            path = f"{self.folder}/{self.role}.count"
            options += ["-plugin", f"{self.image.counter()},out={path}"]
        return options + extra

    def kernel_arguments(self, mode):
        # tsc=reliable: the watchdog's static key can kill a guest under TCG.
        # loglevel=5: warnings and worse reach the console, which is slow.
        return (
            "console=ttyS0 tsc=reliable loglevel=5 oops=panic panic=-1 mitigations=off "
            f"rcupdate.rcu_cpu_stall_timeout=120 workqueue.watchdog_thresh={pace.scaled(30)} "
            f"net.ifnames=0 {self.image.root} "
            f"vm.role={self.role} vm.mode={mode} vm.slow={pace.factor} vm.minutes={pace.minutes}"
        )

    def boot(self):
        """Starts QEMU and returns when the guest waits for commands."""
        while True:
            try:
                self._boot_once()
                return
            except GuestDied:
                self.kill()
                if self.counted or not Accelerator.kvm:
                    raise
                Accelerator.give_up_kvm()

    def _boot_once(self):
        self.boots += 1
        path = f"{self.folder}/{self.role}{self.boots}.control"
        for stale in (path, f"{self.folder}/{self.role}.net"):
            if os.path.exists(stale):
                os.unlink(stale)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(1)
        listener.settimeout(30)
        command = self.command([
            "-append", self.kernel_arguments("test"),
            "-serial", f"file:{self.console_path()}",
            "-chardev", f"socket,id=control,path={path}", "-serial", "chardev:control",
        ])  # fmt: skip
        log = open(f"{self.folder}/{self.role}{self.boots}.qemu", "w", encoding="utf-8")
        log.write(" ".join(command) + "\n")
        log.flush()
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        log.close()
        try:
            self.channel, _ = listener.accept()
        except TimeoutError as error:
            raise GuestDied(f"QEMU did not start, see {log.name}") from error
        finally:
            listener.close()
        self.wait_until_ready()

    def wait_until_ready(self):
        quick = Accelerator.kvm and not self.counted
        limit = pace.scaled(40 if quick else BOOT_SECONDS)
        deadline = time.monotonic() + limit
        while not select.select([self.channel], [], [], 1)[0]:
            if time.monotonic() > deadline or self.internal_error():
                raise GuestDied(
                    f"guest {self.role} did not boot within {limit} s, see {self.console_path()}"
                )
        buffer = self.channel.makefile("rb")
        if not buffer.readline().startswith(b"ready"):
            raise GuestDied(f"guest {self.role} did not boot, see {self.console_path()}")
        threading.Thread(target=self._read, args=(buffer, self.boots), daemon=True).start()

    def internal_error(self):
        """KVM met an instruction that it cannot run; QEMU then stops, and stays."""
        with open(f"{self.folder}/{self.role}{self.boots}.qemu", encoding="utf-8") as file:
            return "KVM internal error" in file.read()

    def _read(self, buffer, boot):
        try:
            for line in buffer:
                verb, _, rest = line.decode(errors="replace").rstrip("\r\n").partition(" ")
                self.events.put((self, boot, verb, rest))
        except OSError:
            pass
        self.events.put((self, boot, "eof", ""))

    def say(self, text):
        try:
            self.channel.sendall(text.encode() + b"\n")
        except OSError:
            pass  # that it ended is told by the reading side

    def kill(self):
        """As a power failure: nothing is said to anyone."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
        if self.channel:
            self.channel.close()
            self.channel = None

    def power_off(self):
        if self.process and self.process.poll() is None and self.channel:
            self.say("poweroff")
            try:
                self.process.wait(pace.scaled(20))
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def console(self):
        try:
            with open(self.console_path(), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def shell(self):
        """A guest with its console on this terminal."""
        command = self.command([
            "-append", self.kernel_arguments("shell"), "-serial", "mon:stdio",
        ])  # fmt: skip
        return subprocess.call(command)

