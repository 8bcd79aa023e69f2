#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_policy.py UMS NAME=LIBRARY...: what `ums check-policy` says of the built-in policies and of the libraries.

UMS_POLICY_STEPS=n: so many steps instead of the command's own number (the long form: 10000000).
"""

import concurrent.futures
import os
import subprocess
import sys

BUILT_IN = ["global_fifo", "local_locked", "local_mpsc", "local_mpsc_intrusive", "priority",
            "earliest_deadline_first", "fair_share"]

# Which test catches it, and what is said of it.
BROKEN = {
    "drops": ("conservation", "was dropped"),
    "duplicates": ("conservation", "was duplicated"),
    "starves": ("liveness", "starves"),
    "starves_outside": ("liveness", "starves"),
    "sleeps_beside": ("empty", "empty("),
    "never_sleeps": ("empty", "empty("),
    "races": ("concurrency", ""),
    "forgets_on_detach": ("conservation", "was dropped"),
    "raises_twice": ("cluster", ""),
    "exits": ("conservation", "ended the process"),
    "without_a_policy": ("cluster", "ums_policy_make() returned null"),
}
TESTS = ["empty", "conservation", "liveness", "concurrency", "cluster"]


def run(ums, what, seconds):
    steps = os.environ.get("UMS_POLICY_STEPS")
    # Nothing of this environment may choose other policies, or be refused.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("UMS_")}
    done = subprocess.run([ums, "check-policy", what, "--seconds", seconds if steps is None else "3600"] +
                          ([] if steps is None else ["--steps", steps]),
                          capture_output=True, text=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


def main():
    ums, *cases = sys.argv[1:]
    failed = []

    def expect(name, condition):
        if not condition:
            failed.append(name)

    def outcome(what, result):
        code, out, error = result
        print(f"{os.path.basename(what)}: exit code {code}\n{out}{error}", flush=True)
        said = dict(line.split(": ", 1) for line in out.splitlines())
        assert list(said) == TESTS, said
        return code, said

    for name in BUILT_IN:
        code, said = outcome(name, run(ums, name, "120"))
        expect(name, code == 0 and set(said.values()) == {"ok"})
    # What a broken one loses, its cluster waits for to the end: these wait all together. How long a
    # fiber must wait before it starves depends on the turns that all had, so on a busy machine that
    # test takes its time.
    libraries = dict(case.split("=", 1) for case in cases)
    with concurrent.futures.ThreadPoolExecutor(len(BROKEN)) as pool:
        waiting = {name: pool.submit(run, ums, library, "10") for name, library in libraries.items()
                   if name in BROKEN and name != "starves"}
    # There is nothing to test.
    lacks = libraries.pop("without_functions")
    for name, library in libraries.items():
        code, said = outcome(library, waiting[name].result() if name in waiting else run(ums, library, "120"))
        if name in BROKEN:
            test, words = BROKEN[name]
            expect(name, code == 1 and said[test].startswith("BROKEN: ") and words in said[test])
        else:
            expect(name, code == 0 and set(said.values()) == {"ok"})

    for arguments in [[lacks], ["nothing"], ["./no/such.so"], ["/dev/null"], ["work_stealing"], []]:
        refused = subprocess.run([ums, "check-policy", *arguments], capture_output=True, text=True, check=False)
        expect(str(arguments), refused.returncode == 2 and refused.stderr.count("\n") == 1)
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
