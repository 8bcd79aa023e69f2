#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the pages to what the code does.

check.py text [ROOT]             links, names of files and tests, sync tags, variables, commands beside
                                 figures, bare "who" clauses; of comments: these, width; of headers: contracts,
                                 comments that stand where they describe nothing
check.py examples CXX LIBRARY [FLAG...]   compiles and runs every C++ and C block of the pages
check.py program SOURCE PROGRAM  runs a program of examples/: it prints what its source says
check.py self-test               proves that each of them can fail

A ```cpp block with an `int main` is a program. Any other has a comment right above it that says what
it is:

    <!-- example: declarations -->  what the later blocks of the page use
    <!-- example: statements -->    what a fiber does
    <!-- example: main -->          what main() does, without a runtime
    <!-- example: from PATH -->     an excerpt of a file that is tested elsewhere, to the letter
    <!-- example: boost -->         a program with Boost.Fiber; it runs where that is installed

A ```c block is C11, and a program or an excerpt. A ```go block is a program; it runs where Go is installed.

A ```text block after the words "Output:" holds what the block before it prints.
"""

import glob
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_S = 120

# --- pages ----------------------------------------------------------------------------------------


def pages(root):
    found = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
    found += sorted(glob.glob("docs/**/*.md", root_dir=root, recursive=True))
    return [page for page in found if os.path.exists(os.path.join(root, page))]


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def without_code(lines):
    """The lines outside fenced blocks, with their numbers."""
    inside = False
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


# --- text -----------------------------------------------------------------------------------------

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")  # And pictures.
CODE = re.compile(r"`([^`]+)`")
TAG = re.compile(r"\bsync\(([\w.]+)\)")
FIGURE = re.compile(r"\d ?(?:ns|us|ms|B)\b|TBD-FIGURES")
COMMAND = re.compile(r"`[^`]*(?:ums bench|ums info|ums profile|tests/inspect/|make |examples/|bench/)[^`]*`")

# Where a path in a page may begin, and what stands for it in the tree.
TOPS = ["src", "compat", "include", "docs", "bench", "tests", "tools", "cmake", "examples", ".ci"]
LAYERS = ["base", "os", "arch", "mem", "time", "carry", "sched", "runtime", "workers"]


def anchors(text):
    """What GitHub makes of the headings."""
    for _, line in without_code(text.splitlines()):
        if heading := re.match(r"#+ (.*)", line):
            plain = re.sub(r"[`*]", "", heading[1]).strip().lower()
            yield re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def broken_links(root, page, text):
    for number, line in without_code(text.splitlines()):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(root, path)):
                yield page, number, f"links to {path}, which is not there"
            elif anchor and anchor not in anchors(read(root, path)):
                yield page, number, f"links to {path}#{anchor}, which has no such heading"


def candidates(name):
    first = name.split("/")[0]
    if first in TOPS:
        yield name
    elif first in LAYERS:
        yield "src/" + name
    elif first == "ums" and name.endswith((".hpp", ".h")):
        yield "include/" + name


def missing_files(root, page, text):
    for number, line in without_code(text.splitlines()):
        if "planned" in line:
            continue
        for name in CODE.findall(line):
            if not re.fullmatch(r"\.?[\w.-]+(/[\w.*-]+)+/?", name):
                continue
            wanted = list(candidates(name))
            if wanted and not any(glob.glob(os.path.join(root, path)) for path in wanted):
                yield page, number, f"names {name}, which is not there"


def homeless_words(root, page, text):
    """Each word of the glossary is used in the folder where the page says that it lives."""
    for number, line in enumerate(text.splitlines(), 1):
        row = re.match(r"\| ([^|]+?) \| .* \| `([\w/]+)/` \|$", line)
        if not row:
            continue
        folder = os.path.join(root, "src", row[2])
        used = "".join(read(root, path) for path in sorted(glob.glob(folder + "/**/*.*", recursive=True)))
        for word in row[1].split(", "):
            if not re.search(re.sub("[ -]", "[ _-]?", word), used, re.IGNORECASE):
                yield page, number, f"says that {word} lives in {row[2]}/, where nothing names it"


def lonely_figures(page, text):
    """A table of measurements needs the command that makes them in its section."""
    section, table = [], None
    for number, line in [*without_code(text.splitlines()), (0, "# end")]:
        if line.startswith("#"):
            if table and not any(COMMAND.search(one) for one in section):
                yield page, table, "a table of figures, and no command that makes them beside it"
            section, table = [], None
        if line.startswith("|") and FIGURE.search(line):
            table = table or number
        section.append(line)


def differing_names(root, what, page, in_code, in_page):
    for name in sorted(in_code - in_page):
        yield page, 1, f"does not tell of {what} {name}"
    for name in sorted(in_page - in_code):
        yield page, 1, f"tells of {what} {name}, which is not in the code"


def differing_tags(root):
    page = "docs/memory-model.md"
    if not os.path.exists(os.path.join(root, page)):
        return
    in_code = set()
    sources = [path for top in ("src", "compat")
               for path in glob.glob(top + "/**/*.[ch]pp", root_dir=root, recursive=True)]
    for path in sources:
        in_code.update(TAG.findall(read(root, path)))
    yield from differing_names(root, "the tag", page, in_code, set(TAG.findall(read(root, page))))


def differing_variables(root):
    source = "src/runtime/environment.cpp"
    if not os.path.exists(os.path.join(root, source)):
        return
    code = read(root, source)
    page = "docs/environment.md"
    text = read(root, page)
    yield from differing_names(root, "the variable", page, set(re.findall(r'"(UMS_\w+)"', code)),
                               set(re.findall(r"^\| `(UMS_\w+)", text, re.MULTILINE)))
    words = re.search(r"debug_words\[\] = \{(.*?)\};", code, re.DOTALL)
    yield from differing_names(root, "the word", page, set(re.findall(r'"(\w+)"', words[1]) if words else []),
                               set(re.findall(r"^\| `UMS_DEBUG=(\w+)", text, re.MULTILINE)))


def missing_tests(root):
    """Each test that a line of the test map names is in a file that the line names."""
    page = "docs/test-map.md"
    if not os.path.exists(os.path.join(root, page)):
        return
    for number, line in enumerate(read(root, page).splitlines(), 1):
        names = CODE.findall(line)
        files = [name for name in names if "/" in name and "*" not in name]
        text = "".join(read(root, f) for f in files if os.path.isfile(os.path.join(root, f)))
        for name in names:
            if re.fullmatch(r"[a-z]\w*_\w+", name) and not re.search(rf"\b{name}\b", text):
                yield page, number, f"names the test {name}, which is in none of the files beside it"


def words_of_diagram(text):
    labels = re.findall(r'label="((?:[^"\\]|\\.)*)"', text)
    return {" ".join(line.replace('\\"', '"').split()) for label in labels for line in label.split("\\n")}


def stale_diagrams(root):
    """Each diagram was made of its source as that is now: it has the same words."""
    for source in sorted(glob.glob("docs/diagrams/*.dot", root_dir=root)):
        drawing = source.removesuffix(".dot") + ".svg"
        if not os.path.exists(os.path.join(root, drawing)):
            yield source, 1, f"has no {drawing}: tools/docs/build --diagrams"
            continue
        drawn = {" ".join(html.unescape(text).split())
                 for text in re.findall(r"<text[^>]*>([^<]*)<", read(root, drawing))}
        for words in sorted(words_of_diagram(read(root, source)) ^ drawn):
            yield source, 1, f"differs from {drawing} in '{words}': tools/docs/build --diagrams"


def check_text(root):
    for page in pages(root):
        text = read(root, page)
        yield from broken_links(root, page, text)
        yield from missing_files(root, page, text)
        yield from lonely_figures(page, text)
        if page == "docs/glossary.md":
            yield from homeless_words(root, page, text)
        if page not in SHOW_MISTAKES:
            yield from ((page, at, complaint) for number, line in without_code(text.splitlines())
                        for at, complaint in bare_clauses(number, line))
    yield from differing_tags(root)
    yield from differing_variables(root)
    yield from missing_tests(root)
    yield from bad_comments(root)
    yield from missing_contracts(root)
    yield from stray_comments(root)
    yield from stale_diagrams(root)


# --- comments -------------------------------------------------------------------------------------

# Where comments are checked, and where each header must open with a contract. A folder in UNCHECKED
# is left out of both.
COMMENT_ROOTS = ["bench", "cmake", "compat", "examples", "include/ums", "src", "tests", "tools"]
CONTRACT_ROOTS = ["include/ums"]
UNCHECKED = ["include/ums/compat/windows"]

# Pages with a list of bad examples.
SHOW_MISTAKES = ["docs/style.md"]

COMMENT_COLUMNS = 100
SOURCE = (".c", ".cpp", ".h", ".hpp")
SCRIPT = (".cmake", ".py", "CMakeLists.txt")
HEADER = (".h", ".hpp")

# Strings come along so that what looks like a comment in one is none.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)

# A clause that begins with "who" and has no noun before it: at the start of a sentence or clause,
# or right after a preposition or a conjunction. A question may begin so.
BARE_WHO = re.compile(r"""(?:^|[.;:!?(]\s+|[(]|\b(?:and|as|because|but|by|for|from|if|of|or|so|than|that|to|
                          unless|until|when|where|while|with)\s+)(who\b)(?![^.;]*[?])""",
                      re.IGNORECASE | re.VERBOSE)
SENTENCE = re.compile(r"\w[^.!?]*[.!?](?=\s|$)")
GUARD = re.compile(r"\s*#\s*(?:pragma once|ifndef \w+|define \w+|include [^\n]*)[ \t]*(?=\n|$)")


def sources(root, folders, endings):
    for folder in folders:
        for path in sorted(glob.glob(folder + "/**/*", root_dir=root, recursive=True)):
            if path.endswith(endings) and not any(f"{path}/".startswith(f"{u}/") for u in UNCHECKED):
                yield path


def comments(text):
    """(first line, last line, words) of each comment. Lines of // right below each other are one."""
    found = []
    for token in TOKEN.finditer(text):
        if token[0][0] != "/":
            continue
        first = text.count("\n", 0, token.start()) + 1
        last = first + token[0].count("\n")
        words = token[0].removeprefix("//").removeprefix("/*").removesuffix("*/")
        words = re.sub(r"^\s*\*(?=\s|$)", "", words, flags=re.MULTILINE)
        is_alone = not text[text.rfind("\n", 0, token.start()) + 1:token.start()].strip()
        if found and token[0].startswith("//") and is_alone and found[-1][3] and found[-1][1] == first - 1:
            found[-1] = (found[-1][0], last, found[-1][2] + "\n" + words, True)
        else:
            found.append((first, last, words, token[0].startswith("//")))
    return [one[:3] for one in found]


# In a script: a line that is a comment, or the end of one, set off by two spaces.
SCRIPT_COMMENT = re.compile(r"^(\s*)#(?: (.*))?$|  # (.*)$")


def script_comments(text):
    """The same of a script. Lines of # right below each other are one."""
    found, alone = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if match := SCRIPT_COMMENT.search(line):
            words = " " + (match[2] or match[3] or "")
            if alone and match[1] is not None and found[-1][1] == number - 1:
                found[-1] = (found[-1][0], number, found[-1][2] + "\n" + words)
            else:
                found.append((number, number, words))
            alone = match[1] is not None
    return found


def bare_clauses(first, words):
    """Paragraph by paragraph, so that an empty line ends a sentence. Code in ` ` or indented is none."""
    line = first
    for paragraph in re.split(r"(\n[ \t]*(?=\n))", words):
        plain = re.sub(r"`[^`]*`|^ {3}.*;.*$", lambda m: "x" * len(m[0]), paragraph, flags=re.MULTILINE)
        for match in BARE_WHO.finditer(plain.lstrip()):
            skipped = len(plain) - len(plain.lstrip())
            at = line + plain.count("\n", 0, skipped + match.start(1))
            yield at, "a clause begins with a bare \"who\": name who it is (the caller, the waiter, ...)"
        line += paragraph.count("\n")


def bad_comments(root):
    for path in sources(root, COMMENT_ROOTS, SOURCE + SCRIPT):
        text = read(root, path)
        lines = text.splitlines()
        for first, last, words in comments(text) if path.endswith(SOURCE) else script_comments(text):
            for number in range(first, last + 1):
                if len(lines[number - 1]) > COMMENT_COLUMNS:
                    yield path, number, f"a comment wider than {COMMENT_COLUMNS} columns"
            for number, complaint in bare_clauses(first, words):
                yield path, number, complaint


def contract(text):
    """The first comment after the licence, if no declaration comes before it."""
    text = re.sub(r"^\s*(?:// SPDX[^\n]*|/\* SPDX.*?\*/)", "", text)
    while guard := GUARD.match(text):
        text = text[guard.end():]
    head = re.match(r"\s*((?://[^\n]*\n)+|/\*.*?\*/)", text + "\n", re.DOTALL)
    return comments(head[1])[0][2] if head else ""


def missing_contracts(root):
    for path in sources(root, CONTRACT_ROOTS, HEADER):
        if len(SENTENCE.findall(contract(read(root, path)))) < 2:
            yield path, 1, "opens without a contract: two sentences at least, before the first declaration"


def stray_comments(root):
    """Comments of headers that a change has moved away from what they describe."""
    whole = re.compile(r"\s*//(?! ---)")
    for path in sources(root, CONTRACT_ROOTS, HEADER):
        lines = read(root, path).splitlines()
        for at, line in enumerate(lines):
            before = lines[at - 1] if at else ""
            if not whole.match(line) or whole.match(before):
                continue
            end = next((n for n in range(at, len(lines)) if not whole.match(lines[n])), len(lines))
            after = lines[end] if end < len(lines) else ""
            indent = len(line) - len(line.lstrip())
            if re.match(r"\s*template <.*>\s*$", before) or re.search(r"(?:&&|\()\s*$", before):
                yield path, at + 1, "a comment inside a declaration: it goes above it"
            elif re.match(rf" {{{indent}}}}}", after) and indent:
                yield path, at + 1, "a comment that nothing follows in its block"
            elif before.strip() and not before.startswith("#") and not after.strip() and at:
                yield path, at + 1, "a comment with code above and nothing below: what does it describe?"


# --- examples -------------------------------------------------------------------------------------

PRELUDE = """
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <ums/ums.hpp>
using namespace std::chrono_literals;
"""


class Block:
    def __init__(self, page, line, kind, code, language="cpp"):
        self.page, self.line, self.kind, self.code = page, line, kind, code
        self.language = language
        self.output = None

    def place(self):
        return f"{self.page}:{self.line}"


class BadPage(Exception):
    pass


def blocks(page, text):
    """The C++ blocks of a page, with their kinds and outputs."""
    found, kind, expects_output = [], None, False
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.startswith("```"):
            if marked := re.fullmatch(r"<!-- example: (.+) -->", line):
                kind = marked[1]
            elif line.strip():
                kind = None
                expects_output = line.strip() == "Output:"
            at += 1
            continue
        begin = at + 1
        end = lines.index("```", begin)
        code = "\n".join(lines[begin:end]) + "\n"
        if line in ("```cpp", "```c"):
            if kind is None and "int main" in code:
                kind = "program"
            kinds = r"program|from \S+"
            if line == "```cpp":
                kinds += "|declarations|statements|main|boost"
            if not re.fullmatch(kinds, kind or ""):
                name = "C++" if line == "```cpp" else "C"
                raise BadPage(f"{page}:{at + 1}: a {name} block that is no program: say above it what "
                              "it is (see tests/docs/check.py)")
            found.append(Block(page, begin + 1, kind, code, line[3:]))
        elif line == "```go":
            found.append(Block(page, begin + 1, "go", code, "go"))
        elif line == "```text" and expects_output and found:
            found[-1].output = code
        kind, expects_output = None, False
        at = end + 1
    return found


def unit_of_fragments(fragments):
    """One program of all fragments of a page; its argument says which of them to run."""
    text, calls = PRELUDE, ""
    for index, block in enumerate(fragments):
        numbered = f'#line {block.line} "{block.page}"\n{block.code}'
        if block.kind == "declarations":
            text += numbered
            continue
        text += f"void block_{index}() {{\n{numbered}}}\n"
        run = f"block_{index}()" if block.kind == "main" else f"ums::run([] {{ block_{index}(); }})"
        calls += f"    if (which == {index}) {run};\n"
    return (text + "int main(int, char** words) {\n"
            f"    [[maybe_unused]] const int which = std::atoi(words[1]);\n{calls}}}\n")


class Builder:
    def __init__(self, root, compiler, library, flags, folder):
        self.root, self.library, self.folder = root, library, folder
        self.compiler = compiler
        self.flags = ["-Wall", "-Wextra", "-Werror", *flags, f"-I{os.path.join(root, 'include')}"]

    def build(self, name, text, language="cpp", also=()):
        """Returns the program, or what the compiler said."""
        source = os.path.join(self.folder, f"{name}.{language}")
        program = os.path.join(self.folder, name)
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        # The C++ compiler compiles C too.
        compiles, libraries = ["-std=c++20", source], [self.library, "-pthread"]
        if language == "c":
            compiles = ["-std=c11", "-pedantic", "-x", "c", source, "-x", "none"]
            libraries += ["-lstdc++", "-lm"]
        libraries += [*also, *(flag for flag in self.flags if flag.startswith("-l"))]
        flags = [flag for flag in self.flags if not flag.startswith("-l")]
        done = subprocess.run([self.compiler, *flags, *compiles, *libraries, "-o", program],
                              cwd=self.root, capture_output=True, text=True, check=False)
        return (program, None) if done.returncode == 0 else (None, done.stderr)


def is_endless(block, flags):
    """Where fibers are not stopped, an endless loop is neither preempted nor paused: docs/hand-off.md."""
    checks = ",".join(f.partition("=")[2] for f in flags if f.startswith("-fsanitize=")).split(",")
    is_stopped = "time_slice_us" in block.code or ".pause()" in block.code
    return is_stopped and not {"address", "thread"}.isdisjoint(checks)


def run(block, command):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("UMS_")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S,
                              env=environment, check=False)
    except subprocess.TimeoutExpired:
        return f"{block.place()}: did not end in {TIMEOUT_S} s"
    if done.returncode != 0:
        return f"{block.place()}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    if block.output is not None and done.stdout != block.output:
        return f"{block.place()}: should print\n{block.output}but prints\n{done.stdout}"
    return None


def check_excerpt(root, block):
    path = block.kind.split()[1]
    if not os.path.exists(os.path.join(root, path)):
        return f"{block.place()}: is from {path}, which is not there"
    if block.code not in read(root, path):
        return f"{block.place()}: is not what {path} says"
    return None


def check_unit(builder, name, text, runs):
    """Builds one program and runs the blocks in it. `runs`: (block, arguments)."""
    program, error = builder.build(name, text, runs[0][0].language)
    if program is None:
        return [f"{runs[0][0].page}: does not compile\n{error}"]
    return [wrong for block, words in runs if not is_endless(block, builder.flags)
            if (wrong := run(block, [program, *words]))]


def runs_boost(flags):
    """The sanitizers do not know how Debian's Boost switches."""
    is_sanitized = any(flag.startswith("-fsanitize=") for flag in flags)
    return not is_sanitized and os.path.exists("/usr/include/boost/fiber/all.hpp")


def find_go():
    return shutil.which("go", path=os.environ.get("PATH", "") + ":/usr/local/go/bin")


def check_foreign(builder, block):
    """A program of another library or language, where that is installed."""
    name = re.sub(r"\W", "_", block.place())
    if block.kind == "boost":
        if not runs_boost(builder.flags):
            return []
        program, error = builder.build(name, block.code, also=["-lboost_fiber", "-lboost_context"])
    else:
        go = find_go()
        if go is None:
            return []
        program = os.path.join(builder.folder, name)
        with open(program + ".go", "w", encoding="utf-8") as file:
            file.write(block.code)
        done = subprocess.run([go, "build", "-o", program, program + ".go"], cwd=builder.folder,
                              capture_output=True, text=True, check=False)
        error = done.stderr if done.returncode else None
    wrong = f"{block.place()}: does not compile\n{error}" if error else run(block, [program])
    return [wrong] if wrong else []


def units(page, found):
    programs = [block for block in found if block.kind == "program"]
    for block in programs:
        name = re.sub(r"\W", "_", f"{page}_{block.line}")
        yield name, f'#line {block.line} "{page}"\n{block.code}', [(block, [])]
    fragments = [b for b in found if b.kind in ("declarations", "statements", "main")]
    if fragments:
        runs = [(b, [str(i)]) for i, b in enumerate(fragments) if b.kind != "declarations"]
        name = re.sub(r"\W", "_", f"{page}_fragments")
        yield name, unit_of_fragments(fragments), runs or [(fragments[0], ["0"])]


def check_examples(root, compiler, library, flags):
    wrong, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(root, compiler, library, flags, folder)
        # One after the other: ctest runs other tests beside this one.
        for page in pages(root):
            try:
                found = blocks(page, read(root, page))
            except BadPage as error:
                wrong.append(str(error))
                continue
            count += len(found)
            wrong += [bad for block in found if block.kind.startswith("from ")
                      if (bad := check_excerpt(root, block))]
            for unit in units(page, found):
                wrong += check_unit(builder, *unit)
            for block in found:
                if block.kind in ("boost", "go"):
                    wrong += check_foreign(builder, block)
    return count, wrong


def left_out(root, flags):
    """What check_foreign() does not run here, a line for each kind."""
    kinds = [block.kind for page in pages(root) for block in blocks(page, read(root, page))]
    for kind, can_run in (("boost", runs_boost(flags)), ("go", find_go() is not None)):
        if kind in kinds and not can_run:
            yield f"{kinds.count(kind)} blocks need {kind}, which is not here or does not run under sanitizers"


# --- programs -------------------------------------------------------------------------------------


def promised_output(text):
    """What the comment at the head of an example says it prints."""
    promise = re.search(r"^// Output:\n((?:// .*\n)+)", text, re.MULTILINE)
    return re.sub(r"^// {1,3}", "", promise[1], flags=re.MULTILINE) if promise else None


def check_program(source, program):
    block = Block(os.path.basename(source), 1, "program", "")
    with open(source, encoding="utf-8") as file:
        block.output = promised_output(file.read())
    if block.output is None:
        return f"{block.place()}: does not say what it prints (// Output:)"
    return run(block, [program])


# --- self-test ------------------------------------------------------------------------------------

GOOD_PAGE = """# A page

See [itself](#a-page), [another](docs/other.md#two-words) and `tests/docs/check.py`.

| what | how long |
|---|---|
| it | 7 ns |

By `build/release/ums bench yield`.
"""

# Each case: a text that replaces README.md, and a part of the one complaint it must cause, or None.
TEXTS = [
    (GOOD_PAGE, None),
    ("[x](nowhere.md)", "nowhere.md, which is not there"),
    ("![x](nowhere.svg)", "nowhere.svg, which is not there"),
    ("[x](docs/other.md#three)", "no such heading"),
    ("Read `sched/nothing.hpp`.", "names sched/nothing.hpp"),
    ("Read `src/io/`, planned.", None),
    ("Read `examples/*.nothing`.", "names examples/*.nothing"),
    ("# One\n| x | 7 ns |\n# Two\n`ums bench yield`", "a table of figures"),
    ("It is freed by who waits.", "a clause begins"),
    ("Who waits? `by who` and\n\n```text\nby who\n```", None),
]

# Each case: a page, and a part of the one complaint it must cause, or None.
EXAMPLES = [
    ("```cpp\nint main() { return 0; }\n```\n", None),
    ("```cpp\nint x;\n```\n", "a C++ block that is no program"),
    ("```cpp\nint main() { return 1; }\n```\n", "exit code 1"),
    ("```cpp\nint main() { return nothing; }\n```\n", "README.md:2"),
    ("```c\nint main(void) { int class = 0; return class; }\n```\n", None),
    ("```c\nint main(void) { return nothing; }\n```\n", "README.md:2"),
    ("```c\nint x;\n```\n", "a C block that is no program"),
    ("```cpp\n#include <cstdio>\nint main() { std::puts(\"a\"); }\n```\n\nOutput:\n\n"
     "```text\na\n```\n", None),
    ("```cpp\n#include <cstdio>\nint main() { std::puts(\"a\"); }\n```\n\nOutput:\n\n"
     "```text\nb\n```\n", "should print\nb\nbut prints\na\n"),
    ("<!-- example: declarations -->\n```cpp\nint three() { return 3; }\n```\n\n"
     "<!-- example: statements -->\n```cpp\nif (three() != 3) std::abort();\n```\n", None),
    ("<!-- example: statements -->\n```cpp\nstd::exit(ums::this_fiber::name() == \"main\" ? 3 : 4);\n"
     "```\n", "exit code 3"),
    ("<!-- example: main -->\n```cpp\nstd::exit(ums::this_fiber::get_id() == ums::fiber_id{} ? 5 : 6);"
     "\n```\n", "exit code 5"),
    ("<!-- example: from tests/docs/CMakeLists.txt -->\n```cpp\n# SPDX-License-Identifier: MIT\n"
     "```\n", None),
    ("<!-- example: from tests/docs/CMakeLists.txt -->\n```cpp\nnot there\n```\n", "is not what"),
]
BOOST_EXAMPLE = ("<!-- example: boost -->\n```cpp\n#include <boost/fiber/all.hpp>\n"
                 "int main() { return boost::fibers::fiber{}.joinable() ? 0 : 7; }\n```\n", "exit code 7")


GOOD_HEADER = """// SPDX-License-Identifier: MIT
#pragma once

// ums/x.hpp: a thing. One sentence more.

#include <cstddef>
"""

# Each case: a file under include/ums/, its text, and a part of the one complaint it must cause, or
# None.
HEADERS = [
    ("x.hpp", GOOD_HEADER, None),
    ("x.h", "/* SPDX-License-Identifier: MIT */\n#ifndef X\n#define X\n/* ums/x.h: a thing. It is\n"
            " * not big. */\n#endif\n", None),
    ("x.hpp", "// SPDX-License-Identifier: MIT\n#pragma once\n\n// ums/x.hpp: a thing.\n", "x.hpp:1: opens"),
    ("x.hpp", "// SPDX-License-Identifier: MIT\n#pragma once\n\nint x;  // A thing. One more.\n", "opens"),
    ("x.h", "/* SPDX-License-Identifier: MIT */\n#ifndef X\n#define X\n#define Y 1\n"
            "/* A thing. One more. */\n#endif\n", "opens"),
    ("x.hpp", GOOD_HEADER + "// " + 97 * "x", None),
    ("x.hpp", GOOD_HEADER + "// " + 98 * "x", "x.hpp:7: a comment wider"),
    ("x.h", GOOD_HEADER + "/* One\n" + 101 * "x" + "\n*/", "x.h:8: a comment wider"),
    ("x.hpp", GOOD_HEADER + "int " + 80 * "x" + ";  // A trailing comment.", "x.hpp:7: a comment wider"),
    ("x.hpp", GOOD_HEADER + "int " + 120 * "x" + ";", None),
    ("x.hpp", GOOD_HEADER + 'auto x = "//' + 120 * "x" + '. Who waits";', None),
    ("x.hpp", GOOD_HEADER + "// Who waits is woken.", "x.hpp:7: a clause"),
    ("x.hpp", GOOD_HEADER + "// It is set; then\n// it ends: who\n// waits is woken.", "x.hpp:8: a clause"),
    ("x.hpp", GOOD_HEADER + "int x;  // Freed by who waits.", "x.hpp:7: a clause"),
    ("x.h", GOOD_HEADER + "/* One thing.\n *\n * Who waits is woken. */", "x.h:9: a clause"),
    ("x.hpp", GOOD_HEADER + "// One thing.\n// Freed for the caller, who waits. Says who waits.", None),
    ("x.hpp", GOOD_HEADER + "// Who waits? See whose() and `who`; whoever waits is woken.", None),
    ("x.cpp", "// Who waits is woken.", "x.cpp:1: a clause"),
    ("x.cpp", "int x;", None),
    ("compat/windows/x.hpp", "// Who waits is woken.", None),
    ("x.hpp", GOOD_HEADER + "// Adds.\ntemplate <class T>\nvoid add(T t);\n// Ends.\nvoid end();", None),
    ("x.hpp", GOOD_HEADER + "template <class T>\n// Adds.\nvoid add(T t);", "x.hpp:8: a comment inside"),
    ("x.hpp", GOOD_HEADER + "void add(\n// Adds.\n    int n);", "x.hpp:8: a comment inside"),
    ("x.hpp", GOOD_HEADER + "class x {\n    void f() {\n        g();\n    // Adds.\n    }\n};",
     "x.hpp:10: a comment that nothing follows"),
    ("x.hpp", GOOD_HEADER + "void f();\n// Adds.\n\nvoid add();", "x.hpp:8: a comment with code above"),
    ("x.hpp", GOOD_HEADER + "namespace x {\n// --- Adding ---\n\nvoid add();\n}", None),
    ("x.py", "#!/x\n# " + 98 * "x", None),
    ("x.py", "#!/x\n# " + 99 * "x", "x.py:2: a comment wider"),
    ("x.py", "x = 1 " " # It is\n# freed.\n# It is freed by\n# who waits.", "x.py:4: a clause"),
    ("x.cmake", "set(x 1) " " # Freed by who waits.", "x.cmake:1: a clause"),
    ("CMakeLists.txt", "set(" + 100 * "x" + ")\n# Fine.", None),
]


def judge(text, expected, got):
    if len(got) == (expected is not None) and (not got or expected in got[0]):
        return 0
    print(f"self-test: {text!r}: expected {expected!r}, got {got}")
    return 1


def self_test_of_comments():
    wrong = 0
    for path, text, expected in HEADERS:
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "include/ums", path)
            os.makedirs(os.path.dirname(file))
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)
            got = [f"{page}:{line}: {what}" for page, line, what in check_text(folder)]
        wrong += judge(text, expected, got)
    return wrong


