// SPDX-License-Identifier: MIT

// blocking: some fibers compute while others block in the kernel. How much of their throughput
// remains, and how soon does one of them run again?

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

// Says why there can be no row of that way here, or returns an empty string.
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
        return {"std::thread", "boost.fiber", "go", "ums", "ums-worker"};
    }
    unsigned repetitions(const bench_options& options) const override {
        return options.quick ? 1 : 3;
    }
    // Three minutes including everything around it, unless the user asks for more.
    double limit_s(const bench_options& options) const override {
        return options.repetitions ? 0 : options.demo ? 45 : 170;
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        const auto runtimes = chosen(options, notes);
        // The demo shows what a program gets without asking for anything.
        const std::vector<std::string> detectors =
            options.demo ? std::vector<std::string>{"monitor"}
                         : std::vector<std::string>{"monitor", "off", "marked"};
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const auto n : given_or(options.fibers, {options.quick ? 20U : 100U}))
                for (const std::string way : ways) {
                    if (options.demo && way != "nanosleep" && way != "read") continue;
                    const auto why_not = refusal(way);
                    if (!why_not.empty()) {
                        notes.push_back(fmt::format("{} was not run: {}.", way, why_not));
                        continue;
                    }
                    all.push_back(all_runtimes(runtimes, detectors, p, n, way, options.quick));
                    if (way != loop_way || options.demo) continue;
                    auto beside = all.back();
                    for (auto& one : beside) {
                        one.settings["beside"] = "loop";
                        one.is_beside_loop = true;
                    }
                    all.push_back(std::move(beside));
                }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            made.tables.push_back(by_figure(got, fmt::format("blocking: {}", conditions(got, p)),
                                            {{"way", "way"},
                                             {"beside", "beside"},
                                             {"detector", "detector"},
                                             {"fibers", "that block"},
                                             {"block_ms", "for ms"}},
                                            {{"throughput_kept", "throughput kept"},
                                             {"p50_us", "runs again p50, us"},
                                             {"p99_us", "p99, us"},
                                             {"told_p50_us", "told p50, us"},
                                             {"told_p99_us", "p99, us"},
                                             {"blocks_per_s", "blocks/s"}},
                                            which));
            made.tables.back().notes.push_back(
                "Throughput kept: of four fibers that compute, as a share of theirs when nobody "
                "blocks.");
            made.tables.back().notes.push_back(
                "Runs again: from a block until another comes back from its yield. Told: until the "
                "scheduler's procedure is called.");
            made.tables.back().notes.push_back(
                "Beside loop: another program's endless loop on the same CPU.");
            for (const auto* figure : {"throughput_kept", "p99_us"}) {
                made.charts.push_back(bars(
                    got,
                    fmt::format(
                        "blocking, {}: {}", count(p, "processor"),
                        std::strcmp(figure, "p99_us") == 0 ? "runs again, p99" : "throughput kept"),
                    figure, std::strcmp(figure, "p99_us") == 0 ? "us" : "share",
                    [which](const cell& one) {
                        return which(one) && !one.is_beside_loop &&
                               one.settings["detector"] ==
                                   (has_detector(one.runtime) ? "monitor" : "none");
                    },
                    [](const cell& one) { return one.settings["way"].get<std::string>(); }));
                const bool is_share = std::strcmp(figure, "throughput_kept") == 0;
                made.charts.back().log_y = !is_share;
                made.charts.back().about =
                    is_share
                        ? "Four fibers compute while the others block in the kernel; the bar "
                          "is what they still get done, as a share of what they do when nobody "
                          "blocks. 1 means that blocking costs the others nothing."
                        : "From the moment a fiber blocks until another one computes in its "
                          "place, for the slowest of a hundred blocks. The axis is "
                          "logarithmic, and lower is better.";
            }
        }
        std::erase_if(made.charts, [](const chart& one) { return one.all.empty(); });
        add_claims(made, got);
        return made;
    }

private:
    // Of the fibers that block in read(), if there are any.
    static void add_claims(view& made, const result& got) {
        const auto of = [](const char* way) {
            return [way](const cell& one) {
                return one.settings["way"] == way && !one.is_beside_loop &&
                       one.settings["detector"] == (has_detector(one.runtime) ? "monitor" : "none");
            };
        };
        const filter which = of(setting_of(got, of("read")) != nullptr ? "read" : loop_way);
        const auto* const group = setting_of(got, which);
        const auto percent = [](double share) { return fmt::format("{:.0f} %", share * 100); };
        if (group == nullptr) return;
        const auto kept = median_of(*group, "ums", "throughput_kept", which);
        if (!kept) return;
        std::string others;
        for (const auto& [runtime, name] :
             {std::pair{"go", "Go"}, std::pair{"boost.fiber", "Boost.Fiber"}})
            if (const auto theirs = median_of(*group, runtime, "throughput_kept", which))
                others +=
                    fmt::format("{}{} {}", others.empty() ? "" : ", ", name, percent(*theirs));
        made.claims.push_back(
            {fmt::format("While {} fibers block in the kernel, the others keep {} of their "
                         "throughput{}.",
                         human(group->front().fibers()), percent(*kept),
                         others.empty() ? "" : " (" + others + ")"),
             "Four fibers compute on one processor while the others block in the kernel, over and "
             "over: what the four get done, as a share of what they do when nobody blocks. Longer "
             "is better.",
             bars_of(*group, "throughput_kept", which, percent)});
        if (const auto soon = median_of(*group, "ums", "p50_us", which))
            made.claims.push_back(
                {fmt::format("Another fiber runs {} us after one has blocked.", human(*soon)),
                 "From the moment a fiber is about to block until another one computes in its "
                 "place, in the median. Shorter is better.",
                 bars_of(*group, "p50_us", which, [](double us) { return human(us) + " us"; })});
    }

    // The way that is also measured beside a loop.
    static constexpr const char* loop_way = "nanosleep";

    setting all_runtimes(const std::vector<std::string>& runtimes,
                         const std::vector<std::string>& detectors, std::uint64_t processors,
                         std::uint64_t fibers, const std::string& way, bool quick) const {
        setting group;
        for (const auto& runtime : runtimes) {
            if (!has_detector(runtime)) {
                group.push_back(one_cell(runtime, processors, fibers, way, "none", quick));
                continue;
            }
            for (const auto& detector : detectors)
                // Workers have only the monitor, and workers that block without announcing it keep
                // their scheduler's thread.
                if (runtime == "ums" || detector == "monitor" || detector == "marked")
                    group.push_back(one_cell(runtime, processors, fibers, way, detector, quick));
        }
        return group;
    }

    static bool has_detector(const std::string& runtime) {
        return runtime == "ums" || runtime == "ums-worker";
    }

    cell one_cell(const std::string& runtime, std::uint64_t processors, std::uint64_t fibers,
                  const std::string& way, const std::string& detector, bool quick) const {
        auto one = make_cell(runtime, processors, fibers);
        const unsigned block_ms = quick ? 50 : 200;
        one.settings["way"] = way;
        one.settings["beside"] = "nobody";
        one.settings["detector"] = detector;
        one.settings["block_ms"] = block_ms;
        one.args.push_back("way=" + way);
        if (has_detector(runtime)) one.args.push_back("detector=" + detector);
        one.args.push_back(fmt::format("block_ms={}", block_ms));
        one.args.push_back(fmt::format("phase_ms={}", quick ? 100 : 500));
        one.args.push_back("rounds=1");
        return one;
    }
};

}  // namespace

std::unique_ptr<workload> make_blocking() { return std::make_unique<blocking>(); }

}  // namespace tool
