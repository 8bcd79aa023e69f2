// SPDX-License-Identifier: MIT
#include "error_handlers.hpp"

#include <atomic>

#include "level.hpp"
#include "ums/ums.h"

namespace ums::mpi {

namespace {

constinit std::atomic<bool> any_returns{false};

#if defined(MPICH)
constexpr bool completes_in_world = true;
#else
constexpr bool completes_in_world = false;
#endif

constinit ums_mutex_t world_lock = UMS_MUTEX_INIT;
// Guarded by it:
constinit unsigned quiet_depth = 0;
constinit MPI_Errhandler of_world{};  // The program's, while it is quiet.

class guard {
public:
    guard() noexcept { ums_mutex_lock(&world_lock); }
    ~guard() { ums_mutex_unlock(&world_lock); }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
};

int told(MPI_Comm comm, int error) noexcept {
    if (error != MPI_SUCCESS) PMPI_Comm_call_errhandler(comm, error);
    return error;
}

}  // namespace

// relaxed: a fiber that can meet the handler's effect was told of the communicator after it was
// set.
bool may_errors_return() noexcept { return any_returns.load(std::memory_order_relaxed); }

quiet_world::quiet_world() noexcept : is_on_{completes_in_world && may_errors_return()} {
    if (!is_on_) return;
    ums_uninterruptible_enter();
    const guard g;
    if (quiet_depth++ != 0) return;
    PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &of_world);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

quiet_world::~quiet_world() {
    if (!is_on_) return;
    {
        const guard g;
        if (--quiet_depth == 0) {
            PMPI_Comm_set_errhandler(MPI_COMM_WORLD, of_world);
            PMPI_Errhandler_free(&of_world);
        }
    }
    ums_uninterruptible_leave();
}

int test_own(MPI_Comm comm, MPI_Request& request, int& flag, MPI_Status* status) noexcept {
    const turn in;
    if (!completes_in_world || !may_errors_return()) return PMPI_Test(&request, &flag, status);
    int error;
    {
        const quiet_world quiet;
        error = PMPI_Test(&request, &flag, status);
    }
    return told(comm, error);
}

int wait_for_own(MPI_Comm comm, MPI_Request& request) noexcept {
    if (!completes_in_world || !may_errors_return()) return PMPI_Wait(&request, MPI_STATUS_IGNORE);
    for (;;) {
        int flag = 0;
        const int error = test_own(comm, request, flag, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS || flag != 0) return error;
    }
}

}  // namespace ums::mpi

using namespace ums::mpi;

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler) {
    // relaxed: see may_errors_return().
    if (errhandler != MPI_ERRORS_ARE_FATAL) any_returns.store(true, std::memory_order_relaxed);
    if constexpr (!completes_in_world) return PMPI_Comm_set_errhandler(comm, errhandler);
    const guard g;
    if (comm != MPI_COMM_WORLD || quiet_depth == 0)
        return PMPI_Comm_set_errhandler(comm, errhandler);
    // Set it, then read it: so MPI counts the use of it, and refuses what is no handler.
    const int error = PMPI_Comm_set_errhandler(comm, errhandler);
    if (error != MPI_SUCCESS) return error;
    PMPI_Errhandler_free(&of_world);
    PMPI_Comm_get_errhandler(comm, &of_world);
    return PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* errhandler) {
    if constexpr (!completes_in_world) return PMPI_Comm_get_errhandler(comm, errhandler);
    const guard g;
    if (comm != MPI_COMM_WORLD || quiet_depth == 0)
        return PMPI_Comm_get_errhandler(comm, errhandler);
    PMPI_Comm_set_errhandler(comm, of_world);
    const int error = PMPI_Comm_get_errhandler(comm, errhandler);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return error;
}
