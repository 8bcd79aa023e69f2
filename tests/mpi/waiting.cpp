// SPDX-License-Identifier: MIT
//
// Fibers that wait for messages: in any order, with a deadline, at the end, beside calls without a
// twin. Two ranks or more.

#include <atomic>
#include <vector>

#include "check.hpp"
#include "support/waiting.hpp"
#include "ums/fiber.hpp"
#include "ums/mpi.h"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

// Messages of a size that waits for its receiver; the ranks begin with opposite ends.
void peers_that_start_in_opposite_order_meet() {
    constexpr int n = 100;
    constexpr std::size_t bytes = 1 << 18;
    const int rank = rank_in(MPI_COMM_WORLD), other = rank ^ 1;
    if (other >= size_of(MPI_COMM_WORLD)) return;
    std::vector<ums::fiber> all;
    for (int i = 0; i < n; ++i)
        all.emplace_back([=] {
            const int tag = rank == 0 ? i : n - 1 - i;
            std::vector<char> out(bytes, static_cast<char>(tag)), in(bytes, -1);
            if (rank % 2 == 0) MPI_Send(out.data(), bytes, MPI_CHAR, other, tag, MPI_COMM_WORLD);
            MPI_Recv(in.data(), bytes, MPI_CHAR, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank % 2 == 1) MPI_Send(out.data(), bytes, MPI_CHAR, other, tag, MPI_COMM_WORLD);
            CHECK(in == out);
        });
    for (ums::fiber& each : all) each.join();
}

// More waits than one turn asks for.
void a_thousand_fibers_exchange() {
    constexpr int n = 1000, rounds = 3;
    const int rank = rank_in(MPI_COMM_WORLD), other = rank ^ 1;
    if (other >= size_of(MPI_COMM_WORLD)) return;
    std::vector<ums::fiber> all;
    for (int i = 0; i < n; ++i)
        all.emplace_back([=] {
            for (int k = 0; k < rounds; ++k) {
                const long mine = 1000L * i + k;
                long theirs = -1;
                if (i % 2 == 0) {
                    MPI_Request r[2];
                    MPI_Irecv(&theirs, 1, MPI_LONG, other, i, MPI_COMM_WORLD, &r[0]);
                    MPI_Isend(&mine, 1, MPI_LONG, other, i, MPI_COMM_WORLD, &r[1]);
                    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
                } else {
                    MPI_Send(&mine, 1, MPI_LONG, other, i, MPI_COMM_WORLD);
                    MPI_Recv(&theirs, 1, MPI_LONG, other, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                }
                CHECK(theirs == mine);
            }
        });
    for (ums::fiber& each : all) each.join();
}

void a_receive_gives_up() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const int rank = rank_in(comm), other = rank ^ 1;
    const bool has_other = other < size_of(comm);
    long got = -1;
    MPI_Status s;
    CHECK(ums_mpi_recv_until(&got, 1, MPI_LONG, MPI_ANY_SOURCE, 1, comm, &s,
                             ums_deadline_after(1'000'000), nullptr) == -ETIMEDOUT);
    CHECK(ums_mpi_recv_until(&got, 1, MPI_LONG, MPI_ANY_SOURCE, 1, comm, &s, 0, nullptr) ==
          -ETIMEDOUT);
    ums_stop_t* stop;
    CHECK(ums_stop_create(&stop) == 0);
    ums::fiber asks{[&] {
        ums::this_fiber::yield();
        ums_stop_request(stop);
    }};
    CHECK(ums_mpi_recv_until(&got, 1, MPI_LONG, MPI_ANY_SOURCE, 1, comm, &s, UMS_NEVER, stop) ==
          -ECANCELED);
    asks.join();
    ums_stop_destroy(stop);
    CHECK(got == -1);
    // Those that gave up took no message.
    MPI_Barrier(comm);
    if (has_other) {
        const long mine = 5;
        MPI_Send(&mine, 1, MPI_LONG, other, 1, comm);
        CHECK(ums_mpi_recv_until(&got, 1, MPI_LONG, other, 1, comm, &s, UMS_NEVER, nullptr) ==
              MPI_SUCCESS);
        CHECK(got == 5 && s.MPI_SOURCE == other && s.MPI_TAG == 1);
        // A message that is there wins over a deadline that has passed.
        MPI_Send(&mine, 1, MPI_LONG, other, 2, comm);
        MPI_Probe(other, 2, comm, MPI_STATUS_IGNORE);
        CHECK(ums_mpi_recv_until(&got, 1, MPI_LONG, other, 2, comm, MPI_STATUS_IGNORE, 0,
                                 nullptr) == MPI_SUCCESS);
        // Many deadlines that race with their messages.
        for (int i = 0; i < 200; ++i) {
            const long number = i;
            MPI_Send(&number, 1, MPI_LONG, other, 3, comm);
            int result = 0;
            long later = -1;
            do {
                result = ums_mpi_recv_until(&later, 1, MPI_LONG, other, 3, comm, MPI_STATUS_IGNORE,
                                            ums_deadline_after(i % 50 * 1000), nullptr);
                CHECK(result == MPI_SUCCESS || result == -ETIMEDOUT);
            } while (result != MPI_SUCCESS);
            CHECK(later == i);
        }
    }
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
}

