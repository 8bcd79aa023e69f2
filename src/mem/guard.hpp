// SPDX-License-Identifier: MIT
#pragma once

// mem/guard.hpp: pages that must not be touched, below each stack.
//
// lightweight: MADV_GUARD_INSTALL (Linux 6.13). Page-table markers, no mapping of its own: a million
//              guards in one mapping.
// mprotect:    PROT_NONE pages. Each guard splits the mapping, and the kernel allows 65,530
//              mappings (vm.max_map_count): about 32,700 stacks.

#include <cstddef>

namespace ums::mem {

enum class guard_kind { lightweight, mprotect };

const char* name_of(guard_kind kind) noexcept;

// Whether the kernel can do lightweight guards, by trying.
bool has_lightweight_guards() noexcept;

// How many stacks can have such a guard: without limit, or what vm.max_map_count leaves when some
// mappings are kept back for the rest of the program.
std::size_t most_guards(guard_kind kind) noexcept;

// Returns 0 or -errno.
long install_guard(guard_kind kind, void* at, std::size_t bytes) noexcept;

}  // namespace ums::mem
