// SPDX-License-Identifier: MIT
//
// The collective calls that have a non-blocking twin. All ranks use the twin where the thread level
// is for fibers, also outside fibers: MPI does not match it with a blocking call of another rank.
// Collectives on one communicator begin in the same order on all ranks, as MPI's rule is for
// threads.

#include "finish.hpp"

namespace ums::mpi {

namespace {

template <class Blocking, class Begin>
int collect(const char* name, MPI_Comm comm, Blocking blocking, Begin begin) noexcept {
    if (takes(name)) return start_and_finish(comm, MPI_STATUS_IGNORE, begin);
    if (!is_for_fibers()) return blocking();
    MPI_Request request = MPI_REQUEST_NULL;
    if (const int error = begin(&request)) return error;
    return wait_for_own(comm, request);
}

}  // namespace

}  // namespace ums::mpi

// UMS_MPI_COLLECTIVE(name, twin, parameters, arguments...);
#define UMS_MPI_COLLECTIVE(name, twin, parameters, ...)                               \
    int MPI_##name parameters {                                                       \
        return ums::mpi::collect(                                                     \
            "MPI_" #name, comm, [&] { return PMPI_##name(__VA_ARGS__); },             \
            [&](MPI_Request* request) { return PMPI_##twin(__VA_ARGS__, request); }); \
    }                                                                                 \
    static_assert(true)

UMS_MPI_COLLECTIVE(Barrier, Ibarrier, (MPI_Comm comm), comm);
UMS_MPI_COLLECTIVE(Bcast, Ibcast,
                   (void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm),
                   buffer, count, datatype, root, comm);
UMS_MPI_COLLECTIVE(Gather, Igather,
                   (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
                   sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
UMS_MPI_COLLECTIVE(Gatherv, Igatherv,
                   (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    const int* recvcounts, const int* displs, MPI_Datatype recvtype, int root,
                    MPI_Comm comm),
                   sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
UMS_MPI_COLLECTIVE(Scatter, Iscatter,
                   (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
                   sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
UMS_MPI_COLLECTIVE(Scatterv, Iscatterv,
                   (const void* sendbuf, const int* sendcounts, const int* displs,
                    MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype,
                    int root, MPI_Comm comm),
                   sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm);
UMS_MPI_COLLECTIVE(Allgather, Iallgather,
                   (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, MPI_Comm comm),
                   sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
UMS_MPI_COLLECTIVE(Allgatherv, Iallgatherv,
                   (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    const int* recvcounts, const int* displs, MPI_Datatype recvtype, MPI_Comm comm),
                   sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
UMS_MPI_COLLECTIVE(Alltoall, Ialltoall,
                   (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, MPI_Comm comm),
                   sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
UMS_MPI_COLLECTIVE(Alltoallv, Ialltoallv,
                   (const void* sendbuf, const int* sendcounts, const int* sdispls,
                    MPI_Datatype sendtype, void* recvbuf, const int* recvcounts, const int* rdispls,
                    MPI_Datatype recvtype, MPI_Comm comm),
                   sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                   comm);
UMS_MPI_COLLECTIVE(Alltoallw, Ialltoallw,
                   (const void* sendbuf, const int* sendcounts, const int* sdispls,
                    const MPI_Datatype* sendtypes, void* recvbuf, const int* recvcounts,
                    const int* rdispls, const MPI_Datatype* recvtypes, MPI_Comm comm),
                   sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                   comm);
UMS_MPI_COLLECTIVE(Reduce, Ireduce,
                   (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                    int root, MPI_Comm comm),
                   sendbuf, recvbuf, count, datatype, op, root, comm);
UMS_MPI_COLLECTIVE(Allreduce, Iallreduce,
                   (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm),
                   sendbuf, recvbuf, count, datatype, op, comm);
UMS_MPI_COLLECTIVE(Reduce_scatter, Ireduce_scatter,
                   (const void* sendbuf, void* recvbuf, const int* recvcounts,
                    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
                   sendbuf, recvbuf, recvcounts, datatype, op, comm);
UMS_MPI_COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block,
                   (const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype,
                    MPI_Op op, MPI_Comm comm),
                   sendbuf, recvbuf, recvcount, datatype, op, comm);
UMS_MPI_COLLECTIVE(Scan, Iscan,
                   (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm),
                   sendbuf, recvbuf, count, datatype, op, comm);
UMS_MPI_COLLECTIVE(Exscan, Iexscan,
                   (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm),
                   sendbuf, recvbuf, count, datatype, op, comm);
UMS_MPI_COLLECTIVE(Neighbor_allgather, Ineighbor_allgather,
                   (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, MPI_Comm comm),
                   sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
UMS_MPI_COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv,
                   (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    const int* recvcounts, const int* displs, MPI_Datatype recvtype, MPI_Comm comm),
                   sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
#if !defined(OPEN_MPI)  // elsewhere.cpp says why.
UMS_MPI_COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall,
                   (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, MPI_Comm comm),
                   sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
UMS_MPI_COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv,
                   (const void* sendbuf, const int* sendcounts, const int* sdispls,
                    MPI_Datatype sendtype, void* recvbuf, const int* recvcounts, const int* rdispls,
                    MPI_Datatype recvtype, MPI_Comm comm),
                   sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                   comm);
UMS_MPI_COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw,
                   (const void* sendbuf, const int* sendcounts, const MPI_Aint* sdispls,
                    const MPI_Datatype* sendtypes, void* recvbuf, const int* recvcounts,
                    const MPI_Aint* rdispls, const MPI_Datatype* recvtypes, MPI_Comm comm),
                   sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                   comm);
#endif

// The handle of the new communicator is there at once, and usable when the request is complete.
UMS_MPI_COLLECTIVE(Comm_dup, Comm_idup, (MPI_Comm comm, MPI_Comm* newcomm), comm, newcomm);
