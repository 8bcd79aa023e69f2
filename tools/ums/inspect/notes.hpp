// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/notes.hpp: the notes of a program or library, in memory or in its file.

#include <string>
#include <vector>

#include "memory.hpp"

namespace tool::inspect {

struct elf_note {
    std::string name;  // Without the zero at its end.
    std::uint32_t type = 0;
    address at = 0;  // Where its descriptor begins.
    std::string descriptor;
};

// The notes of the ELF file whose header is at `base`. Empty if there is no such header.
[[nodiscard]] std::vector<elf_note> notes_of(const memory& m, address base);

}  // namespace tool::inspect