def self_test(root, tools):
    wrong = self_test_of_comments()
    with tempfile.TemporaryDirectory() as folder:
        def write(path, text):
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                file.write(text)

        write("docs/other.md", "# Two words\n")
        for path in ("tests/docs/check.py", "tests/docs/CMakeLists.txt"):
            write(path, read(root, path))
        os.symlink(os.path.join(root, "include"), os.path.join(folder, "include"))
        for text, expected in TEXTS:
            write("README.md", text)
            got = [f"{page}:{line}: {what}" for page, line, what in check_text(folder)]
            wrong += judge(text, expected, got)

        write("docs/memory-model.md", "sync(old)")
        write("src/sched/x.hpp", "// sync(new)")
        write("README.md", "")
        write("docs/environment.md", "| `UMS_OLD` |")
        write("src/runtime/environment.cpp", '"UMS_NEW"')
        got = [what for _, _, what in check_text(folder)]
        wrong += judge("names", "does not tell of the tag new", got[:1])
        wrong += judge("names", "tells of the variable UMS_OLD", got[-1:])
        write("docs/environment.md", "| `UMS_NEW` |\n| `UMS_DEBUG=old` |")
        write("src/runtime/environment.cpp", '"UMS_NEW" "UMS_DEBUG" debug_words[] = {"new"};')
        got = [what for _, _, what in check_text(folder)]
        wrong += judge("words", "does not tell of the word new", got[-2:-1])
        wrong += judge("words", "tells of the word old", got[-1:])
        write("src/runtime/environment.cpp", '"UMS_NEW"')
        os.remove(os.path.join(folder, "docs/memory-model.md"))

        write("docs/glossary.md", "| sync | a thing | | `sched/` |\n| new, old word | two things | | `sched/` |\n")
        got = [what for page, _, what in check_text(folder) if page == "docs/glossary.md"]
        wrong += judge("glossary", "says that old word lives in sched/, where nothing names it", got)
        os.remove(os.path.join(folder, "docs/glossary.md"))

        write("docs/diagrams/x.dot", 'digraph x { a [label="one\\ntwo"]; }')

        def of_diagrams():
            return [what for _, _, what in stale_diagrams(folder)]

        wrong += judge("diagram", "has no docs/diagrams/x.svg", of_diagrams())
        write("docs/diagrams/x.svg", '<text x="1">one</text><text>two</text>')
        wrong += judge("diagram", None, of_diagrams())
        write("docs/diagrams/x.svg", '<text x="1">one</text>')
        wrong += judge("diagram", "differs from docs/diagrams/x.svg in 'two'", of_diagrams())
        os.remove(os.path.join(folder, "docs/diagrams/x.dot"))

        write("docs/environment.md", "| `UMS_NEW` |")
        write("docs/test-map.md", "`src/sched/x.hpp`: `sync` `is_not_there`")
        got = [what for _, _, what in check_text(folder)]
        wrong += judge("tests", "names the test is_not_there", got)
        os.remove(os.path.join(folder, "docs/test-map.md"))

        if tools and runs_boost(tools[2]):
            EXAMPLES.append(BOOST_EXAMPLE)
        for text, expected in EXAMPLES if tools else []:
            write("README.md", text)
            wrong += judge(text, expected, check_examples(folder, *tools)[1])

        source = os.path.join(folder, "x.cpp")
        for text, expected in [("// Output:\n//   a\n", None), ("// Output:\n//   b\n", "should"),
                               ("", "does not say")]:
            write("x.cpp", text)
            program = os.path.join(folder, "x")
            write("x", "#!/bin/sh\necho a\n")
            os.chmod(program, 0o755)
            got = check_program(source, program)
            wrong += judge(text, expected, [got] if got else [])
    print(f"self-test: {wrong} wrong")
    return 1 if wrong else 0


def main(words):
    root = os.path.dirname(os.path.dirname(HERE))
    what, rest = words[0] if words else "", words[1:]
    if what == "text" and len(rest) <= 1:
        complaints = list(check_text(os.path.abspath(rest[0]) if rest else root))
        for page, line, complaint in complaints:
            print(f"{page}:{line}: {complaint}")
        return 1 if complaints else 0
    if what == "examples" and len(rest) >= 2:
        count, wrong = check_examples(root, rest[0], os.path.abspath(rest[1]), rest[2:])
        for complaint in wrong:
            print(complaint)
        for what in [] if wrong else left_out(root, rest[2:]):
            print(f"skipped in part: {what}")
        print(f"{count} C++ and C blocks, {len(wrong)} complaints")
        return 1 if wrong or not count else 0
    if what == "program" and len(rest) == 2:
        complaint = check_program(*rest)
        if complaint:
            print(complaint)
        return 1 if complaint else 0
    if what == "self-test" and len(rest) != 1:
        tools = (rest[0], os.path.abspath(rest[1]), rest[2:]) if rest else None
        return self_test(root, tools)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
