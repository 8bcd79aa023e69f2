#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the kernel module for Debian's kernels, and tests it in QEMU. Installs nothing, and needs no root.

check.py [DIRECTORY]   fetches kernels, their headers and QEMU into DIRECTORY (build/kernel), where a later run
                       finds them; builds the module and the programs of guest/; boots each kernel with them.
                       Ends in "N passed, N failed". A splat in the kernel's log is a failure.
check.py self-test     proves that the log of a guest can fail

Without apt, or where it does not have a package, a line says so, and the exit status is 77.
"""

import glob
import os
import platform
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SKIPPED = 77

# The packages that mean "the newest of its kind". The first has to be there.
KERNELS = ["linux-image-cloud-amd64", "linux-image-6.12-cloud-amd64"]
# What the guest runs, one after the other, and what the machine needs to run the guest.
PROGRAMS = ["watch", "workers", "stress", "fuzz"]
TOOLS = ["qemu-system-x86", "busybox-static", "cpio"]
# Ends a guest that hangs. The guest is not measured.
LIMIT_S = 1200

SPLAT = re.compile(r"Oops|BUG[: ]|WARNING:|INFO: task .* blocked|general protection|Kernel panic|refcount_t:|"
                   r"detected stall")


class Skip(Exception):
    pass


def say(text):
    print(text, flush=True)


def run(*command, **options):
    """What the command prints; its complaints and an exit here if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# --- packages -------------------------------------------------------------------------------------


