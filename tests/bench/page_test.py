#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""page_test.py PATH_OF_UMS_BENCH PICTURES: the page of `make demo`, as a reader sees it.

It begins with its verdict, nothing is cut off, and all of it can be read: at 1,200 and at 400 pixels, light
and dark, folded and unfolded, in headless Chromium. Pictures of it are left in the folder PICTURES.
"""

import html
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import layout  # noqa: E402

UMS_BENCH, PICTURES = "", pathlib.Path()


def measured(*args):
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "page.html")
        done = subprocess.run([UMS_BENCH, *args, "--quick", "--json", "-", "--html", page], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300, check=False)
        return done, page.read_text() if page.exists() else ""


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.done, cls.text = measured("demo")
        PICTURES.mkdir(parents=True, exist_ok=True)
        cls.page = PICTURES / "demo.html"
        cls.page.write_text(cls.text)

    def setUp(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)

    def says(self):
        return [html.unescape(one) for one in re.findall(r'<section class="claim">\n<h2>(.*?)</h2>', self.text)]

    def test_the_verdict_is_made_of_this_runs_figures(self):
        verdict = html.unescape(re.search(r"<h1>(.*?)</h1>", self.text)[1])
        rows = {one["bench"]: one["rows"] for one in json.loads(self.done.stdout)["benches"]}
        kept = next(row["throughput_kept"] for row in rows["blocking"] if row["runtime"] == "ums" and row["way"] == "read")
        said = re.search(r"the others keep (\d+) % of their throughput", verdict)
        self.assertAlmostEqual(int(said[1]), kept * 100, delta=1)  # The rows are rounded, too.
        fibers = next(row["fibers"] for row in rows["memory"] if row["runtime"] == "ums")
        self.assertIn(f"{fibers:,} existed at once", verdict)
        self.assertRegex(verdict, r"^A yield is [\d,.]+ times faster than a thread's")
        for sentence in re.split(r"(?<=[.)])\.? (?=[A-Z])", verdict):
            self.assertTrue(any(sentence.rstrip(".") in one for one in self.says()), sentence)

    def test_a_yield_is_compared_as_the_rows_say(self):
        rows = next(one["rows"] for one in json.loads(self.done.stdout)["benches"] if one["bench"] == "workers")
        most = max(row["yields"] for row in rows)
        fibers = sorted(row["fibers"] for row in rows if row["runtime"] == "ums")
        at = [row for row in rows if row["yields"] == most and row["fibers"] == fibers[len(fibers) // 2]]
        ns = {row["runtime"]: row["ns_per_op"] for row in at}
        said = float(re.search(r"A yield is ([\d,.]+) times faster than a thread", self.text)[1].replace(",", ""))
        self.assertLess(abs(said / (ns["std::thread"] / ns["ums"]) - 1), 0.06)

    def test_each_claim_has_bars_and_ours_come_first(self):
        claims = re.findall(r'<section class="claim">(.*?)</section>', self.text, re.DOTALL)
        self.assertGreaterEqual(len(claims), 5)
        for claim in claims:
            names = re.findall(r"<dt[^>]*>(.*?)</dt>", claim)
            self.assertGreaterEqual(len(names), 2, claim)
            self.assertEqual(names[0], "ums")
            widths = [float(one) for one in re.findall(r"width: ([\d.]+)%", claim)]
            self.assertEqual(len(widths), len(names))
            self.assertEqual(max(widths), 100)

    def test_the_terminal_says_the_same_in_short(self):
        self.assertEqual([line for line in self.done.stderr.splitlines() if line in self.says()], self.says())
        self.assertNotIn("median of", self.done.stderr)
        self.assertLess(len([line for line in self.done.stderr.splitlines() if not line.startswith("[")]), 70)

    def test_tables_and_charts_are_folded(self):
        folded = re.findall(r"<details id=\"(\w+)\">", self.text)
        self.assertEqual(folded, ["workers", "blocking", "lone", "memory"])
        self.assertLess(self.text.index("</section>"), self.text.index("<table"))

    def test_it_fits_and_can_be_read(self):
        if not layout.chromium():
            self.skipTest("there is no Chromium here: tools/setup page")
        for width in (1200, 400):
            for scheme in ("light", "dark"):
                with self.subTest(width=width, scheme=scheme):
                    picture = PICTURES / f"demo-{width}-{scheme}.png"
                    self.assertEqual(layout.findings(self.page, width, scheme, picture), [])


class Others(unittest.TestCase):
    def test_a_page_without_claims_is_unfolded(self):
        done, text = measured("pingpong")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('<details id="pingpong" open>', text)
        self.assertNotIn("claim\">", text)


class Layout(unittest.TestCase):
    """What looks at the pages sees what is wrong with one."""

    def look(self, body, width=400):
        if not layout.chromium():
            self.skipTest("there is no Chromium here: tools/setup page")
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.html")
            page.write_text(f"<!doctype html><html><body>{body}</body></html>")
            return layout.findings(page, width, "light")

    def test_a_good_page_has_no_findings(self):
        self.assertEqual(self.look("<h1>One</h1><p>Two</p>"), [])

    def test_bad_ones_have(self):
        said = "\n".join(self.look(
            '<p>First</p><h1>One</h1><div style="width: 900px">wide</div><p style="color: #aaa">pale</p>'))
        for what in ("comes before the heading", '"wide": from', "contrast 2.3"):
            self.assertIn(what, said)


if __name__ == "__main__":
    if len(sys.argv) < 3 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(__doc__)
    UMS_BENCH, PICTURES = os.path.abspath(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1)).absolute()
    unittest.main(verbosity=2)
