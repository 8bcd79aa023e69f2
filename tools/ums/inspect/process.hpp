// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/process.hpp: the process that is inspected, live or in a core file.

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memory.hpp"

namespace tool::inspect {

struct mapping {
    address begin = 0, end = 0;
    std::uint64_t offset = 0;  // In the file.
    std::string path;          // The path that the process knows; empty: no file.
};

// What an unwinder starts with. The numbers are those of the DWARF registers of x86-64; 16 is the
// address.
struct registers {
    static constexpr unsigned sp = 7, bp = 6, ip = 16, count = 17;
    std::uint64_t value[count] = {};
    bool is_known[count] = {};

    void set(unsigned number, std::uint64_t v) {
        assert(number < count && "there is no register of that number");
        value[number] = v;
        is_known[number] = true;
    }
};

struct thread_state {
    int tid = 0;
    char state = '?';  // As in /proc/PID/stat: R runs, S and D wait in the kernel.
    // The number of the system call it is in; -1: in none. Unset: not known.
    std::optional<long> call;
    registers at;  // As much as is known without stopping the thread.
};

class process : public memory {
public:
    [[nodiscard]] virtual bool is_live() const = 0;
    [[nodiscard]] virtual int pid() const = 0;
    [[nodiscard]] virtual std::string title() const = 0;  // For the header of a list.
    [[nodiscard]] virtual const std::vector<mapping>& mappings() const = 0;
    // Where the file of a mapping can be opened from here; empty: nowhere.
    [[nodiscard]] virtual std::string file_of(const mapping& m) const = 0;
    // Returns a thread, or nothing if there is none.
    [[nodiscard]] virtual std::optional<thread_state> thread(int tid) const = 0;
    // In one line, what is wrong with all that is read from it; empty: nothing.
    [[nodiscard]] virtual std::string warning() const { return {}; }
    // What the command knows a thread by that the process itself calls `own`: in a container it has
    // other numbers. 0: there is no such thread.
    [[nodiscard]] virtual int tid_here(int own) const { return own; }
    // An upper bound of the memory that it has. Whatever it claims to be larger is not believed.
    [[nodiscard]] virtual std::uint64_t bytes() const = 0;
    // CLOCK_MONOTONIC; 0: not known.
    [[nodiscard]] virtual std::int64_t now() const = 0;
    // Lets a process that was stopped for the look run on. Returns for how long it stood still, in
    // nanoseconds; 0: it was not stopped.
    virtual std::int64_t let_go() { return 0; }
};

// A path as it is, from how /proc/PID/maps writes it: with \012 for the end of a line.
[[nodiscard]] inline std::string path_in_maps(std::string written) {
    constexpr std::string_view line_end = "\\012";
    for (std::size_t at = 0; (at = written.find(line_end, at)) != std::string::npos; ++at)
        written.replace(at, line_end.size(), 1, '\n');
    return written;
}

// The process that has this number, all digits. Throws std::runtime_error if it is too large.
[[nodiscard]] int number_of(const std::string& digits);

// Names a process by its number, or a core file by its path. Throws std::runtime_error with one
// line.
[[nodiscard]] std::unique_ptr<process> open_process(const std::string& target, bool stop);

// Call this when all that has to fit together is read. Says on stderr for how long the process
// stood still.
void let_go(process& of);

}  // namespace tool::inspect
