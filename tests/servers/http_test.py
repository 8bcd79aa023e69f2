#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sends the requests of http_cases.py to the HTTP server, over a socket, and checks the answers.

http_test.py SERVER   each request in one piece, and byte by byte; and the page is that of the table
http_test.py --page   writes docs/http-cases.md from the table
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

from http_cases import ALONE, CASES, FILES, OPEN, SECOND

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/http-cases.md")
TIME = 784111777  # Sun, 06 Nov 1994 08:49:37 GMT
LEAST = 188  # So many cases at least.


class Server:
    """The server, with the files of the table."""

    def __init__(self, path):
        self.folder = tempfile.mkdtemp()
        root = os.path.join(self.folder, "root")
        for name, text in [
            *((f"root/{name}", text) for name, text in FILES.items()),
            ("secret.txt", "secret"),
        ]:
            at = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(at), exist_ok=True)
            with open(at, "w", encoding="ascii") as file:
                file.write(text)
            os.utime(at, (TIME, TIME))
        os.symlink("../secret.txt", os.path.join(root, "link"))
        self.process = subprocess.Popen(
            [path, "--listen", "127.0.0.1:0", "--root", root], stdout=subprocess.PIPE
        )
        said = self.process.stdout.readline().decode()
        self.port = int(said.rsplit(":", 1)[1])

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.port))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)


def talk(server, pieces, step):
    """What the server says until it closes, to pieces that go out `step` bytes at a time."""
    client = server.connect()
    said = b""
    try:
        for number, piece in enumerate(pieces):
            if number > 0:
                while b"\r\n\r\n" not in said:
                    got = client.recv(1 << 16)
                    if not got:
                        return said
                    said += got
            for at in range(0, len(piece), step):
                client.sendall(piece[at : at + step])
        client.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # It has closed; what it said before can be read.
    while got := client.recv(1 << 16):
        said += got
    client.close()
    return said


def answers(said, is_head):
    """[(status, {header: value}, body)]"""
    found = []
    while said:
        head, end, rest = said.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        line = re.fullmatch(r"HTTP/1\.1 (\d{3}) [ -~]+", lines[0])
        if not end or not line:
            raise ValueError(f"no answer: {said[:200]!r}")
        status = int(line[1])
        headers = dict(line.split(": ", 1) for line in lines[1:])
        has_body = status >= 200 and status not in (204, 304) and not (is_head and not found)
        length = int(headers.get("Content-Length", 0)) if has_body else 0
        if len(rest) < length:
            raise ValueError(f"a body that is too short: {said[:200]!r}")
        found.append((status, headers, rest[:length].decode("latin-1")))
        said = rest[length:]
    return found


def matches(answer, expected):
    if not isinstance(expected, tuple):
        return answer[0] == expected
    status, headers, body = expected
    for name, value in headers.items():
        got = answer[1].get(name)
        if got is None if value == "..." else got != value:
            return False
    return answer[0] == status and body in (None, answer[2])


def mistake(server, request, expected, step):
    """What is wrong, or None."""
    follows = expected[0] != ALONE
    stays_open = expected[-1] == OPEN
    expected = [x for x in expected if x not in (ALONE, OPEN)]
    pieces = [request] if isinstance(request, str) else request
    pieces = [
        piece.encode("latin-1")
        for piece in [*pieces[:-1], pieces[-1] + (SECOND if follows else "")]
    ]
    try:
        got = answers(talk(server, pieces, step), pieces[0].lstrip().startswith(b"HEAD "))
    except ValueError as error:
        return str(error)
    if len(got) != len(expected) or not all(map(matches, got, expected)):
        return f"expected {expected}, got {[(s, h, b[:60]) for s, h, b in got]}"
    if (got[-1][1].get("Connection") != "close") != stays_open:
        return f"the connection {'closes' if stays_open else 'stays open'}"
    return None


def page():
    text = f"""# HTTP cases

<!-- Written by tests/servers/http_test.py --page. -->

The {len(CASES)} requests of `tests/servers/http_cases.py`, which the test sends to `http-server` over a socket, in one piece and byte by byte: the section of the RFC (9110: semantics; 9112: HTTP/1.1; 3986: URIs; 6585: further statuses), the case, and the answer. Behind most requests comes a second one: where only one status is shown, the connection closes and the second request must not be answered.

| RFC | case | answers |
|---|---|---|
"""
    for section, name, _, expected in CASES:
        statuses = [
            str(x[0] if isinstance(x, tuple) else x) for x in expected if x not in (ALONE, OPEN)
        ]
        rfc, number = section.split(" ")
        link = f"[{rfc}, {number}](https://www.rfc-editor.org/rfc/rfc{rfc}#section-{number})"
        text += f"| {link} | {name} | {', '.join(statuses)} |\n"
    return text


def main(words):
    if words == ["--page"]:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(page())
        return 0
    wrong = len(CASES) - len({name for _, name, _, _ in CASES})  # Names that come twice.
    with Server(os.path.abspath(words[0])) as server:
        for section, name, request, expected in CASES:
            for step, how in ((1 << 30, "whole"), (1, "byte by byte")):
                if step == 1 and isinstance(request, list):
                    continue
                if what := mistake(server, request, expected, step):
                    wrong += 1
                    print(f"{section}: {name}, {how}: {what}")
    with open(PAGE, encoding="utf-8") as file:
        if file.read() != page():
            wrong += 1
            print("docs/http-cases.md is not that of the table: run http_test.py --page")
    print(f"{len(CASES)} cases, {wrong} wrong")
    return 1 if wrong or len(CASES) < LEAST else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
