// SPDX-License-Identifier: MIT

// spawn: what it costs to start a thread or fiber and to join it, one at a time and a thousand at
// once.

#include <fmt/format.h>

#include "../compare.hpp"

namespace tool {

namespace {

class spawn final : public workload {
public:
    std::string_view name() const override { return "spawn"; }
    std::string_view about() const override {
        return "spawn and join, one at a time and in batches";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "boost.fiber static", "go", "ums"};
    }

    bool has_detectors() const override { return true; }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        for (const auto p : options.processors) {
            // One at a time, there is one; --fibers is the size of the batch.
            all.push_back(group("one", p, 1, options, notes));
            for (const auto n : given_or(options.fibers, {1000}))
                all.push_back(group("batch", p, n, options, notes));
        }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            auto shown =
                by_runtime(got, fmt::format("spawn: ns per spawn and join, {}", conditions(got, p)),
                           {{"way", "way"}, {"fibers", "at once"}}, "ns_per_op", which);
            shown.notes = ratios(got, "ns_per_op", "way", " ", which);
            made.tables.push_back(std::move(shown));
            made.charts.push_back(
                bars(got, fmt::format("spawn and join, {}", count(p, "processor")), "ns_per_op",
                     "ns per spawn and join", which, [](const cell& one) {
                         return one.settings["way"] == "one" ? std::string{"one at a time"}
                                                             : human(one.fibers()) + " at once";
                     }));
        }
        return made;
    }

private:
    setting group(const std::string& way, std::uint64_t processors, std::uint64_t fibers,
                  const bench_options& options, std::vector<std::string>& notes) const {
        setting made;
        for (const auto& runtime : chosen(options, notes)) {
            auto one = way_cell(options, runtime, way, processors, fibers);
            one.probe_args = {"min_ms=20"};
            one.variants = variants(runtime, way == "one", processors);
            made.push_back(std::move(one));
        }
        return made;
    }

    // dispatch runs the child at once, so a batch of empty children would never be a batch. Boost's
    // pool of stacks is not thread-safe.
    static std::vector<std::vector<std::string>> variants(const std::string& runtime,
                                                          bool one_at_a_time,
                                                          std::uint64_t processors) {
        if (runtime == "ums" && one_at_a_time) return {{"launch=post"}, {"launch=dispatch"}};
        if (!runtime.starts_with("boost.fiber")) return {};
        std::vector<std::vector<std::string>> all;
        for (const auto* stack : {"stack=fixed", "stack=pooled"}) {
            if (processors > 1 && std::string_view{stack} == "stack=pooled") continue;
            all.push_back({stack, "launch=post"});
            if (one_at_a_time) all.push_back({stack, "launch=dispatch"});
        }
        return all;
    }
};

}  // namespace

std::unique_ptr<workload> make_spawn() { return std::make_unique<spawn>(); }

}  // namespace tool
