# SPDX-License-Identifier: GPL-2.0
"""What a guest boots: a kernel, and a root file system of two parts.

The large part (root file system, kernel modules) comes from the set-up. The small one holds
what a run tests: ib_cm modules, scenarios, helper programs. With Debian's kernel both are an
initrd, which the kernel unpacks one after the other, so the large one is never made again;
concatenating them costs a copy. The debug kernel would take most of a minute to unpack it: there
the large part is a disk, to which no guest really writes, and the small one a tar file as a
second disk, which guest/boot-from-disk in the large one unpacks.
"""

import os
import re
import shutil
import subprocess
import sys

import test_modules


def build_id(path):
    notes = subprocess.run(
        ["readelf", "-n", path], check=True, capture_output=True, text=True
    ).stdout
    match = re.search(r"Build ID: ([0-9a-f]+)", notes)
    if not match:
        sys.exit(f"{path} has no build id: it is no module built by the kernel's build")
    return match[1]


class Image:
    def __init__(self, guest_folder, checkout, run_folder, modules, default):
        """modules: {"rust": path, "c": path}"""
        self.kernel = os.path.join(guest_folder, "vmlinuz")
        self.disk = os.path.join(guest_folder, "base.img")
        self.made = os.path.join(run_folder, "initrd")  # what a run makes, and removes
        if os.path.exists(self.disk):
            self.root = "root=/dev/vda rootfstype=ext2 rw init=/usr/sbin/boot-from-disk"
            # KASAN shadows all memory, and keeps what was freed for a while.
            self.more_memory = 1024
        else:
            self.disk = None
            self.root = "rdinit=/vm/init"
            self.more_memory = 0
        self.build_ids = {kind: build_id(path) for kind, path in modules.items()}
        self.checkout = checkout
        tree = os.path.join(run_folder, "overlay")
        vm = os.path.join(tree, "vm")
        source = os.path.join(checkout, "tests", "vm")
        os.makedirs(vm)
        for name in ("lib.sh", "crash.sh", "forge.sh", "storage.sh", "storm.sh", "guest/init"):
            shutil.copy2(os.path.join(source, name), vm)
        os.chmod(os.path.join(vm, "init"), 0o755)
        shutil.copy2(os.path.join(checkout, "scripts", "install"), vm)
        shutil.copytree(os.path.join(source, "scenarios"), os.path.join(vm, "scenarios"))
        shutil.copytree(build_tools(source, checkout), os.path.join(vm, "tools"))
        test_modules.add(checkout, vm)
        add_packages(checkout, vm)
        for kind, path in modules.items():
            folder = os.path.join(vm, "modules", kind)
            os.makedirs(folder)
            # Debug information is most of the file, and no guest looks at it.
            subprocess.run(
                ["strip", "--strip-debug", "-o", os.path.join(folder, "ib_cm.ko"), path],
                check=True,
            )
            with open(os.path.join(folder, "build-id"), "w", encoding="utf-8") as file:
                file.write(self.build_ids[kind] + "\n")
        with open(os.path.join(vm, "default-module"), "w", encoding="utf-8") as file:
            file.write(default + "\n")
        if self.disk:
            subprocess.run(["tar", "-cf", self.made, "-C", tree, "vm"], check=True)
        else:
            self._concatenate(os.path.join(guest_folder, "base.cpio"), tree)
        shutil.rmtree(tree)

    def counter(self):
        """The plugin of the emulator that counts instructions."""
        plugin = os.path.join(self.checkout, "out", "tools", "count.so")
        source = os.path.join(self.checkout, "tests", "vm", "count", "count.c")
        compile_changed(plugin, source, "-shared", "-fPIC")
        return plugin

    def options(self):
        """Of QEMU."""
        if not self.disk:
            return ["-initrd", self.made]
        # Writes go to a file of this guest, which vanishes with it.
        return [
            "-drive", f"file={self.disk},format=raw,if=virtio,snapshot=on",
            "-drive", f"file={self.made},format=raw,if=virtio,readonly=on",
        ]  # fmt: skip

    def _concatenate(self, base, tree):
        names = subprocess.run(["find", "."], cwd=tree, check=True, capture_output=True).stdout
        archive = subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet", "--owner=0:0"],
            cwd=tree, input=names, check=True, capture_output=True,
        ).stdout  # fmt: skip
        shutil.copyfile(base, self.made)
        with open(self.made, "ab") as file:
            file.write(archive)

    def remove(self):
        """The initrd is large and of no use after the run."""
        if os.path.exists(self.made):
            os.unlink(self.made)


def add_packages(checkout, vm):
    """What make cmstat and make deb have built, if they were run: few scenarios need it."""
    program = os.path.join(checkout, "out", "cmstat")
    if os.path.exists(program):
        shutil.copy2(program, vm)
    packages = os.path.join(checkout, "out", "deb")
    if os.path.exists(packages):
        shutil.copytree(packages, os.path.join(vm, "deb"))


def build_tools(source, checkout):
    """Compiles tests/vm/tools/*.c that changed; the build root has the guest's libraries."""
    folder = os.path.join(checkout, "out", "tools")
    os.makedirs(folder, exist_ok=True)
    tools = os.path.join(source, "tools")
    for name in sorted(os.listdir(tools)):
        if not name.endswith(".c"):
            if name.endswith((".py", ".txt")):
                shutil.copy2(os.path.join(tools, name), folder)
            continue
        program = os.path.join(folder, name.removesuffix(".c"))
        compile_changed(program, os.path.join(tools, name), "-lrdmacm", "-libverbs")
    return folder


def compile_changed(program, source, *flags):
    """Compiles a file of C that is newer than its program."""
    if os.path.exists(program) and os.path.getmtime(program) > os.path.getmtime(source):
        return
    command = [
        "gcc", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program, source,
        *flags,
    ]  # fmt: skip
    if subprocess.call(command) != 0:
        sys.exit(f"{source} does not compile")
