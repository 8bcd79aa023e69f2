#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sources.py OUT_DIR: what Doxygen reads in place of the public headers and the pages.

The headers have plain comments. Here they become Doxygen's: the contract at the head, comments
above declarations and behind them; those inside function bodies stay as they are. The pages get
an id for each heading, and links to those. The tree beside them has the order of docs/README.md,
and of docs/design/README.md below that: there, the entries of the lists are its nodes."""

import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tools/man"))

import c_header  # noqa: E402

# --- headers ------------------------------------------------------------------------------------


def escaped(text):
    """A comment's text without what Doxygen would take for a command or a tag. `Code` is left alone."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if at % 2 else re.sub(r"([\\@<>#&])", r"\\\1", part).replace("\\&\\&", "\\&&")
        for at, part in enumerate(parts)
    )


def head_comment(path, what, paragraphs):
    lines = [f"/** @file {path}", escaped(what), ""]
    for label, text in paragraphs:
        if label == "code":
            lines += ["@code", text, "@endcode", ""]
        elif label == "-":
            lines += ["- " + escaped(text)]
        elif label:
            lines += [f"@par {escaped(label).replace('`', '')}", escaped(text), ""]
        else:
            lines += [escaped(text), ""]
    return "\n".join(lines) + " */"


def opens_declarations(text):
    """Whether a brace after this text begins a place for declarations, not a function's body or a
    value.
    """
    text = re.sub(
        r"\btemplate\s*<.*?>\s*(?=\b(?:class|struct|union|requires)\b)|alignas\([^)]*\)|UMS_EXPORT",
        "",
        text,
        flags=re.DOTALL,
    ).strip()
    text = re.sub(r"^(?:public|private|protected)\s*:\s*", "", text)
    return bool(
        re.match(r"(?:typedef\s+|inline\s+)*(?:namespace|class|struct|union|enum)\b[^()=]*$", text)
    ) or text.endswith('extern "C"')


class Scopes:
    """Follows braces, so that it is known whether a line is among declarations."""

    def __init__(self):
        self.stack = []
        self.text = ""

    def among_declarations(self):
        return all(self.stack)

    def line(self, line):
        code = re.sub(
            r'"(?:\\.|[^"\\])*"', lambda text: text[0] if text[0] == '"C"' else '""', line
        )
        code = re.sub(r"//.*|/\*.*?\*/", "", code)
        if code.lstrip().startswith("#"):
            return
        for one in code + "\n":
            if one == "{":
                self.stack.append(opens_declarations(self.text))
                self.text = ""
            elif one == "}":
                if self.stack:
                    self.stack.pop()
                self.text = ""
            elif one == ";":
                self.text = ""
            else:
                self.text += one


def marked(indent, lines):
    return [f"{indent}/// {escaped(line)}" for line in lines]


def cpp_header(text):
    path_and_text = re.search(r"^// (ums/[\w/.]+\.hpp): ((?:.|\n)*?)\n(?!//)", text, re.MULTILINE)
    if path_and_text:
        what, paragraphs = c_header.contract(text)
        # As many lines as before, so that the places in warnings are right.
        spare = "\n" * path_and_text[0].count("\n")
        comment = head_comment(path_and_text[1], what, paragraphs).replace("\n", " \n")
        text = text[: path_and_text.start()] + spare + text[path_and_text.end() :]
        text = text + "\n" + comment + "\n"
    out, block, scopes = [], [], Scopes()
    for line in text.split("\n"):
        comment = re.match(r"(\s*)// ?(.*)$", line)
        if comment and scopes.among_declarations() and not line.startswith("// SPDX"):
            block.append((line, comment[1], comment[2].strip()))
            continue
        if block:
            belongs = bool(line.strip()) and not re.match(
                r"\s*(\}|#|public:|private:|protected:)", line
            )
            belongs = belongs and not block[0][2].startswith("---")
            out += (
                marked(block[0][1], [text for _, _, text in block])
                if belongs
                else [text for text, _, _ in block]
            )
            block = []
        behind = re.match(r"(.*?[;,{}\w)].*?)  // ?(.*)$", line)
        inside = scopes.among_declarations()
        scopes.line(line)
        if (
            behind
            and inside
            and scopes.among_declarations()
            and not behind[1].rstrip().endswith(("{", "}"))
        ):
            line = f"{behind[1]}  ///< {escaped(behind[2])}"
        out.append(line)
    return "\n".join(out + [text for text, _, _ in block])


def c_comment(match):
    return "/** " + escaped(c_header.joined(c_header.plain(match[0]))) + " */"


def same_lines(before, after):
    return after + "\n" * (before.count("\n") - after.count("\n"))


