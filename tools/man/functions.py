#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""functions.py INCLUDE_DIR VERSION OUT_DIR: manual pages of the C API, made of the comments in
its headers.

A page for each section of a header, with a link for each of its functions and types; a page for
each header, with its introduction. The contract of a section's C++ twin is on the page too. The
text lives in the headers and nowhere else."""

import os
import re
import sys

import c_header
import mdoc

HEADERS = [
    "ums/ums.h",
    "ums/ums_io.h",
    "ums/ums_posix.h",
    "ums/ums_pthread.h",
    "ums/ums_scheduling.h",
    "ums/ums_stack.h",
]
# The headers of POSIX's names, and what stands before these.
TWINS = {"ums/ums_posix.h": "ums_posix_", "ums/ums_pthread.h": "ums_"}


def capital(text):
    return text[0].upper() + text[1:]


def page_of_header(header):
    return os.path.basename(header.path).removesuffix(".h")


def common_prefix(names):
    parts = [name.split("_") for name in names]
    same = []
    for column in zip(*parts):
        if len(set(column)) > 1:
            break
        same.append(column[0])
    return "_".join(same)


def name_pages(headers):
    """{id of a section: the name of its page}: what its functions begin with, or the first of them."""
    taken = {page_of_header(header) for header in headers}
    names = {}
    for header in headers:
        for section in header.sections:
            functions = [function.name for function in section.functions()]
            prefix = common_prefix(functions)
            name = prefix if prefix.count("_") and prefix not in taken else functions[0]
            names[id(section)] = name
            taken.add(name)
    return names


def synopsis(header, section):
    yield ".Sh SYNOPSIS"
    yield f".In {header.path}"
    for function in section.functions():
        yield f".Ft {mdoc.argument(function.result)}"
        yield f".Fo {function.name}"
        yield from (f".Fa {mdoc.argument(parameter)}" for parameter in function.parameters)
        yield ".Fc"


def posix_twin(header, name):
    """The function that one of ours is named after, and what is said of it."""
    if header.path in TWINS and not name.startswith("ums_errno"):
        return f"What POSIX says of {name.removeprefix(TWINS[header.path])}(), for fibers."
    return ""


def text_of(header, item):
    first = item.functions[0].name
    own = item.text if not item.text or item.text.endswith(".") else item.text + "."
    text = " ".join(filter(None, [posix_twin(header, first), own]))
    if not text and header.path == "ums/ums_io.h":
        call = first.removeprefix("ums_").removesuffix("_fds")
        text = (
            f"Does what the system call {call}() does, but parks the fiber where that would block."
        )
    return text


def described(header, section):
    """(functions, text): functions that have no text of their own stand alone, with their timed
    forms.
    """
    for item in section.items:
        if item.text and header.path not in TWINS:
            yield item.functions, text_of(header, item)
            continue
        rest = list(item.functions)
        while rest:
            group = [rest.pop(0)]
            while rest and rest[0].name == group[0].name + "_until":
                group.append(rest.pop(0))
            yield group, text_of(header, c_header.Item(group, item.text))


def functions_list(header, section):
    def entries():
        for functions, text in described(header, section):
            *others, last = functions
            lines = [f".Fn {one.name}" for one in others[1:]] if others else []
            tag = f"Fn {functions[0].name}"
            if others:
                tag = (
                    "Xo\n"
                    + "\n".join(f".Fn {one.name} ," for one in others)
                    + f"\n.Fn {last.name}\n.Xc"
                )
                lines = []
            yield tag, lines + mdoc.paragraph(text)

    yield from mdoc.items("Ds", entries())


def types(section):
    for comment, code in section.types:
        if comment:
            yield ".Pp"
            yield from mdoc.paragraph(comment)
        yield from mdoc.literal(code)


def labelled(paragraphs):
    """Paragraphs of a contract: those with a label as a list."""
    open_list = None
    for label, text in paragraphs:
        kind = "dash" if label == "-" else "tag" if label and label != "code" else None
        if kind != open_list:
            if open_list:
                yield ".El"
            if kind:
                yield ".Bl -tag -width Ds" if kind == "tag" else ".Bl -dash"
        open_list = kind
        if kind == "tag":
            yield f".It {mdoc.argument(label.replace('`', ''))}"
        elif kind == "dash":
            yield ".It"
        elif label == "code":
            yield from mdoc.literal(text)
            continue
        else:
            yield ".Pp"
        yield from mdoc.paragraph(text)
    if open_list:
        yield ".El"


def without_first_break(lines):
    lines = list(lines)
    return lines[1:] if lines and lines[0] == ".Pp" else lines


def contracts(include, section):
    for twin in filter(None, section.twin.split(", ")):
        with open(os.path.join(include, twin), encoding="utf-8") as file:
            what, paragraphs = c_header.contract(file.read())
        if not what:
            continue
        yield f".Ss {twin}"
        yield from mdoc.paragraph(capital(what))
        yield from labelled(paragraphs)


def mentioned(headers, names, section):
    """The pages of the functions that the texts of a section name."""
    text = " ".join(
        [*section.texts, *(item.text for item in section.items), *(one for one, _ in section.types)]
    )
    called = set(re.findall(r"\b(ums_\w+)\(", text))
    return {
        names[id(one)]
        for header in headers
        for one in header.sections
        if called & {function.name for function in one.functions()}
    }


def section_page(include, version, day, headers, names, header, section):
    name = names[id(section)]
    functions = [function.name for function in section.functions()]
    title = section.title or header.title
    yield from mdoc.head(name, 3, day)
    yield ".Sh NAME"
    yield from (f".Nm {one} ," for one in functions[:-1])
    yield f".Nm {functions[-1]}"
    yield f".Nd {mdoc.escaped(title[0].lower() + title[1:])}"
    yield ".Sh LIBRARY"
    yield f"libums {version}, \\-lums"
    yield from synopsis(header, section)
    yield ".Sh DESCRIPTION"
    for text in section.texts:
        yield from mdoc.paragraph(text)
        yield ".Pp"
    yield from functions_list(header, section)
    if section.types:
        yield ".Ss Types and constants"
        yield from without_first_break(types(section))
    said = dict(header.introduction)
    if any(one.endswith("_until") for one in functions):
        core = dict(headers[0].introduction)
        yield ".Ss Waits and deadlines"
        yield from labelled([(label, core[label]) for label in ("Waits", "Deadlines")])
    if "Errors" in said:
        yield ".Sh RETURN VALUES"
        yield from mdoc.paragraph(capital(said["Errors"]))
    lines = list(contracts(include, section))
    if lines:
        yield ".Sh CONTRACT"
        yield "The contract is that of the C++ twin, with its names."
        yield from lines
    yield ".Sh SEE ALSO"
    others = sorted(mentioned(headers, names, section) - {name} | {page_of_header(header)})
    yield from (f".Xr {one} 3 ," for one in others[:-1])
    yield f".Xr {others[-1]} 3"


def header_page(version, day, headers, names, header):
    yield from mdoc.head(page_of_header(header), 3, day)
    yield ".Sh NAME"
    yield f".Nm {page_of_header(header)}"
    yield f".Nd {mdoc.escaped(header.title)}"
    yield ".Sh LIBRARY"
    yield f"libums {version}, \\-lums"
    yield ".Sh SYNOPSIS"
    yield f".In {header.path}"
    yield ".Sh DESCRIPTION"
    yield from without_first_break(labelled(header.introduction))
    yield ".Ss Functions"
    entries = []
    for section in header.sections:
        functions = ", ".join(f"{function.name}()" for function in section.functions())
        entries.append(
            (
                f"Xr {names[id(section)]} 3",
                mdoc.paragraph(f"{section.title or header.title}: {functions}"),
            )
        )
    yield from mdoc.items("Ds", entries)
    yield ".Sh SEE ALSO"
    others = sorted(page_of_header(one) for one in headers if one is not header)
    yield from (f".Xr {one} 3 ," for one in others[:-1])
    yield f".Xr {others[-1]} 3"


def type_names(section):
    for _, code in section.types:
        if code.startswith("typedef"):
            yield from re.findall(r"\b(ums_\w+_t)(?: *;|\)\([^;{]*;)", code.rsplit("}", 1)[-1])


def main(include, version, out):
    headers = [c_header.read(os.path.join(include, path), path) for path in HEADERS]
    names = name_pages(headers)
    here = os.path.dirname(os.path.abspath(__file__))
    made_of = [os.path.join(include, path) for path in HEADERS] + [
        os.path.join(here, "functions.py")
    ]
    day = mdoc.date(made_of)
    for header in headers:
        mdoc.write(
            out, 3, page_of_header(header), header_page(version, day, headers, names, header)
        )
        for section in header.sections:
            page = names[id(section)]
            mdoc.write(
                out, 3, page, section_page(include, version, day, headers, names, header, section)
            )
            links = [function.name for function in section.functions()] + list(type_names(section))
            for link in links:
                if link != page:
                    mdoc.write(out, 3, link, [f".so man3/{page}.3"])


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
