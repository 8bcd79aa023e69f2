// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/wait_words.hpp: what a fiber waits for, in words.

#include <string>

#include "descriptors.hpp"
#include "printable.hpp"
#include "snapshot.hpp"

namespace tool::inspect {

// fiber 17 "name"
[[nodiscard]] std::string fiber_in_words(const fiber_record& f);

// "mutex 0x7f.. held by fiber 3 "writer""; empty: the fiber does not wait.
[[nodiscard]] std::string wait_in_words(const snapshot& s, const fiber_record& f, descriptors& fds);

// "250 ms", "3.2 s", "2 h 5 min"
[[nodiscard]] std::string duration_in_words(std::int64_t ns);

// "read", "futex", ...; the number if the call has no name here.
[[nodiscard]] std::string system_call_name(std::uint64_t number);

}  // namespace tool::inspect
