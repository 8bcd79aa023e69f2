// SPDX-License-Identifier: MIT
//
// An error is the handler's of the communicator on which the call was made, in the fiber that made
// it, and the others go on. Two ranks.

#include <atomic>
#include <cstring>

#include "check.hpp"
#include "support/waiting.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"
#include "ums/ums.h"

namespace {

int class_of(int error) {
    int kind = -1;
    MPI_Error_class(error, &kind);
    return kind;
}

// What a handler was told, and where.
std::atomic<int> told{0}, told_class{-1};
std::atomic<unsigned long> told_in{0};
void note(MPI_Comm*, int* error, ...) {
    told++;
    told_class = class_of(*error);
    told_in = ums_this_fiber_id();
}

// Runs receive() in a fiber of rank 1, and send() on rank 0: once the message is there before the
// receive, and once the receive has parked before the message is sent.
template <class Send, class Receive>
void early_and_late(MPI_Comm others, Send send, Receive receive) {
    const bool receives = rank_in(others) == 1;
    char token = 0;
    if (receives) {
        // Messages do not overtake one another.
        MPI_Recv(&token, 1, MPI_CHAR, 0, 5, others, MPI_STATUS_IGNORE);
        ums::fiber{receive}.join();
        ums::fiber late{receive};
        until_waits(late);
        MPI_Send(&token, 1, MPI_CHAR, 0, 6, others);
        late.join();
    } else {
        send();
        MPI_Send(&token, 1, MPI_CHAR, 1, 5, others);
        MPI_Recv(&token, 1, MPI_CHAR, 1, 6, others, MPI_STATUS_IGNORE);
        send();
    }
}

// Rank 0 sends more than rank 1 has room for.
void a_truncated_message(MPI_Comm comm, MPI_Comm others, bool has_handler) {
    const auto send = [=] {
        const char bytes[64] = {};
        CHECK(MPI_Send(bytes, 64, MPI_CHAR, 1, 1, comm) == MPI_SUCCESS);
    };
    const auto receive = [=] {
        char bytes[8];
        told = 0;
        MPI_Status s;
        std::memset(&s, 0, sizeof s);
        const int error = MPI_Recv(bytes, 8, MPI_CHAR, 0, 1, comm, &s);
        CHECK(class_of(error) == MPI_ERR_TRUNCATE);
        CHECK(told == (has_handler ? 1 : 0));
        if (has_handler) {
            CHECK(told_class == MPI_ERR_TRUNCATE);
            CHECK(told_in == ums_this_fiber_id());
        }
    };
    early_and_late(others, send, receive);
}

// The same for requests of the program's own. MPI chooses whose handler that is: both return here.
void a_truncated_request(MPI_Comm comm, MPI_Comm others) {
    const auto send = [=] {
        const char bytes[64] = {};
        CHECK(MPI_Send(bytes, 64, MPI_CHAR, 1, 2, comm) == MPI_SUCCESS);
        CHECK(MPI_Send(bytes, 8, MPI_CHAR, 1, 3, comm) == MPI_SUCCESS);
    };
    const auto receive = [=] {
        char bytes[2][8];
        MPI_Request r[2];
        MPI_Status s[2];
        MPI_Irecv(bytes[0], 8, MPI_CHAR, 0, 2, comm, &r[0]);
        MPI_Irecv(bytes[1], 8, MPI_CHAR, 0, 3, comm, &r[1]);
        CHECK(class_of(MPI_Waitall(2, r, s)) == MPI_ERR_IN_STATUS);
        CHECK(class_of(s[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
        CHECK(s[1].MPI_ERROR == MPI_SUCCESS);
    };
    early_and_late(others, send, receive);
}

// Refused at once.
void wrong_arguments(MPI_Comm comm, bool has_handler) {
    char byte = 0;
    told = 0;
    CHECK(class_of(MPI_Send(&byte, 1, MPI_CHAR, 99, 1, comm)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Recv(&byte, 1, MPI_CHAR, 99, 1, comm, MPI_STATUS_IGNORE)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Recv(&byte, -1, MPI_CHAR, 0, 1, comm, MPI_STATUS_IGNORE)) == MPI_ERR_COUNT);
    CHECK(class_of(MPI_Probe(99, 1, comm, MPI_STATUS_IGNORE)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Bcast(&byte, 1, MPI_CHAR, 99, comm)) == MPI_ERR_ROOT);
    CHECK(told == (has_handler ? 5 : 0));
    if (has_handler) CHECK(told_in == ums_this_fiber_id());
}

void a_communicator_that_is_gone() {
    char byte = 0;
#if defined(MPICH)  // OpenMPI's handle is a pointer, and then one to nothing.
    MPI_Comm gone;
    MPI_Comm_dup(MPI_COMM_WORLD, &gone);
    const MPI_Comm copy = gone;
    MPI_Comm_free(&gone);
    CHECK(class_of(MPI_Recv(&byte, 1, MPI_CHAR, 0, 1, copy, MPI_STATUS_IGNORE)) == MPI_ERR_COMM);
#endif
    CHECK(class_of(MPI_Recv(&byte, 1, MPI_CHAR, 0, 1, MPI_COMM_NULL, MPI_STATUS_IGNORE)) ==
          MPI_ERR_COMM);
}

// Another fiber, on another communicator, that goes on all the time.
void go_on(MPI_Comm comm, const std::atomic<bool>& is_over) {
    const int other = 1 - rank_in(comm);
    bool is_last = false;
    for (long i = 0; !is_last; ++i) {
        const long mine[2] = {i, is_over ? 1 : 0};
        long theirs[2] = {-1, 0};
        CHECK(MPI_Sendrecv(mine, 2, MPI_LONG, other, 4, theirs, 2, MPI_LONG, other, 4, comm,
                           MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(theirs[0] == i);
        is_last = mine[1] != 0 && theirs[1] != 0;
    }
}

}  // namespace

int main(int argc, char** argv) {
    start_mpi(argc, argv);
    MPI_Comm returns, calls, others, tokens;
    MPI_Comm_dup(MPI_COMM_WORLD, &returns);
    MPI_Comm_dup(MPI_COMM_WORLD, &calls);
    MPI_Comm_dup(MPI_COMM_WORLD, &tokens);
    MPI_Comm_dup(MPI_COMM_WORLD, &others);  // An error there ends the program, as in the world.
    MPI_Comm_set_errhandler(returns, MPI_ERRORS_RETURN);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(calls, handler);
    MPI_Errhandler_free(&handler);

    ums::run({.processors = processors()}, [&] {
        std::atomic<bool> is_over{false};
        ums::fiber beside{[&] { go_on(others, is_over); }};
        RUN(a_truncated_message(returns, tokens, false));
        RUN(a_truncated_message(calls, tokens, true));
        RUN(wrong_arguments(returns, false));
        RUN(wrong_arguments(calls, true));
        is_over = true;
        beside.join();

        // MPI chooses the world's handler for these.
        MPI_Errhandler was;
        MPI_Comm_get_errhandler(MPI_COMM_WORLD, &was);
        CHECK(was == MPI_ERRORS_ARE_FATAL);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        RUN(a_truncated_request(returns, tokens));
        RUN(a_communicator_that_is_gone());
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, was);
        MPI_Barrier(MPI_COMM_WORLD);
    });
    MPI_Finalize();
    if (failures == 0) std::puts("passed");
    return failures != 0;
}
