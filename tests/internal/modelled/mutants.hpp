// SPDX-License-Identifier: MIT
#pragma once

// internal/modelled/mutants.hpp: runs the programs of a model unchanged, with each mutant of the
// text, and with each of its memory orders weakened.

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <ucontext.h>
#include <vector>

#include <gtest/gtest.h>

#include "internal/modelled/surroundings.hpp"
#include "support/scale.hpp"

namespace ums::tso {

struct program {
    const char* name;
    std::function<void(model&)> build;
    unsigned timeouts = 0;
    unsigned preemptions = ~0u;
    bool histories = false;    // In C++20's memory; otherwise on x86-TSO.
    unsigned stack_cells = 0;  // See model.
};

// One line of generate.py's output.
struct replaced_text {
    const char* name;
    bool is_there;
};

// A mutant or a memory order that no program finds, and the reason.
struct not_found {
    std::string_view name, why;
};

// If a strand follows a null pointer, the execution has gone wrong: the strand continues in
// model::fail(), and does not come back. Elsewhere a null pointer ends the process, as always.
class null_guard {
public:
    null_guard() {
        struct sigaction ours {};
        ours.sa_sigaction = &on_fault;
        ours.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &ours, &before_);
    }
    ~null_guard() { sigaction(SIGSEGV, &before_, nullptr); }
    null_guard(const null_guard&) = delete;
    null_guard& operator=(const null_guard&) = delete;

private:
    static constexpr std::uintptr_t page = 4096;

    static void on_fault(int, siginfo_t* what, void* context) {
        const bool is_null = reinterpret_cast<std::uintptr_t>(what->si_addr) < page;
        if (!is_null || !model::is_running() || !model::running().is_on_strand()) {
            std::signal(SIGSEGV, SIG_DFL);  // The fault happens again, and then ends the process.
            return;
        }
        greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
        // As at a call, and below what the strand may keep under its stack pointer.
        registers[REG_RSP] = ((registers[REG_RSP] - 128) & ~greg_t{15}) - 8;
        registers[REG_RIP] = reinterpret_cast<greg_t>(&go_wrong);
    }
    static void go_wrong() {
        model::running().fail("a null pointer is followed");
        std::abort();  // The strand stays where it is: see mutation_test::explore().
    }

    struct sigaction before_ {};
};

// The orders that are one step weaker. x86 does not know all of the steps: there it is relaxed.
inline std::vector<std::memory_order> weaker(const site& of, bool histories) {
    using namespace base;
    if (!histories || of.order == acquire || of.order == release) return {relaxed};
    if (of.order == acq_rel) return {acquire, release};
    if (of.is_failure || of.what.starts_with("load")) return {acquire};
    return {of.what.starts_with("store") ? release : acq_rel};
}
inline const char* name_of(std::memory_order order) {
    using namespace base;
    return order == relaxed   ? "relaxed"
           : order == acquire ? "acquire"
           : order == release ? "release"
                              : "acq_rel";
}

class mutation_test {
public:
    // `files`: the orders of these alone are weakened; none: all that the programs use.
    mutation_test(std::vector<program> programs, std::vector<replaced_text> mutants,
                  std::vector<not_found> expected, std::vector<std::string_view> files = {})
        : programs_{std::move(programs)},
          mutants_{std::move(mutants)},
          expected_{std::move(expected)},
          files_{std::move(files)} {}

    void text_is_correct() {
        for (const program& p : programs_) {
            model m;
            const auto r = explore(p, m, is_instrumented ? 5'000 : 500'000);
            EXPECT_EQ(r.error, "") << p.name;
            EXPECT_TRUE(!r.is_cut || is_instrumented) << p.name;
            std::cout << p.name << ": " << r.states << " states, " << r.executions
                      << " executions\n";
        }
    }

    void finds_each_mutant() {
        if (is_instrumented) GTEST_SKIP() << too_long;
        const null_guard guard;
        for (std::size_t i = 0; i < mutants_.size(); ++i) {
            const replaced_text& one = mutants_[i];
            EXPECT_TRUE(one.is_there) << one.name << ": the text that it replaces has changed";
            mutant = static_cast<int>(i) + 1;
            expect_found(one.name, [](model&) {});
        }
        mutant = 0;
    }

    // Makes each order of the text weaker, one at a time, and requires that a program finds it.
    void finds_each_order() {
        if (is_instrumented) GTEST_SKIP() << too_long;
        std::map<std::string, site> sites;
        for (const program& p : programs_) {
            model m;
            m.sites = &sites;
            static_cast<void>(explore(p, m));
        }
        std::map<std::string, int> seen;  // The second of a name is "name #2".
        for (const auto& [key, weak] : sites) {
            if (!is_asked_for(weak)) continue;
            const int n = ++seen[weak.name()];
            const bool histories = programs_.front().histories;
            for (const std::memory_order order : weaker(weak, histories))
                expect_found(weak.name() + (n > 1 ? " #" + std::to_string(n) : "") +
                                 (histories ? std::string{" to "} + name_of(order) : ""),
                             [w = &weak, order](model& m) {
                                 m.weakened = w;
                                 m.weakened_to = order;
                             });
        }
    }

private:
    // The search goes through the same states, and there is nothing in them for a sanitizer to
    // check.
    static constexpr bool is_instrumented = under_asan || under_tsan;
    static constexpr const char* too_long = "a minute, and more, under a sanitizer";

    [[nodiscard]] bool is_asked_for(const site& s) const {
        return files_.empty() ||
               std::any_of(files_.begin(), files_.end(), [&s](std::string_view one) {
                   return std::string_view{s.file}.ends_with(one);
               });
    }

    static model::report explore(const program& p, model& m,
                                 std::uint64_t most_executions = 500'000) {
        m.abandons = true;
        m.checks_orders = true;
        m.stack_cells = p.stack_cells;
        m.histories = p.histories;
        m.timeouts = p.timeouts;
        m.preemptions = p.preemptions;
        m.most_executions = most_executions;
        return m.explore([&p](model& of) { p.build(of); });
    }

    // Returns which program finds the change, and what it finds; or "".
    template <class F>
    std::string found_within(std::uint64_t executions, F change) {
        for (const program& p : programs_) {
            model m;
            change(m);
            const auto r = explore(p, m, executions);
            if (r.error.empty()) continue;
            return std::string{p.name} + ", " + r.error.substr(0, r.error.find('\n'));
        }
        return "";
    }

    template <class F>
    void expect_found(const std::string& name, F change) {
        const not_found* known = nullptr;
        for (const not_found& n : expected_)
            if (n.name == name) known = &n;
        // First gives each program a short look, because most changes are found soon.
        std::string found = found_within(known != nullptr ? 3'000 : 2'000, change);
        if (found.empty() && known == nullptr) found = found_within(500'000, change);
        if (known == nullptr)
            EXPECT_NE(found, "") << name << " is not found";
        else
            EXPECT_EQ(found, "") << name << " is found after all";
        std::cout << name << ": " << (found.empty() ? "-" : found) << std::endl;
    }

    std::vector<program> programs_;
    std::vector<replaced_text> mutants_;
    std::vector<not_found> expected_;
    std::vector<std::string_view> files_;
};

}  // namespace ums::tso
