// SPDX-License-Identifier: MIT
#include "notes.hpp"

#include <elf.h>

#include <algorithm>

namespace tool::inspect {

namespace {

// Of one program or library; the usual are a dozen segments, and notes of some hundred bytes.
constexpr unsigned phdrs_most = 256;
constexpr std::size_t note_bytes_most = 1 << 16;

}  // namespace

std::vector<elf_note> notes_of(const memory& m, address base) {
    std::vector<elf_note> found;
    const auto head = m.get<Elf64_Ehdr>(base);
    if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_phentsize != sizeof(Elf64_Phdr) ||
        head->e_phnum > phdrs_most)
        return found;
    std::vector<Elf64_Phdr> all(head->e_phnum);
    if (!m.read(base + head->e_phoff, all.data(), all.size() * sizeof all[0])) return found;
    address low = ~address{0};
    for (const Elf64_Phdr& p : all)
        if (p.p_type == PT_LOAD) low = std::min(low, p.p_vaddr - p.p_offset);
    std::size_t left = note_bytes_most;
    for (const Elf64_Phdr& p : all) {
        if (p.p_type != PT_NOTE || p.p_memsz > left) continue;
        left -= p.p_memsz;
        const address at = base + (p.p_vaddr - low);
        std::vector<char> notes(p.p_memsz);
        if (!m.read(at, notes.data(), notes.size())) continue;
        // Whatever p_align says: mold puts notes of both alignments into one segment of 8. Those
        // that are aligned to 8, GNU's properties, have parts of such lengths, so they read alike.
        constexpr std::size_t align = 4;
        const auto up = [](std::size_t n) { return (n + align - 1) / align * align; };
        for (std::size_t i = 0; i + sizeof(Elf64_Nhdr) <= notes.size();) {
            const auto n = at_offset<Elf64_Nhdr>(notes, i);
            const std::size_t name = i + sizeof n, what = i + up(sizeof n + n.n_namesz);
            if (name + n.n_namesz > notes.size() || what + n.n_descsz > notes.size()) break;
            const char* const text = notes.data() + name;
            found.push_back({std::string{text, strnlen(text, n.n_namesz)}, n.n_type, at + what,
                             std::string{notes.data() + what, n.n_descsz}});
            i = up(what + n.n_descsz);
        }
    }
    return found;
}

}  // namespace tool::inspect
