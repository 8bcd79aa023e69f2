// SPDX-License-Identifier: MIT
//
// The blocking calls without a non-blocking twin. MPI waits for the other ranks by spinning, so the
// fiber's processor goes to another kernel thread meanwhile, and the others run on beside it. At
// MPI_THREAD_SERIALIZED no other call may run at the same time: the call spins, and only time
// slices help.

#include "level.hpp"

namespace ums::mpi {

namespace {

template <class Call>
int beside_others(const char* name, Call call) noexcept {
    if (!takes(name) || is_serialized()) return call();
    ums_blocking_enter();
    const int error = call();
    ums_blocking_leave();
    return error;
}

}  // namespace

}  // namespace ums::mpi

// UMS_MPI_ELSEWHERE(name, parameters, arguments...);
#define UMS_MPI_ELSEWHERE(name, parameters, ...)                                                \
    int MPI_##name parameters {                                                                 \
        return ums::mpi::beside_others("MPI_" #name, [&] { return PMPI_##name(__VA_ARGS__); }); \
    }                                                                                           \
    static_assert(true)

UMS_MPI_ELSEWHERE(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* newcomm), comm, color,
                  key, newcomm);
UMS_MPI_ELSEWHERE(Comm_split_type,
                  (MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm), comm,
                  split_type, key, info, newcomm);
UMS_MPI_ELSEWHERE(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm), comm, group,
                  newcomm);
UMS_MPI_ELSEWHERE(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm),
                  comm, group, tag, newcomm);
UMS_MPI_ELSEWHERE(Comm_free, (MPI_Comm * comm), comm);
UMS_MPI_ELSEWHERE(Comm_disconnect, (MPI_Comm * comm), comm);
UMS_MPI_ELSEWHERE(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm), comm, info,
                  newcomm);
UMS_MPI_ELSEWHERE(Comm_accept,
                  (const char* port_name, MPI_Info info, int root, MPI_Comm comm,
                   MPI_Comm* newcomm),
                  port_name, info, root, comm, newcomm);
UMS_MPI_ELSEWHERE(Comm_connect,
                  (const char* port_name, MPI_Info info, int root, MPI_Comm comm,
                   MPI_Comm* newcomm),
                  port_name, info, root, comm, newcomm);
UMS_MPI_ELSEWHERE(Comm_join, (int fd, MPI_Comm* intercomm), fd, intercomm);
UMS_MPI_ELSEWHERE(Comm_spawn,
                  (const char* command, char** argv, int maxprocs, MPI_Info info, int root,
                   MPI_Comm comm, MPI_Comm* intercomm, int* array_of_errcodes),
                  command, argv, maxprocs, info, root, comm, intercomm, array_of_errcodes);
UMS_MPI_ELSEWHERE(Comm_spawn_multiple,
                  (int count, char** array_of_commands, char*** array_of_argv,
                   const int* array_of_maxprocs, const MPI_Info* array_of_info, int root,
                   MPI_Comm comm, MPI_Comm* intercomm, int* array_of_errcodes),
                  count, array_of_commands, array_of_argv, array_of_maxprocs, array_of_info, root,
                  comm, intercomm, array_of_errcodes);
UMS_MPI_ELSEWHERE(Intercomm_create,
                  (MPI_Comm local_comm, int local_leader, MPI_Comm bridge_comm, int remote_leader,
                   int tag, MPI_Comm* newintercomm),
                  local_comm, local_leader, bridge_comm, remote_leader, tag, newintercomm);
UMS_MPI_ELSEWHERE(Intercomm_merge, (MPI_Comm intercomm, int high, MPI_Comm* newintercomm),
                  intercomm, high, newintercomm);
UMS_MPI_ELSEWHERE(Cart_create,
                  (MPI_Comm old_comm, int ndims, const int* dims, const int* periods, int reorder,
                   MPI_Comm* comm_cart),
                  old_comm, ndims, dims, periods, reorder, comm_cart);
UMS_MPI_ELSEWHERE(Cart_sub, (MPI_Comm comm, const int* remain_dims, MPI_Comm* new_comm), comm,
                  remain_dims, new_comm);
UMS_MPI_ELSEWHERE(Graph_create,
                  (MPI_Comm comm_old, int nnodes, const int* index, const int* edges, int reorder,
                   MPI_Comm* comm_graph),
                  comm_old, nnodes, index, edges, reorder, comm_graph);
UMS_MPI_ELSEWHERE(Dist_graph_create,
                  (MPI_Comm comm_old, int n, const int* nodes, const int* degrees,
                   const int* targets, const int* weights, MPI_Info info, int reorder,
                   MPI_Comm* newcomm),
                  comm_old, n, nodes, degrees, targets, weights, info, reorder, newcomm);
