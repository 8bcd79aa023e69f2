// SPDX-License-Identifier: MIT
#pragma once

// mpi/progress.hpp: one fiber asks MPI for all fibers that wait.
//
// A wait lies on the waiting fiber's stack and ends by its event. Its fiber adds it and parks; the
// progress fiber, which lives while there are waits, asks MPI each turn and ends those that are
// over. There are two kinds:
//
//   request_wait   a request of the layer's own: MPI_Testsome() completes it here.
//   look_wait      anything else: a function says whether it is over, and the waiting fiber
//                  completes it itself. So MPI calls error handlers in the fiber that made the
//                  call, and persistent and inactive requests come out as MPI wants it.
//
// Blocking:  add() never waits for MPI.
// Fairness:  a turn asks for a bounded number of waits, and then yields; the next turn goes on with
//            the others.
// Lifetime:  a wait must live until its event is set, or take_back() has returned.

#include <mpi.h>

#include "ums/ums.h"

namespace ums::mpi {

struct wait {
    wait() noexcept { ums_event_init(&is_over, UMS_EVENT_MANUAL, false); }
    wait(const wait&) = delete;
    wait& operator=(const wait&) = delete;

    ums_event_t is_over;
};

struct request_wait : wait {
    request_wait(MPI_Request r, MPI_Status* s) noexcept : request{r}, status{s} {}

    MPI_Request request;  // MPI_REQUEST_NULL once it is over.
    MPI_Status* status;   // Not null; its MPI_ERROR stays as it is. Or MPI_STATUS_IGNORE.
    int error = MPI_SUCCESS;

    // Owned by the progress:
    request_wait* next = nullptr;
    unsigned at = 0;
};

struct look_wait : wait {
    // Asks MPI, without waiting.
    using look = bool(look_wait& self) noexcept;

    explicit look_wait(look* f) noexcept : looks{f} {}

    look* const looks;

    // Owned by the progress:
    look_wait* next = nullptr;
};

namespace progress {

// The wait begins; its event says when it is over.
void add(request_wait& w) noexcept;
void add(look_wait& w) noexcept;

// The wait is not to go on. Waits for the progress fiber, which may just have found that it is
// over: then the request is MPI_REQUEST_NULL.
void take_back(request_wait& w) noexcept;
void take_back(look_wait& w) noexcept;

// Parks until there are no waits.
void until_nobody_waits() noexcept;

}  // namespace progress

}  // namespace ums::mpi
