#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the tables of docs/memcached.md: what is "same" works, what is "refused" is, by one line.

memcached_table.py SERVER

Where memcached 1.6.18 is installed: none of its options and statistics is missing in the tables.
"""

import os
import re
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../examples/memcached"))
import replay  # noqa: E402

PAGE = os.path.join(HERE, "../../docs/memcached.md")


def tables():
    """{"Commands": {"get": "same", ...}, ...}"""
    found, section = {}, {}
    with open(PAGE, encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                section = found.setdefault(line[3:].strip(), {})
            elif line.startswith("| `"):
                names, means = line.split("|")[1:3]
                section.update((name, means.strip()) for name in re.findall("`([^`]+)`", names))
    return found


def ask(server, command):
    client = server.connect()
    client.sendall(command.encode() + b"\r\n")
    client.shutdown(socket.SHUT_WR)
    said = b""
    while got := client.recv(1 << 16):
        said += got
    client.close()
    return said.decode()


def statistics(server):
    return set(re.findall(r"^STAT (\S+)", ask(server, "stats"), re.MULTILINE))


def commands_wrong(server, table):
    # Of a command that needs more words not even that is said.
    words = {
        "get": "a",
        "gets": "a",
        "bget": "a",
        "gat": "0 a",
        "gats": "0 a",
        "cas": "a 0 0 x 1",
        "incr": "a 1",
        "decr": "a 1",
        "touch": "a 0",
        "delete": "a",
        "mg": "a",
        "ms": "a x",
        "md": "a",
        "ma": "a",
        "me": "a",
        "verbosity": "1",
        "cache_memlimit": "64",
        "lru": "mode flat",
        "lru_crawler": "enable",
        "stats detail": "on",
        "slabs": "automove 1",
        "debugtime": "p",
    }
    words.update(dict.fromkeys(("set", "add", "replace", "append", "prepend"), "a 0 0 x"))
    for command, means in table.items():
        said = ask(server, f"{command} {words.get(command, '')}".strip())
        if (said == "ERROR\r\n") != (means == "refused"):
            yield f"{command}: {means}, but said {said!r}"


def options_wrong(path, table):
    values = {
        "-p": "-1",
        "-U": "-1",
        "-l": "127.0.0.1",
        "-s": "/tmp/x",
        "-a": "700",
        "-m": "64",
        "-I": "1m",
        "-c": "100",
        "-t": "1",
        "-b": "10",
        "-o": "modern",
    }
    for option, means in table.items():
        value = [values[option]] if option in values else []
        # -V ends the program before anything listens.
        done = subprocess.run(
            [path, option, *value, "-V"], capture_output=True, text=True, check=False
        )
        lines = done.stderr.count("\n")
        if (done.returncode, lines) != ((64, 1) if means == "refused" else (0, 0)):
            yield f"{option}: {means}, but exit code {done.returncode}, {done.stderr!r}"


def main():
    path = os.path.abspath(sys.argv[1])
    all_tables = tables()
    commands, options, stats = (all_tables[name] for name in ("Commands", "Options", "Statistics"))
    with replay.Server([path]) as server:
        wrong = list(commands_wrong(server, commands))
        there = statistics(server)
    wrong += options_wrong(path, options)
    same = {name for name, means in stats.items() if means == "same"}
    wrong += [f"statistic {name}: the table and the server differ" for name in sorted(same ^ there)]
    if memcached := replay.memcached():
        with replay.Server(memcached, is_killed=True) as server:
            wrong += [
                f"statistic {name} is not in the table"
                for name in sorted(statistics(server) - stats.keys())
            ]
        said = subprocess.run(
            [memcached[0], "-h"], capture_output=True, text=True, check=True
        ).stdout
        theirs = set(re.findall(r"^(-[A-Za-z])\b", said, re.MULTILINE))
        wrong += [
            f"option {name} is not in the table, or not memcached's"
            for name in sorted(theirs ^ options.keys())
        ]
    print("\n".join(wrong))
    print(
        f"{len(commands)} commands, {len(options)} options, {len(stats)} statistics: {len(wrong)} wrong"
    )
    return 1 if wrong or min(map(len, (commands, options, stats))) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
