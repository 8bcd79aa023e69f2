// SPDX-License-Identifier: MIT
#include "finish.hpp"

namespace ums::mpi {

bool is_complete(MPI_Request request) noexcept {
    int flag = 0;
    const int error = PMPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    return flag != 0 || error != MPI_SUCCESS;  // An error, too, is for the one who completes it.
}

bool requests_wait::look_at_all(look_wait& self) noexcept {
    auto& w = static_cast<requests_wait&>(self);
    while (w.at < w.count && is_complete(w.requests[w.at])) ++w.at;
    return w.at == w.count;
}

int finish(MPI_Comm comm, MPI_Request& request, MPI_Status* status) noexcept {
    int flag = 0;
    const int error = test_own(comm, request, flag, status);
    if (error != MPI_SUCCESS || flag != 0) return error;
    if (!may_errors_return()) {
        request_wait w{request, status};
        park(w);
        return w.error;
    }
    for (;;) {
        requests_wait w{&request, 1};
        park(w);
        const int later = test_own(comm, request, flag, status);
        if (later != MPI_SUCCESS || flag != 0) return later;
    }
}

}  // namespace ums::mpi
