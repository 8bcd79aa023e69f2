// SPDX-License-Identifier: MIT
//
// Waits for requests that the program made. The progress fiber only looks at them; the call that
// waits completes them by MPI_Test() and its kin, with all their rules for persistent, inactive and
// null requests, and for errors.

#include <vector>

#include "finish.hpp"

using namespace ums::mpi;

namespace {

// Until one of some requests is complete.
struct any_wait : look_wait {
    any_wait() noexcept : look_wait{&look_at_each} {}

    std::vector<MPI_Request> requests;

private:
    static bool look_at_each(look_wait& self) noexcept {
        for (const MPI_Request r : static_cast<any_wait&>(self).requests)
            if (is_complete(r)) return true;
        return false;
    }
};

// Completes what is complete by complete(), which says by `flag` whether that ends the call; else
// parks until there is more.
template <class Complete>
int wait_for_any(const MPI_Request* requests, int count, Complete complete) noexcept {
    for (;;) {
        bool is_done = false;
        any_wait w;
        {
            const turn in;
            if (const int error = complete(is_done); error != MPI_SUCCESS || is_done) return error;
            {
                const quiet_world quiet;
                // Inactive ones look complete, and are not waited for.
                for (int i = 0; i < count; ++i)
                    if (requests[i] != MPI_REQUEST_NULL && !is_complete(requests[i]))
                        w.requests.push_back(requests[i]);
            }
            // One may have become complete between the two.
            const int error = complete(is_done);
            if (error != MPI_SUCCESS || is_done) return error;
        }
        park(w);
    }
}

}  // namespace

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    if (!takes("MPI_Wait")) return PMPI_Wait(request, status);
    for (;;) {
        int flag = 0;
        {
            const turn in;
            const int error = PMPI_Test(request, &flag, status);
            if (error != MPI_SUCCESS || flag != 0) return error;
        }
        requests_wait w{request, 1};
        park(w);
    }
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status* statuses) {
    if (!takes("MPI_Waitall")) return PMPI_Waitall(count, requests, statuses);
    for (;;) {
        int flag = 0;
        {
            const turn in;
            const int error = PMPI_Testall(count, requests, &flag, statuses);
            if (error != MPI_SUCCESS || flag != 0) return error;
        }
        requests_wait w{requests, count};
        park(w);
    }
}

int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
    if (!takes("MPI_Waitany")) return PMPI_Waitany(count, requests, index, status);
    return wait_for_any(requests, count, [&](bool& is_done) {
        int flag = 0;
        const int error = PMPI_Testany(count, requests, index, &flag, status);
        is_done = flag != 0;
        return error;
    });
}

int MPI_Waitsome(int incount, MPI_Request requests[], int* outcount, int indices[],
                 MPI_Status statuses[]) {
    if (!takes("MPI_Waitsome"))
        return PMPI_Waitsome(incount, requests, outcount, indices, statuses);
    return wait_for_any(requests, incount, [&](bool& is_done) {
        const int error = PMPI_Testsome(incount, requests, outcount, indices, statuses);
        is_done = *outcount != 0;  // MPI_UNDEFINED, too: there was none to wait for.
        return error;
    });
}
