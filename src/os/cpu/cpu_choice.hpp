// SPDX-License-Identifier: MIT
#pragma once

// os/cpu/cpu_choice.hpp: the CPUs that an option names.
//
// `root` stands for "/" in the paths of the kernel's files: for tests.

#include <optional>
#include <string>
#include <vector>

namespace ums::os {

// Returns the CPUs that this process may use, in ascending order.
std::vector<int> usable_cpu_list();

// Parses a list as the kernel writes it: "0-3,8". Returns the CPUs in ascending order, each once;
// std::nullopt if this is no such list, or names no CPU.
std::optional<std::vector<int>> parse_cpu_list(const std::string& text);

// Whether this is the number of a NUMA node, on this machine or another one.
bool names_node(const std::string& number);

// Returns the CPUs of the NUMA node with that number: an empty list if there is no such node, and
// std::nullopt if this is no number. Throws as read_text() of os/text_file.hpp.
std::optional<std::vector<int>> cpus_of_node(const std::string& number,
                                             const std::string& root = "");

// Returns `n` of the usable CPUs, or as many as there are, which are near each other; preferably
// such as are not in `taken`. All of them share one last-level cache if any has that many.
std::vector<int> near_cpus(unsigned n, const std::vector<int>& usable,
                           const std::vector<int>& taken, const std::string& root = "");

}  // namespace ums::os
