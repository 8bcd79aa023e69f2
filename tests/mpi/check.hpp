// SPDX-License-Identifier: MIT
#pragma once

// tests/mpi/check.hpp: for programs that mpirun starts: a check that fails says so and counts.

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <mpi.h>

inline std::atomic<int> failures{0};

#define CHECK(what)  \
    ((what) ? void() \
            : (void)(failures++, std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what)))

// Says what runs, for whoever looks at one that hangs.
#define RUN(test) (std::printf("%s\n", #test), std::fflush(stdout), test)

inline int rank_in(MPI_Comm comm) {
    int rank = -1;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

inline int size_of(MPI_Comm comm) {
    int size = -1;
    MPI_Comm_size(comm, &size);
    return size;
}

// MULTIPLE, unless the first argument is "serialized". That level is MPI's own, without the
// library, which would ask for MULTIPLE instead.
inline void start_mpi(int& argc, char**& argv) {
    if (&MPI_Recv == &PMPI_Recv || &MPI_Bcast == &PMPI_Bcast || &MPI_Win_fence == &PMPI_Win_fence) {
        std::fprintf(stderr, "libums_mpi does not take the calls\n");
        std::exit(1);
    }
    const bool serialized = argc > 1 && argv[1][0] == 's';
    int has = 0;
    if (serialized)
        PMPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &has);
    else
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &has);
    if (has != (serialized ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE)) {
        std::fprintf(stderr, "MPI gives the level %d\n", has);
        std::exit(1);
    }
}

inline unsigned processors() {
    const char* const text = std::getenv("TEST_PROCESSORS");
    return text != nullptr ? static_cast<unsigned>(std::atoi(text)) : 1;
}
