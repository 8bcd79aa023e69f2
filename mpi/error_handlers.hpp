// SPDX-License-Identifier: MIT
#pragma once

// mpi/error_handlers.hpp: an error of a call is the handler's of the communicator it was made on,
// in the fiber that made the call.
//
// As long as every handler ends the program, any fiber may meet the error. Once a program has set
// another handler, no request is completed by the progress fiber: it looks, and the fiber that made
// the call completes the request. OpenMPI calls the communicator's handler there, as for the
// blocking call. MPICH calls that of MPI_COMM_WORLD for each completion of a request, even
// to look at one: meanwhile that handler is MPI_ERRORS_RETURN (quiet_world), and the fiber calls
// the communicator's itself.

#include <mpi.h>

namespace ums::mpi {

// Whether the program has ever set a handler other than MPI_ERRORS_ARE_FATAL. A communicator may
// have it from the one that it was made of, so the answer is for all of them.
[[nodiscard]] bool may_errors_return() noexcept;

// While there is one, an error of a completion calls no handler of MPICH's. Elsewhere, and while
// all handlers end the program, it does nothing. The fiber is not stopped meanwhile; an error of a
// call on another processor in MPI_COMM_WORLD at this moment only returns.
class quiet_world {
public:
    quiet_world() noexcept;
    ~quiet_world();
    quiet_world(const quiet_world&) = delete;
    quiet_world& operator=(const quiet_world&) = delete;

private:
    const bool is_on_;
};

// PMPI_Test() by the fiber whose call on `comm` made the request.
int test_own(MPI_Comm comm, MPI_Request& request, int& flag, MPI_Status* status) noexcept;
// PMPI_Wait() of a plain thread, the same.
int wait_for_own(MPI_Comm comm, MPI_Request& request) noexcept;

// All but MPI_ERROR, which belongs to the caller. `to` may be MPI_STATUS_IGNORE.
inline void copy_status(MPI_Status* to, const MPI_Status& from) noexcept {
    if (to == MPI_STATUS_IGNORE) return;
    const int kept = to->MPI_ERROR;
    *to = from;
    to->MPI_ERROR = kept;
}

}  // namespace ums::mpi
