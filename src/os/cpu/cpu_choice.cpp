// SPDX-License-Identifier: MIT
#include "os/cpu/cpu_choice.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <sched.h>
#include <unistd.h>

#include "os/cpu/topology.hpp"
#include "os/text_file.hpp"

namespace ums::os {

namespace {

constexpr int most_cpus = CPU_SETSIZE;

// Takes a decimal number at `at`, which moves behind it. -1: there is none, or it is too large.
int take_number(const char*& at, const char* end) noexcept {
    int value = -1;
    const auto [behind, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || value < 0 || *at == '-') return -1;
    at = behind;
    return value;
}

// The whole text is the number. -1: it is none.
int node_of(const std::string& number) noexcept {
    const char* at = number.data();
    const char* const end = at + number.size();
    const int node = take_number(at, end);
    return at == end ? node : -1;
}

}  // namespace

std::vector<int> usable_cpu_list() {
    std::vector<int> all;
    cpu_set_t set;
    if (sched_getaffinity(getpid(), sizeof set, &set) != 0) return {0};
    for (int cpu = 0; cpu < most_cpus; ++cpu)
        if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) all.push_back(cpu);
    return all;
}

std::optional<std::vector<int>> parse_cpu_list(const std::string& text) {
    std::vector<int> all;
    const char* at = text.data();
    const char* const end = at + text.size();
    for (;;) {
        const int first = take_number(at, end);
        int last = first;
        if (at != end && *at == '-') last = take_number(++at, end);
        if (first < 0 || last < first || last >= most_cpus) return {};
        for (int cpu = first; cpu <= last; ++cpu) all.push_back(cpu);
        if (at == end) break;
        if (*at++ != ',') return {};
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

bool names_node(const std::string& number) { return node_of(number) >= 0; }

std::optional<std::vector<int>> cpus_of_node(const std::string& number, const std::string& root) {
    const int node = node_of(number);
    if (node < 0) return {};
    const auto found = parse_cpu_list(
        first_line(root + "/sys/devices/system/node/node" + std::to_string(node) + "/cpulist"));
    return found ? *found : std::vector<int>{};
}

std::vector<int> near_cpus(unsigned n, const std::vector<int>& usable,
                           const std::vector<int>& taken, const std::string& root) {
    const auto is_taken = [&](int cpu) {
        return std::find(taken.begin(), taken.end(), cpu) != taken.end();
    };
    // By last-level cache, named by its first CPU; the free CPUs come first. If the kernel says
    // nothing, there is one for all.
    std::map<int, std::vector<int>> caches;
    for (const int cpu : usable) caches[first_of_last_cache(cpu, root)].push_back(cpu);
    const auto free_of = [&](const std::vector<int>& cache) {
        return static_cast<unsigned>(
            std::count_if(cache.begin(), cache.end(), [&](int cpu) { return !is_taken(cpu); }));
    };
    // Begins with the cache with the fewest free CPUs that still suffices, so that the larger ones
    // stay whole; if none suffices, with the one that has the most. Then the others follow.
    std::vector<const std::vector<int>*> order;
    order.reserve(caches.size());
    for (const auto& [first, cache] : caches) order.push_back(&cache);
    std::sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
        const unsigned free_a = free_of(*a), free_b = free_of(*b);
        const bool enough_a = free_a >= n, enough_b = free_b >= n;
        if (enough_a != enough_b) return enough_a;
        if (free_a != free_b) return enough_a ? free_a < free_b : free_a > free_b;
        return a->front() < b->front();
    });
    std::vector<int> chosen;
    for (const bool take_taken : {false, true})
        for (const auto* cache : order)
            for (const int cpu : *cache)
                if (chosen.size() < n && is_taken(cpu) == take_taken) chosen.push_back(cpu);
    return chosen;
}

}  // namespace ums::os
