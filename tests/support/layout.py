# SPDX-License-Identifier: MIT
"""Looks at a page in headless Chromium: does it fit, can it be read, does it begin as it should?

findings(page, ...) opens the page at a width, light or dark, with everything unfolded, and returns a line
for each thing that is wrong:

- an element that is wider than its parent, or has to be scrolled sideways;
- text with too little contrast to what is behind it (WCAG: 4.5, or 3 for large letters);
- a first line of the page that is not its heading.

The page is in a frame, because a window of Chromium has a least width.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

# Runs in the page. A chart draws its own text, and is looked at as one element.
LOOK = """
addEventListener("load", () => setTimeout(() => {
    const found = [];
    const say = (element, what) => {
        const id = element.id ? "#" + element.id : "";
        const words = element.textContent.trim().replace(/\\s+/g, " ").slice(0, 40);
        found.push(`${element.tagName.toLowerCase()}${id} "${words}": ${what}`);
    };
    const shown = (element) => element.getClientRects().length > 0 &&
        getComputedStyle(element).visibility !== "hidden" && !element.closest("svg, script, style, [hidden]");
    const all = [...document.body.querySelectorAll("*")].filter(shown)
        .filter((one) => !LEFT_OUT || !one.closest(LEFT_OUT));

    for (const one of all) {
        const box = one.getBoundingClientRect(), parent = one.parentElement.getBoundingClientRect();
        if (box.width > 1 && getComputedStyle(one).position !== "fixed" &&
            (box.right > parent.right + 1.5 || box.left < parent.left - 1.5))
            say(one, `from ${Math.round(box.left)} to ${Math.round(box.right)} in a parent from ` +
                     `${Math.round(parent.left)} to ${Math.round(parent.right)}`);
        if (one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== "inline")
            say(one, `${one.scrollWidth} wide in ${one.clientWidth}`);
    }
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth + 1) say(root, `the page is ${root.scrollWidth} wide in ${root.clientWidth}`);

    const colour = (text) => {
        const numbers = text.match(/[\\d.]+/g).map(Number);
        return numbers.length > 3 ? numbers : [...numbers, 1];
    };
    const light = (rgb) => {
        const [r, g, b] = rgb.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const paint = colour(getComputedStyle(at).backgroundColor);
            if (paint[3] > 0.99) return paint;
        }
        return dark ? [18, 18, 18] : [255, 255, 255];
    };
    for (const one of all) {
        const words = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!words) continue;
        const style = getComputedStyle(one);
        const [a, b] = [light(colour(style.color)), light(behind(one))].sort((x, y) => y - x);
        const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.6 && style.fontWeight >= 700);
        const contrast = (a + 0.05) / (b + 0.05);
        if (contrast < (large ? 3 : 4.5)) say(one, `contrast ${contrast.toFixed(1)}`);
    }

    const first = all.find((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
    const heading = document.querySelector("h1, .title");
    if (HEADING && (!heading || !first || !(first === heading || heading.contains(first))))
        say(first || document.body, "comes before the heading");
    parent.postMessage({found, dark, width: innerWidth}, "*");
}, 300));
"""

FRAME = """<!doctype html>
<style>body { margin: 0 } iframe { border: 0; display: block; width: WIDTHpx; height: HEIGHTpx }</style>
<iframe src="PAGE"></iframe><pre id="said"></pre>
<script>addEventListener("message", (event) => {
    if (event.data && event.data.found) document.getElementById("said").textContent = JSON.stringify(event.data);
});</script>
"""


def chromium():
    """The program, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def _run(folder, frame, scheme, *more):
    # No sandbox: tests run as root in containers. The page is the project's own, and loads nothing.
    command = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files",
               f"--user-data-dir={folder}/profile", f"--blink-settings=preferredColorScheme={int(scheme == 'light')}",
               *more, frame.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def findings(page, width, scheme, picture=None, heading=True, height=4000, left_out=""):
    """What is wrong with the page at this width, light or dark. `picture` is where a picture of it goes.

    `left_out` selects elements that are not looked at, in the language of style sheets.
    """
    page = pathlib.Path(page).resolve()
    with tempfile.TemporaryDirectory() as folder:
        # Beside the page, so that what it refers to is found.
        looked_at = page.with_name(f".looked-at-{os.getpid()}.html")
        text = page.read_text()
        script = f"<script>const HEADING = {json.dumps(heading)}, LEFT_OUT = {json.dumps(left_out)};{LOOK}</script>"
        open_all = "<script>document.querySelectorAll('details').forEach((one) => { one.open = true; });</script>"
        looked_at.write_text(re.sub(r"</body>", lambda _: open_all + script + "</body>", text, count=1))
        try:
            def framed(which, name):
                frame = pathlib.Path(folder, name)
                frame.write_text(FRAME.replace("WIDTH", str(width)).replace("HEIGHT", str(height))
                                 .replace("PAGE", which.as_uri()))
                return frame
            done = _run(folder, framed(looked_at, "look.html"), scheme, f"--window-size={max(width, 500)},{height}",
                        "--virtual-time-budget=60000", "--dump-dom")
            said = re.search(r'<pre id="said">(.+?)</pre>', done.stdout, re.DOTALL)
            if not said:
                return [f"Chromium said nothing of {page}: {done.stderr[-300:]}"]
            said = json.loads(said[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
            if (said["width"], said["dark"]) != (width, scheme == "dark"):
                return [f"Chromium showed {said['width']} columns, dark: {said['dark']}"]
            if picture:
                _run(folder, framed(page, "picture.html"), scheme, f"--window-size={max(width, 500)},{height}",
                     f"--screenshot={picture}")
            return said["found"]
        finally:
            looked_at.unlink()
