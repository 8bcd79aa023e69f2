// SPDX-License-Identifier: MIT
#include "crowd.hpp"

#include <algorithm>

namespace tool {

namespace {

// Above this number the kernel's limits on threads and mappings come near.
constexpr std::uint64_t most_threads = 10'000;

// What a fiber takes: its pages, and what the kernel keeps for them.
std::uint64_t bytes_each(const std::string& runtime) {
    return runtime == "boost.fiber" ? 16'000 : 6000;
}

}  // namespace

std::vector<setting> crowd::plan(const bench_options& options,
                                 std::vector<std::string>& notes) const {
    std::vector<setting> all;
    const auto how_many = [&](const std::string& runtime, std::uint64_t given) {
        if (runtime == "std::thread")
            return std::min(most_threads, given != 0      ? given
                                          : options.quick ? std::uint64_t{1000}
                                                          : most_threads);
        if (given != 0) return given;
        return options.quick ? std::uint64_t{10'000} : own_number(runtime);
    };
    for (const auto p : options.processors)
        for (const auto n : given_or(options.fibers, {0})) {
            setting group;
            for (const auto& runtime : chosen(options, notes)) {
                const auto fibers = how_many(runtime, n);
                if (n == 0 && !fits(runtime, fibers, bytes_each(runtime), notes)) continue;
                auto one = make_cell(runtime, p, fibers);
                for (auto& argument : more(options)) one.args.push_back(std::move(argument));
                group.push_back(std::move(one));
            }
            all.push_back(std::move(group));
        }
    return all;
}

}  // namespace tool
