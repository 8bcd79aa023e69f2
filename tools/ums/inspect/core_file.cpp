// SPDX-License-Identifier: MIT
#include "core_file.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <sys/procfs.h>
#include <sys/user.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <stdexcept>

#include "notes.hpp"
#include "printable.hpp"

namespace tool::inspect {

namespace {

// A program of a million threads and mappings stays below these.
constexpr std::uint64_t most_notes = 1 << 30, most_of_a_note = 1 << 28, segments_most = 1 << 21;

thread_state from_status(const elf_prstatus& status) {
    user_regs_struct u;
    static_assert(sizeof status.pr_reg == sizeof u);
    std::memcpy(&u, status.pr_reg, sizeof u);
    thread_state t;
    t.tid = status.pr_pid;
    t.call = static_cast<long>(u.orig_rax);
    t.state = *t.call >= 0 ? 'S' : 'R';
    const std::uint64_t values[registers::count] = {u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi,
                                                    u.rbp, u.rsp, u.r8,  u.r9,  u.r10, u.r11,
                                                    u.r12, u.r13, u.r14, u.r15, u.rip};
    for (unsigned i = 0; i < registers::count; ++i) t.at.set(i, values[i]);
    return t;
}

}  // namespace

core_file::core_file(const std::string& path)
    : path_{path}, core_{std::make_unique<regular_file>(path)} {
    if (!core_->is_open() && core_->error() != 0)
        throw std::runtime_error{
            fmt::format("{}: {}; expected a process's number (pidof NAME) or a core file", path,
                        std::strerror(core_->error()))};
    Elf64_Ehdr head{};
    if (!core_->get(0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        throw std::runtime_error{fmt::format("{}: not a core file", path)};
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64)
        throw std::runtime_error{fmt::format("{}: of another kind of CPU than x86-64", path)};
    if (head.e_type != ET_CORE)
        throw std::runtime_error{fmt::format("{}: a program or library, not a core file", path)};
    std::uint64_t count = head.e_phnum;
    if (Elf64_Shdr first{}; count == PN_XNUM && core_->get(head.e_shoff, first))
        count = first.sh_info;
    count = std::min(count, segments_most);
    for (std::uint64_t i = 0; i < count; ++i) {
        Elf64_Phdr p{};
        if (!core_->get(head.e_phoff + i * sizeof p, p)) {
            promised_ = std::max(promised_, head.e_phoff + count * sizeof p);
            break;
        }
        const std::uint64_t end = p.p_offset + p.p_filesz;
        promised_ = std::max(promised_, end >= p.p_offset ? end : UINT64_MAX);
        if (p.p_type == PT_NOTE) read_notes(p.p_offset, p.p_filesz);
        if (p.p_type != PT_LOAD || p.p_vaddr + p.p_memsz < p.p_vaddr) continue;
        segments_.push_back({p.p_vaddr, p.p_vaddr + p.p_memsz, p.p_offset,
                             std::min<std::uint64_t>(p.p_filesz, p.p_memsz)});
    }
    std::sort(segments_.begin(), segments_.end(),
              [](const segment& a, const segment& b) { return a.begin < b.begin; });
    std::sort(mappings_.begin(), mappings_.end(),
              [](const mapping& a, const mapping& b) { return a.begin < b.begin; });
    if (segments_.empty())
        throw std::runtime_error{fmt::format("{}: cut off: there is no memory in it", path)};
    compare_files();
}

core_file::~core_file() = default;

void core_file::read_notes(std::uint64_t offset, std::uint64_t bytes) {
    // Several segments may name the same bytes.
    bytes = std::min(bytes, most_notes - notes_read_);
    notes_read_ += bytes;
    const std::uint64_t end = offset + bytes;
    while (offset + sizeof(Elf64_Nhdr) <= end) {
        Elf64_Nhdr note{};
        if (!core_->get(offset, note)) return;
        const std::uint64_t name = (std::uint64_t{note.n_namesz} + 3) / 4 * 4;
        const std::uint64_t begin = offset + sizeof note + name;
        offset = begin + (std::uint64_t{note.n_descsz} + 3) / 4 * 4;
        if (note.n_descsz > most_of_a_note || begin > core_->size()) return;
        if (note.n_type != NT_PRSTATUS && note.n_type != NT_PRPSINFO && note.n_type != NT_FILE)
            continue;
        std::vector<char> what(std::min<std::uint64_t>(note.n_descsz, core_->size() - begin));
        if (core_->read(begin, what.data(), what.size()) != what.size()) return;
        if (note.n_type == NT_PRSTATUS && what.size() >= sizeof(elf_prstatus)) {
            thread_state t = from_status(at_offset<elf_prstatus>(what, 0));
            if (threads_.empty()) t.state = 'R';  // The first thread is the one that had to end.
            threads_.emplace(t.tid, t);
            if (pid_ == 0) pid_ = t.tid;
        } else if (note.n_type == NT_PRPSINFO && what.size() >= sizeof(elf_prpsinfo)) {
            const auto info = at_offset<elf_prpsinfo>(what, 0);
            command_.assign(info.pr_fname, strnlen(info.pr_fname, sizeof info.pr_fname));
            pid_ = info.pr_pid;
        } else if (note.n_type == NT_FILE) {
            read_files_note(what);
        }
    }
}

void core_file::read_files_note(const std::vector<char>& note) {
    const auto count = at_offset<std::uint64_t>(note, 0);
    const auto page = at_offset<std::uint64_t>(note, 8);
    if (count > note.size() / 24) return;
    std::size_t name = 16 + count * 24;
    for (std::uint64_t i = 0; i < count && name < note.size() && mappings_.size() < segments_most;
         ++i) {
        mapping m;
        m.begin = at_offset<std::uint64_t>(note, 16 + i * 24);
        m.end = at_offset<std::uint64_t>(note, 24 + i * 24);
        m.offset = at_offset<std::uint64_t>(note, 32 + i * 24) * page;
        m.path.assign(note.data() + name, strnlen(note.data() + name, note.size() - name));
        name += m.path.size() + 1;
        if (m.begin < m.end) mappings_.push_back(std::move(m));
    }
}

const core_file::segment* core_file::segment_of(address at) const {
    auto s = std::upper_bound(segments_.begin(), segments_.end(), at,
                              [](address a, const segment& one) { return a < one.begin; });
    if (s == segments_.begin()) return nullptr;
    --s;
    return at - s->begin < s->in_file ? &*s : nullptr;
}

std::size_t core_file::from_files(address at, char* into, std::size_t bytes) const {
    auto m = std::upper_bound(mappings_.begin(), mappings_.end(), at,
                              [](address a, const mapping& one) { return a < one.begin; });
    if (m == mappings_.begin()) return 0;
    --m;
    if (at >= m->end || changed_.contains(m->path)) return 0;
    auto& file = files_[m->path];
    if (!file) file = std::make_unique<regular_file>(m->path);
    return file->read(m->offset + (at - m->begin), into,
                      std::min<std::uint64_t>(bytes, m->end - at));
}

bool core_file::read_part(address at, char* into, std::size_t bytes) const {
    while (bytes != 0) {
        std::size_t n = 0;
        // What has been cut off is not read from the program's file: it may have changed in memory.
        if (const segment* s = segment_of(at); s != nullptr)
            n = core_->read(s->offset + (at - s->begin), into,
                            std::min<std::uint64_t>(bytes, s->in_file - (at - s->begin)));
        else
            n = from_files(at, into, bytes);
        if (n == 0) return false;
        assert(n <= bytes && "more was read than there is room for");
        at += n;
        into += n;
        bytes -= n;
    }
    return true;
}

void core_file::read(std::span<piece> pieces) const {
    for (piece& p : pieces) p.is_read = read_part(p.at, static_cast<char*>(p.into), p.bytes);
}

std::string core_file::title() const {
    return fmt::format("core file {} of process {}{}", printable(path_), pid_,
                       command_.empty() ? "" : " (" + printable(command_) + ")");
}

std::string core_file::file_of(const mapping& m) const {
    const bool is_file = !m.path.empty() && m.path[0] == '/' && !changed_.contains(m.path);
    return is_file ? m.path : std::string{};
}

namespace {

// The build id of a program or library; empty: it has none, or it cannot be read.
std::string build_id(const memory& m, address base) {
    for (const elf_note& n : notes_of(m, base))
        if (n.name == "GNU" && n.type == NT_GNU_BUILD_ID) return n.descriptor;
    return {};
}

}  // namespace

// A program that was compiled again since is no help: names and constants would be wrong.
void core_file::compare_files() {
    struct in_file final : memory {
        explicit in_file(const std::string& path) : file{path} {}
        void read(std::span<piece> pieces) const override {
            for (piece& p : pieces) p.is_read = file.read(p.at, p.into, p.bytes) == p.bytes;
        }
        regular_file file;
    };
    std::set<std::string> seen;
    for (const mapping& m : mappings_) {
        if (m.offset != 0 || segment_of(m.begin) == nullptr || file_of(m).empty()) continue;
        if (!seen.insert(m.path).second) continue;
        const std::string then = build_id(*this, m.begin);
        const std::string now = then.empty() ? then : build_id(in_file{m.path}, 0);
        if (!now.empty() && now != then) changed_.insert(m.path);
    }
}

std::string core_file::warning() const {
    if (promised_ > core_->size())
        return fmt::format(
            "the core file is cut off: {} of {} bytes are there, and what depends on the others is "
            "missing",
            core_->size(), promised_);
    if (!changed_.empty())
        return fmt::format("{} is not the file that this process ran (its build id differs)",
                           printable(*changed_.begin()));
    return {};
}

std::optional<thread_state> core_file::thread(int tid) const {
    const auto found = threads_.find(tid);
    return found != threads_.end() ? std::optional{found->second} : std::nullopt;
}

}  // namespace tool::inspect
