#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""show_symbols.py FOLDER STUB ARCHIVE...: makes the internals of static libraries linkable as a shared one.

FOLDER gets a copy of each archive with every hidden symbol made visible: the objects and their code
are the same. (ELF keeps the visibility in the low two bits of st_other.)

STUB is assembler text for the programs that link with the shared library. A program that includes a
header with an inline variable has a copy of its own, while the library uses its own: a test that
sets such a variable would set the wrong one. So for each the stub has an empty section group of the
same name. The linker keeps the first group of a name, drops the program's copy, and takes the
variable from the shared library."""
import pathlib
import re
import struct
import sys

OBJECT, TLS, WEAK, UNIQUE, HIDDEN = 1, 6, 2, 10, 2
SYMTAB, SYMBOL_BYTES = 2, 24
# Ours. Not what the compiler adds of its own: how it unwinds, what a sanitizer knows of a variable.
OURS = re.compile(rb"_Z|(lib)?ums_")
# What it makes of a class, and compares by name: tables of virtual functions and types.
MADE = re.compile(rb"_ZT[VTISC]")


def members(archive):
    """Where the objects in it begin."""
    at = 8
    while at < len(archive):
        name, size = archive[at : at + 16], int(archive[at + 48 : at + 58])
        if not re.match(rb"//? |/SYM64/ ", name):
            yield at + 60
        at += 60 + size + size % 2


def show(archive, start, variables):
    """Makes the symbols of the object there visible; adds the names of its inline variables."""
    if archive[start : start + 6] != b"\x7fELF\x02\x01":
        sys.exit("show_symbols.py: not an object of a 64-bit little-endian machine")
    sections_at, count = struct.unpack_from("<Q", archive, start + 40)[0], struct.unpack_from("<H", archive, start + 60)[0]
    if not count:  # More than fit: the first header says how many.
        count = struct.unpack_from("<Q", archive, start + sections_at + 32)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", archive, start + sections_at + 64 * i) for i in range(count)]
    for _, kind, _, _, offset, size, link, first_global, _, _ in sections:
        if kind != SYMTAB:
            continue
        names = start + sections[link][4]
        for at in range(start + offset + SYMBOL_BYTES * first_global, start + offset + size, SYMBOL_BYTES):
            name_at, info, other, section = struct.unpack_from("<IBBH", archive, at)
            if other & 3 != HIDDEN:
                continue
            name = bytes(archive[names + name_at : archive.index(0, names + name_at)])
            if not OURS.match(name):
                continue
            archive[at + 5] = other & ~3
            if section and info & 15 in (OBJECT, TLS) and info >> 4 in (WEAK, UNIQUE):
                # -Bsymbolic has no effect on the unique ones.
                archive[at + 4] = WEAK << 4 | info & 15
                if not MADE.match(name):
                    variables.add(name.decode())


def main():
    folder, stub, *archives = (pathlib.Path(a) for a in sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    variables = set()
    for source in archives:
        archive = bytearray(source.read_bytes())
        if archive[:8] != b"!<arch>\n":
            sys.exit(f"show_symbols.py: {source} is no archive")
        for start in members(archive):
            show(archive, start, variables)
        (folder / source.name).write_bytes(archive)
    groups = "".join(f'.section .data.{v},"awG",@progbits,{v},comdat\n' for v in sorted(variables))
    groups += '.section .note.GNU-stack,"",@progbits\n'
    # Left alone if it is the same, so that no program is linked again.
    if not stub.exists() or stub.read_text() != groups:
        stub.write_text(groups)


if __name__ == "__main__":
    main()
