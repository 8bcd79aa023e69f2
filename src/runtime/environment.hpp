// SPDX-License-Identifier: MIT
#pragma once

// runtime/environment.hpp: UMS_* variables.
//
// What a user sets in production has a variable of its own. What helps to debug or to test is a
// word of one variable, which is a list: UMS_DEBUG=migrate,seed=7. If a word occurs twice, the last
// one counts.
//
// Each function returns `otherwise` if the variable or the word is not there. If the value is not
// one of those expected, it ends the program with exit code 2 and one line that names the variable
// or the word. A program that runs with the rights of another user than its caller (setuid,
// capabilities) takes nothing from its environment: secure_getenv(3).

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

namespace ums::rt::environment {

// Ends the program as said above.
[[noreturn]] void refuse(const char* variable, const char* value, const std::string& expected);

// A decimal number in [least, most].
std::uint64_t number(const char* variable, std::uint64_t otherwise, std::uint64_t least,
                     std::uint64_t most);

// 0, or a decimal number in [least, most].
std::uint64_t number_or_zero(const char* variable, std::uint64_t otherwise, std::uint64_t least,
                             std::uint64_t most);

// A number in [least, most] that may end in K, M or G.
std::size_t bytes(const char* variable, std::size_t otherwise, std::size_t least, std::size_t most);

// One of the words; returns its value.
int word(const char* variable, int otherwise,
         std::initializer_list<std::pair<const char*, int>> words);

// A word of UMS_DEBUG that has one of these values; without a value it has the first of them.
int debug_word(const char* name, int otherwise,
               std::initializer_list<std::pair<const char*, int>> values);

// A word of UMS_DEBUG that is on, off, or alone, which is on.
bool debug_switch(const char* name, bool otherwise);

// A word of UMS_DEBUG that needs a number.
std::uint64_t debug_number(const char* name, std::uint64_t otherwise);

// UMS_BLOCK, as a block_detection (ums/options.hpp). A value that existed once is refused with a
// line of its own.
int detector(int otherwise);

// The settings of the UMS API, which a runtime checks together with all others: whether times are
// measured (UMS_DEBUG=times), whether statistics are kept as files (UMS_STATS_FILES), and where: an
// absolute path, or null (UMS_STATS_DIRECTORY).
bool times();
bool stats_files();
const char* stats_directory();

// UMS_DEBUG=system_root=PATH, for tests: an absolute path, or "".
std::string system_root();

// UMS_TRACE=[BYTES:](on|FILE): whether to record (sched/record/trace.hpp), in rings of that size,
// and whether to dump them into the file.
struct trace_wish {
    bool is_on = false;
    std::uint64_t ring_bytes = 0;  // 0 leaves the size unchanged.
    const char* file = nullptr;
};
trace_wish trace();

// Ends the program if a variable's name is nearly one of those that the runtime knows, or if
// UMS_DEBUG has a word that the runtime does not know.
// Ignoring it would silently run with other settings than intended. Other names that begin with
// UMS_ belong to other programs.
void reject_unknown();

}  // namespace ums::rt::environment
