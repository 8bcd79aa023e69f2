// SPDX-License-Identifier: MIT
#include "memory.hpp"

#include <algorithm>

namespace tool::inspect {

std::string memory::text(address at, std::size_t most) const {
    std::string found;
    // Does not read beyond the end of a page, where there may be nothing.
    while (found.size() < most) {
        char part[64];
        const std::size_t left_in_page = 4096 - (at + found.size()) % 4096;
        const std::size_t n = std::min({sizeof part, most - found.size(), left_in_page});
        if (!read(at + found.size(), part, n)) return found;
        char* const end = std::find(part, part + n, '\0');
        found.append(part, static_cast<std::size_t>(end - part));
        if (end != part + n) break;
    }
    return found;
}

}  // namespace tool::inspect
