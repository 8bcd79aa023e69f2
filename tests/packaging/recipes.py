#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The recipes that build libums for another project. Programs of tests/consumer then run with it.

recipes.py tarball BUILD   the tarball that CPack makes of BUILD, a finished build folder
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CONSUMER = os.path.join(ROOT, "tests/consumer")
PROGRAMS = ("static", "shared", "c_static", "c_shared", "windows", "windows_shared")


class Failed(Exception):
    pass


def run(*words, **options):
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    if done.returncode:
        raise Failed(f"{' '.join(words)}: {done.returncode}\n{done.stdout}")
    return done.stdout


def configure(source, build, *words, **options):
    """Configures and builds."""
    run("cmake", "-G", "Ninja", "-S", source, "-B", build, *words, **options)
    run("cmake", "--build", build, **options)


def consume(folder, prefix, *options):
    """Builds and runs the programs of tests/consumer with the tree at PREFIX."""
    configure(CONSUMER, folder, f"-DCMAKE_PREFIX_PATH={prefix}", *options)
    with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as file:
        found = re.search(r"^ums_DIR:PATH=(.*)$", file.read(), re.MULTILINE)[1]
    if not found.startswith(prefix + "/"):
        raise Failed(f"found {found} instead of what is in {prefix}")
    for program in PROGRAMS:
        run(os.path.join(folder, program))


def tarball(folder, build):
    run("cpack", "--config", os.path.join(build, "CPackConfig.cmake"), "-G", "TGZ", "-B", folder)
    (archive,) = glob.glob(os.path.join(folder, "*.tar.gz"))
    name = os.path.basename(archive).removesuffix(".tar.gz")
    unpacked = os.path.join(folder, "unpacked")
    os.mkdir(unpacked)
    run("tar", "-xzf", archive, "-C", unpacked)
    if os.listdir(unpacked) != [name]:
        raise Failed(f"{archive} has {os.listdir(unpacked)} in it, not a folder of its own name")
    prefix = os.path.join(unpacked, name)
    consume(os.path.join(folder, "consumer"), prefix)
    said = run(os.path.join(prefix, "bin/ums"), "--version").strip()
    return f"{name}: unpacked, the programs ran, {said}"


def main(words):
    what, rest = words[0] if words else "", words[1:]
    recipes = {"tarball": tarball}
    if what not in recipes or len(rest) != (what == "tarball"):
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        try:
            print(recipes[what](folder, *rest))
        except Failed as failure:
            print(failure)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
