// SPDX-License-Identifier: MIT
//
// At a thread level that is too low, a call in a fiber ends the program with a line that says what
// to ask for; outside fibers nothing changes.

#include "check.hpp"
#include "ums/run.hpp"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    long mine = 1, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    std::printf("outside fibers: %ld\n", sum);
    std::fflush(stdout);
    ums::run([] { MPI_Barrier(MPI_COMM_WORLD); });
    std::puts("it was not refused");
    MPI_Finalize();
}
