# SPDX-License-Identifier: MIT
"""What a C header of ours says: its introduction, its sections, and in each the functions with
their comments.

A comment belongs to the functions that follow it without a blank line, up to the next comment. A
comment behind a declaration belongs to that function alone. A comment with a blank line after it
introduces its section."""

import re
from dataclasses import dataclass, field


@dataclass
class Function:
    name: str
    result: str
    parameters: list


@dataclass
class Item:
    """Functions that share a text, which may be empty."""

    functions: list
    text: str


@dataclass
class Section:
    title: str
    twin: str = ""  # The C++ header that holds the contract: ums/mutex.hpp
    texts: list = field(default_factory=list)  # What introduces it.
    types: list = field(default_factory=list)  # (comment, code)
    items: list = field(default_factory=list)

    def functions(self):
        return [function for item in self.items for function in item.functions]


@dataclass
class Header:
    path: str  # As it is included: ums/ums.h
    title: str
    introduction: list  # (label, text), in order; the label may be empty
    sections: list


def plain(comment):
    """A comment without its marks, its lines kept."""
    lines = comment.strip().removeprefix("/*").removesuffix("*/").split("\n")
    return "\n".join(
        re.sub(r"^ ?\*(?: |$)", "", line.rstrip()) if at else line.strip()
        for at, line in enumerate(lines)
    ).strip()


def joined(text):
    return " ".join(text.split())


LABEL = re.compile(r"(?P<label>[A-Za-z][\w` ]{0,30}):(?P<gap> +)(?P<text>\S.*)")


def is_label(start, columns):
    """`Blocking: parks` is one; `that wait: the fastest` is not. Texts of labels stand below each
    other.
    """
    return start and (
        len(start["gap"]) > 1
        or start.start("text") in columns
        or re.fullmatch(r"[A-Z][a-z]+|.*`.*", start["label"])
    )


def labelled(text):
    """The paragraphs of a contract: (label, text). Lines that are indented continue what is
    above them.

    The label of an example is `code`, that of a list's item `-`, that of plain text empty.
    """
    paragraphs = []
    lines = text.split("\n")
    columns = {
        start.start("text")
        for line in lines
        if (start := LABEL.match(line)) and len(start["gap"]) > 1
    }
    for line in lines:
        start = LABEL.match(line)
        if not line.strip():
            paragraphs.append(("", ""))
        elif line.startswith("  ") and paragraphs and paragraphs[-1] == ("", ""):
            paragraphs.append(("code", line.strip()))
        elif line.startswith("  ") and paragraphs and paragraphs[-1][0] == "code":
            paragraphs[-1] = ("code", paragraphs[-1][1] + "\n" + line.removeprefix("  "))
        elif is_label(start, columns):
            paragraphs.append((start["label"], start["text"]))
        elif line.startswith("- "):
            paragraphs.append(("-", line[2:]))
        elif (
            line.endswith(":")
            and not line.startswith(" ")
            and not (paragraphs and paragraphs[-1][1])
        ):
            paragraphs.append(("", line))
        elif paragraphs and (line.startswith(" ") or paragraphs[-1] != ("", "")):
            label, before = paragraphs[-1]
            paragraphs[-1] = (label, before + " " + line.strip())
        else:
            paragraphs.append(("", line))
    return [
        (label, text if label == "code" else joined(text)) for label, text in paragraphs if text
    ]


def contract(text):
    """The contract at the head of a C++ header: (what it is, [(label, text)])."""
    block = re.search(r"^// (ums/[\w/.]+\.hpp): ((?:.|\n)*?)\n(?!//)", text, re.MULTILINE)
    if not block:
        return "", []
    lines = block[2].replace("\n// ", "\n").replace("\n//", "\n")
    paragraphs = labelled(lines)
    return (paragraphs[0][1] if paragraphs else ""), paragraphs[1:]


def split_parameters(text):
    parts, depth, start = [], 0, 0
    for at, one in enumerate(text):
        depth += (one == "(") - (one == ")")
        if one == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [with_stars(part) for part in [*parts, text[start:]] if part.strip()]


