// SPDX-License-Identifier: MIT
//
// Sends, receives and probes.

#include <cerrno>
#include <memory>
#include <new>

#include "finish.hpp"
#include "ums/mpi.h"

using namespace ums::mpi;

namespace {

// A probe that parks: the progress fiber probes until a message is there.
struct probe_wait : look_wait {
    probe_wait(int from, int with, MPI_Comm on, bool takes_message) noexcept
        : look_wait{&probe}, source{from}, tag{with}, comm{on}, takes{takes_message} {}

    const int source, tag;
    const MPI_Comm comm;
    const bool takes;
    int error = MPI_SUCCESS;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status{};

    bool look_now() noexcept {
        int flag = 0;
        error = takes ? PMPI_Improbe(source, tag, comm, &flag, &message, &status)
                      : PMPI_Iprobe(source, tag, comm, &flag, &status);
        return flag != 0 || error != MPI_SUCCESS;
    }

private:
    static bool probe(look_wait& self) noexcept {
        return static_cast<probe_wait&>(self).look_now();
    }
};

int wait_for_message(probe_wait& w, MPI_Status* status) noexcept {
    if (status != MPI_STATUS_IGNORE) w.status = *status;  // For what MPI leaves as it is.
    bool is_there;
    {
        const turn in;
        is_there = w.look_now();
    }
    if (!is_there) park(w);
    if (w.error == MPI_SUCCESS && status != MPI_STATUS_IGNORE) *status = w.status;
    return w.error;
}

// Both halves are the caller's call: the first error is its result.
int finish_both(MPI_Comm comm, MPI_Request& receive, MPI_Request& send,
                MPI_Status* status) noexcept {
    const int received = finish(comm, receive, status);
    const int sent = finish(comm, send, MPI_STATUS_IGNORE);
    return received != MPI_SUCCESS ? received : sent;
}

}  // namespace

#define UMS_MPI_SEND(name, twin)                                                             \
    int MPI_##name(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,     \
                   MPI_Comm comm) {                                                          \
        if (!takes("MPI_" #name)) return PMPI_##name(buf, count, datatype, dest, tag, comm); \
        return start_and_finish(comm, MPI_STATUS_IGNORE, [&](MPI_Request* request) {         \
            return PMPI_##twin(buf, count, datatype, dest, tag, comm, request);              \
        });                                                                                  \
    }                                                                                        \
    static_assert(true)

UMS_MPI_SEND(Send, Isend);
UMS_MPI_SEND(Bsend, Ibsend);
UMS_MPI_SEND(Ssend, Issend);
UMS_MPI_SEND(Rsend, Irsend);

int MPI_Recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
             MPI_Status* status) {
    if (!takes("MPI_Recv")) return PMPI_Recv(buf, count, datatype, source, tag, comm, status);
    return start_and_finish(comm, status, [&](MPI_Request* request) {
        return PMPI_Irecv(buf, count, datatype, source, tag, comm, request);
    });
}

int MPI_Mrecv(void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
    if (!takes("MPI_Mrecv")) return PMPI_Mrecv(buf, count, type, message, status);
    // The message does not say on which communicator it came: MPICH's errors are the world's.
    return start_and_finish(MPI_COMM_WORLD, status, [&](MPI_Request* request) {
        return PMPI_Imrecv(buf, count, type, message, request);
    });
}

int MPI_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                 void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                 MPI_Comm comm, MPI_Status* status) {
    if (!takes("MPI_Sendrecv"))
        return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                             recvtype, source, recvtag, comm, status);
    MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;
    int error;
    {
        const turn in;
        error = PMPI_Irecv(recvbuf, recvcount, recvtype, source, recvtag, comm, &receive);
        if (error != MPI_SUCCESS) return error;
        error = PMPI_Isend(sendbuf, sendcount, sendtype, dest, sendtag, comm, &send);
        if (error != MPI_SUCCESS) PMPI_Cancel(&receive);
    }
    const int later = finish_both(comm, receive, send, status);
    return error != MPI_SUCCESS ? error : later;
}

// What is sent is packed before the receive may overwrite it. MPI matches packed data with any
// type.
int MPI_Sendrecv_replace(void* buf, int count, MPI_Datatype datatype, int dest, int sendtag,
                         int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
    if (!takes("MPI_Sendrecv_replace"))
        return PMPI_Sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm,
                                     status);
    int bytes = 0, packed = 0;
    if (const int error = PMPI_Pack_size(count, datatype, comm, &bytes)) return error;
    const std::unique_ptr<char[]> copy{new (std::nothrow) char[static_cast<unsigned>(bytes) + 1]};
    if (copy == nullptr) {
        PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
        return MPI_ERR_NO_MEM;
    }
    if (const int error = PMPI_Pack(buf, count, datatype, copy.get(), bytes, &packed, comm))
        return error;
    return MPI_Sendrecv(copy.get(), packed, MPI_PACKED, dest, sendtag, buf, count, datatype, source,
                        recvtag, comm, status);
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
    if (!takes("MPI_Probe")) return PMPI_Probe(source, tag, comm, status);
    probe_wait w{source, tag, comm, false};
    return wait_for_message(w, status);
}

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
    if (!takes("MPI_Mprobe")) return PMPI_Mprobe(source, tag, comm, message, status);
    probe_wait w{source, tag, comm, true};
    const int error = wait_for_message(w, status);
    if (error == MPI_SUCCESS) *message = w.message;
    return error;
}

int ums_mpi_recv_until(void* buffer, int count, MPI_Datatype datatype, int source, int tag,
                       MPI_Comm comm, MPI_Status* status, int64_t deadline, ums_stop_t* stop) {
    if (!takes("ums_mpi_recv_until")) return -EPERM;
    MPI_Request request = MPI_REQUEST_NULL;
    {
        const turn in;
        if (const int error = PMPI_Irecv(buffer, count, datatype, source, tag, comm, &request))
            return error;
    }
    int flag = 0;
    MPI_Status got{};
    int error = test_own(comm, request, flag, &got);
    if (error == MPI_SUCCESS && flag == 0) {
        // Looked at, so that the request is this fiber's to cancel.
        requests_wait w{&request, 1};
        progress::add(w);
        const int ended = ums_event_wait_until(&w.is_over, deadline, stop);
        if (ended != 0) {
            progress::take_back(w);
            {
                const turn in;
                PMPI_Cancel(&request);
            }
            // Whether it was cancelled is known once it is complete; that needs no other rank.
            error = finish(comm, request, &got);
            int is_cancelled = 0;
            PMPI_Test_cancelled(&got, &is_cancelled);
            if (error == MPI_SUCCESS && is_cancelled != 0) return ended;
        } else {
            error = test_own(comm, request, flag, &got);
        }
    }
    copy_status(status, got);
    return error;
}