UMS_MPI_ELSEWHERE(Dist_graph_create_adjacent,
                  (MPI_Comm comm_old, int indegree, const int* sources, const int* sourceweights,
                   int outdegree, const int* destinations, const int* destweights, MPI_Info info,
                   int reorder, MPI_Comm* comm_dist_graph),
                  comm_old, indegree, sources, sourceweights, outdegree, destinations, destweights,
                  info, reorder, comm_dist_graph);

// The twins of OpenMPI 4.1 give the two parts from one rank, which is both neighbours on a ring of
// two, in the other order.
#if defined(OPEN_MPI)
UMS_MPI_ELSEWHERE(Neighbor_alltoall,
                  (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm),
                  sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
UMS_MPI_ELSEWHERE(Neighbor_alltoallv,
                  (const void* sendbuf, const int* sendcounts, const int* sdispls,
                   MPI_Datatype sendtype, void* recvbuf, const int* recvcounts, const int* rdispls,
                   MPI_Datatype recvtype, MPI_Comm comm),
                  sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                  comm);
UMS_MPI_ELSEWHERE(Neighbor_alltoallw,
                  (const void* sendbuf, const int* sendcounts, const MPI_Aint* sdispls,
                   const MPI_Datatype* sendtypes, void* recvbuf, const int* recvcounts,
                   const MPI_Aint* rdispls, const MPI_Datatype* recvtypes, MPI_Comm comm),
                  sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                  comm);
#endif

UMS_MPI_ELSEWHERE(Buffer_detach, (void* buffer, int* size), buffer, size);
UMS_MPI_ELSEWHERE(Win_create,
                  (void* base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                   MPI_Win* win),
                  base, size, disp_unit, info, comm, win);
UMS_MPI_ELSEWHERE(Win_allocate,
                  (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                   MPI_Win* win),
                  size, disp_unit, info, comm, baseptr, win);
UMS_MPI_ELSEWHERE(Win_allocate_shared,
                  (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                   MPI_Win* win),
                  size, disp_unit, info, comm, baseptr, win);
UMS_MPI_ELSEWHERE(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win* win), info, comm,
                  win);
UMS_MPI_ELSEWHERE(Win_free, (MPI_Win * win), win);
UMS_MPI_ELSEWHERE(Win_fence, (int assert, MPI_Win win), assert, win);
UMS_MPI_ELSEWHERE(Win_start, (MPI_Group group, int assert, MPI_Win win), group, assert, win);
UMS_MPI_ELSEWHERE(Win_complete, (MPI_Win win), win);
UMS_MPI_ELSEWHERE(Win_wait, (MPI_Win win), win);
UMS_MPI_ELSEWHERE(Win_lock, (int lock_type, int rank, int assert, MPI_Win win), lock_type, rank,
                  assert, win);
UMS_MPI_ELSEWHERE(Win_lock_all, (int assert, MPI_Win win), assert, win);
UMS_MPI_ELSEWHERE(Win_unlock, (int rank, MPI_Win win), rank, win);
UMS_MPI_ELSEWHERE(Win_unlock_all, (MPI_Win win), win);
UMS_MPI_ELSEWHERE(Win_flush, (int rank, MPI_Win win), rank, win);
UMS_MPI_ELSEWHERE(Win_flush_all, (MPI_Win win), win);
UMS_MPI_ELSEWHERE(Win_flush_local, (int rank, MPI_Win win), rank, win);
UMS_MPI_ELSEWHERE(Win_flush_local_all, (MPI_Win win), win);
UMS_MPI_ELSEWHERE(File_open,
                  (MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh),
                  comm, filename, amode, info, fh);
UMS_MPI_ELSEWHERE(File_close, (MPI_File * fh), fh);
UMS_MPI_ELSEWHERE(File_set_size, (MPI_File fh, MPI_Offset size), fh, size);
UMS_MPI_ELSEWHERE(File_preallocate, (MPI_File fh, MPI_Offset size), fh, size);
UMS_MPI_ELSEWHERE(File_set_view,
                  (MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                   const char* datarep, MPI_Info info),
                  fh, disp, etype, filetype, datarep, info);
UMS_MPI_ELSEWHERE(File_sync, (MPI_File fh), fh);
UMS_MPI_ELSEWHERE(File_read,
                  (MPI_File fh, void* buf, int count, MPI_Datatype datatype, MPI_Status* status),
                  fh, buf, count, datatype, status);
UMS_MPI_ELSEWHERE(File_read_all,
                  (MPI_File fh, void* buf, int count, MPI_Datatype datatype, MPI_Status* status),
                  fh, buf, count, datatype, status);
