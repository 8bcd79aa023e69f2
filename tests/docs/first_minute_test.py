#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""first_minute_test.py BUILD CXX: the lines of README's first block of commands do what it says, and those
of the four ways in (docs/README.md) compile and run their programs.

`make library` needs a machine that may be changed. Here a folder with links to what it installs takes
its place. The lines after it run as they are.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(build, compiler, lines):
    """Runs lines of the shell beside a folder with what `make library` installs; returns what they print."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder, "prefix")
        (prefix / "lib/pkgconfig").mkdir(parents=True)
        (prefix / "include").symlink_to(ROOT / "include")
        for package in ("ums.pc", "ums-compat.pc"):
            shutil.copy(build / package, prefix / "lib/pkgconfig")
        for library in build.glob("libums*.so*"):
            (prefix / "lib" / library.name).symlink_to(library)
        (pathlib.Path(folder) / "examples").symlink_to(ROOT / "examples")
        environment = {one: value for one, value in os.environ.items() if not one.startswith("UMS_")}
        environment.update(PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"), LD_LIBRARY_PATH=str(prefix / "lib"))
        script = "\n".join(["set -e", f'g++() {{ command {compiler} "$@"; }}', *lines])
        done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=300, check=False)
    print(done.stderr, end="")
    assert done.returncode == 0, f"{done.args}: exit status {done.returncode}"
    return done.stdout


def main(build, compiler):
    before, block = re.search(r"(.*?)```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).groups()
    first, *lines = block.splitlines()
    verb = re.match(r"sudo make (\w+)", first)[1]
    assert re.search(rf"^{verb}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"there is no verb {verb}"
    promised = re.findall(r"`([^`]+)`", before.strip().splitlines()[-1])
    printed = run(build, compiler, lines).splitlines()
    assert printed == promised, f"it prints {printed}, README says {promised}"
    ways = (ROOT / "docs/README.md").read_text().split("## Four ways in")[1].split("\n## ")[0]
    programs = re.findall(r"```sh\n(.*?)```", ways, re.DOTALL)
    assert len(programs) == 4, "there are not four programs"
    for program in programs:
        assert run(build, compiler, [program]), f"it prints nothing: {program}"


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2])
