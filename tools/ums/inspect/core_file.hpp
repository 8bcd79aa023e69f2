// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/core_file.hpp: a process that has ended, as its core file shows it.
//
// What the kernel leaves out of a core file, mostly code and constants, is read from the files that
// were mapped. Nothing checks that they are still the same.

#include <map>
#include <set>

#include "process.hpp"
#include "regular_file.hpp"

namespace tool::inspect {

class core_file final : public process {
public:
    explicit core_file(const std::string& path);
    ~core_file() override;
    core_file(const core_file&) = delete;
    core_file& operator=(const core_file&) = delete;

    using memory::read;
    void read(std::span<piece> pieces) const override;
    [[nodiscard]] bool is_live() const override { return false; }
    [[nodiscard]] int pid() const override { return pid_; }
    [[nodiscard]] std::string title() const override;
    [[nodiscard]] const std::vector<mapping>& mappings() const override { return mappings_; }
    [[nodiscard]] std::string file_of(const mapping& m) const override;
    [[nodiscard]] std::optional<thread_state> thread(int tid) const override;
    [[nodiscard]] std::int64_t now() const override { return 0; }
    [[nodiscard]] std::uint64_t bytes() const override { return core_->size(); }

    // The file ends before what its header promises, or a program's file has changed since.
    [[nodiscard]] std::string warning() const override;

private:
    struct segment {
        address begin, end;     // In memory.
        std::uint64_t offset;   // In the file.
        std::uint64_t in_file;  // How many of its bytes are in it, unless it is cut off.
    };

    [[nodiscard]] bool read_part(address at, char* into, std::size_t bytes) const;
    // The segment that says it has this address; null: none.
    [[nodiscard]] const segment* segment_of(address at) const;
    [[nodiscard]] std::size_t from_files(address at, char* into, std::size_t bytes) const;
    void read_notes(std::uint64_t offset, std::uint64_t bytes);
    void read_files_note(const std::vector<char>& note);
    void compare_files();

    const std::string path_;
    std::unique_ptr<regular_file> core_;
    std::vector<segment> segments_;
    std::vector<mapping> mappings_;
    std::map<int, thread_state> threads_;
    mutable std::map<std::string, std::unique_ptr<regular_file>> files_;
    std::string command_;
    int pid_ = 0;
    std::uint64_t notes_read_ = 0;
    std::uint64_t promised_ = 0;     // Where its last segment ends.
    std::set<std::string> changed_;  // Paths of files that are other ones now.
};

}  // namespace tool::inspect
