// SPDX-License-Identifier: MIT

// spawn: fibers of Boost.Fiber. The stack allocator and the launch policy are the caller's choice;
// the driver tries them and keeps the fastest.

#include <memory>

#include "../common/boost_stacks.hpp"
#include "../common/on_boost.hpp"
#include "nursery.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        using boost::fibers::launch;
        const auto plan = bench::nursery_of<bench::on_boost>(in);
        const auto way =
            in.word("launch", {"post", "dispatch"}) == "post" ? launch::post : launch::dispatch;
        const bool is_pooled = bench::wants_pooled_stacks(in, plan.processors);
        in.done();
        const auto bytes = boost::context::stack_traits::default_size();
        bench::with_boost_stacks(is_pooled, bytes, [&](auto stacks) {
            bench::measure_spawns<bench::on_boost>(
                plan, out, [way] { return way; },
                [] { return std::allocator_arg; }, [&stacks]() -> auto& { return stacks; });
        });
    });
}
