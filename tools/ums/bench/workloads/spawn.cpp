// SPDX-License-Identifier: MIT

// spawn: the cost of starting and joining a thread or fiber, one at a time and a thousand at once.

#include "two_ways.hpp"

namespace tool {

namespace {

class spawn final : public two_ways {
public:
    spawn()
        : two_ways{
              {"one", 1, "one at a time"},
              {"batch", 1000, "at once"},
              {"ns per spawn and join", "at once", "spawn and join", "ns per spawn and join"}} {}

    std::string_view name() const override { return "spawn"; }
    std::string_view about() const override {
        return "spawn and join, one at a time and in batches";
    }
    bool has_detectors() const override { return true; }

private:
    void complete(cell& one) const override {
        one.probe_args = {"min_ms=20"};
        one.variants = variants(one.runtime, one.settings["way"] == "one", one.processors);
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
