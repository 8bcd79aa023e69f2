#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The recipes that build libums for another project. Programs of tests/consumer then run with it.

recipes.py fetch_content   the example for FetchContent
recipes.py conan           packaging/conan, as docs/install.md says; skipped without Conan 2
recipes.py vcpkg           packaging/vcpkg, by vcpkg.cmake in place of vcpkg
recipes.py tarball BUILD   the tarball that CPack makes of BUILD, a finished build folder
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CONSUMER = os.path.join(ROOT, "tests/consumer")
SKIPPED = 77
OPTIONS = ("-DUMS_WERROR=ON",)  # As in the presets.
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


def unpacked(folder):
    """What a release holds of libums itself, unpacked in FOLDER. A build in its build/NAME has the
    paths of a build in the checkout, so a compiler cache reuses what the checkout has compiled."""
    source = os.path.join(folder, "libums")
    os.mkdir(source)
    for name in ("CMakeLists.txt", "LICENSE"):
        shutil.copy(os.path.join(ROOT, name), source)
    for name in ("cmake", "compat", "include", "packaging", "src", "tests/consumer", "tools"):
        shutil.copytree(os.path.join(ROOT, name), os.path.join(source, name))
    return source


def fetch_content(folder):
    source = unpacked(folder)
    build = os.path.join(source, "build/fetch_content")
    environment = dict(os.environ)
    if shutil.which("ccache"):  # CMakeLists.txt leaves that to the project at the top.
        environment["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
        environment["CCACHE_BASEDIR"] = source
        environment["CCACHE_NOHASHDIR"] = "1"
    example = os.path.join(source, "tests/consumer/fetch_content")
    configure(example, build, *OPTIONS, "-DCMAKE_BUILD_TYPE=RelWithDebInfo", env=environment)
    run(os.path.join(build, "fetched"))
    return "configured, built and ran"


def documented(pattern):
    """The command of docs/install.md, so that it is the one that works."""
    with open(os.path.join(ROOT, "docs/install.md"), encoding="utf-8") as file:
        return re.search(rf"`({pattern}[^`]*)`", file.read())[1].split()


def has_conan():
    return shutil.which("conan") and run("conan", "--version").startswith("Conan version 2.")


def conan(folder):
    environment = dict(os.environ, CONAN_HOME=os.path.join(folder, "home"))
    run("conan", "profile", "detect", env=environment)
    quiet = (
        "--no-remote",  # Nothing comes from a network,
        "--conf=tools.cmake.cmake_layout:test_folder=$TMP",  # and nothing lands in the source.
        "--conf=tools.cmake.cmaketoolchain:user_presets=",
    )
    said = run(*documented("conan create "), *quiet, cwd=ROOT, env=environment)
    if "Testing the package: Executing test" not in said:
        raise Failed(f"the programs of test_package did not run\n{said}")
    return "built; the programs of test_package ran"


def vcpkg(folder):
    source = unpacked(folder)
    port = os.path.join(source, "packaging/vcpkg/ports/libums")
    build = os.path.join(source, "build")
    script = os.path.join(HERE, "vcpkg.cmake")
    triplet = f"-DVCPKG_CMAKE_CONFIGURE_OPTIONS={OPTIONS[0]}"
    run("cmake", f"-DPORT_FOLDER={port}", f"-DFOLDER={build}", triplet, "-P", script)
    made = os.path.join(build, "packages")
    # What vcpkg itself looks for when a port has been built.
    for wrong in ("debug/include", "debug/share", "lib/cmake", "debug/lib/cmake", "bin"):
        if os.path.exists(os.path.join(made, wrong)):
            raise Failed(f"{wrong} does not belong into a package of vcpkg")
    for right in (
        "share/libums/copyright",
        "share/ums/ums-config.cmake",
        "lib/libums.a",
        "debug/lib/libums.a",
    ):
        if not os.path.exists(os.path.join(made, right)):
            raise Failed(f"{right} is missing")
    for path, folders, files in os.walk(made):
        if not folders and not files:
            raise Failed(f"{path} is empty")
        for name in files:
            with open(os.path.join(path, name), "rb") as file:
                text = file.read()
            if not text.startswith((b"\x7fELF", b"!<arch>")) and folder.encode() in text:
                raise Failed(f"{os.path.join(path, name)} has the path of the build in it")
    installed = os.path.join(folder, "installed")
    os.rename(made, installed)
    for kind in ("Release", "Debug"):
        consume(os.path.join(folder, f"consumer-{kind}"), installed, f"-DCMAKE_BUILD_TYPE={kind}")
    return "built for release and debug; the programs ran with both"


def tarball(folder, build):
    run("cpack", "--config", os.path.join(build, "CPackConfig.cmake"), "-G", "TGZ", "-B", folder)
    archives = sorted(glob.glob(os.path.join(folder, "*.tar.gz")), key=len)
    name = os.path.basename(archives[0]).removesuffix(".tar.gz")
    unpacked = os.path.join(folder, "unpacked")
    os.mkdir(unpacked)
    prefix = os.path.join(unpacked, name)
    has_bench = []
    for archive in archives:
        run("tar", "-xzf", archive, "-C", unpacked)
        has_bench.append(os.path.exists(os.path.join(prefix, "libexec/ums/bench")))
        if os.listdir(unpacked) != [name]:
            raise Failed(f"{archive} has {os.listdir(unpacked)} in it, not the folder {name}")
    if has_bench != [False, True][: len(archives)]:
        raise Failed(f"the benchmarks have no tarball of their own: {archives}, {has_bench}")
    consume(os.path.join(folder, "consumer"), prefix)
    said = run(os.path.join(prefix, "bin/ums"), "--version").strip()
    return f"{name}: unpacked, the programs ran, {said}"


def main(words):
    what, rest = words[0] if words else "", words[1:]
    recipes = {"fetch_content": fetch_content, "conan": conan, "vcpkg": vcpkg, "tarball": tarball}
    if what not in recipes or len(rest) != (what == "tarball"):
        print(__doc__, file=sys.stderr)
        return 2
    if what == "conan" and not has_conan():
        print("skipped: there is no Conan 2 here (pip install conan)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        try:
            print(recipes[what](folder, *rest))
        except Failed as failure:
            print(failure)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
