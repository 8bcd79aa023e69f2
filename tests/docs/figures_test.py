#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/figures reads README's tables, runs their commands and compares, here over made-up ones."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("figures", str(ROOT / "tools/figures"))
figures = importlib.util.module_from_spec(importlib.util.spec_from_loader("figures", loader))
loader.exec_module(figures)

ROWS = {
    "yield, ns": ("ns_per_op", {}, 1, "ums"),
    "late, ms": ("late_us", {"way": "open"}, 1e-3, "ums"),
    "kept": ("kept", {"detector": ("monitor", "none")}, 1, "ums"),
    "yield of a worker, ns": ("ns_per_op", {}, 1, "ums-worker"),
}
PAGE = """| not figures | at all |
|---|---|
| x | 7 |

Text.

| one processor | libums | Boost.Fiber | Go | made by |
|---|---|---|---|---|
| yield, ns | **10** | 30 | 1,000 | `ums bench yield --fibers 100` |
| late, ms | 4.0 | until they end | | `ums bench late` |
"""


def row(runtime, **figures_and_settings):
    return {"runtime": runtime, **figures_and_settings}


class Figures(unittest.TestCase):
    def setUp(self):
        known, figures.ROWS = figures.ROWS, ROWS
        self.addCleanup(setattr, figures, "ROWS", known)

    def compare(self, label, cells, *rows):
        lines, wrong = figures.compared(figures.Row(label, cells, "ums bench x"), {"rows": list(rows)})
        return wrong, "\n".join(lines)

    def test_only_tables_with_their_commands_are_read(self):
        first, second = figures.rows_of(PAGE)
        self.assertEqual((first.label, first.command), ("yield, ns", "ums bench yield --fibers 100"))
        self.assertEqual(first.cells, {"libums": "**10**", "Boost.Fiber": "30", "Go": "1,000"})
        self.assertEqual(second.cells, {"libums": "4.0", "Boost.Fiber": "until they end", "Go": ""})

    def test_a_row_without_a_command_or_a_cell_is_refused(self):
        for bad in (PAGE.replace("`ums bench late`", "hand"), PAGE.replace("| 30 |", "|")):
            with self.assertRaisesRegex(ValueError, "does not fit its table"):
                figures.rows_of(bad)

    def test_what_one_side_does_not_know_is_named(self):
        rows = figures.rows_of(PAGE.replace("Boost.Fiber", "Folly").replace("late, ms", "lat, ms"))
        self.assertEqual(sorted(figures.unknown(rows)), [
            "the page's column 'Folly' is not in tools/figures",
            "the page's row 'lat, ms' is not in tools/figures",
            "tools/figures has 'kept', the page has not",
            "tools/figures has 'late, ms', the page has not",
            "tools/figures has 'yield of a worker, ns', the page has not"])

    def test_ratios_may_differ_by_a_fifth(self):
        cells = {"libums": "**10**", "Boost.Fiber": "30", "Go": "1,000"}
        # Twice as fast a machine.
        wrong, text = self.compare("yield, ns", cells, row("ums", ns_per_op=5), row("go", ns_per_op=500),
                                   row("boost.fiber", ns_per_op=17.9))
        self.assertEqual(wrong, 0, text)
        wrong, text = self.compare("yield, ns", cells, row("ums", ns_per_op=5), row("go", ns_per_op=400),
                                   row("boost.fiber", ns_per_op=18.1))
        self.assertEqual(wrong, 2, text)
        self.assertEqual(text.count("DIFFERS"), 2)

    def test_the_static_boost_comes_first(self):
        cells = {"libums": "10", "Boost.Fiber": "30"}
        rows = [row("boost.fiber", ns_per_op=60), row("boost.fiber static", ns_per_op=30), row("ums", ns_per_op=10)]
        self.assertEqual(self.compare("yield, ns", cells, *rows)[0], 0)
        self.assertEqual(self.compare("yield, ns", cells, rows[0], rows[2])[0], 1)

    def test_no_share_is_no_share(self):
        cells = {"libums": "0.97", "Boost.Fiber": "0"}
        own = row("ums", kept=0.9, detector="monitor")
        off = row("ums", kept=0.1, detector="off")
        for kept, wrong in ((0, 0), (0.01, 0), (0.1, 1)):
            peer = row("boost.fiber", kept=kept, detector="none")
            self.assertEqual(self.compare("kept", cells, off, own, peer)[0], wrong, kept)

    def test_settings_choose_the_row_and_units_are_those_of_the_page(self):
        cells = {"libums": "4.0", "Boost.Fiber": "until they end", "Go": "101"}
        rows = [row("ums", late_us=9, way="shut"), row("ums", late_us=4000, way="open"),
                row("go", late_us=100_000, way="open")]
        wrong, text = self.compare("late, ms", cells, *rows)
        self.assertEqual(wrong, 0, text)
        self.assertNotIn("Boost.Fiber", text)

    def test_another_runtime_may_stand_in_the_first_column(self):
        cells = {"libums": "20", "std::thread": "2,000"}
        rows = [row("ums", ns_per_op=1), row("ums-worker", ns_per_op=20), row("std::thread", ns_per_op=2000)]
        self.assertEqual(self.compare("yield of a worker, ns", cells, *rows)[0], 0)

    def test_a_figure_that_cannot_be_made_is_named(self):
        cells = {"libums": "10", "Go": "1,000"}
        for rows in ([row("ums", ns_per_op=10), row("go", error="it was not built")], [row("go", ns_per_op=1000)]):
            wrong, text = self.compare("yield, ns", cells, *rows)
            self.assertGreater(wrong, 0)
            self.assertIn("not measured", text)

    def run_page(self, folder, page, script):
        (path := pathlib.Path(folder, "page.md")).write_text(page)
        (ums := pathlib.Path(folder, "ums")).write_text("#!/bin/sh\n" + script)
        ums.chmod(0o755)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            return figures.main(str(ums), str(path)), said.getvalue()

    def test_each_command_runs_once_and_the_exit_status_tells(self):
        figures.ROWS = {"a": ("ns_per_op", {"way": "a"}, 1, "ums"), "b": ("ns_per_op", {"way": "b"}, 1, "ums")}
        page = ("| | libums | Go | made by |\n|---|---|---|---|\n| a | 1 | 2 | `ums bench x --ways 'a,b'` |\n"
                "| b | 1 | 3 | `ums bench x --ways 'a,b'` |\n")
        rows = [row(runtime, way=way, ns_per_op=ns) for runtime, way, ns in
                (("ums", "a", 10), ("go", "a", 20), ("ums", "b", 10), ("go", "b", 30))]
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            script = f"echo \"$@\" >>{log}\ncat <<'END'\n{json.dumps({'rows': rows})}\nEND\n"
            self.assertEqual(self.run_page(folder, page, script)[0], 0)
            self.assertEqual(pathlib.Path(log).read_text(), "bench x --ways a,b --json -\n")
            wrong, said = self.run_page(folder, page.replace("| 3 |", "| 4 |"), script)
            self.assertEqual(wrong, 1)
            self.assertEqual(said.count("DIFFERS"), 1)
            with self.assertRaisesRegex(ValueError, "exit status 2"):
                self.run_page(folder, page, "exit 2")

    def test_a_grid_compares_each_number_with_its_base(self):
        part = figures.Part
        page = ("| | fib |\n|---|---|\n| slow | 1,040 / 2.0 |\n| fast | 10 / 1.0 |\n\n"
                "| at once | threads | fibers |\n|---|---|---|\n| 16 | 10 | 20 |\n")
        tree = figures.Grid("ums bench tree", {"slow": ("a", {}), "fast": ("b", {})}, [
            [part("ns", 1e-3, None, {"cut": 0}), part("ns", 1e-3, None, {"cut": lambda n: n != 0})]], "fast")
        pairs = figures.Grid("ums bench pairs", {"16": (None, {"n": 16})},
                             [[part("us", 1, "threads")], [part("us", 1, "ums")]], [0, 0])
        (first, rows), (second, others) = figures.grids_of(page)
        self.assertEqual((first, second), (("", "fib"), ("at once", "threads")))
        measured = [row("a", ns=2_080_000, cut=0), row("a", ns=4200, cut=20), row("b", ns=20_000, cut=0),
                    row("b", ns=2000, cut=20)]
        lines, wrong = figures.compared_grid(tree, rows, {"rows": measured})
        self.assertEqual((len(lines), wrong), (4, 0), lines)
        measured[1]["ns"] = 6000
        lines, wrong = figures.compared_grid(tree, rows, {"rows": measured})
        self.assertEqual((wrong, lines[1].count("DIFFERS")), (1, 1), lines)
        measured = [row("threads", us=5, n=16), row("ums", us=7, n=16), row("ums", us=10, n=1)]
        self.assertEqual(figures.compared_grid(pairs, others, {"rows": measured})[1], 1)
        without_base = {"rows": measured[1:]}
        self.assertEqual(figures.compared_grid(pairs, others, without_base)[1], 2)


class Results(unittest.TestCase):
    def test_the_tables_of_results_are_known(self):
        text = (ROOT / "docs/results.md").read_text()
        self.assertEqual(figures.rows_of(text), [])
        self.assertEqual(figures.unknown_grids(figures.grids_of(text), text), [])
        for other in (text.replace("| TBB |", "| Cilk |"), text.replace("`ums bench jobs`", "`ums bench job`"),
                      text.replace("| short p50 |", "| p50 |")):
            self.assertNotEqual(figures.unknown_grids(figures.grids_of(other), other), [])


class Readme(unittest.TestCase):
    def test_the_rows_of_readme_are_known(self):
        rows = figures.rows_of((ROOT / "README.md").read_text())
        self.assertEqual(figures.unknown(rows), [])
        self.assertTrue(all(figures.printed(one.cells["libums"]) for one in rows))


if __name__ == "__main__":
    unittest.main()