// MPI has no twin of a split. The fiber that splits waits for the other rank, whose fiber first
// needs a message of another fiber here.
void a_call_without_a_twin_holds_up_nobody() {
    int level = 0;
    MPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE) return;
    const int rank = rank_in(MPI_COMM_WORLD);
    long token = 7;
    std::atomic<bool> is_splitting{false};
    ums::fiber splits{[&] {
        if (rank == 1) MPI_Recv(&token, 1, MPI_LONG, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        is_splitting = true;
        MPI_Comm made;
        MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &made);
        MPI_Comm_free(&made);
    }};
    if (rank == 0) {
        ums::fiber sends{[&] {
            while (!is_splitting) ums::this_fiber::yield();
            MPI_Send(&token, 1, MPI_LONG, 1, 9, MPI_COMM_WORLD);
        }};
        sends.join();
    }
    splits.join();
}

// The program's own unpark() is not mixed up with the library's waits.
void an_unpark_during_a_receive_is_kept() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const int rank = rank_in(comm), size = size_of(comm);
    std::atomic<bool> is_told{false};
    ums::fiber receives{[&] {
        long got = 0;
        MPI_Recv(&got, 1, MPI_LONG, (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE);
        CHECK(is_told);
        ums::this_fiber::park();
    }};
    ums::this_fiber::yield();
    receives.ref().unpark();
    is_told = true;
    const long mine = 1;
    MPI_Barrier(comm);
    MPI_Send(&mine, 1, MPI_LONG, (rank + 1) % size, 1, comm);
    receives.join();
    MPI_Comm_free(&comm);
}

// The end of MPI in a fiber, while others wait for messages that are still to come.
void the_end_waits_for_those_that_wait() {
    const int rank = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    std::vector<ums::fiber> all;
    for (int i = 0; i < 10; ++i)
        all.emplace_back([=] {
            long got = -1;
            MPI_Recv(&got, 1, MPI_LONG, (rank + size - 1) % size, i, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            CHECK(got == i);
        });
    std::atomic<bool> all_wait{false};
    ums::fiber sends{[&] {
        while (!all_wait) ums::this_fiber::yield();
        for (long i = 0; i < 10; ++i)
            MPI_Send(&i, 1, MPI_LONG, (rank + 1) % size, static_cast<int>(i), MPI_COMM_WORLD);
    }};
    for (const ums::fiber& each : all) until_waits(each);
    all_wait = true;
    // Its sends have begun before, so that MPI is not over when it comes to them.
    sends.join();
    MPI_Finalize();
    int is_over = 0;
    MPI_Finalized(&is_over);
    CHECK(is_over != 0);
    for (ums::fiber& each : all) each.join();
}

}  // namespace

int main(int argc, char** argv) {
    start_mpi(argc, argv);
    ums::run({.processors = processors()}, [] {
        RUN(peers_that_start_in_opposite_order_meet());
        RUN(a_thousand_fibers_exchange());
        RUN(a_receive_gives_up());
        RUN(a_call_without_a_twin_holds_up_nobody());
        RUN(an_unpark_during_a_receive_is_kept());
        RUN(the_end_waits_for_those_that_wait());
    });
    if (failures == 0) std::puts("passed");
    return failures != 0;
}
