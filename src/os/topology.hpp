// SPDX-License-Identifier: MIT
#pragma once

// os/topology.hpp: which CPUs this process may use, and which are near each other.

#include <sched.h>
#include <string>
#include <vector>

namespace ums::os {

// CPUs in the process's affinity mask (its first thread's; a carrier's own may be narrower); at least 1.
unsigned usable_cpus() noexcept;

// Confines the calling thread to the n-th usable CPU (modulo their number). Returns that CPU, or -1.
int pin_this_thread(unsigned n) noexcept;
// Confines it to those CPUs. None: nothing is done.
void confine_this_thread(const std::vector<int>& cpus) noexcept;

// Lets the calling thread, which may have inherited a pinned one's mask, use all of them.
void unpin_this_thread() noexcept;

// Moves the calling thread to a CPU of its mask that is not in `taken`, and leaves the mask as it was: from then on the
// kernel may move it on. False: its mask has no other. Three system calls.
bool leave_cpus(const cpu_set_t& taken) noexcept;

// Runs the calling thread on each CPU that this process may use, one after the other, and gives it its mask back. False: the
// kernel does not permit that, or did not do it. errno stays.
bool visit_all_cpus() noexcept;

// The n-th usable CPU, modulo their number.
int nth_usable_cpu(unsigned n) noexcept;

// How far two CPUs are apart: 0 the same, 1 the same core's caches, 2 the same last-level cache, 3 neither.
int cpu_distance(int a, int b) noexcept;

// The first CPU of those that share `cpu`'s last-level cache; -1: the kernel does not say. `root`: see os/cpu_choice.hpp.
int first_of_last_cache(int cpu, const std::string& root = "");

}  // namespace ums::os
