#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""site_test.py DIRECTORY [SITE]: makes the site in DIRECTORY (or takes the one in SITE), and looks at it:

- every link of the pages leads to a page that is there, and to a place on it that is there;
- the tree has the pages in the order of docs/README.md, and the design notes below one node;
- the start page and two others fit and can be read at 1,200 and at 400 pixels, where there is Chromium.
  DIRECTORY-pictures then has pictures of them.
"""

import html
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import layout  # noqa: E402

# Tables and programs are scrolled sideways where they have to be. The rest is Doxygen's.
LEFT_OUT = "table.markdownTable, div.fragment, .main-menu-btn, #side-nav"
SEEN = ["index.html", "page_docs_start.html", "page_docs_io.html"]


def places(text):
    return set(re.findall(r'\b(?:id|name)="([^"]+)"', text))


def broken_links(site):
    pages = {page.relative_to(site).as_posix(): page.read_text(errors="replace") for page in site.rglob("*.html")}
    anchors = {name: places(text) for name, text in pages.items()}
    for name, text in sorted(pages.items()):
        # The rest is Doxygen's own, which links to members that it then leaves out.
        if name != "index.html" and not name.startswith(("page_", "man/")):
            continue
        for target in sorted(set(re.findall(r'\b(?:href|src|data)="([^"]+)"', text))):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = html.unescape(target).partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if not (site / path).exists():
                yield f"{name}: links to {path}, which is not there"
            elif anchor and path in anchors and anchor not in anchors[path]:
                yield f"{name}: links to {path}#{anchor}, which is not there"


def wrong_order(site):
    def nodes(page):
        return re.findall(r'\[ "[^"]*", "(page_\w+)\.html", (?:"page|null|\[)', (site / f"{page}.js").read_text())

    def entries(page):
        text = (ROOT / page).read_text()
        text = text[text.find("\n## Begin"):] if page == "docs/README.md" else text
        for line in text.splitlines():
            if line.startswith(("- ", "| [")):
                for target in re.findall(r"\]\(([\w./-]+\.md)\)", line):
                    path = os.path.normpath(os.path.join(os.path.dirname(page), target))
                    yield re.sub(r"\W", "_", "page_" + path.removesuffix(".md"))

    for page, node in (("docs/README.md", "page_docs_README"), ("docs/design/README.md", "page_docs_design_README")):
        wanted, found = list(dict.fromkeys(entries(page))), list(dict.fromkeys(nodes(node)))
        if wanted != found:
            yield f"the tree below {page} has {found}, the page {wanted}"


def main(out, site):
    if site is None:
        site = out
        if done := subprocess.run([ROOT / "tools/docs/build", site], check=False).returncode:
            return done
    wrong = [*broken_links(site), *wrong_order(site)]
    if layout.chromium():
        pictures = pathlib.Path(f"{out}-pictures")
        pictures.mkdir(parents=True, exist_ok=True)
        for page in SEEN:
            for width in (1200, 400):
                picture = pictures / f"{page.removesuffix('.html')}-{width}.png"
                wrong += [f"{page}, {width} pixels: {what}"
                          for what in layout.findings(site / page, width, "light", picture, heading=False, height=1600,
                                                      left_out=LEFT_OUT)]
        print(f"pictures: {pictures}")
    else:
        print("its layout was not looked at: there is no Chromium here (tools/setup page)")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None))
