# SPDX-License-Identifier: GPL-2.0
"""What a guest boots: Debian's kernel, and an initrd of two parts.

The large part (root file system, kernel modules) comes from the set-up. The small one holds
what a run tests: ib_cm modules, scenarios, helper programs. The kernel unpacks one after the
other, so the large one is never made again; concatenating them costs a copy.
"""

import os
import re
import shutil
import subprocess
import sys

import api_module


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
        self.initrd = os.path.join(run_folder, "initrd")
        self.build_ids = {kind: build_id(path) for kind, path in modules.items()}
        tree = os.path.join(run_folder, "overlay")
        vm = os.path.join(tree, "vm")
        source = os.path.join(checkout, "tests", "vm")
        os.makedirs(vm)
        for name in ("lib.sh", "crash.sh", "guest/init"):
            shutil.copy2(os.path.join(source, name), vm)
        os.chmod(os.path.join(vm, "init"), 0o755)
        shutil.copy2(os.path.join(checkout, "scripts", "install"), vm)
        shutil.copytree(os.path.join(source, "scenarios"), os.path.join(vm, "scenarios"))
        shutil.copytree(build_tools(source, checkout), os.path.join(vm, "tools"))
        api_module.add(checkout, vm)
        for kind, path in modules.items():
            folder = os.path.join(vm, "modules", kind)
            os.makedirs(folder)
            shutil.copy(path, os.path.join(folder, "ib_cm.ko"))
            with open(os.path.join(folder, "build-id"), "w", encoding="utf-8") as file:
                file.write(self.build_ids[kind] + "\n")
        with open(os.path.join(vm, "default-module"), "w", encoding="utf-8") as file:
            file.write(default + "\n")
        self._concatenate(os.path.join(guest_folder, "base.cpio"), tree)
        shutil.rmtree(tree)

    def _concatenate(self, base, tree):
        names = subprocess.run(["find", "."], cwd=tree, check=True, capture_output=True).stdout
        archive = subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet", "--owner=0:0"],
            cwd=tree, input=names, check=True, capture_output=True,
        ).stdout  # fmt: skip
        shutil.copyfile(base, self.initrd)
        with open(self.initrd, "ab") as file:
            file.write(archive)

    def remove(self):
        """The initrd is large and of no use after the run."""
        if os.path.exists(self.initrd):
            os.unlink(self.initrd)


def build_tools(source, checkout):
    """Compiles tests/vm/tools/*.c that changed; the build root has the guest's libraries."""
    folder = os.path.join(checkout, "out", "tools")
    os.makedirs(folder, exist_ok=True)
    tools = os.path.join(source, "tools")
    for name in sorted(os.listdir(tools)):
        if not name.endswith(".c"):
            if name.endswith(".py"):
                shutil.copy2(os.path.join(tools, name), folder)
            continue
        program = os.path.join(folder, name.removesuffix(".c"))
        path = os.path.join(tools, name)
        if os.path.exists(program) and os.path.getmtime(program) > os.path.getmtime(path):
            continue
        command = [
            "gcc", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program, path,
            "-lrdmacm", "-libverbs",
        ]  # fmt: skip
        if subprocess.call(command) != 0:
            sys.exit(f"tests/vm/tools/{name} does not compile")
    return folder
