// SPDX-License-Identifier: MIT
//
// The calls that do not block, and may run on one processor while the progress fiber asks MPI on
// another. At MPI_THREAD_SERIALIZED they take turns; elsewhere they are MPI's own, after one test.

#include "level.hpp"

// UMS_MPI_IN_TURN(name, parameters, arguments...);
#define UMS_MPI_IN_TURN(name, parameters, ...) \
    int MPI_##name parameters {                \
        const ums::mpi::turn in;               \
        return PMPI_##name(__VA_ARGS__);       \
    }                                          \
    static_assert(true)

UMS_MPI_IN_TURN(Isend,
                (const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm, MPI_Request* request),
                buf, count, datatype, dest, tag, comm, request);
UMS_MPI_IN_TURN(Ibsend,
                (const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm, MPI_Request* request),
                buf, count, datatype, dest, tag, comm, request);
UMS_MPI_IN_TURN(Issend,
                (const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm, MPI_Request* request),
                buf, count, datatype, dest, tag, comm, request);
UMS_MPI_IN_TURN(Irsend,
                (const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm, MPI_Request* request),
                buf, count, datatype, dest, tag, comm, request);
UMS_MPI_IN_TURN(Irecv,
                (void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                 MPI_Request* request),
                buf, count, datatype, source, tag, comm, request);
UMS_MPI_IN_TURN(Imrecv,
                (void* buf, int count, MPI_Datatype type, MPI_Message* message,
                 MPI_Request* request),
                buf, count, type, message, request);
UMS_MPI_IN_TURN(Iprobe, (int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status), source,
                tag, comm, flag, status);
UMS_MPI_IN_TURN(Improbe,
                (int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                 MPI_Status* status),
                source, tag, comm, flag, message, status);
UMS_MPI_IN_TURN(Send_init,
                (const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm, MPI_Request* request),
                buf, count, datatype, dest, tag, comm, request);
UMS_MPI_IN_TURN(Bsend_init,
                (const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm, MPI_Request* request),
                buf, count, datatype, dest, tag, comm, request);
UMS_MPI_IN_TURN(Ssend_init,
                (const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm, MPI_Request* request),
                buf, count, datatype, dest, tag, comm, request);
UMS_MPI_IN_TURN(Rsend_init,
                (const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm, MPI_Request* request),
                buf, count, datatype, dest, tag, comm, request);
UMS_MPI_IN_TURN(Recv_init,
                (void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                 MPI_Request* request),
                buf, count, datatype, source, tag, comm, request);
UMS_MPI_IN_TURN(Start, (MPI_Request * request), request);
UMS_MPI_IN_TURN(Startall, (int count, MPI_Request* array_of_requests), count, array_of_requests);
UMS_MPI_IN_TURN(Test, (MPI_Request * request, int* flag, MPI_Status* status), request, flag,
                status);
UMS_MPI_IN_TURN(Testall,
                (int count, MPI_Request* array_of_requests, int* flag,
                 MPI_Status* array_of_statuses),
                count, array_of_requests, flag, array_of_statuses);
UMS_MPI_IN_TURN(Testany,
                (int count, MPI_Request* array_of_requests, int* index, int* flag,
                 MPI_Status* status),
                count, array_of_requests, index, flag, status);
