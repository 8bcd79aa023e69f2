// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/printable.hpp: names that a program has chosen, fit for a terminal.

#include <string>
#include <string_view>

namespace tool::inspect {

// Names are arbitrary bytes. Control characters, which could drive the terminal or break a line,
// and what is not UTF-8 are written as \xHH.
[[nodiscard]] std::string printable(std::string_view name);

}  // namespace tool::inspect
