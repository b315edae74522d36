# SPDX-License-Identifier: GPL-2.0
"""The test-only kernel modules and the shell functions of each.

What is built is kept in the cache under a hash of what it is built from, and serves every checkout
with the same sources: compiling takes minutes.
"""

import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

# Folder in tests/ and in the guest's /vm, shell functions.
MODULES = [
    ("api", "api.sh"),  # calls the symbols of ib_cm
    ("hca", "ib.sh"),  # an InfiniBand adapter
    ("bench", "bench.sh"),  # makes connections and times them
]
CACHE = "/cache/test-modules"
# Three for each kernel and revision: enough for some revisions.
KEEP = 30


def add(checkout, vm):
    """Puts the modules and the shell functions that use them into the guest's /vm."""
    for name, functions in MODULES:
        source = os.path.join(checkout, "tests", name)
        folder = os.path.join(vm, name)
        os.makedirs(folder)
        shutil.copy2(os.path.join(source, functions), folder)
        # Without modules the scenarios that need them say so.
        for module in glob.glob(os.path.join(built(source), "*.ko")):
            shutil.copy(module, folder)


def built(source):
    """The folder with the modules; it holds none when they do not build."""
    kdir = os.environ["KDIR"]
    kept = os.path.join(CACHE, key(source, kdir))
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(kept):
            build(source, kdir, kept)
            remove_old()
    if os.path.isdir(kept):
        os.utime(kept)
    return kept


def key(source, kdir):
    """What the modules depend on: the kernel, whose path holds a hash of its own, and the files."""
    shared = os.path.join(os.path.dirname(source), "common")
    content = hashlib.sha256(os.path.realpath(kdir).encode())
    for folder in (source, shared):
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                content.update(f"\0{name}\0".encode())
                with open(path, "rb") as file:
                    content.update(file.read())
    return f"{os.path.basename(source)}-{content.hexdigest()[:16]}"


def build(source, kdir, kept):
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="new-") as folder:
        out = os.path.join(folder, "out")
        os.mkdir(out)
        command = ["make", "-C", kdir, f"M={source}", f"MO={out}", f"-j{os.cpu_count()}", "modules"]
        with open(os.path.join(kdir, ".config"), encoding="utf-8") as config:
            if "CONFIG_CC_IS_CLANG=y\n" in config:
                command.append("LLVM=-19")
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            print(f"# tests/{os.path.basename(source)} does not build:", file=sys.stderr)
            print(result.stderr[-4000:], file=sys.stderr)
            return
        modules = os.path.join(folder, "modules")
        os.mkdir(modules)
        for module in glob.glob(os.path.join(out, "*.ko")):
            shutil.copy(module, modules)
        os.rename(modules, kept)


def remove_old():
    folders = [path for path in glob.glob(f"{CACHE}/*") if os.path.isdir(path)]
    for path in sorted(folders, key=os.path.getmtime)[:-KEEP]:
        shutil.rmtree(path)