def c_header_text(text):
    head = re.search(r"/\* (ums/[\w/.]+\.h): (.*?)\*/", text, re.DOTALL)
    tail = ""
    if head:
        paragraphs = c_header.labelled(c_header.plain("/* " + head[2] + "*/"))
        tail = "\n" + head_comment(head[1], paragraphs[0][1], paragraphs[1:]) + "\n"
        text = text[: head.start()] + "\n" * head[0].count("\n") + text[head.end() :]
    # A comment above something, then those behind something.
    text = re.sub(
        r"^[ ]*/\*(?! ---)(?! SPDX)(?:(?!\*/).)*\*/(?=\n[ ]*[^\s#}])",
        lambda match: same_lines(match[0], c_comment(match)),
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    text = re.sub(r"^#endif .*", "#endif", text, flags=re.MULTILINE)
    text = re.sub(
        r"(?<=[;,\w)])([ ]*)/\*(?!\*)((?:(?!\*/).)*)\*/(?=[ ]*\n)",
        lambda match: same_lines(
            match[0], f"{match[1]}/**< {escaped(c_header.joined(match[2]))} */"
        ),
        text,
        flags=re.DOTALL,
    )
    return text + tail


# --- pages --------------------------------------------------------------------------------------


def slug(heading):
    """What GitHub makes of a heading."""
    plain = re.sub(r"[`*]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def identifier(page, anchor=""):
    return re.sub(r"\W", "_", "page_" + page.removesuffix(".md") + ("-" + anchor if anchor else ""))


def headings(path):
    inside = False
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        for line in file:
            inside ^= line.startswith("```")
            if not inside and (match := re.match(r"#+ (.*)", line)):
                yield slug(match[1])


def is_page(path):
    """Whether the site has it: the pages at the root, in docs/, and that of the benchmarks."""
    folder = os.path.dirname(path)
    return (
        path.endswith(".md")
        and os.path.exists(os.path.join(ROOT, path))
        and (folder in ("", "bench") or folder.split("/")[0] == "docs")
    )


# The pages whose lists are the tree, from its root.
TREE = ["README.md", "docs/README.md", "docs/design/README.md"]
parents = {}  # Of each page that has a node.


def parent_of(path):
    """The last page of TREE with a link to it, which is the most special one."""
    if not parents:
        for page in TREE:
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", file.read()):
                    linked = os.path.normpath(
                        os.path.join(os.path.dirname(page), target.partition("#")[0])
                    )
                    if linked not in TREE[: TREE.index(page) + 1] and is_page(linked):
                        parents[linked] = page
    return parents.get(path)


def link(page, match, is_entry, linked):
    text, target = match[1], match[2]
    if re.match(r"[a-z]+:", target):
        return match[0]
    path, _, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if not is_page(path):
        return text  # A source file, say, which is not part of the site.
    if is_entry and "#" not in target and parent_of(path) == page and path not in linked:
        linked.add(path)
        return f'@subpage {identifier(path)} "{text.replace("`", "")}"'
    first = next(headings(path), "")
    return f"[{text}](@ref {identifier(path, '' if anchor in ('', first) else anchor)})"


def page_text(page, text):
    out, inside, first, linked = [], False, True, set()
    seen = {}
    for line in text.split("\n"):
        if line.startswith("```"):
            inside = not inside
            out.append("```" if line == "```text" else line)
            continue
        if inside or line.startswith("<!--"):
            out.append(line if inside else "")
            continue
        heading = re.match(r"(#+) (.*)", line)
        if heading:
            # Of equal headings all but the first get a number, as GitHub does it.
            anchor = slug(heading[2])
            number = seen[anchor] = seen.get(anchor, -1) + 1
            where = identifier(page, "" if first else anchor + (f"-{number}" if number else ""))
            title = heading[2].replace("`", "")
            out.append(f"{heading[1]} {title} {{#{where}}}")
            first = False
            continue
        is_entry = page == TREE[0] or line.startswith(("- ", "| ["))
        parts = re.split(r"(`[^`]*`)", line)
        line = "".join(
            part if at % 2 else re.sub(r"(?<![\w!])@(?!ref)", r"\\@", part)
            for at, part in enumerate(parts)
        )
        out.append(
            re.sub(
                r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)",
                lambda match: link(page, match, is_entry, linked),
                line,
            )
        )
    return "\n".join(out)


def readable(name, text):
    if name.endswith(".md"):
        return page_text(name, text)
    return c_header_text(text) if name.endswith(".h") else cpp_header(text)


def names():
    patterns = ["*.md", "bench/README.md", "docs/**/*.md", "include/ums/*.h", "include/ums/*.hpp"]
    return sorted(
        name for one in patterns for name in glob.glob(one, root_dir=ROOT, recursive=True)
    )


def main(out):
    for name in names():
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            text = file.read()
        path = os.path.join(out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(readable(name, text))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
