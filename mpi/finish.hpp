// SPDX-License-Identifier: MIT
#pragma once

// mpi/finish.hpp: a blocking call as its non-blocking twin, and a wait that parks.

#include <mpi.h>

#include "error_handlers.hpp"
#include "level.hpp"
#include "progress.hpp"

namespace ums::mpi {

// Waits for a request that a call on `comm` made. Returns what the blocking call would.
int finish(MPI_Comm comm, MPI_Request& request, MPI_Status* status) noexcept;

// begin(&request) is the twin.
template <class Begin>
int start_and_finish(MPI_Comm comm, MPI_Status* status, Begin begin) noexcept {
    MPI_Request request = MPI_REQUEST_NULL;
    {
        const turn in;
        if (const int error = begin(&request)) return error;  // Its handler was called.
    }
    return finish(comm, request, status);
}

// A wait until one request, or each, is complete. It is looked at, and stays the caller's.
struct requests_wait : look_wait {
    requests_wait(MPI_Request* first, int n) noexcept
        : look_wait{&look_at_all}, requests{first}, count{n} {}

    MPI_Request* const requests;
    const int count;
    int at = 0;  // Those before are complete.

private:
    static bool look_at_all(look_wait& self) noexcept;
};

// Whether it is complete, null or inactive. Call it in a turn.
[[nodiscard]] bool is_complete(MPI_Request request) noexcept;

// Begins the wait and parks until it is over.
template <class Wait>
void park(Wait& w) noexcept {
    progress::add(w);
    ums_event_wait(&w.is_over);
}

}  // namespace ums::mpi
