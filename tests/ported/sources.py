# SPDX-License-Identifier: MIT
"""The sources of a package of Debian, by apt and without a change to the machine: apt gets lists and folders of
its own, made of the machine's."""

import glob
import os
import re
import subprocess


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def of_the_machine():
    """(URI, suite, signer) of each archive of Debian that the machine uses."""
    for path in glob.glob("/etc/apt/sources.list.d/*.sources"):
        for part in re.split(r"\n\s*\n", re.sub(r"^#.*\n", "", read(path), flags=re.MULTILINE)):
            fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", part, flags=re.MULTILINE))
            for uri in fields.get("URIs", "").split():
                for suite in fields.get("Suites", "").split():
                    yield uri, suite, fields.get("Signed-By", "")
    for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.list")]:
        if os.path.exists(path):
            for options, uri, suite in re.findall(r"^deb\s+(\[.*?\]\s+)?(\S+)\s+(\S+)\s+.*\bmain\b", read(path),
                                                  flags=re.MULTILINE):
                signer = re.search(r"signed-by=([^\s\]]+)", options)
                yield uri, suite, signer[1] if signer else ""


def obtain(package, folder):
    """The folder with the sources of the package, or None."""
    made = glob.glob(os.path.join(folder, package + "-*/"))
    if made:
        return made[0]
    entries = sorted({entry for entry in of_the_machine() if entry[0].rstrip("/").endswith("/debian")})
    if not entries:
        return None
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    with open(os.path.join(folder, "parts/debian.sources"), "w", encoding="utf-8") as file:
        for uri, suite, signer in entries:
            file.write(f"Types: deb-src\nURIs: {uri}\nSuites: {suite}\nComponents: main\n")
            file.write(f"Signed-By: {signer}\n\n" if signer else "\n")
    own = {"Dir::Etc::sourceparts": "parts", "Dir::State::lists": "lists", "Dir::Cache": "cache"}
    options = {name: os.path.abspath(os.path.join(folder, value)) for name, value in own.items()}
    options |= {"Dir::Etc::sourcelist": "/dev/null", "APT::Sandbox::User": "", "Acquire::Retries": "0",
                "Acquire::http::Timeout": "10", "Acquire::https::Timeout": "10"}
    apt = ["apt-get", "-q", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    try:
        for command in (["update"], ["source", package]):
            subprocess.run(apt + command, cwd=folder, check=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
    except (OSError, subprocess.SubprocessError):
        return None
    made = glob.glob(os.path.join(folder, package + "-*/"))
    return made[0] if made else None