def with_stars(text):
    """`T* x` as C programmers write it."""
    return re.sub(r"(?<=[\w)])\*+ ?", lambda stars: " " + stars[0].strip(), joined(text)).replace(
        "( *", "(*"
    )


def function(declaration):
    text = joined(
        re.sub(r"\b(UMS_API|UMS_CHECK)\b|__attribute__\(\(\w+\)\)", "", declaration)
    ).rstrip("; ")
    match = re.match(r"(?P<result>.*?)\b(?P<name>ums_\w+)\((?P<parameters>.*)\)$", text)
    return Function(
        match["name"], with_stars(match["result"]).strip(), split_parameters(match["parameters"])
    )


TOKEN = re.compile(
    r"""
    (?P<blank>\n[ \t]*(?=\n))
  | (?P<section>/\*[ ]---[ ](?P<title>.*?)[ ]-+[ ]\*/)
  | (?P<comment>/\*.*?\*/)
  | (?P<function>UMS_API\b[^;]*;)(?P<behind>[ \t]*/\*.*?\*/)?
  | (?P<define>\#define(?:[^\n]*\\\n)*[^\n]*)
  | (?P<skipped>\#[^\n]*|extern[ ]"C"[ ]\{|\})
  | (?P<type>(?:typedef|enum|struct)\b[^;{]*(?:\{(?:/\*.*?\*/|[^{}])*\}[^;]*)?;(?:[ \t]*/\*[^\n]*\*/)?)
""",
    re.VERBOSE | re.DOTALL,
)


class Reader:
    """Puts comments, types and functions together, in the order in which they come."""

    def __init__(self, section):
        self.section = section
        self.sections = [section]
        self.pending = None  # A comment whose owner is not known yet.
        self.item = None  # Open: functions that follow belong to it.

    def blank(self):
        if self.pending:
            self.section.texts.append(joined(self.pending))
        self.pending = self.item = None

    def start(self, title):
        self.blank()
        twin = re.search(r" \((ums/[^)]*)\)$", title)
        self.section = Section(title[: twin.start()] if twin else title, twin[1] if twin else "")
        self.sections.append(self.section)

    def comment(self, text):
        self.pending, self.item = plain(text), None

    def type(self, code, text, at):
        # The comment is the functions' if they follow at once.
        if re.match(r"\n(?:UMS_API|typedef[^\n]*;\nUMS_API)", text[at:]) and self.pending:
            self.section.types.append(("", code))
            return
        self.section.types.append((joined(self.pending or ""), code))
        self.pending = self.item = None

    def function(self, declaration, behind):
        own = joined(plain(behind)) if behind else ""
        one = function(declaration)
        if self.pending is not None:
            text, self.pending = joined(self.pending), None
            self.item = Item([one], " ".join(filter(None, [text, own])))
            self.section.items.append(self.item)
        elif own or self.item is None:
            last = Item([one], own)
            self.section.items.append(last)
            self.item = self.item if own else last
        elif self.item.text and self.section.items[-1] is not self.item:
            raise ValueError(f"{one.name}() shares the text of {self.item.functions[0].name}(), but a "
                             "function with a text of its own comes between: give each one its text")
        else:
            self.item.functions.append(one)


def read(path, name):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    head = re.search(r"/\* (ums/[\w/.]+\.h): (.*?)\*/", text, re.DOTALL)
    paragraphs = labelled(plain("/* " + head[2] + "*/"))
    title, _, more = paragraphs[0][1].partition(". ")
    introduction = ([("", more)] if more else []) + paragraphs[1:]
    reader = Reader(Section(""))
    at = text.index('extern "C" {')
    end = text.rindex("#ifdef __cplusplus")
    while at < end:
        token = TOKEN.match(text, at)
        if not token:
            at += 1
            continue
        at = token.end()
        if token["blank"] is not None:
            reader.blank()
        elif token["section"]:
            reader.start(token["title"])
        elif token["comment"]:
            reader.comment(token["comment"])
        elif token["function"]:
            reader.function(token["function"], token["behind"])
        elif token["define"] or token["type"]:
            reader.type(token["define"] or token["type"], text, at)
    reader.blank()
    sections = [section for section in reader.sections if section.items]
    return Header(name, title.rstrip("."), introduction, sections)
