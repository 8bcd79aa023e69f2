#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The ports file of our server says what memcached's says for the same -p, -U and -l.

memcached_ports.py SERVER

Where memcached 1.6.18 is not installed only our server runs: the expected lines are in the table.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/memcached")
)
import replay  # noqa: E402

BOTH = ["TCP INET", "TCP INET6"]
BOTH_UDP = ["UDP INET", "UDP INET6"]
# Options, where PORT stands for a free port; the lines; and their port, or None for any free ones.
CASES = [
    (["-p", "-1"], BOTH, None),
    (["-p", "-1", "-U", "0"], BOTH, None),
    (["-U", "-1"], BOTH + BOTH_UDP, None),
    (["-p", "0", "-U", "-1"], BOTH_UDP, None),
    (["-U", "PORT"], BOTH + BOTH_UDP, "PORT"),
    (["-p", "PORT"], BOTH, "PORT"),
    (["-p", "0", "-U", "PORT"], BOTH_UDP, "PORT"),
    (["-p", "-1", "-U", "-1", "-l", "127.0.0.1"], ["TCP INET", "UDP INET"], None),
    (["-p", "-1", "-l", "127.0.0.1,127.0.0.2"], ["TCP INET", "TCP INET"], None),
    (["-p", "-1", "-l", "::1"], ["TCP INET6"], None),
    (["-p", "-1", "-l", "127.0.0.1:PORT"], ["TCP INET"], "PORT"),
]


def free_port():
    """Free for TCP and UDP on both families, at least now."""
    while True:
        with socket.socket(socket.AF_INET6) as tcp, socket.socket(
            socket.AF_INET6, socket.SOCK_DGRAM
        ) as udp:
            tcp.bind(("::", 0))
            try:
                udp.bind(("::", tcp.getsockname()[1]))
            except OSError:
                continue
            return str(tcp.getsockname()[1])


def lines(command, options):
    """The lines of the ports file, which appears when it is complete."""
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o777)  # memcached does not stay root.
    path = os.path.join(folder, "ports")
    process = subprocess.Popen(
        [*command, *options],
        env={**os.environ, "MEMCACHED_PORT_FILENAME": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        while not os.path.exists(path):
            if process.poll() is not None:
                return [process.stderr.read().decode().strip()]
        with open(path, encoding="ascii") as file:
            return file.read().splitlines()
    finally:
        process.kill()
        process.communicate()
        shutil.rmtree(folder)


def main():
    servers = {"our server": [os.path.abspath(sys.argv[1])]}
    if (memcached := replay.memcached()) is not None:
        servers["memcached"] = memcached[:3]
    wrong = 0
    for options, kinds, port in CASES:
        for name, command in servers.items():
            chosen = free_port()
            said = lines(command, [option.replace("PORT", chosen) for option in options])
            ports = [re.sub(r".*: ", "", line) for line in said]
            if (
                [re.sub(r": [1-9]\d*$", "", line) for line in said] != kinds
                or port
                and set(ports) != {chosen}
            ):
                wrong += 1
                print(f"{name} {options}: {said}; expected {kinds}")
    print(f"{len(CASES)} cases, {' and '.join(servers)}: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
