#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sends the same generated commands to our server and to memcached 1.6.18 and compares the replies.

memcached_differential.py SERVER [--commands N] [--seed N] [--batch N]

The commands are those of the text and the meta protocol that docs/memcached.md calls "same": most
are well formed, the others are damaged. They go out in batches; a batch depends on the seed and its
number only. From time to time the counters of `stats` are compared, too, and both servers start
anew. After a difference the least part of the batch that shows it is printed.

What the clock decides is left out: the seconds in replies are masked, and no item expires during a
run. UMS_DIFFERENTIAL_COMMANDS is the default of --commands (20000). Where memcached 1.6.18 is not
installed the exit code is 77.
"""

import argparse
import base64
import contextlib
import os
import random
import re
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../examples/memcached"))
import replay  # noqa: E402

BATCH = 50  # Commands.
BATCHES_PER_COUNT = 50
BATCHES_PER_START = 1000
SHOWN = 10  # Differences, before the run gives up.

# What `stats` counts...
COUNTERS = (
    """cmd_get cmd_set cmd_flush cmd_touch cmd_meta get_hits get_misses delete_misses delete_hits
    incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval touch_hits touch_misses
    total_items evictions""".split()
)
# ... and what depends on when memcached looks for items that have expired.
SETTLED = COUNTERS + "get_expired get_flushed curr_items bytes".split()

# The counters are compared behind each of these.
COUNTED = r"""get a\r\nset a 0 0 1\r\n1\r\nget a a b\r\n
gat 0 a b\r\ntouch a 0\r\ntouch b 0\r\n
incr a 1\r\nincr b 1\r\ndecr a 1\r\ndecr b 1\r\nincr a x\r\n
cas a 0 0 1 1000\r\n1\r\ncas b 0 0 1 4\r\n1\r\ncas a 0 0 1 3\r\n1\r\n
mg a\r\nmg b\r\nmg a v\r\nmg b v q\r\n
mg d v N0\r\nmg d v T0\r\nmg zz v T0\r\nmg d C5 O{x*40}\r\nmg zz O{x*40}\r\n
ms a 1\r\n1\r\nms a 1 C1\r\n1\r\nms a 1 MA\r\n1\r\nms a 1 ME\r\n1\r\nms zz 1 MR\r\n1\r\nms a 1 MA C1\r\n1\r\n
md d I\r\nmd a C1\r\nmd a O{x*40}\r\nmd a\r\nmd a\r\ndelete d\r\ndelete d\r\n
ma a\r\nma a N0\r\nma a MD\r\nma q MD\r\nma q MD N0\r\nma q C1\r\nma q D1x\r\nma w O{x*40}\r\nma w N0 O{x*40}\r\n
me q\r\nme nothing\r\nmn\r\n
set a 0 0 1\r\n123\r\nms a 1\r\n123\r\nset a 0 0 99999\r\n123\r\n
append w 0 0 1\r\n1\r\nprepend nothing 0 0 1\r\n1\r\nset n 0 0 1\r\nx\r\nincr n 1\r\n
flush_all\r\nflush_all x\r\nget a a q w\r\nmg n\r\n
set e 0 -1 1\r\n1\r\nget e e\r\nset e 0 -1 1\r\n1\r\ntouch e 0\r\nset e 0 -1 1\r\n1\r\nincr e 1\r\nset e 0 -1 1\r\n1\r\ndelete e\r\n
stats reset\r\nget a\r\n""".split("\n")

KEYS = [b"a", b"b", b"c", b"n", b"m", b"key", b"k" * 250, b"\xc3\xa9\xff", b"x\x01y", b"a\tb"]
BASE64_KEYS = [
    base64.b64encode(k)
    for k in (b"a", b"n", b"key", b"two words", bytes(range(14, 32)), b"k" * 187)
]
ODD_KEYS = [b"k" * 251, b"k" * 300, b"noreply", b"0", b"b", b"a\0b"]
NUMBERS = [
    b"0",
    b"1",
    b"7",
    b"00",
    b"42",
    b"100",
    b"65535",
    b"2147483647",
    b"4294967295",
    b"9223372036854775807",
    b"18446744073709551615",
]
ODD_NUMBERS = [
    b"-1",
    b"+5",
    b"-0",
    b"4294967296",
    b"4294967301",
    b"2147483648",
    b"-2147483649",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551616",
    b"99999999999999999999999",
    b"0x10",
    b"1e3",
    b"5x",
    b"x",
    b"",
    b"--1",
    b"5-",
    b"007",
]
# None of them is reached while a run lasts.
TIMES = [b"0", b"0", b"0", b"20000", b"100000", b"2592000", b"-1", b"2000000000", b"2592001"]
TIME = re.compile(rb"[-+]?[0-9]{1,18}")
RECACHE = [b"5", b"30", b"50000", b"2591999"]
# Behind the commands of a connection: what a wrong length takes of it does no harm.
STORING = (b"set", b"add", b"replace", b"append", b"prepend", b"cas")
GETS = (b"get", b"gets", b"bget", b"gat", b"gats")
PADDING, PADDING_REPLY = b"mn\r\n" * 100, b"MN\r\n"
NOISE = b" \r\n\0\t0159-+:abgkmqsvCFMNOT\x7f\x80\xff"


class generator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def one_in(self, n):
        return self.random.randrange(n) == 0

    def key(self):
        return self.random.choice(ODD_KEYS if self.one_in(40) else KEYS)

    def number(self):
        return self.random.choice(ODD_NUMBERS if self.one_in(8) else NUMBERS)

    def small_number(self):
        """For values and what is added to them: see milder() for the large ones."""
        return self.random.choice(
            [b"x", b"5x", b"", b"007", b"+5", b"1e3"] if self.one_in(8) else NUMBERS[:7]
        )

    def time(self):
        return self.random.choice(ODD_NUMBERS if self.one_in(40) else TIMES)

    def cas(self):
        """Often that of an item: they count up, and a batch uses some 20 of them."""
        return self.number() if self.one_in(4) else b"%d" % self.random.randrange(1, 200)

    def value(self):
        r = self.random
        kind = r.randrange(400)
        if kind == 0:
            return b"%d" % r.randrange(10) * r.randrange(1000, 8000)
        if kind < 160:
            return self.small_number()
        if kind < 200:
            return b"\r\n" * r.randrange(3) + b"END\r\n"
        return b"v" * r.randrange(30)

    def text(self):
        r = self.random
        name = r.choice(
            [
                b"get",
                b"get",
                b"gets",
                b"bget",
                b"gat",
                b"gats",
                b"set",
                b"set",
                b"set",
                b"add",
                b"replace",
                b"append",
                b"prepend",
                b"cas",
                b"incr",
                b"decr",
                b"delete",
                b"touch",
                b"other",
            ]
        )
        quiet = [b"noreply"] if self.one_in(5) else []
        if name in (b"get", b"gets", b"bget"):
            return [name] + [self.key() for _ in range(r.choice([1, 1, 1, 2, 3, 30]))], None
        if name in (b"gat", b"gats"):
            return [name, self.time()] + [self.key() for _ in range(r.choice([1, 1, 2, 30]))], None
        if name in (b"incr", b"decr"):
            return [name, self.key(), self.small_number()] + quiet, None
        if name == b"delete":
            return [name, self.key()] + [b"0"] * self.one_in(8) + quiet, None
        if name == b"touch":
            return [name, self.key(), self.time()] + quiet, None
        if name == b"other":
            return (
                r.choice(
                    [
                        [b"flush_all"],
                        [b"flush_all", b"0"],
                        [b"flush_all", b"-1"],
                        [b"flush_all", b"noreply"],
                        [b"version"],
                        [b"mn"],
                        [b"stats", b"reset"],
                        [b"nothing"],
                        [b"shutdown"],
                        [b"flush_all", b"x"],
                        [b"quit"] if self.one_in(20) else [b"version"],
                    ]
                ),
                None,
            )
        value = self.value()
        line = [name, self.key(), self.number(), self.time(), b"%d" % len(value)]
        return line + ([self.cas()] if name == b"cas" else []) + quiet, value

    def flags(self, letters, most=7):
        r = self.random
        count = 25 if self.one_in(100) else r.randrange(most)
        made = []
        for letter in r.sample(letters, min(count, len(letters))):
            flag = bytes([letter])
            if letter in b"TN":
                flag += self.time()
            elif letter in b"R":
                flag += r.choice(RECACHE)
            elif letter in b"F":
                flag += self.number()
            elif letter in b"JD":
                flag += self.small_number()
            elif letter in b"CE":
                flag += self.cas()
            elif letter in b"M":
                flag += r.choice(
                    [b"S", b"E", b"A", b"P", b"R", b"I", b"D", b"+", b"-", b"i", b"", b"SE"]
                )
            elif letter in b"OPL":
                flag += b"o" * (r.choice([31, 32, 33]) if self.one_in(8) else r.randrange(4))
            elif self.one_in(30):
                flag += self.number()
            made.append(flag)
        return made + made[:1] * self.one_in(60)

    def meta(self):
        r = self.random
        name = r.choice([b"mg", b"mg", b"ms", b"ms", b"md", b"ma", b"me"])
        key = self.key()
        base = [b"b"] if self.one_in(5) else []
        if base and not self.one_in(10):
            key = r.choice(BASE64_KEYS)
        if name == b"me":
            return [name, key] + base, None
        if name == b"mg":
            return [name, key] + base + self.flags(
                b"cfhklOqstvuNTRPL" + b"xE" * self.one_in(40)
            ), None
        if name == b"md":
            return [name, key] + base + self.flags(b"CIkOqTPL" + b"xvE" * self.one_in(20), 5), None
        if name == b"ma":
            flags = self.flags(b"CNJDMOqtcvkPL" + b"xE" * self.one_in(40))
            return [name, key] + base + flags + [b"D0", b"T" + self.time()] * self.one_in(5), None
        value = self.value()
        line = [name, key, b"%d" % len(value)] + base
        return line + self.flags(b"cCFIkOqTMPL" + b"sxEh" * self.one_in(20), 6), value

    def damaged(self, line):
        r = self.random
        for _ in range(r.randrange(1, 4)):
            at = r.randrange(len(line) + 1)
            what = r.randrange(6)
            if what == 0:
                line = line[:at] + line[at + 1 :]
            elif what < 3:
                line = line[:at] + bytes([r.choice(NOISE)]) + line[at:]
            else:
                words = line.split(b" ")
                at = r.randrange(len(words))
                if what == 3:
                    words[at] = (
                        self.small_number()
                        if words[0] in (b"incr", b"decr", b"ma")
                        else self.number()
                    )
                elif what == 4:
                    words.insert(at, r.choice(words))
                else:
                    del words[at]
                line = b" ".join(words)
        return line

    def command(self):
        words, value = self.text() if self.one_in(2) else self.meta()
        line = b" ".join(words)
        if self.one_in(12):
            line = self.damaged(line).lstrip(b"\x80")  # That would choose the binary protocol.
        line = b"\n".join(map(milder, line.split(b"\n")))
        line += b"\n" if self.one_in(30) else b"\r\n"
        if value is None:
            return line
        end = (
            self.random.choice([b"", b"\n", b"x\r\n", b"\r", b"\r\nx"])
            if self.one_in(60)
            else b"\r\n"
        )
        return line + value + end


def milder(line):
    """Takes out of a line what the clock, or the memory behind an item, would decide."""
    old = [word for word in line.split(b"\0")[0].split(b" ") if word.strip()]
    if not old:
        return line
    words = list(old)
    name = words[0].rstrip(b"\r")
    if name == b"stats":
        return b"stats reset"  # The others are not the same.
    if name == b"flush_all" and len(words) > 1 and TIME.fullmatch(words[1].rstrip(b"\r")):
        return b"flush_all"  # None to come.
    at = {b"touch": 2, b"gat": 1, b"gats": 1}.get(name, 3 if name in STORING else None)
    if at is not None and at < len(words):
        words[at] = later(words[at])
    if name in (b"mg", b"ms", b"md", b"ma"):
        words[2:] = [
            word[:1] + later(word[1:]) if word[:1] in (b"T", b"N") else word for word in words[2:]
        ]
    if name == b"ma" and b"D0" not in words:
        # Of a number that grows memcached forgets the new time (docs/memcached.md).
        words = [word for word in words if not word.startswith(b"T")]
    if len(words) > 1 and name not in (b"gat", b"gats"):
        # memcached looks for the sign of a large number also behind the end of the value, in what
        # was there before.
        words[1] = words[1].replace(b"-", b"_")
    return line if words == old else b" ".join(words)


def later(time):
    """A time that is not reached while a run lasts, unless it has passed."""
    if time in TIMES or not TIME.fullmatch(time):
        return time
    seconds = int(time) % 2**32
    return b"20000" if 0 < seconds < 2**31 else time


def batch(seed, number):
    made = generator(f"{seed}/{number}")
    return [made.command() for _ in range(BATCH)]


def replies(clients):
    """What each says until it closes."""
    all_said = []
    for client in clients:
        said = []
        try:
            while got := client.recv(1 << 18):
                said.append(got)
        except ConnectionResetError:  # It closed without having read everything.
            pass
        client.close()
        all_said.append(b"".join(said))
    return all_said


def send_all(servers, data):
    clients = [server.connect() for server in servers]
    for client in clients:
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:  # It has closed.
            pass
    return replies(clients)


@contextlib.contextmanager
def start(pair):
    with replay.Server(pair[0]) as first, replay.Server(pair[1], is_killed=True) as second:
        yield first, second


def parts_of(commands):
    """The commands of each connection. memcached answers some commands in another way when others
    came in the same batch: it forgets earlier replies when a get names a key that is too long; it
    keeps them back while it throws a value away that it refuses; and while an item is in a reply
    that waits, incr gives it a shorter value instead of one padded with blanks. Nor may a value
    that is too long take a minus sign
    from the next command, see milder()."""
    parts = [[]]
    has_values = False
    for command in commands:
        lines = [
            [word for word in line.split(b" ") if word]
            for line in command.replace(b"\r\n", b"\n").split(b"\n")
        ]
        names = {words[0] for words in lines if words}
        alone = any(words and stops(words, command) for words in lines)
        if alone or has_values and names & {b"incr", b"decr", b"ma"}:
            parts.append([])
            has_values = False
        parts[-1].append(command)
        has_values |= bool(names & {*GETS, b"mg"})
        if alone:
            parts.append([])
    return filter(None, parts)


def stops(words, command):
    if words[0] in GETS:
        return any(len(word) > 250 for word in words)
    if words[0] not in (b"ms", *STORING):
        return False
    length = (words[2:3] if words[0] == b"ms" else words[4:5]) or [b""]
    return length[0] != b"%d" % len(command.split(b"\n", 1)[1].removesuffix(b"\r\n"))


def answers(servers, commands):
    """The masked replies."""
    said = [send_all(servers, b"".join([*part, PADDING])) for part in parts_of(commands)]
    return [replay.masked(b"".join(each)) for each in zip(*said)]


def counts(servers, names):
    found = []
    for said in send_all(servers, b"stats\r\n"):
        pairs = dict(
            line.split(" ", 2)[1:]
            for line in said.decode().splitlines()
            if line.startswith("STAT ")
        )
        found.append({name: pairs.get(name) for name in names})
    return found


def same_counts(servers, names, where):
    ours, theirs = counts(servers, names)
    if ours != theirs:
        print(
            f"--- {where}: counters (memcached, ours)",
            [(n, theirs[n], ours[n]) for n in names if ours[n] != theirs[n]],
        )
    return ours == theirs


def count_commands(pair):
    with start(pair) as servers:
        return sum(
            send_all(servers, replay.unescaped(line)) and not same_counts(servers, SETTLED, line)
            for line in COUNTED
        )


def show_first(ours, theirs):
    """The replies from the first line on that differs."""
    same = len(os.path.commonprefix([ours, theirs]))
    begin = ours.rfind(b"\n", 0, same) + 1
    for name, reply in (("memcached", theirs), ("ours", ours)):
        print(f"  {name:9} {replay.escaped(reply[begin:begin + 200].split(PADDING_REPLY)[0])}")


def show(seed, number, sent, pair, first, second):
    """The least part of the batch that new servers answer differently, if there is one."""
    print(f"--- seed {seed}, batch {number}: the replies differ")
    show_first(first, second)

    def differs(part):
        with start(pair) as servers:
            ours, theirs = answers(servers, part)
            return ours != theirs and (ours, theirs)

    found = differs(sent)
    if not found:
        print("  but not on servers without items; the batch:")
    for command in list(sent) if found else []:
        less = [c for c in sent if c is not command]
        if less_found := differs(less):
            sent, found = less, less_found
    for command in sent:
        print(f"  > {replay.escaped(command)}")
    if found:
        show_first(*found)


def run(commands, chosen):
    """The number of differences."""
    numbers = [chosen.batch] if chosen.batch is not None else range(-(-chosen.commands // BATCH))
    wrong, at = count_commands(commands), 0
    while at < len(numbers) and wrong < SHOWN:
        with start(commands) as servers:
            for _ in range(BATCHES_PER_START):
                number = numbers[at]
                at += 1
                sent = batch(chosen.seed, number)
                ours, theirs = answers(servers, sent)
                if ours != theirs:
                    wrong += 1
                    show(chosen.seed, number, sent, commands, ours, theirs)
                    break
                if number % BATCHES_PER_COUNT == 0 or at == len(numbers):
                    if not same_counts(servers, COUNTERS, f"seed {chosen.seed}, batch {number}"):
                        wrong += 1
                        break
                if at == len(numbers):
                    break
    print(f"{at * BATCH} commands, seed {chosen.seed}: {wrong} batches differ")
    return wrong


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("server")
    parser.add_argument(
        "--commands", type=int, default=int(os.environ.get("UMS_DIFFERENTIAL_COMMANDS", "20000"))
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, help="only this one")
    chosen = parser.parse_args()
    memcached = replay.memcached()
    if memcached is None:
        print("memcached 1.6.18 is not installed")
        return 77
    return 1 if run([[os.path.abspath(chosen.server)], [*memcached, "-t", "1"]], chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
