# SPDX-License-Identifier: MIT
"""Text as mdoc source: one sentence a line, at most 78 columns, nothing that roff would take for
a request.
"""

import os
import re
import textwrap
import time

WIDTH = 78
# Not the end of a sentence.
ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs)|\.\.)\.$")


def date(paths):
    """The date of a page: SOURCE_DATE_EPOCH where that is set, else of the newest of what it is
    made of.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    seconds = int(epoch) if epoch else max(os.path.getmtime(path) for path in paths)
    now = time.gmtime(seconds)
    return f"{time.strftime('%B', now)} {now.tm_mday}, {now.tm_year}"


def escaped(text):
    return text.replace("\\", "\\e").replace(" -- ", r" \-\- ")


def emphasised(text):
    """Functions and error numbers bold, `what is quoted` in italics. Takes and gives escaped text."""
    text = re.sub(r"`([^`]+)`", r"\\fI\1\\fP", text)
    text = re.sub(r"(?<![\w\\])([A-Za-z_~][\w:]*)\(\)", r"\\fB\1\\fP()", text)
    return re.sub(r"(?<![\w\\-])-(E[A-Z0-9]{2,})\b", r"\\fB\\-\1\\fP", text)


def sentences(text):
    found = [""]
    for word in text.split():
        found[-1] = f"{found[-1]} {word}".strip()
        if word.rstrip('")')[-1:] in (".", "!", "?") and not ABBREVIATION.search(word):
            found.append("")
    return [one for one in found if one]


def guarded(line):
    return "\\&" + line if line.startswith((".", "'")) else line


def paragraph(text):
    lines = []
    for one in sentences(emphasised(escaped(text))):
        lines += textwrap.wrap(one, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [guarded(line) for line in lines]


def literal(code):
    return [".Bd -literal", *(guarded(escaped(line)) for line in code.split("\n")), ".Ed"]


def argument(text):
    """A word for a macro's line."""
    text = escaped(text).replace('"', "\\(dq")
    return f'"{text}"' if re.search(r"\s", text) or not text else text


def items(width, entries):
    """A tagged list: (lines of the tag after .It, lines of the body)."""
    yield f".Bl -tag -width {width}"
    for tag, body in entries:
        yield f".It {tag}"
        yield from body
    yield ".El"


def write(folder, section, name, lines):
    path = os.path.join(folder, f"man{section}", f"{name}.{section}")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def head(name, section, day):
    return [
        '.\\" SPDX-License-Identifier: MIT',
        f".Dd {day}",
        f".Dt {name.upper()} {section}",
        ".Os",
    ]
