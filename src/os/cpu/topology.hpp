// SPDX-License-Identifier: MIT
#pragma once

// os/cpu/topology.hpp: which CPUs this process may use, and which of them are near each other.

#include <sched.h>
#include <span>
#include <string>
#include <vector>

namespace ums::os {

// How many CPUs are in the process's affinity mask, at least 1. (It is the first thread's mask; a
// carrier's own may be narrower.)
unsigned usable_cpus() noexcept;

// Confines the calling thread to the n-th usable CPU (modulo their number). Returns that CPU, or
// -1.
int pin_this_thread(unsigned n) noexcept;
// Confines the calling thread to those CPUs. Does nothing if the list is empty. Does not allocate,
// because a carrier may call it in the handler of a signal.
void confine_this_thread(std::span<const int> cpus) noexcept;

// Lets the calling thread, which may have inherited the mask of a pinned one, use all CPUs.
void unpin_this_thread() noexcept;

// Moves the calling thread to a CPU of its mask that is not in `taken`, and leaves the mask as it
// was, so later the kernel may move the thread again. Returns false if its mask has no other CPU.
// Makes three system calls.
bool leave_cpus(const cpu_set_t& taken) noexcept;

// Runs the calling thread on each CPU that this process may use, one after the other, and restores
// its mask. Returns false if the kernel does not permit that, or did not do it. errno does not
// change.
bool visit_all_cpus() noexcept;

// The n-th usable CPU, modulo their number.
int nth_usable_cpu(unsigned n) noexcept;

// How far two CPUs are apart: 0 the same CPU, 1 they share the core's caches, 2 they share the
// last-level cache, 3 neither, or the kernel does not say. Reads files. Throws std::bad_alloc.
int cpu_distance(int a, int b);

// The first of the CPUs that share `cpu`'s last-level cache; -1: the kernel does not say. `root`:
// see os/cpu/cpu_choice.hpp.
int first_of_last_cache(int cpu, const std::string& root = "");

}  // namespace ums::os
