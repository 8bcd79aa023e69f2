// SPDX-License-Identifier: MIT

// scaling: a yield and a wake-up against the number of fibers, beside the bare switch over the same
// stacks.

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "../compare.hpp"
#include "../peer.hpp"

namespace tool {

namespace {

constexpr std::uint64_t most_of_boost = 100'000;
constexpr std::uint64_t yields_of_a_cell = 2'000'000;

class scaling final : public workload {
public:
    std::string_view name() const override { return "scaling"; }
    std::string_view about() const override {
        return "ns per yield and per wake-up, 1 to 1,000,000 fibers, beside the bare switch";
    }
    std::vector<std::string> runtimes() const override {
        return {"boost.fiber", "go", "bare switch", "ums"};
    }
    unsigned repetitions(const bench_options&) const override { return 3; }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<std::uint64_t> fibers{1, 10, 100, 1000, 10'000, 100'000, 1'000'000};
        if (options.quick) fibers = {1, 100, 10'000};
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const std::string way : {"yield", "wake"})
                for (const auto n : given_or(options.fibers, fibers)) {
                    setting group;
                    for (const auto& runtime : chosen(options, notes)) {
                        if (runtime == "bare switch" && (way == "wake" || p > 1)) continue;
                        if (runtime == "boost.fiber" && n > most_of_boost && options.fibers.empty())
                            continue;
                        if (options.fibers.empty() && !fits(runtime, n, 6000, notes)) continue;
                        group.push_back(one_cell(options, runtime, p, n, way));
                    }
                    all.push_back(std::move(group));
                }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors)
            for (const auto& [way, unit] :
                 {std::pair{"yield", "ns per yield"}, std::pair{"wake", "ns per wake-up"}}) {
                const filter which = [p, wanted = json(way)](const cell& one) {
                    return one.processors == p && one.settings["way"] == wanted;
                };
                auto shown =
                    by_runtime(got, fmt::format("scaling: {}, {}", unit, conditions(got, p)),
                               {{"fibers", "fibers"}}, "ns_per_op", which);
                add_ratio(shown, got, which);
                made.tables.push_back(std::move(shown));
                made.charts.push_back(lines(got, fmt::format("{}, {}", unit, count(p, "processor")),
                                            "ns_per_op", unit, which));
            }
        return made;
    }

private:
    cell one_cell(const bench_options& options, const std::string& runtime,
                  std::uint64_t processors, std::uint64_t fibers, const std::string& way) const {
        auto one = make_cell(runtime, processors, fibers);
        one.settings["way"] = way;
        if (way == "wake") return one;
        if (runtime != "bare switch") one.program = program_of("yield", runtime);
        assert(fibers != 0 && "yields are shared out among no fibers");
        const std::uint64_t all = options.quick ? yields_of_a_cell / 10 : yields_of_a_cell;
        one.args.push_back(
            fmt::format("yields={}", std::clamp<std::uint64_t>(all / fibers, 4, 1'000'000)));
        return one;
    }

    // What ums pays beyond the memory that a switch has to touch.
    static void add_ratio(table& shown, const result& got, const filter& which) {
        std::vector<entry> ratios;
        bool is_known = false;
        for (const auto& group : got.plan) {
            if (group.empty() || !which(group.front())) continue;
            std::optional<spread> ours, bare;
            for (const auto& one : group) {
                if (one.runtime == "ums") ours = one.figure("ns_per_op");
                if (one.runtime == "bare switch") bare = one.figure("ns_per_op");
            }
            const bool both = ours && bare && bare->median > 0;
            is_known |= both;
            ratios.push_back({both ? human(ours->median / bare->median) : "-", "", false});
        }
        if (!is_known) return;
        shown.notes.push_back(
            "The bare switch has no queue to look ahead in; where ums prefetches the next stacks "
            "it can be the faster one.");
        shown.header.push_back("ratio_to_bare");
        assert(ratios.size() == shown.rows.size() && "ratios and rows are out of step");
        for (std::size_t i = 0; i < ratios.size(); ++i) shown.rows[i].push_back(ratios[i]);
    }
};

}  // namespace

std::unique_ptr<workload> make_scaling() { return std::make_unique<scaling>(); }

}  // namespace tool
