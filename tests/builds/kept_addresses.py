#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kept_addresses.py FILE...      reads the machine code of programs and libraries that have libums in them
kept_addresses.py --self-test  proves that it can fail, with each compiler that is here

A fiber may continue on another kernel thread after each switch. A compiler knows nothing of that: it may compute the
address of a thread_local variable, or of errno, once, and use it again after a call that switches (LLVM issue 98479).
This follows each such address through the code, from the instruction that computes it over registers and the
function's own stack, and reports each use after a call that may reach the switch. A call through a pointer may reach
it, except below src/sched.

It does not follow an address into memory elsewhere, nor into a function that gets it as an argument.
"""

import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Functions that return the address of something of the calling thread.
GIVES_ADDRESS = re.compile(r"^(__errno_location|__tls_get_addr|_ZTW.*)$")

# What only the inlined switch does (arch/x86_64/switch.hpp): from there on the stack is the other
# side's.
SWITCH = re.compile(r"^mov \(%rsi\),%rsp$")

# The layers below the switch know of no fiber (tests/layering/check.py): a call through a pointer
# there does not switch.
BELOW = re.compile(r"^_ZN?K?3ums(2os|4base|3mem)")

ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
# What a call leaves alone; the switch leaves rbp alone, and the stack.
KEPT = ("rbx", "rbp", "r12", "r13", "r14", "r15")

NAMES = {}
for wide in ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp"):
    NAMES[wide] = NAMES["e" + wide[1:]] = NAMES[wide[1:]] = wide
    NAMES[wide[1:2] + "l"] = NAMES[wide[1:] + "l"] = wide
for number in range(8, 16):
    for end in ("", "d", "w", "b"):
        NAMES[f"r{number}{end}"] = f"r{number}"

LINE = re.compile(r"^\s+([0-9a-f]+):\s+(?:(?:bnd|notrack|data16|rex\.W|lock|cs|ds|repz?|repnz) )*(\S+)\s*(.*?)\s*(?:#.*)?$")
HEAD = re.compile(r"^([0-9a-f]+) <(.+)>:$")
TARGET = re.compile(r"^([0-9a-f]+)(?: <(.+?)(?:\+0x[0-9a-f]+)?>)?$")
STACK = re.compile(r"^(-?0x[0-9a-f]+)?\((%rsp|%rbp)\)$")


# The address of a plain thread's own waiter, which only plain threads ask for
# (sched/run/park.hpp): no switch moves them.
STAYS = ("_ZN3ums5sched12plain_threadEv",)

# A fiber that is stopped waits on its kernel thread, which waits with it: that is where it goes on.
STOPS = ("_ZN3ums5sched4stop12on_interruptERK9siginfo_tPv", "_ZN3ums5sched4stop7make_upERNS0_7carrierERNS0_5fiberE")


class Code:
    """The instructions of a file, by address: (address of the next, mnemonic, operands, function)."""

    def __init__(self, path):
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True,
                              check=True).stdout
        self.at, self.functions, name, last = {}, {}, None, None
        for line in text.splitlines():
            if head := HEAD.match(line):
                name = head[2]
                self.functions.setdefault(name, int(head[1], 16))
                last = None
            elif (here := LINE.match(line)) and name:
                address = int(here[1], 16)
                self.at[address] = [None, here[2], here[3], name]
                if last is not None:
                    self.at[last][0] = address
                last = address

    @staticmethod
    def callee(operand):
        """The function that an operand of a call or jump names; None: through a pointer."""
        if operand.startswith("*"):
            return None
        found = TARGET.match(operand)
        return plain((found and found[2]) or operand)

    def switching(self):
        """The functions that may reach the switch."""
        callers, reached = collections.defaultdict(set), set()
        for _, what, operands, name in self.at.values():
            if name.endswith("@plt"):
                continue
            if SWITCH.match(f"{what} {operands}"):
                reached.add(plain(name))
            elif what.startswith("call") or what.startswith("j"):
                callee = self.callee(operands)
                if callee is None:
                    if what.startswith("call") and not BELOW.match(name):
                        reached.add(plain(name))
                elif callee != plain(name):
                    callers[callee].add(plain(name))
        rest = list(reached)
        while rest:
            for caller in callers[rest.pop()] - reached:
                reached.add(caller)
                rest.append(caller)
        return reached


def plain(name):
    """Without what the linker and the compiler add to a name: @plt, .part.0, .lto_priv.0, ..."""
    return re.sub(r"(@plt|\$plt|@@?[A-Z0-9_.]+|\.(part|isra|constprop|lto_priv|cold|llvm)\b.*)+$", "", name)


def split(operands):
    """The operands of an instruction; commas in parentheses do not part them."""
    return [one.strip() for one in re.split(r",(?![^(]*\))", operands)] if operands else []


def register(operand):
    return NAMES.get(operand[1:]) if operand.startswith("%") else None


def registers_of(operand):
    """Those that a memory operand is addressed with."""
    return [NAMES[one] for one in re.findall(r"%(\w+)", operand.partition("(")[2]) if one in NAMES]


class Search:
    """Follows addresses of the calling thread's things through one file."""

    def __init__(self, code):
        self.code = code
        self.switching = code.switching()
        self.giving = set()  # Functions of the file that return such an address.
        self.found = set()

    def sources(self):
        """Where an address comes to be, and in which register: (address of the next instruction, register)."""
        for here, (following, what, operands, name) in self.code.at.items():
            if what.startswith("call"):
                callee = self.code.callee(operands)
                gives = callee and (GIVES_ADDRESS.match(callee) or callee in self.giving) and callee not in STAYS
                if (gives or "__tls_get_addr" in operands) and plain(name) not in STOPS:
                    yield here, following, "rax"
            elif re.search(r"%fs:0x0($|,)", operands) and what.startswith(("mov", "add")):
                yield here, following, register(split(operands)[-1])

    def run(self):
        known = None
        while known != len(self.giving):  # Until no further function is found to return one.
            known = len(self.giving)
            self.found.clear()
            for here, following, where in self.sources():
                if following is not None and where is not None:
                    self.follow(here, following, where)
        return sorted(self.found)

    def follow(self, source, begin, where):
        """All paths from `begin`, where `where` holds an address. `stale` is what was computed before a switch."""
        home = self.code.at[source][3]
        rest, seen = [(begin, frozenset([where]), frozenset())], set()
        while rest:
            state = rest.pop()
            if state in seen or state[0] not in self.code.at:
                continue
            seen.add(state)
            here, fresh, stale = state
            following, what, operands, name = self.code.at[here]
            parts = split(operands)
            memory = [part for part in parts if "(" in part]
            if not what.startswith(("lea", "nop")) and any(r in stale for part in memory for r in registers_of(part)):
                self.report(here, source)
                continue
            if SWITCH.match(f"{what} {operands}"):
                # Goes on behind the switch's text, with the stack and rbp.
                stale = frozenset(k for k in fresh | stale if k == "rbp" or k.startswith("("))
                after = self.after_switch(here)
                rest.append((after, frozenset(), stale))
                continue
            if what.startswith("call"):
                if any(r in stale for r in ARGUMENTS):
                    self.report(here, source)
                    continue
                callee = self.code.callee(operands)
                keep = lambda set_: frozenset(k for k in set_ if k in KEPT or k.startswith("("))
                may = not BELOW.match(name) and "__tls_get_addr" not in operands if callee is None else callee in self.switching
                if may:
                    fresh, stale = frozenset(), keep(fresh | stale)
                else:
                    fresh, stale = keep(fresh), keep(stale)
            elif what.startswith("ret"):
                if "rax" in fresh:
                    self.giving.add(plain(home))
                if "rax" in stale:
                    self.report(here, source)
                continue
            elif what.startswith("j"):
                callee = self.code.callee(operands)
                found = TARGET.match(operands)
                if found and (int(found[1], 16) in self.code.at):
                    rest.append((int(found[1], 16), fresh, stale))
                if what.startswith("jmp"):
                    continue
            elif parts:
                fresh, stale = self.moved(what, parts, fresh, stale)
            if (fresh or stale) and following is not None:
                rest.append((following, fresh, stale))

    def after_switch(self, here):
        """The instruction at which the switch's text ends: its label 1, behind the jump back to its label 2."""
        jumps = 0
        while here is not None and jumps < 2:
            jumps += self.code.at[here][1] == "jmp"
            here = self.code.at[here][0]
        return here

    @staticmethod
    def moved(what, parts, fresh, stale):
        """What holds an address after an instruction that is neither call nor jump."""
        target, given = parts[-1], parts[:-1]
        place = register(target) or (f"({target}" if STACK.match(target) else None)
        if place is None or what.startswith(("cmp", "test", "push", "nop", "bt ", "prefetch")):
            return fresh, stale

        def held(among):
            for part in given:
                if register(part) in among or f"({part}" in among:
                    return True
                if what.startswith("lea") and any(r in among for r in registers_of(part)):
                    return True
            return False

        goes_on = what.startswith(("add", "sub", "and", "or", "inc", "dec")) and place
        out = []
        for among in (fresh, stale):
            rest = among if goes_on and place in among else among - {place}
            if what.startswith(("mov", "lea", "add", "cmov", "xchg")) and held(among):
                rest = rest | {place}
            elif what.startswith("cmov") and place in among:
                rest = rest | {place}
            out.append(frozenset(rest))
        return out

    def report(self, here, source):
        name = self.code.at[source][3]
        self.found.add((name, f"{source:x}", f"{here:x}"))


