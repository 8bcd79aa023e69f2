// SPDX-License-Identifier: MIT

// memory: N fibers exist and are blocked. How much does each occupy, and how long did it take to
// create?

#include <fmt/format.h>

#include <algorithm>

#include "../compare.hpp"
#include "crowd.hpp"

namespace tool {

namespace {

class memory final : public crowd {
public:
    std::string_view name() const override { return "memory"; }
    std::string_view about() const override {
        return "what a blocked fiber occupies, and what it took to create it";
    }

    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "go", "bare stack", "ums"};
    }

    unsigned repetitions(const bench_options& options) const override {
        return options.demo ? 1 : crowd::repetitions(options);
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            auto shown =
                by_figure(got, fmt::format("memory: blocked fibers, {}", conditions(got, p)),
                          {{"fibers", "fibers"}},
                          {{"bytes_per_fiber", "bytes each"},
                           {"pte_bytes_per_fiber", "page tables each"},
                           {"ns_per_op", "ns to create"},
                           {"maps_lines", "lines of maps"},
                           {"peak_rss_bytes", "peak memory", human_bytes}},
                          which);
            shown.notes.push_back("std::thread: without what the kernel keeps for each thread.");
            shown.notes.push_back(
                "Bare stack: a guard and a page as a fiber of ums has them, and nobody on it.");
            made.tables.push_back(std::move(shown));
            const auto name = [](const cell&) { return std::string{"blocked"}; };
            made.charts.push_back(bars(got, fmt::format("memory, {}", count(p, "processor")),
                                       "bytes_per_fiber", "bytes resident per fiber", which, name));
            made.charts.back().about =
                "What one blocked fiber or thread keeps in memory, with as many at once as the "
                "table says. The axis is logarithmic, and lower is better.";
            made.charts.push_back(bars(got, fmt::format("creation, {}", count(p, "processor")),
                                       "ns_per_op", "ns to create one", which, name));
            made.charts.back().about =
                "What it takes to create one and run it until it blocks. The axis is logarithmic, "
                "and lower is better.";
        }
        add_claim(made, got);
        return made;
    }

private:
    static void add_claim(view& made, const result& got) {
        const auto* const group = setting_of(got, everything());
        if (group == nullptr) return;
        const auto ours = std::find_if(group->begin(), group->end(),
                                       [](const cell& one) { return one.runtime == "ums"; });
        const auto bytes = median_of(*group, "ums", "bytes_per_fiber", everything());
        if (ours == group->end() || !bytes) return;
        made.claims.push_back(
            {fmt::format("A blocked fiber takes {} bytes of memory; {} existed at once.",
                         human(*bytes), human(ours->fibers())),
             "Resident memory of each, blocked, with as many at once as the table says; what the "
             "kernel keeps for a thread is not in it. Shorter is better.",
             bars_of(*group, "bytes_per_fiber", everything(),
                     [](double each) { return human(each) + " B"; })});
    }

    std::uint64_t own_number(const std::string& runtime) const override {
        return runtime == "boost.fiber" ? 100'000 : 1'000'000;
    }
};

}  // namespace

std::unique_ptr<workload> make_memory() { return std::make_unique<memory>(); }

}  // namespace tool
