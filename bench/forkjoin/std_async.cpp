// SPDX-License-Identifier: MIT

// forkjoin: std::async, a kernel thread for each task. The driver gives it only trees with a
// cut-off: without one no machine has as many threads.

#include <future>

#include "../common/on_threads.hpp"
#include "measure.hpp"

namespace {

struct futures : bench::on_threads {
    template <std::size_t Most, class Value>
    static std::uint64_t sum(std::size_t n, const Value& value) {
        std::future<std::uint64_t> children[Most];
        for (std::size_t i = 0; i + 1 < n; ++i) {
            bench::stack_count::made();
            children[i] = std::async(std::launch::async, [&value, i] { return value(i); });
        }
        auto all = value(n - 1);
        for (std::size_t i = 0; i + 1 < n; ++i) {
            all += children[i].get();
            bench::stack_count::freed();
        }
        return all;
    }
    static std::uint64_t stacks() { return bench::stack_count::result(); }
};

}  // namespace

int main(int argc, char** argv) { return bench::run_forkjoin_peer<futures>(argc, argv); }