def ask_apt(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout if done.returncode == 0 else ""


def release_of(meta):
    """The kernel that a package of no content of its own stands for; None where apt has none."""
    found = re.search(r"Depends: linux-image-(\S+)", ask_apt("apt-cache", "depends", meta))
    return found and found[1]


def with_missing(packages):
    """The packages, and those they need that the machine lacks."""
    plan = ask_apt("apt-get", "install", "--simulate", "--reinstall", "--no-install-recommends", *packages)
    return sorted(set(re.findall(r"^Inst (\S+)", plan, re.MULTILINE)))


def fetch(work, name, packages):
    """Unpacks the packages once; returns the folder in which they are."""
    root = os.path.join(work, name)
    stamp = os.path.join(root, "complete")
    if os.path.exists(stamp):
        return root
    if not packages:
        raise Skip(f"apt cannot find what {name} needs")
    say(f"fetching {len(packages)} packages for {name}")
    shutil.rmtree(root, ignore_errors=True)
    archives = os.path.join(root, "deb")
    os.makedirs(archives)
    done = subprocess.run(["apt-get", "download", *packages], cwd=archives, capture_output=True, text=True)
    if done.returncode:
        raise Skip(f"apt-get download failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    for archive in sorted(glob.glob(archives + "/*.deb")):
        run("dpkg-deb", "-x", archive, root)
    shutil.rmtree(archives)
    write(stamp, "\n".join(packages) + "\n")
    return root


def packages_of(release):
    """The kernel, and what a module of it is built with."""
    headers = [one for one in with_missing([f"linux-headers-{release}"]) if re.match(r"linux-(headers|kbuild)-", one)]
    return headers and [f"linux-image-{release}", *headers]


# --- build ----------------------------------------------------------------------------------------


def copy_changed(sources, folder):
    """So that make builds only what has changed."""
    os.makedirs(folder, exist_ok=True)
    for path in sources:
        copy = os.path.join(folder, os.path.basename(path))
        if not os.path.exists(copy) or read(copy) != read(path):
            shutil.copyfile(path, copy)


def build_module(work, root, release):
    headers = os.path.join(root, "usr/src", f"linux-headers-{release}")
    makefile = os.path.join(headers, "Makefile")
    write(makefile, read(makefile).replace("include /usr/src", f"include {root}/usr/src"))
    folder = os.path.join(work, "module-" + release)
    copy_changed(glob.glob(ROOT + "/kernel/*.[ch]") + [ROOT + "/kernel/Kbuild"], folder)
    said = run("make", "-s", "-C", headers, f"M={folder}", "W=1", "KCFLAGS=-Werror",
               "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules")
    for line in said.splitlines():
        say(line)
    return os.path.join(folder, "ums.ko")


def build_programs(work):
    folder = os.path.join(work, "programs")
    os.makedirs(folder, exist_ok=True)
    for name in PROGRAMS:
        run("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread",
            "-o", os.path.join(folder, name), os.path.join(HERE, "guest", name + ".c"))
    return [os.path.join(folder, name) for name in PROGRAMS]


# --- a guest --------------------------------------------------------------------------------------


def boot(work, tools, root, release, module, programs):
    """Runs the guest; returns its console's text."""
    tree = os.path.join(work, "initramfs")
    shutil.rmtree(tree, ignore_errors=True)
    os.makedirs(tree + "/bin")
    for path in [*programs, module, HERE + "/guest/init"]:
        shutil.copy(path, tree)
    os.chmod(tree + "/init", 0o755)
    shutil.copy(tools + "/bin/busybox", tree + "/bin")
    library = "usr/lib/x86_64-linux-gnu"
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{tools}/{library}:{tools}/lib/x86_64-linux-gnu"}
    names = "".join(f"{os.path.join(folder, name)[len(tree) + 1:]}\n"
                    for folder, folders, files in os.walk(tree) for name in folders + files)
    image = os.path.join(work, "initramfs.cpio")
    with open(image, "wb") as out:
        subprocess.run([tools + "/bin/cpio", "-o", "-H", "newc", "--quiet"], cwd=tree, input=names.encode(), stdout=out,
                       env=environment, check=True)
    log = os.path.join(work, f"log-{release}")
    # thread=single: with a thread for each CPU, QEMU 7.2 let a CPU run code that another had just
    # patched. Without cx16 the kernel takes no cmpxchg16b, which that QEMU gets wrong for 6.12.
    # Where QEMU has to wait for its turn, the timer check fails and time passes without a tick: a
    # real stall is found by the test that does not end. slub_debug finds what is used after it was
    # freed.
    with open(log, "wb") as out:
        try:
            subprocess.run(
                [tools + "/usr/bin/qemu-system-x86_64",
                 "-L", tools + "/usr/share/qemu", "-L", tools + "/usr/share/seabios", "-accel", "tcg,thread=single",
                 "-cpu", "max,-cx16", "-smp", "2", "-m", "768", "-nographic", "-no-reboot",
                 "-nodefaults", "-serial", "stdio", "-kernel", f"{root}/boot/vmlinuz-{release}",
                 "-initrd", image, "-append", "console=ttyS0 quiet panic=-1 oops=panic no_timer_check nowatchdog "
                 + "rcupdate.rcu_cpu_stall_timeout=300 mitigations=off slub_debug=FZP,kmalloc-* "
                 + "programs=" + ",".join(PROGRAMS)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=environment, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            out.write(f"\nNOT OK - the guest ends within {LIMIT_S} s\n".encode())
    return read(log).replace("\r", "")


def judge(text, release):
    """How many checks of a console's text passed, and the lines that say what failed."""
    lines = text.splitlines()
    passed = sum(line.startswith("ok - ") for line in lines)
    failed = [line for line in lines if line.startswith("NOT OK")]
    failed += [f"NOT OK - the kernel's log: {line}" for line in lines if SPLAT.search(line)]
    if "== end" not in lines:
        failed.append("NOT OK - the guest comes to its end")
    return passed, [f"{release}: {line}" for line in failed]


def self_test():
    good = "ok - one\n# a remark\n== end\n"
    assert judge(good, "k") == (1, [])
    for bad in ("NOT OK - two", "[  1.0] BUG: unable to handle", "[ 1.0] WARNING: CPU: 0", "Oops: 0000",
                "rcu: INFO: rcu_preempt self-detected stall on CPU"):
        assert len(judge(bad + "\n" + good, "k")[1]) == 1, bad
    assert judge("ok - one\n", "k")[1] == ["k: NOT OK - the guest comes to its end"]


# --------------------------------------------------------------------------------------------------


def test(work):
    if platform.machine() != "x86_64":
        raise Skip("the module is tested on x86-64 only")
    for program in ("apt-get", "apt-cache", "dpkg-deb", "gcc", "make"):
        if not shutil.which(program):
            raise Skip(f"there is no {program}")
    os.makedirs(work, exist_ok=True)
    passed, failed, seen = 0, [], set()
    programs = build_programs(work)
    tools = fetch(work, "tools", with_missing(TOOLS))
    for meta in KERNELS:
        release = release_of(meta)
        if not release:
            if meta == KERNELS[0]:
                raise Skip(f"apt has no {meta}")
            say(f"not tested: apt has no {meta}")
            continue
        if release in seen:
            continue
        seen.add(release)
        root = fetch(work, release, packages_of(release))
        say(f"== {release}")
        module = build_module(work, root, release)
        text = boot(work, tools, root, release, module, programs)
        for line in text.splitlines():
            if line.startswith("# "):
                say(line)
        good, bad = judge(text, release)
        passed += good
        failed += bad
        for line in bad:
            say(line)
        if bad:
            say(f"the whole log is {work}/log-{release}")
    say(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


def main():
    if sys.argv[1:] == ["self-test"]:
        self_test()
        return 0
    try:
        return test(os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/kernel")))
    except Skip as why:
        say(f"skipped: {why}")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
