// SPDX-License-Identifier: MIT

// blocking: some fibers compute while others block in the kernel. What is left of their throughput, and how soon does one
// of them run again?

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "../compare.hpp"
#include "../detectors.hpp"

namespace tool {

namespace {

constexpr std::array ways{"nanosleep", "read", "fault", "getaddrinfo", "fsync"};

// Why there can be no row of that way here, or an empty string.
std::string refusal(const std::string& way) {
    if (way == "fault") {
        const long fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
        if (fd < 0) return fmt::format("userfaultfd: {}", std::strerror(errno));
        close(static_cast<int>(fd));
    }
    if (way == "getaddrinfo") {
        std::ifstream file{"/etc/nsswitch.conf"};
        for (std::string line; std::getline(file, line);)
            if (line.starts_with("hosts:") && line.find("dns") == line.npos)
                return "/etc/nsswitch.conf asks no name server for hosts";
    }
    return "";
}

class blocking final : public workload {
public:
    std::string_view name() const override { return "blocking"; }
    std::string_view about() const override {
        return "fibers that compute while others block in the kernel, in several ways";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "go", "ums"};
    }
    unsigned repetitions(const bench_options& options) const override {
        return options.quick ? 1 : 3;
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        const auto runtimes = chosen(options, notes);
        const auto detectors = detectors_here({"perf", "monitor", "off", "marked"}, notes);
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const auto n : given_or(options.fibers, {options.quick ? 20U : 100U}))
                for (const std::string way : ways) {
                    const auto why_not = refusal(way);
                    if (!why_not.empty()) {
                        notes.push_back(fmt::format("{} was not run: {}.", way, why_not));
                        continue;
                    }
                    setting group;
                    for (const auto& runtime : runtimes) {
                        if (runtime != "ums") {
                            group.push_back(one_cell(runtime, p, n, way, "none", options.quick));
                            continue;
                        }
                        for (const auto& detector : detectors)
                            group.push_back(one_cell(runtime, p, n, way, detector, options.quick));
                    }
                    all.push_back(std::move(group));
                }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            made.tables.push_back(by_figure(got, fmt::format("blocking: {}", conditions(got, p)),
                                            {{"way", "way"},
                                             {"detector", "detector"},
                                             {"fibers", "that block"},
                                             {"block_ms", "for ms"}},
                                            {{"throughput_kept", "throughput kept"},
                                             {"p50_us", "runs again p50, us"},
                                             {"p99_us", "p99, us"},
                                             {"blocks_per_s", "blocks/s"}},
                                            which));
            made.tables.back().notes.push_back(
                "Throughput kept: of four fibers that compute, as a share of theirs when nobody "
                "blocks.");
            made.tables.back().notes.push_back(
                "Runs again: from a block until one of the four computes.");
            for (const auto* figure : {"throughput_kept", "p99_us"})
                made.charts.push_back(bars(
                    got,
                    fmt::format(
                        "blocking, {}: {}", count(p, "processor"),
                        std::strcmp(figure, "p99_us") == 0 ? "runs again, p99" : "throughput kept"),
                    figure, std::strcmp(figure, "p99_us") == 0 ? "us" : "share",
                    [which](const cell& one) {
                        return which(one) &&
                               (one.runtime != "ums" || one.settings["detector"] == "perf");
                    },
                    [](const cell& one) { return one.settings["way"].get<std::string>(); }));
        }
        std::erase_if(made.charts, [](const chart& one) { return one.all.empty(); });
        return made;
    }

private:
    cell one_cell(const std::string& runtime, std::uint64_t processors, std::uint64_t fibers,
                  const std::string& way, const std::string& detector, bool quick) const {
        auto one = make_cell(runtime, processors, fibers);
        // The monitor looks every 10 ms at most: it is for blocks that are long beside that.
        const unsigned block_ms = quick ? 50 : detector == "monitor" ? 1000 : 200;
        one.settings["way"] = way;
        one.settings["detector"] = detector;
        one.settings["block_ms"] = block_ms;
        one.args.push_back("way=" + way);
        if (runtime == "ums") one.args.push_back("detector=" + detector);
        one.args.push_back(fmt::format("block_ms={}", block_ms));
        one.args.push_back(fmt::format("phase_ms={}", quick ? 100 : 5 * block_ms));
        one.args.push_back(fmt::format("rounds={}", quick ? 1 : 2));
        return one;
    }
};

}  // namespace

std::unique_ptr<workload> make_blocking() { return std::make_unique<blocking>(); }

}  // namespace tool