UMS_MPI_IN_TURN(Testsome,
                (int incount, MPI_Request* array_of_requests, int* outcount, int* array_of_indices,
                 MPI_Status* array_of_statuses),
                incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
UMS_MPI_IN_TURN(Request_get_status, (MPI_Request request, int* flag, MPI_Status* status), request,
                flag, status);
UMS_MPI_IN_TURN(Request_free, (MPI_Request * request), request);
UMS_MPI_IN_TURN(Cancel, (MPI_Request * request), request);
UMS_MPI_IN_TURN(Comm_idup, (MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request), comm, newcomm,
                request);
UMS_MPI_IN_TURN(Ibarrier, (MPI_Comm comm, MPI_Request* request), comm, request);
UMS_MPI_IN_TURN(Ibcast,
                (void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
                 MPI_Request* request),
                buffer, count, datatype, root, comm, request);
UMS_MPI_IN_TURN(Igather,
                (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                 MPI_Request* request),
                sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request);
UMS_MPI_IN_TURN(Igatherv,
                (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 const int* recvcounts, const int* displs, MPI_Datatype recvtype, int root,
                 MPI_Comm comm, MPI_Request* request),
                sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm,
                request);
UMS_MPI_IN_TURN(Iscatter,
                (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                 MPI_Request* request),
                sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request);
UMS_MPI_IN_TURN(Iscatterv,
                (const void* sendbuf, const int* sendcounts, const int* displs,
                 MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype,
                 int root, MPI_Comm comm, MPI_Request* request),
                sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm,
                request);
UMS_MPI_IN_TURN(Iallgather,
                (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request),
                sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
UMS_MPI_IN_TURN(Iallgatherv,
                (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 const int* recvcounts, const int* displs, MPI_Datatype recvtype, MPI_Comm comm,
                 MPI_Request* request),
                sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request);
UMS_MPI_IN_TURN(Ialltoall,
                (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request),
                sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
UMS_MPI_IN_TURN(Ialltoallv,
                (const void* sendbuf, const int* sendcounts, const int* sdispls,
                 MPI_Datatype sendtype, void* recvbuf, const int* recvcounts, const int* rdispls,
                 MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request),
                sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                comm, request);
UMS_MPI_IN_TURN(Ialltoallw,
                (const void* sendbuf, const int* sendcounts, const int* sdispls,
                 const MPI_Datatype* sendtypes, void* recvbuf, const int* recvcounts,
                 const int* rdispls, const MPI_Datatype* recvtypes, MPI_Comm comm,
                 MPI_Request* request),
                sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                comm, request);
UMS_MPI_IN_TURN(Ireduce,
                (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                 int root, MPI_Comm comm, MPI_Request* request),
                sendbuf, recvbuf, count, datatype, op, root, comm, request);
UMS_MPI_IN_TURN(Iallreduce,
                (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                 MPI_Comm comm, MPI_Request* request),
                sendbuf, recvbuf, count, datatype, op, comm, request);
UMS_MPI_IN_TURN(Ireduce_scatter,
                (const void* sendbuf, void* recvbuf, const int* recvcounts, MPI_Datatype datatype,
                 MPI_Op op, MPI_Comm comm, MPI_Request* request),
                sendbuf, recvbuf, recvcounts, datatype, op, comm, request);
UMS_MPI_IN_TURN(Ireduce_scatter_block,
                (const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype,
                 MPI_Op op, MPI_Comm comm, MPI_Request* request),
                sendbuf, recvbuf, recvcount, datatype, op, comm, request);
UMS_MPI_IN_TURN(Iscan,
                (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                 MPI_Comm comm, MPI_Request* request),
                sendbuf, recvbuf, count, datatype, op, comm, request);
UMS_MPI_IN_TURN(Iexscan,
                (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                 MPI_Comm comm, MPI_Request* request),
                sendbuf, recvbuf, count, datatype, op, comm, request);
UMS_MPI_IN_TURN(Ineighbor_allgather,
                (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request),
                sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
UMS_MPI_IN_TURN(Ineighbor_allgatherv,
                (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 const int* recvcounts, const int* displs, MPI_Datatype recvtype, MPI_Comm comm,
                 MPI_Request* request),
                sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request);
UMS_MPI_IN_TURN(Ineighbor_alltoall,
                (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request),
                sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
UMS_MPI_IN_TURN(Ineighbor_alltoallv,
                (const void* sendbuf, const int* sendcounts, const int* sdispls,
                 MPI_Datatype sendtype, void* recvbuf, const int* recvcounts, const int* rdispls,
                 MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request),
                sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                comm, request);
UMS_MPI_IN_TURN(Ineighbor_alltoallw,
                (const void* sendbuf, const int* sendcounts, const MPI_Aint* sdispls,
                 const MPI_Datatype* sendtypes, void* recvbuf, const int* recvcounts,
                 const MPI_Aint* rdispls, const MPI_Datatype* recvtypes, MPI_Comm comm,
                 MPI_Request* request),
                sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                comm, request);
