// SPDX-License-Identifier: MIT

// forkjoin: tasks of OpenMP. The tasks have no stacks: one that waits runs others on its own.

#include "measure.hpp"

namespace {

class tasks {
public:
    template <std::size_t Most, class Value>
    static std::uint64_t sum(std::size_t n, const Value& value) {
        std::uint64_t results[Most];
        for (std::size_t i = 0; i + 1 < n; ++i) {
#pragma omp task default(none) shared(results, value) firstprivate(i)
            results[i] = value(i);
        }
        results[n - 1] = value(n - 1);
#pragma omp taskwait
        return std::accumulate(results, results + n, std::uint64_t{0});
    }
    template <class Body>
    static void run(std::uint64_t processors, Body body) {
        threads = processors;
#pragma omp parallel num_threads(static_cast <int>(processors))
#pragma omp single
        body();
    }
    static std::uint64_t stacks() { return threads; }

private:
    static inline std::uint64_t threads = 0;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_forkjoin_peer<tasks>(argc, argv); }
