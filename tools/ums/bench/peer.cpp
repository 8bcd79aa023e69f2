// SPDX-License-Identifier: MIT
#include "peer.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <filesystem>
#include <optional>

#include "../machine.hpp"
#include "busy_loop.hpp"
#include "process.hpp"

namespace tool {

namespace {

std::string last_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.substr(text.rfind('\n') + 1);
}

// Says why this run does not count; otherwise returns an empty string.
std::string complaint(const outcome& ended, double timeout_s) {
    const auto said = last_line(ended.err);
    const auto because = said.empty() ? std::string{} : ": " + said;
    if (ended.timed_out) return fmt::format("no answer within {} s", timeout_s);
    if (WIFSIGNALED(ended.status)) {
        const int signal = WTERMSIG(ended.status);
        return fmt::format("killed by signal {} ({}){}", signal, sigdescr_np(signal), because);
    }
    if (WEXITSTATUS(ended.status) != 0)
        return fmt::format("exit code {}{}", WEXITSTATUS(ended.status), because);
    return {};
}

// Reads the figures from the one line of JSON, and adds those that follow from them.
answer understand(const std::string& out) {
    answer result;
    const auto parsed = json::parse(out, nullptr, false);
    if (!parsed.is_object() || std::count(out.begin(), out.end(), '\n') != 1) {
        result.error =
            fmt::format("expected one line of JSON, got '{}'", last_line(out).substr(0, 60));
        return result;
    }
    for (const auto& [key, value] : parsed.items()) {
        if (!value.is_number()) {
            result.error = fmt::format("figure '{}' is not a number", key);
            return result;
        }
        result.figures[key] = value.get<double>();
    }
    const auto ops = result.figures.extract("ops");
    const auto ns = result.figures.extract("ns");
    if (!ops.empty() && !ns.empty()) {
        if (ops.mapped() <= 0 || ns.mapped() <= 0) {
            result.error = fmt::format("{} operations in {} ns", ops.mapped(), ns.mapped());
            return result;
        }
        result.figures["ns_per_op"] = ns.mapped() / ops.mapped();
        result.figures["ops_per_s"] = ops.mapped() / ns.mapped() * 1e9;
    }
    return result;
}

// As many CPUs as the cell has processors, taken from the end, because the first CPUs take most
// interrupts.
std::vector<int> cpus_for(std::uint64_t processors) {
    assert(processors != 0 && "a peer for no processor would run on all CPUs");
    auto cpus = available_cpus();
    if (processors < cpus.size())
        cpus.erase(cpus.begin(), cpus.end() - static_cast<std::ptrdiff_t>(processors));
    return cpus;
}

}  // namespace

std::string program_of(std::string_view workload, std::string_view runtime) {
    std::string peer;
    for (const char c : runtime) {
        if (c != ':')
            peer += c == '.' || c == ' ' ? '_' : c;
        else if (!peer.ends_with('_'))
            peer += '_';
    }
    return fmt::format("{}-{}", workload, peer);
}

std::string path_of(const std::string& program) {
    static const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    for (const auto& folder : {here / "bench", here.parent_path() / "libexec/ums/bench"}) {
        const auto path = folder / program;
        if (access(path.c_str(), X_OK) == 0) return path.string();
    }
    return {};
}

answer run_peer(const cell& what, const std::vector<std::string>& more_args, double timeout_s) {
    answer result;
    const auto path = path_of(what.program);
    if (path.empty()) {
        result.error = fmt::format("the peer {} is not there", what.program);
        return result;
    }
    const auto processors = fmt::format("{}", what.processors);
    command how{.program = path,
                .args = what.args,
                // Each runtime's own variable takes precedence over the peer's request, so all of
                // them must agree.
                .environment = {{"GOMAXPROCS", processors}, {"UMS_PROCESSORS", processors}},
                .cpus = cpus_for(what.processors),
                .timeout_s = timeout_s};
    how.args.insert(how.args.begin(), "processors=" + processors);
    how.args.insert(how.args.end(), more_args.begin(), more_args.end());

    std::optional<busy_loop> loop;
    if (what.is_beside_loop) loop.emplace(how.cpus);
    const auto ended = run(how);
    const auto wrong = complaint(ended, timeout_s);
    if (wrong.empty())
        result = understand(ended.out);
    else
        result.error = wrong;
    result.seconds = ended.seconds;
    return result;
}

}  // namespace tool
