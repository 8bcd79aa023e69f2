// SPDX-License-Identifier: MIT

// forkjoin: fibers of Boost. The driver tries each launch, and on one processor each allocator of
// stacks, and keeps the fastest.

#include <memory>

#include "../common/boost_stacks.hpp"
#include "../common/on_boost.hpp"
#include "measure.hpp"

namespace {

using boost::fibers::launch;

// The default is 128 KiB. The frames of the programs take a tenth of this.
constexpr std::size_t stack_bytes = 65536;

template <class Stacks>
struct fibers : bench::on_boost {
    static inline launch how = launch::post;
    static inline Stacks allocator{stack_bytes};

    struct start {
        template <class F>
        runner operator()(F f) const {
            bench::stack_count::made();
            return runner{how, std::allocator_arg, allocator, f};
        }
    };
    template <std::size_t Most, class Value>
    static std::uint64_t sum(std::size_t n, const Value& value) {
        using group = bench::joined_group<runner, Most, start>;
        const auto all = bench::sum_by_group<group, Most>(n, value);
        for (std::size_t i = 0; i + 1 < n; ++i) bench::stack_count::freed();
        return all;
    }
    static std::uint64_t stacks() { return bench::stack_count::result(); }
};

template <class Stacks>
void measure(const bench::forkjoin_cell& of, launch how, bench::line& out) {
    fibers<Stacks>::how = how;
    bench::measure_forkjoin<fibers<Stacks>>(of, out);
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const bench::forkjoin_cell of{in};
        const auto how =
            in.word("launch", {"post", "dispatch"}) == "post" ? launch::post : launch::dispatch;
        const bool is_pooled = bench::wants_pooled_stacks(in, of.processors);
        in.done();
        is_pooled ? measure<boost::fibers::pooled_fixedsize_stack>(of, how, out)
                  : measure<boost::fibers::fixedsize_stack>(of, how, out);
    });
}
