# SPDX-License-Identifier: GPL-2.0
"""The test-only kernel modules: built when they changed, with the shell functions of each."""

import fcntl
import glob
import os
import shutil
import subprocess
import sys

# Folder in tests/ and in the guest's /vm, one of its modules, shell functions.
MODULES = [
    ("api", "ib_cm_api_test.ko", "api.sh"),  # calls the symbols of ib_cm
    ("hca", "ib_loop.ko", "ib.sh"),  # an InfiniBand adapter
    ("bench", "ib_cm_bench.ko", "bench.sh"),  # makes connections and times them
]


def add(checkout, out, vm):
    """Puts the modules and the shell functions that use them into the guest's /vm."""
    for name, file, functions in MODULES:
        source = os.path.join(checkout, "tests", name)
        folder = os.path.join(vm, name)
        os.makedirs(folder)
        shutil.copy2(os.path.join(source, functions), folder)
        built = os.path.join(checkout, out, name)
        if build(source, built, file):
            for module in glob.glob(os.path.join(built, "*.ko")):
                shutil.copy(module, folder)


def build(source, out, name):
    """The path of the module; None when it does not build, of which its scenarios will tell."""
    os.makedirs(out, exist_ok=True)
    module = os.path.join(out, name)
    with open(os.path.join(out, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kdir = os.environ["KDIR"]
        if up_to_date(source, module, kdir):
            return module
        command = ["make", "-C", kdir, f"M={source}", f"MO={out}", "modules"]
        with open(os.path.join(kdir, ".config"), encoding="utf-8") as config:
            if "CONFIG_CC_IS_CLANG=y\n" in config:
                command.append("LLVM=-19")
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            print(f"# tests/{os.path.basename(source)} does not build:", file=sys.stderr)
            print(result.stderr[-4000:], file=sys.stderr)
            if os.path.exists(module):
                os.unlink(module)
            return None
        with open(module + ".for", "w", encoding="utf-8") as file:
            file.write(kdir)
    return module


def up_to_date(source, module, kdir):
    if not os.path.exists(module) or not os.path.exists(module + ".for"):
        return False
    with open(module + ".for", encoding="utf-8") as file:
        if file.read() != kdir:
            return False
    built = os.path.getmtime(module)
    shared = os.path.join(os.path.dirname(source), "common")
    return all(
        os.path.getmtime(os.path.join(folder, name)) < built
        for folder in (source, shared)
        for name in os.listdir(folder)
    )
