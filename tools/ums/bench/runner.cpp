// SPDX-License-Identifier: MIT
#include "runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "peer.hpp"

namespace tool {

namespace {

// Far more than any cell takes on a slow machine. A peer that hangs must not hang the comparison.
constexpr double timeout_s = 180;

// The largest "round" number (two digits, then zeros) that is not above `most`.
std::uint64_t round_down(double most) {
    if (most < 1) return 1;
    const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(most)) - 1));
    return static_cast<std::uint64_t>(std::floor(most / unit) * unit);
}

}  // namespace

runner::runner(std::string bench, std::vector<setting>& plan, progress& shown, double limit_s)
    : bench_{std::move(bench)}, plan_{plan}, shown_{shown}, limit_s_{limit_s} {}

void runner::run(unsigned repetitions) {
    repetitions_ = repetitions;
    for (const auto& group : plan_) runs_all_ += group.size() * repetitions;
    for_each([this](cell& one) { probe(one); });
    find_equals();

    double longest_s = 0;
    for (unsigned repetition = 0; repetition < repetitions; ++repetition) {
        const double before_s = elapsed_s();
        if (limit_s_ > 0 && repetition > 0 && before_s + longest_s > limit_s_) break;
        for (std::size_t g = 0; g < plan_.size(); ++g) {
            auto& group = plan_[g];
            for (std::size_t i = 0; i < group.size(); ++i) {
                auto& one = group[(i + g + repetition) % group.size()];
                if (one.same_as != nullptr) continue;
                if (one.error.empty()) {
                    show(progress::step::measure, one,
                         fmt::format("repetition {} of {}", repetition + 1, repetitions));
                    measure(one);
                }
                ++runs_done_;
            }
        }
        longest_s = std::max(longest_s, elapsed_s() - before_s);
    }
    for_each([](cell& one) {
        if (one.same_as != nullptr) {
            one.samples = one.same_as->samples;
            one.error = one.same_as->error;
        }
        if (one.runs() > 0) one.settings["repetitions"] = one.runs();
    });
    shown_.clear();
}

double runner::elapsed_s() const {
    return std::chrono::duration<double>{std::chrono::steady_clock::now() - begin_}.count();
}

void runner::probe(cell& one) {
    if (one.variants.size() > 1) choose_variant(one);
    if (one.yields != 0) choose_yields(one);
}

// Takes the best of two short runs of each variant. A variant that fails is not chosen; if all
// fail, the measurement of the first will say why.
void runner::choose_variant(cell& one) {
    assert(!one.variants.empty() && "there is no variant to choose");
    double best = HUGE_VAL;
    const std::vector<std::string>* chosen = &one.variants.front();
    for (const auto& variant : one.variants) {
        auto args = variant;
        args.insert(args.end(), one.probe_args.begin(), one.probe_args.end());
        for (int i = 0; i < 2; ++i) {
            show(progress::step::prepare, one, fmt::format("trying {}", fmt::join(variant, " ")));
            const auto got = run_peer(one, args, timeout_s);
            if (!got.error.empty()) break;
            if (got.figures.at("ns_per_op") < best) {
                best = got.figures.at("ns_per_op");
                chosen = &variant;
            }
        }
    }
    one.args.insert(one.args.end(), chosen->begin(), chosen->end());
    one.settings["variant"] = fmt::format("{}", fmt::join(*chosen, " "));
}

// A setting that would take longer than its budget runs fewer yields, and reports their number in
// yields_run.
void runner::choose_yields(cell& one) {
    const auto key = fmt::format("{} {} {} {}", one.program, one.processors,
                                 fmt::join(one.args, " "), fmt::join(one.probe_args, " "));
    auto found = ns_per_op_.find(key);
    if (found == ns_per_op_.end()) {
        show(progress::step::prepare, one, "how long will it take?");
        const auto got = run_peer(one, one.probe_args, timeout_s);
        found = ns_per_op_.emplace(key, got.error.empty() ? got.figures.at("ns_per_op") : 0).first;
    }
    assert(one.fibers() != 0 && one.yields != 0 && "no fiber yields");
    const double all_ns = static_cast<double>(one.fibers()) * found->second;
    auto yields = one.yields;
    if (all_ns * static_cast<double>(yields) > one.budget_s * 1e9) {
        yields = std::min(yields, round_down(one.budget_s * 1e9 / all_ns));
        one.settings["yields_run"] = yields;
    }
    one.args.push_back(fmt::format("yields={}", yields));
}

void runner::find_equals() {
    std::map<std::string, const cell*> first;
    for_each([&](cell& one) {
        if (!one.settings.contains("yields_run")) return;
        const auto detector = one.settings.value("detector", std::string{});
        const auto key = fmt::format("{} {} {} {}", one.program, one.processors, detector,
                                     fmt::join(one.args, " "));
        const auto [found, is_new] = first.emplace(key, &one);
        if (is_new) return;
        assert(found->second->same_as == nullptr && "a cell is the same as one that is not run");
        assert(runs_all_ >= repetitions_ && "more runs are left out than there are");
        one.same_as = found->second;
        runs_all_ -= repetitions_;
    });
}

void runner::measure(cell& one) {
    assert(one.same_as == nullptr && one.error.empty() &&
           "a cell is measured that has failed, or is another's");
    const auto got =
        run_peer(one, one.runs() == 0 ? one.first_args : std::vector<std::string>{}, timeout_s);
    one.seconds = got.seconds;
    one.error = got.error;
    for (const auto& [name, value] : got.figures) one.samples[name].push_back(value);
}

void runner::show(progress::step which, const cell& one, const std::string& stage) {
    shown_.show(which, bench_, runs_done_, runs_all_,
                fmt::format("{}: {}, {}", one.runtime, one.label(), stage), left_s());
}

// Each remaining run is expected to take what the same cell took before, or the average of all if
// it has not run.
double runner::left_s() const {
    double known_s = 0;
    double known = 0;
    for_each([&](const cell& one) {
        if (one.seconds <= 0) return;
        known_s += one.seconds;
        ++known;
    });
    if (known == 0) return -1;
    double left_s = 0;
    for_each([&](const cell& one) {
        if (!one.error.empty() || one.same_as != nullptr) return;
        assert(one.runs() <= repetitions_ && "a cell was run too often");
        const auto runs_left = static_cast<double>(repetitions_ - one.runs());
        left_s += runs_left * (one.seconds > 0 ? one.seconds : known_s / known);
    });
    return limit_s_ > 0 ? std::clamp(limit_s_ - elapsed_s(), 0.0, left_s) : left_s;
}

}  // namespace tool
