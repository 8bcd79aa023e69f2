#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replays the recorded session and compares the replies byte for byte.

replay.py SERVER    against SERVER, and where memcached 1.6.18 is installed against that, too
replay.py --record  writes the replies of memcached 1.6.18 into the recorded session

recorded_session.txt holds what is sent (lines that begin with >) and what must come back (<), with
C's escapes; # begins a remark. {x*250} stands for 250 times x. What counts seconds is masked: a clock
may tick in between. Behind each piece goes one more command, whose reply shows that all are there.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SESSION = os.path.join(HERE, "recorded_session.txt")
FENCE, FENCE_REPLY = b"mg ~fence k\r\n", b"EN k~fence\r\n"
CLOSED = b"<closed>"
# The seconds in the replies to meta commands.
CLOCK = re.compile(rb"^((?:HD|VA|ME)\b[^\r\n]*? (?:t|l|la=|exp=-?))\d+", re.MULTILINE)


def masked(reply):
    before = None
    while before != reply:
        before, reply = reply, CLOCK.sub(rb"\1#", reply)
    return reply


def unescaped(text):
    data = text.encode().decode("unicode_escape").encode("latin-1")
    return re.sub(rb"\{(.)\*(\d+)\}", lambda m: m[1] * int(m[2]), data)


def escaped(data):
    text = "".join(c if " " <= c <= "~" and c != "\\" else
                   {"\r": r"\r", "\n": r"\n", "\\": r"\\"}.get(c, f"\\x{ord(c):02x}")
                   for c in data.decode("latin-1"))
    return re.sub(r"(.)\1{39,}", lambda m: f"{{{m[1]}*{len(m[0])}}}", text)


class Server:
    """A server on a Unix socket in a folder of its own; it is ended and awaited."""

    def __init__(self, command, is_killed=False):
        self.end = subprocess.Popen.kill if is_killed else subprocess.Popen.terminate
        self.folder = tempfile.mkdtemp()
        os.chmod(self.folder, 0o777)  # memcached does not stay root.
        self.path = os.path.join(self.folder, "socket")
        command = [*command, "-s", self.path]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def connect(self):
        while True:
            client = socket.socket(socket.AF_UNIX)
            try:
                client.connect(self.path)
                return client
            except OSError:
                client.close()
                if self.process.poll() is not None:
                    said = self.process.stdout.read().decode(errors="replace")
                    sys.exit(f"{self.process.args[0]} ended early: {said}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(self.process)
        said, _ = self.process.communicate()
        shutil.rmtree(self.folder)
        said = re.sub(r"^listening on .*\n", "", said.decode(errors="replace"))
        if said.strip():
            print(f"{self.process.args[0]} said: {said}")
        self.status = self.process.returncode


def steps():
    """(line number, what is sent, what is expected) of the session."""
    found = []
    with open(SESSION, encoding="ascii") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if line.startswith("> "):
                found.append([number, unescaped(line[2:]), None])
            elif line.startswith("<"):
                found[-1][2] = unescaped(line[2:])
    return found


def replies(server):
    """The reply to each step."""
    client = server.connect()
    for number, sent, _ in steps():
        reply = b""
        try:
            client.sendall(sent + FENCE)
        except (BrokenPipeError, ConnectionResetError):
            pass  # It has closed; what it said before can be read.
        while not reply.endswith(FENCE_REPLY):
            try:
                got = client.recv(1 << 16)
            except ConnectionResetError:  # It did not read the fence.
                got = b""
            if not got:
                reply += CLOSED + FENCE_REPLY
                client = server.connect()
                break
            reply += got
        yield number, sent, reply[:-len(FENCE_REPLY)]
    client.close()


def differences(name, command, expected):
    wrong = 0
    with Server(command) as server:
        for (number, sent, got), (_, _, wanted) in zip(replies(server), expected):
            if masked(got) != masked(wanted):
                wrong += 1
                print(f"{os.path.basename(SESSION)}:{number}: {name}\n  sent     {escaped(sent)}\n"
                      f"  expected {escaped(wanted)}\n  got      {escaped(got)}")
    return wrong


def memcached():
    path = shutil.which("memcached")
    if path is None:
        return None
    version = subprocess.run([path, "-V"], capture_output=True, text=True, check=True).stdout
    # Under load decr sometimes gave a shorter value instead of one padded with blanks: presumably a
    # background thread held the item.
    quiet = ["-o", "no_lru_maintainer,no_lru_crawler"]
    return [path, "-u", "nobody", "-a", "777", *quiet] if version == "memcached 1.6.18\n" else None


def record():
    command = memcached()
    if command is None:
        sys.exit("memcached 1.6.18 is not installed")
    with Server(command) as server:
        answers = {number: reply for number, _, reply in replies(server)}
    text = ""
    with open(SESSION, encoding="ascii") as file:
        for number, line in enumerate(file, 1):
            if not line.startswith("<"):
                text += line
            if number in answers:
                text += f"< {escaped(answers[number])}".rstrip() + "\n"
    with open(SESSION, "w", encoding="ascii") as file:
        file.write(text)
    return 0


def main(words):
    if words == ["--record"]:
        return record()
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    expected = steps()
    wrong = differences("this server", [os.path.abspath(words[0])], expected)
    if command := memcached():
        wrong += differences("memcached itself", command, expected)
    print(f"{len(expected)} steps, {wrong} differ{'' if command else ', memcached is not installed'}")
    return 1 if wrong or not expected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
