// SPDX-License-Identifier: MIT
#include "level.hpp"

#include <atomic>
#include <cstdio>

namespace ums::mpi {

namespace {

constexpr int unknown = -1;
constinit std::atomic<int> known_level{unknown};
constinit std::atomic<unsigned long> count{0};
constinit ums_mutex_t one_at_a_time = UMS_MUTEX_INIT;

// What the program got from MPI_Init_thread(). `unknown` while MPI is not started, or is over.
int level() noexcept {
    // relaxed: a number alone, which each reader could ask MPI for.
    int seen = known_level.load(std::memory_order_relaxed);
    if (seen != unknown) [[likely]]
        return seen;
    int is_started = 0, is_over = 0;
    PMPI_Initialized(&is_started);
    PMPI_Finalized(&is_over);
    if (is_started == 0 || is_over != 0 || PMPI_Query_thread(&seen) != MPI_SUCCESS) return unknown;
    known_level.store(seen, std::memory_order_relaxed);
    return seen;
}

[[gnu::cold]] void refuse(const char* call, int is) noexcept {
    std::fprintf(
        stderr,
        "ums: %s() in a fiber needs the thread level MPI_THREAD_MULTIPLE, and MPI has %s: start it "
        "by MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided)\n",
        call, is == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED");
    PMPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace

bool takes(const char* call) noexcept {
    if (ums_this_fiber_id() == 0) return false;
    const int has = level();
    if (has == unknown) return false;
    if (has < MPI_THREAD_SERIALIZED) refuse(call, has);
    // relaxed: a hint, see the header.
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
}

bool is_for_fibers() noexcept { return level() >= MPI_THREAD_SERIALIZED; }

unsigned long taken() noexcept { return count.load(std::memory_order_relaxed); }  // relaxed: a hint

void forget_level() noexcept { known_level.store(unknown, std::memory_order_relaxed); }

bool is_serialized() noexcept { return level() == MPI_THREAD_SERIALIZED; }

turn::turn() noexcept : is_held_{is_serialized()} {
    if (is_held_) ums_mutex_lock(&one_at_a_time);
}

turn::~turn() {
    if (is_held_) ums_mutex_unlock(&one_at_a_time);
}

}  // namespace ums::mpi
