// SPDX-License-Identifier: MIT
#pragma once

// mpi/level.hpp: which calls are taken, and the lock where MPI lets in one thread at a time.

#include <mpi.h>

#include "ums/ums.h"

namespace ums::mpi {

// Whether `call` is made by a fiber in a started MPI, and so has to park. If the thread level is
// too low for that, ends the program with a line that says what to ask for.
[[nodiscard]] bool takes(const char* call) noexcept;

// Whether the level lets fibers call MPI. Then all ranks use the non-blocking twins of collectives,
// also outside fibers: the standard does not match a twin with a blocking call of another rank.
[[nodiscard]] bool is_for_fibers() noexcept;

// How many calls were taken. A hint: calls on two processors may count as one.
[[nodiscard]] unsigned long taken() noexcept;

// MPI is started, or finalized: the level has to be asked for again.
void forget_level() noexcept;

// At MPI_THREAD_SERIALIZED, one of the layer's calls to MPI at a time. A fiber that waits for its
// turn parks. None of these calls waits for other ranks.
class turn {
public:
    turn() noexcept;
    ~turn();
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

private:
    const bool is_held_;
};

// Whether MPI lets in one thread at a time.
[[nodiscard]] bool is_serialized() noexcept;

}  // namespace ums::mpi
