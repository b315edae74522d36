# SPDX-License-Identifier: GPL-2.0
"""The test-only module of tests/api, which calls the symbols of ib_cm: built when it changed."""

import fcntl
import os
import shutil
import subprocess
import sys


def add(checkout, vm):
    """Puts the module and the shell functions that use it into the guest's /vm/api."""
    source = os.path.join(checkout, "tests", "api")
    folder = os.path.join(vm, "api")
    os.makedirs(folder)
    shutil.copy2(os.path.join(source, "api.sh"), folder)
    module = build(source, os.path.join(checkout, "out", "api"))
    if module:
        shutil.copy(module, folder)


def build(source, out):
    """The path of the module; None when it does not build, of which its scenarios will tell."""
    os.makedirs(out, exist_ok=True)
    module = os.path.join(out, "ib_cm_api_test.ko")
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
            print("# tests/api does not build:", file=sys.stderr)
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
    return all(
        os.path.getmtime(os.path.join(source, name)) < built for name in os.listdir(source)
    )