UMS_MPI_ELSEWHERE(File_read_at,
                  (MPI_File fh, MPI_Offset offset, void* buf, int count, MPI_Datatype datatype,
                   MPI_Status* status),
                  fh, offset, buf, count, datatype, status);
UMS_MPI_ELSEWHERE(File_read_at_all,
                  (MPI_File fh, MPI_Offset offset, void* buf, int count, MPI_Datatype datatype,
                   MPI_Status* status),
                  fh, offset, buf, count, datatype, status);
UMS_MPI_ELSEWHERE(File_read_shared,
                  (MPI_File fh, void* buf, int count, MPI_Datatype datatype, MPI_Status* status),
                  fh, buf, count, datatype, status);
UMS_MPI_ELSEWHERE(File_read_ordered,
                  (MPI_File fh, void* buf, int count, MPI_Datatype datatype, MPI_Status* status),
                  fh, buf, count, datatype, status);
UMS_MPI_ELSEWHERE(File_write,
                  (MPI_File fh, const void* buf, int count, MPI_Datatype datatype,
                   MPI_Status* status),
                  fh, buf, count, datatype, status);
UMS_MPI_ELSEWHERE(File_write_all,
                  (MPI_File fh, const void* buf, int count, MPI_Datatype datatype,
                   MPI_Status* status),
                  fh, buf, count, datatype, status);
UMS_MPI_ELSEWHERE(File_write_at,
                  (MPI_File fh, MPI_Offset offset, const void* buf, int count,
                   MPI_Datatype datatype, MPI_Status* status),
                  fh, offset, buf, count, datatype, status);
UMS_MPI_ELSEWHERE(File_write_at_all,
                  (MPI_File fh, MPI_Offset offset, const void* buf, int count,
                   MPI_Datatype datatype, MPI_Status* status),
                  fh, offset, buf, count, datatype, status);
UMS_MPI_ELSEWHERE(File_write_shared,
                  (MPI_File fh, const void* buf, int count, MPI_Datatype datatype,
                   MPI_Status* status),
                  fh, buf, count, datatype, status);
UMS_MPI_ELSEWHERE(File_write_ordered,
                  (MPI_File fh, const void* buf, int count, MPI_Datatype datatype,
                   MPI_Status* status),
                  fh, buf, count, datatype, status);
UMS_MPI_ELSEWHERE(File_read_all_begin, (MPI_File fh, void* buf, int count, MPI_Datatype datatype),
                  fh, buf, count, datatype);
UMS_MPI_ELSEWHERE(File_read_all_end, (MPI_File fh, void* buf, MPI_Status* status), fh, buf, status);
UMS_MPI_ELSEWHERE(File_read_at_all_begin,
                  (MPI_File fh, MPI_Offset offset, void* buf, int count, MPI_Datatype datatype), fh,
                  offset, buf, count, datatype);
UMS_MPI_ELSEWHERE(File_read_at_all_end, (MPI_File fh, void* buf, MPI_Status* status), fh, buf,
                  status);
UMS_MPI_ELSEWHERE(File_read_ordered_begin,
                  (MPI_File fh, void* buf, int count, MPI_Datatype datatype), fh, buf, count,
                  datatype);
UMS_MPI_ELSEWHERE(File_read_ordered_end, (MPI_File fh, void* buf, MPI_Status* status), fh, buf,
                  status);
UMS_MPI_ELSEWHERE(File_write_all_begin,
                  (MPI_File fh, const void* buf, int count, MPI_Datatype datatype), fh, buf, count,
                  datatype);
UMS_MPI_ELSEWHERE(File_write_all_end, (MPI_File fh, const void* buf, MPI_Status* status), fh, buf,
                  status);
UMS_MPI_ELSEWHERE(File_write_at_all_begin,
                  (MPI_File fh, MPI_Offset offset, const void* buf, int count,
                   MPI_Datatype datatype),
                  fh, offset, buf, count, datatype);
UMS_MPI_ELSEWHERE(File_write_at_all_end, (MPI_File fh, const void* buf, MPI_Status* status), fh,
                  buf, status);
UMS_MPI_ELSEWHERE(File_write_ordered_begin,
                  (MPI_File fh, const void* buf, int count, MPI_Datatype datatype), fh, buf, count,
                  datatype);
UMS_MPI_ELSEWHERE(File_write_ordered_end, (MPI_File fh, const void* buf, MPI_Status* status), fh,
                  buf, status);
UMS_MPI_ELSEWHERE(File_seek_shared, (MPI_File fh, MPI_Offset offset, int whence), fh, offset,
                  whence);
UMS_MPI_ELSEWHERE(File_get_size, (MPI_File fh, MPI_Offset* size), fh, size);
UMS_MPI_ELSEWHERE(File_set_atomicity, (MPI_File fh, int flag), fh, flag);
