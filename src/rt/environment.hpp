// SPDX-License-Identifier: MIT
#pragma once

// rt/environment.hpp: UMS_* variables.
//
// Each function leaves its target alone if the variable is not set, and ends the program with exit code
// 2 and one line that names the variable if its value is none of what was expected.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace ums::rt::environment {

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

// The variables of the UMS API, which a runtime checks with all others: whether workers may be switched by user code
// (UMS_FSGSBASE), times are measured (UMS_TIMES), statistics are kept as files (UMS_STATS_FILES).
bool fsgsbase();
bool times();
bool stats_files();

// Ends the program if a variable that begins with UMS_ is none that the runtime knows: most likely a
// misspelling, and ignoring it would silently run with other settings than asked for.
void reject_unknown();

}  // namespace ums::rt::environment
