// SPDX-License-Identifier: MIT
#pragma once

// mem/guard.hpp: pages that must not be touched, below each stack.
//
// lightweight: MADV_GUARD_INSTALL (Linux 6.13). Page-table markers, without a mapping of its own: a
// million guards in one mapping.
// mprotect:    PROT_NONE pages. Each guard splits the mapping, and the kernel allows 65,530
//              mappings (vm.max_map_count): about 32,700 stacks.

#include <cstddef>

namespace ums::mem {

enum class guard_kind { lightweight, mprotect };

const char* name_of(guard_kind kind) noexcept;

// Whether the kernel can do lightweight guards; found out by trying.
bool has_lightweight_guards() noexcept;

// How many stacks can have such a guard: unlimited, or what vm.max_map_count leaves when some
// mappings are kept back for the rest of the program.
std::size_t most_guards(guard_kind kind) noexcept;

// Returns 0 or -errno.
long install_guard(guard_kind kind, void* at, std::size_t bytes) noexcept;

constexpr std::size_t most_at_once = 64;

// Installs guards of `bytes`: one at `at` and one every `stride` bytes above it, `n` (at most
// most_at_once) in all. Returns how many of them, from the first on, are installed. Cost: one
// system call for all lightweight guards where the kernel can do that (Linux 6.15), which saves 0.3
// us each; otherwise one each.
std::size_t install_guards(guard_kind kind, char* at, std::size_t bytes, std::size_t stride,
                           std::size_t n) noexcept;

}  // namespace ums::mem
