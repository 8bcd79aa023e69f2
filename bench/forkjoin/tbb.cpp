// SPDX-License-Identifier: MIT

// forkjoin: task groups of oneTBB. The tasks have no stacks: one that waits runs others on its own.

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "measure.hpp"

namespace {

class tasks {
public:
    template <std::size_t Most, class Value>
    static std::uint64_t sum(std::size_t n, const Value& value) {
        return bench::sum_by_group<group, Most>(n, value);
    }
    template <class Body>
    static void run(std::uint64_t processors, Body body) {
        threads = processors;
        const tbb::global_control at_most{tbb::global_control::max_allowed_parallelism, processors};
        tbb::task_arena arena{static_cast<int>(processors)};
        arena.execute(body);
    }
    static std::uint64_t stacks() { return threads; }

private:
    struct group {
        template <class F>
        void fork(F f) {
            all.run(f);
        }
        void join() { all.wait(); }
        tbb::task_group all;
    };
    static inline std::uint64_t threads = 0;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_forkjoin_peer<tasks>(argc, argv); }
