// SPDX-License-Identifier: MIT
#include "workload.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

#include "../machine.hpp"
#include "../usage.hpp"
#include "peer.hpp"

namespace tool {

namespace {

// Accepts this form, because `--runtimes boost_fiber` is easier to type than `'bare switch'`.
std::string canonical(const std::string& given, const std::vector<std::string>& known) {
    for (const auto& one : known)
        if (program_of("", given) == program_of("", one)) return one;
    return "";
}

}  // namespace

void workload::check(const bench_options& options) const {
    if (!options.yields.empty())
        throw usage_error{fmt::format("--yields: {} has no such setting", name())};
    for (const auto& [is_given, option] : {std::pair{!options.connections.empty(), "--connections"},
                                           std::pair{!options.pipeline.empty(), "--pipeline"},
                                           std::pair{!options.client.empty(), "--client"}})
        if (is_given) throw usage_error{fmt::format("{}: {} has no such setting", option, name())};
    check_common(options);
}

void workload::check_common(const bench_options& options) const {
    if (options.cycles)
        throw usage_error{fmt::format("--cycles: only yield counts cycles, not {}", name())};
    for (const auto& [is_wrong, option] :
         {std::pair{!options.detectors.empty() && !has_detectors(), "--detectors"},
          std::pair{!options.ways.empty(), "--ways"}, std::pair{!options.rates.empty(), "--rates"}})
        if (is_wrong) throw usage_error{fmt::format("{}: {} has no such setting", option, name())};
    for (const auto& one : options.runtimes)
        if (canonical(one, runtimes()).empty())
            throw usage_error{
                fmt::format("--runtimes: {} has no runtime '{}'; expected some of: {}", name(), one,
                            fmt::join(runtimes(), ", "))};
}

std::vector<std::string> workload::chosen(const bench_options& options,
                                          std::vector<std::string>& notes) const {
    std::vector<std::string> chosen;
    for (const auto& runtime : runtimes()) {
        const bool is_asked =
            std::any_of(options.runtimes.begin(), options.runtimes.end(),
                        [&](const auto& one) { return canonical(one, runtimes()) == runtime; });
        if (!options.runtimes.empty() && !is_asked) continue;
        const auto why = missing(runtime);
        if (is_asked || runtime == "ums" || why.empty())
            chosen.push_back(runtime);
        else
            notes.push_back(fmt::format("{} was not run: {}.", runtime, why));
    }
    return chosen;
}

std::string workload::program(const std::string& runtime) const {
    return program_of(name(), runtime);
}

std::string workload::missing(const std::string& runtime) const {
    return path_of(program(runtime)).empty() ? "its peer was not built" : "";
}

cell workload::make_cell(const std::string& runtime, std::uint64_t processors,
                         std::uint64_t fibers) const {
    assert(processors != 0 && "a cell has no processor");
    cell made;
    made.runtime = runtime;
    made.program = program(runtime);
    made.args = {fmt::format("fibers={}", fibers)};
    made.settings["processors"] = processors;
    made.settings["fibers"] = fibers;
    made.processors = processors;
    return made;
}

cell workload::way_cell(const bench_options& options, const std::string& runtime,
                        const std::string& way, std::uint64_t processors,
                        std::uint64_t fibers) const {
    cell made = make_cell(runtime, processors, fibers);
    made.settings["way"] = way;
    made.args.push_back("way=" + way);
    if (options.quick) made.args.push_back("min_ms=20");
    return made;
}

const std::vector<std::unique_ptr<workload>>& all_workloads() {
    static const auto all = [] {
        std::vector<std::unique_ptr<workload>> made;
        for (const auto make :
             {make_yield,   make_spawn,      make_pingpong, make_skynet,      make_forkjoin,
              make_memory,  make_sleepers,   make_scaling,  make_mutex,       make_channel,
              make_condvar, make_semaphore,  make_select,   make_blocking,    make_preemption,
              make_http,    make_memcached,  make_echo,     make_connections, make_lone,
              make_workers, make_completion, make_migrate,  make_policies,    make_jobs,
              make_shares})
            made.push_back(make());
        return made;
    }();
    return all;
}

std::vector<std::uint64_t> given_or(const std::vector<std::uint64_t>& given,
                                    std::vector<std::uint64_t> own) {
    if (given.empty()) return own;
    return given;
}

bool fits(const std::string& runtime, std::uint64_t fibers, std::uint64_t bytes_each,
          std::vector<std::string>& notes) {
    assert(bytes_each != 0 && fibers <= UINT64_MAX / bytes_each && "the sum of memory overflows");
    const auto free = available_memory();
    if (free == 0 || fibers * bytes_each < free / 10 * 8) return true;
    auto note =
        fmt::format("{} was not run with {} fibers: that needs {} MiB, and {} MiB are free.",
                    runtime, fibers, fibers * bytes_each >> 20, free >> 20);
    if (std::find(notes.begin(), notes.end(), note) == notes.end())
        notes.push_back(std::move(note));
    return false;
}

}  // namespace tool
