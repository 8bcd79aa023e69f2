// SPDX-License-Identifier: MIT
#pragma once

// os/cpu_choice.hpp: the CPUs that an option names.
//
// `root` stands for "/" in the paths of the kernel's files: for tests.

#include <optional>
#include <string>
#include <vector>

namespace ums::os {

// Those that this process may use, in ascending order.
std::vector<int> usable_cpu_list();

// Parses a list as the kernel writes it, such as "0-3,8". Returns the CPUs in ascending order, each
// once; nothing if `text` is no such list or names no CPU.
std::optional<std::vector<int>> parse_cpu_list(const std::string& text);

// Returns the CPUs of the NUMA node `number`; an empty vector if there is no such node, and nothing
// if `number` is no number.
std::optional<std::vector<int>> cpus_of_node(const std::string& number,
                                             const std::string& root = "");

// Chooses `n` of the usable CPUs that are near each other, or all if there are fewer. Prefers CPUs
// that are not in `taken`. All of them share one last-level cache if any has that many free ones.
std::vector<int> near_cpus(unsigned n, const std::vector<int>& usable,
                           const std::vector<int>& taken, const std::string& root = "");

}  // namespace ums::os
