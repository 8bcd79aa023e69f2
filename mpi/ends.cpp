// SPDX-License-Identifier: MIT
//
// The beginning and the end of MPI.

#include "finish.hpp"

using namespace ums::mpi;

// SERIALIZED is asked for as MULTIPLE: the progress fiber calls MPI beside what the program
// serializes. A library that has no more than SERIALIZED gets the layer's lock (level.hpp).
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    const int error = PMPI_Init_thread(
        argc, argv, required == MPI_THREAD_SERIALIZED ? MPI_THREAD_MULTIPLE : required, provided);
    forget_level();
    return error;
}

// MPI spins until all ranks are here. In a fiber that is after the last wait of this rank's fibers,
// and all ranks meet before it, so that the time is short.
int MPI_Finalize() {
    const bool in_fiber = is_for_fibers() && takes("MPI_Finalize");
    if (in_fiber) progress::until_nobody_waits();
    if (is_for_fibers())
        if (const int error = MPI_Barrier(MPI_COMM_WORLD)) return error;
    if (in_fiber) progress::until_nobody_waits();  // Other fibers ran meanwhile.
    const int error = PMPI_Finalize();
    forget_level();
    return error;
}