def check(path):
    search = Search(Code(path))
    found = search.run()
    for name, source, use in found:
        print(f"{path}: {name}: the address computed at {source} is used at {use}, after a switch")
    count = sum(1 for _ in search.sources())
    print(f"{path}: {count} addresses of the kernel thread's things followed, {len(search.switching)} functions that "
          f"may switch, {len(found)} addresses kept")
    return found, count


PLANTED = """
#include "arch/context.hpp"
#include <cerrno>
extern ums::arch::context here, there;
[[gnu::noinline]] void leave() { ums::arch::switch_context(here, there, nullptr, nullptr); }
#if defined(KEEPS_ERRNO)
int keeps() { errno = 1; leave(); return errno; }
#elif defined(KEEPS_VARIABLE)
extern thread_local int variable;
thread_local int variable;
int keeps() { variable += 1; leave(); return variable += 1; }
#elif defined(SWITCHES_ITSELF)
int keeps() { errno = 1; ums::arch::switch_context(here, there, nullptr, nullptr); return errno; }
#else
[[gnu::noinline]] int error() { asm volatile(""); return errno; }
[[gnu::noinline]] void set_error(int to) { asm volatile(""); errno = to; }
int keeps() { set_error(1); leave(); return error(); }
#endif
"""


def self_test():
    failed = 0
    for compiler in ("g++", "clang++-19"):
        if not shutil.which(compiler):
            print(f"skipped   {compiler}: it is not on this machine")
            continue
        for flags in ("-O2", "-O3"):
            for planted in ("KEEPS_ERRNO", "KEEPS_VARIABLE", "SWITCHES_ITSELF", "NOTHING"):
                with tempfile.TemporaryDirectory() as folder:
                    source, made = (os.path.join(folder, name) for name in ("planted.cpp", "planted.so"))
                    with open(source, "w", encoding="utf-8") as file:
                        file.write(PLANTED)
                    subprocess.run([compiler, "-std=c++20", flags, "-fPIC", "-shared", "-D" + planted, "-I",
                                    os.path.join(ROOT, "src"), "-I", os.path.join(ROOT, "include"), source, "-o", made],
                                   check=True)
                    found, _ = check(made)
                is_right = bool(found) == (planted != "NOTHING")
                failed += not is_right
                print(f"{'ok' if is_right else 'FAILED':9} {compiler} {flags} {planted}")
    return failed


def main():
    if not shutil.which("objdump"):
        print("skipped: objdump is not here")
        return 77
    if sys.argv[1:] == ["--self-test"]:
        return 1 if self_test() else 0
    failed = 0
    for path in sys.argv[1:]:
        found, count = check(path)
        if count == 0:
            print(f"{path}: no address was found to follow: is this libums?")
        failed += bool(found) or count == 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
