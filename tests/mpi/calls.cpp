// SPDX-License-Identifier: MIT
//
// Every call that the library takes gives what MPI's own call gives: in four fibers at the same
// time, each on a communicator of its own, and on a plain thread. Any number of ranks.

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "check.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"

namespace {

// What a case has seen. Two runs of it are equal if these are.
using seen = std::vector<long>;

// Where a case runs: on which communicator, and by MPI's own calls or by the library's.
struct place {
    MPI_Comm comm;
    bool plain;
    int rank = rank_in(comm), size = size_of(comm);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
};

#define CALL(name) (at.plain ? PMPI_##name : MPI_##name)

void note(seen& to, const MPI_Status& s, MPI_Datatype type = MPI_LONG) {
    int count = -1;
    MPI_Get_count(&s, type, &count);
    to.insert(to.end(), {s.MPI_SOURCE, s.MPI_TAG, count, s.MPI_ERROR});
}

MPI_Status marked() {
    MPI_Status s;
    std::memset(&s, 0, sizeof s);
    s.MPI_ERROR = 77;  // A call for one request does not touch it.
    return s;
}

std::vector<long> numbers(const place& at, std::size_t n) {
    std::vector<long> v(n);
    std::iota(v.begin(), v.end(), 1000L * at.rank);
    return v;
}

// Even ranks send first, odd ones receive first; the last of an odd number sends as well, which is
// no cycle because the first one then receives from it.
template <class Send>
seen ring(const place& at, std::size_t n, Send send) {
    seen out;
    std::vector<long> from(n, -1);
    const std::vector<long> to = numbers(at, n);
    MPI_Status status = marked();
    const auto receive = [&] {
        out.push_back(CALL(Recv)(from.data(), static_cast<int>(n), MPI_LONG, at.previous, 5,
                                 at.comm, &status));
    };
    if (at.rank % 2 == 1) receive();
    out.push_back(send(to));
    if (at.rank % 2 == 0) receive();
    note(out, status);
    out.insert(out.end(), from.begin(), from.end());
    return out;
}

#define SEND_CASE(name)                                                                           \
    seen name##_(const place& at) {                                                               \
        seen all;                                                                                 \
        for (const std::size_t n : {0, 1, 100, 40'000}) {                                         \
            const seen one = ring(at, n, [&](const std::vector<long>& to) {                       \
                return CALL(name)(to.data(), static_cast<int>(n), MPI_LONG, at.next, 5, at.comm); \
            });                                                                                   \
            all.insert(all.end(), one.begin(), one.end());                                        \
        }                                                                                         \
        return all;                                                                               \
    }
SEND_CASE(Send)
SEND_CASE(Ssend)

// The buffer is the process's, so it stays attached, and small messages only go by it.
seen Bsend_(const place& at) {
    return ring(at, 10, [&](const std::vector<long>& to) {
        return CALL(Bsend)(to.data(), 10, MPI_LONG, at.next, 5, at.comm);
    });
}

seen Rsend_(const place& at) {
    seen out;
    std::vector<long> from(10, -1), to = numbers(at, 10);
    MPI_Request r;
    MPI_Irecv(from.data(), 10, MPI_LONG, at.previous, 6, at.comm, &r);
    CALL(Barrier)(at.comm);  // The receives are there.
    out.push_back(CALL(Rsend)(to.data(), 10, MPI_LONG, at.next, 6, at.comm));
    out.push_back(CALL(Wait)(&r, MPI_STATUS_IGNORE));
    out.insert(out.end(), from.begin(), from.end());
    return out;
}

seen Sendrecv_(const place& at) {
    seen out;
    std::vector<long> from(20'000, -1), to = numbers(at, 20'000);
    MPI_Status s = marked();
    out.push_back(CALL(Sendrecv)(to.data(), 20'000, MPI_LONG, at.next, 7, from.data(), 20'000,
                                 MPI_LONG, at.previous, 7, at.comm, &s));
    note(out, s);
    out.insert(out.end(), from.begin(), from.end());
    // With nobody.
    out.push_back(CALL(Sendrecv)(to.data(), 1, MPI_LONG, MPI_PROC_NULL, 7, from.data(), 1, MPI_LONG,
                                 MPI_PROC_NULL, 7, at.comm, MPI_STATUS_IGNORE));
    return out;
}

seen Sendrecv_replace_(const place& at) {
    seen out;
    std::vector<long> both = numbers(at, 5000);
    MPI_Datatype every_second;
    MPI_Type_vector(2500, 1, 2, MPI_LONG, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Status s = marked();
    out.push_back(CALL(Sendrecv_replace)(both.data(), 1, every_second, at.next, 8, at.previous, 8,
                                         at.comm, &s));
    MPI_Type_free(&every_second);
    out.insert(out.end(), both.begin(), both.end());
    out.push_back(s.MPI_SOURCE);
    return out;
}

seen Probe_(const place& at) {
    seen out;
    MPI_Request r;
    const std::vector<long> to = numbers(at, static_cast<std::size_t>(3 + at.rank));
    MPI_Isend(to.data(), 3 + at.rank, MPI_LONG, at.next, 9, at.comm, &r);
    MPI_Status s = marked();
    out.push_back(CALL(Probe)(MPI_ANY_SOURCE, 9, at.comm, &s));
    note(out, s);
    int n = 0;
    MPI_Get_count(&s, MPI_LONG, &n);
    std::vector<long> from(static_cast<std::size_t>(n));
    out.push_back(CALL(Recv)(from.data(), n, MPI_LONG, s.MPI_SOURCE, 9, at.comm, &s));
    out.insert(out.end(), from.begin(), from.end());
    out.push_back(CALL(Wait)(&r, MPI_STATUS_IGNORE));
    return out;
}

seen Mprobe_(const place& at) {
    seen out;
    MPI_Request r;
    const std::vector<long> to = numbers(at, static_cast<std::size_t>(3 + at.rank));
    MPI_Isend(to.data(), 3 + at.rank, MPI_LONG, at.next, 10, at.comm, &r);
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status s = marked();
    out.push_back(CALL(Mprobe)(at.previous, MPI_ANY_TAG, at.comm, &message, &s));
    note(out, s);
    int n = 0;
    MPI_Get_count(&s, MPI_LONG, &n);
    std::vector<long> from(static_cast<std::size_t>(n));
    s = marked();
    out.push_back(CALL(Mrecv)(from.data(), n, MPI_LONG, &message, &s));
    note(out, s);
    out.push_back(message == MPI_MESSAGE_NULL);
    out.insert(out.end(), from.begin(), from.end());
    out.push_back(CALL(Wait)(&r, MPI_STATUS_IGNORE));
    return out;
}

// A null request, an inactive one, and four active ones, persistent and not.
struct requests {
    explicit requests(const place& at) : from(6, -1), to{numbers(at, 6)} {
        MPI_Recv_init(&from[1], 1, MPI_LONG, at.previous, 20, at.comm, &all[1]);
        MPI_Recv_init(&from[2], 1, MPI_LONG, at.previous, 21, at.comm, &all[2]);
        MPI_Start(&all[2]);
        for (int i = 3; i < 5; ++i)
            MPI_Irecv(&from[static_cast<std::size_t>(i)], 1, MPI_LONG, at.previous, 19 + i, at.comm,
                      &all[i]);
        MPI_Irecv(&from[5], 1, MPI_LONG, MPI_PROC_NULL, 24, at.comm, &all[5]);
        for (int i = 2; i < 5; ++i)
            MPI_Isend(&to[static_cast<std::size_t>(i)], 1, MPI_LONG, at.next, 19 + i, at.comm,
                      &sends[i - 2]);
    }
    ~requests() {
        MPI_Request_free(&all[1]);
        MPI_Request_free(&all[2]);
    }
    requests(const requests&) = delete;
    requests& operator=(const requests&) = delete;

    void finish(const place& at, seen& out) {
        out.push_back(CALL(Waitall)(3, sends, MPI_STATUSES_IGNORE));
        out.insert(out.end(), from.begin(), from.end());
        for (const MPI_Request r : all) out.push_back(r == MPI_REQUEST_NULL);
    }

    std::vector<long> from, to;
    MPI_Request all[6] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                          MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Request sends[3];
};

seen Waitall_(const place& at) {
    seen out;
    requests r{at};
    MPI_Status s[6];
    for (MPI_Status& each : s) each = marked();
    out.push_back(CALL(Waitall)(6, r.all, s));
    for (int i = 2; i < 5; ++i) out.insert(out.end(), {s[i].MPI_SOURCE, s[i].MPI_TAG});
    r.finish(at, out);
    out.push_back(CALL(Waitall)(0, nullptr, MPI_STATUSES_IGNORE));
    return out;
}

seen Wait_(const place& at) {
    seen out;
    requests r{at};
    for (MPI_Request& each : r.all) {
        MPI_Status s = marked();
        out.push_back(CALL(Wait)(&each, &s));
    }
    r.finish(at, out);
    return out;
}

seen Waitany_(const place& at) {
    seen out;
    requests r{at};
    std::vector<long> order;
    for (int i = 0; i < 4; ++i) {
        int index = -1;
        MPI_Status s = marked();
        out.push_back(CALL(Waitany)(6, r.all, &index, &s));
        order.push_back(index);
    }
    std::sort(order.begin(), order.end());  // The order is the messages'.
    out.insert(out.end(), order.begin(), order.end());
    int index = -1;
    out.push_back(CALL(Waitany)(6, r.all, &index, MPI_STATUS_IGNORE));
    out.push_back(index == MPI_UNDEFINED);
    r.finish(at, out);
    return out;
}

seen Waitsome_(const place& at) {
    seen out;
    requests r{at};
    std::vector<long> order;
    while (order.size() < 4) {
        int n = -1, index[6];
        MPI_Status s[6];
        out.push_back(0);
        out.back() = CALL(Waitsome)(6, r.all, &n, index, s);
        for (int i = 0; i < n; ++i) order.push_back(index[i]);
        out.pop_back();  // How many calls it takes is the messages' choice.
    }
    std::sort(order.begin(), order.end());
    out.insert(out.end(), order.begin(), order.end());
    int n = -1, index[6];
    out.push_back(CALL(Waitsome)(6, r.all, &n, index, MPI_STATUSES_IGNORE));
    out.push_back(n == MPI_UNDEFINED);
    r.finish(at, out);
    return out;
}

// --- Collectives: each has its own counts where it takes any ---

seen Barrier_(const place& at) { return {CALL(Barrier)(at.comm)}; }

seen Bcast_(const place& at) {
    seen out(1001, at.rank == 0 ? 5 : -1);
    out[0] = CALL(Bcast)(&out[1], 1000, MPI_LONG, 0, at.comm);
    return out;
}

struct counts {
    explicit counts(int n) : of(static_cast<std::size_t>(n)), at(static_cast<std::size_t>(n)) {
        for (int i = 0; i < n; ++i) {
            of[static_cast<std::size_t>(i)] = i + 1;
            at[static_cast<std::size_t>(i)] = i * (i + 1) / 2;
        }
    }
    [[nodiscard]] std::size_t sum() const {
        return static_cast<std::size_t>(at.back() + of.back());
    }
    std::vector<int> of, at;
};

seen Gather_(const place& at) {
    seen out(static_cast<std::size_t>(at.size) * 10 + 1, -1);
    const auto v = numbers(at, 10);
    out[0] = CALL(Gather)(v.data(), 10, MPI_LONG, &out[1], 10, MPI_LONG, 0, at.comm);
    return out;
}
seen Gatherv_(const place& at) {
    const counts c{at.size};
    seen out(c.sum() + 1, -1);
    const auto v = numbers(at, 100);
    out[0] = CALL(Gatherv)(v.data(), at.rank + 1, MPI_LONG, &out[1], c.of.data(), c.at.data(),
                           MPI_LONG, 0, at.comm);
    return out;
}
seen Scatter_(const place& at) {
    seen out(11, -1);
    const auto v = numbers(at, static_cast<std::size_t>(at.size) * 10);
    out[0] = CALL(Scatter)(v.data(), 10, MPI_LONG, &out[1], 10, MPI_LONG, 0, at.comm);
    return out;
}
seen Scatterv_(const place& at) {
    const counts c{at.size};
    seen out(static_cast<std::size_t>(at.size) + 2, -1);
    const auto v = numbers(at, c.sum());
    out[0] = CALL(Scatterv)(v.data(), c.of.data(), c.at.data(), MPI_LONG, &out[1], at.rank + 1,
                            MPI_LONG, 0, at.comm);
    return out;
}
seen Allgather_(const place& at) {
    seen out(static_cast<std::size_t>(at.size) * 10 + 1, -1);
    const auto v = numbers(at, 10);
    out[0] = CALL(Allgather)(v.data(), 10, MPI_LONG, &out[1], 10, MPI_LONG, at.comm);
    return out;
}
seen Allgatherv_(const place& at) {
    const counts c{at.size};
    seen out(c.sum() + 1, -1);
    const auto v = numbers(at, 100);
    out[0] = CALL(Allgatherv)(v.data(), at.rank + 1, MPI_LONG, &out[1], c.of.data(), c.at.data(),
                              MPI_LONG, at.comm);
    return out;
}
seen Alltoall_(const place& at) {
    const auto v = numbers(at, static_cast<std::size_t>(at.size) * 10);
    seen out(v.size() + 1, -1);
    out[0] = CALL(Alltoall)(v.data(), 10, MPI_LONG, &out[1], 10, MPI_LONG, at.comm);
    return out;
}
// To rank i go i + 1 numbers, and from each come as many as this rank's turn.
seen Alltoallv_(const place& at) {
    const counts c{at.size};
    const auto n = static_cast<std::size_t>(at.size);
    std::vector<int> of(n, at.rank + 1), where(n);
    for (std::size_t i = 0; i < n; ++i) where[i] = static_cast<int>(i) * (at.rank + 1);
    const auto v = numbers(at, c.sum());
    seen out(n * static_cast<std::size_t>(at.rank + 1) + 1, -1);
    out[0] = CALL(Alltoallv)(v.data(), c.of.data(), c.at.data(), MPI_LONG, &out[1], of.data(),
                             where.data(), MPI_LONG, at.comm);
    return out;
}
seen Alltoallw_(const place& at) {
    const auto n = static_cast<std::size_t>(at.size);
    std::vector<int> of(n, 2), where(n);
    for (std::size_t i = 0; i < n; ++i) where[i] = static_cast<int>(i * 2 * sizeof(long));
    const std::vector<MPI_Datatype> types(n, MPI_LONG);
    const auto v = numbers(at, n * 2);
    seen out(n * 2 + 1, -1);
    out[0] = CALL(Alltoallw)(v.data(), of.data(), where.data(), types.data(), &out[1], of.data(),
                             where.data(), types.data(), at.comm);
    return out;
}
seen Reduce_(const place& at) {
    seen out(101, -1);
    const auto v = numbers(at, 100);
    out[0] = CALL(Reduce)(v.data(), &out[1], 100, MPI_LONG, MPI_SUM, 0, at.comm);
    return out;
}
seen Allreduce_(const place& at) {
    seen out(101, at.rank);
    out[0] = CALL(Allreduce)(MPI_IN_PLACE, &out[1], 100, MPI_LONG, MPI_MAX, at.comm);
    return out;
}
seen Reduce_scatter_(const place& at) {
    const counts c{at.size};
    const auto v = numbers(at, c.sum());
    seen out(static_cast<std::size_t>(at.rank) + 2, -1);
    out[0] = CALL(Reduce_scatter)(v.data(), &out[1], c.of.data(), MPI_LONG, MPI_SUM, at.comm);
    return out;
}
seen Reduce_scatter_block_(const place& at) {
    const auto v = numbers(at, static_cast<std::size_t>(at.size) * 3);
    seen out(4, -1);
    out[0] = CALL(Reduce_scatter_block)(v.data(), &out[1], 3, MPI_LONG, MPI_SUM, at.comm);
    return out;
}
seen Scan_(const place& at) {
    seen out(11, -1);
    const auto v = numbers(at, 10);
    out[0] = CALL(Scan)(v.data(), &out[1], 10, MPI_LONG, MPI_SUM, at.comm);
    return out;
}
seen Exscan_(const place& at) {
    seen out(11, -1);
    const auto v = numbers(at, 10);
    out[0] = CALL(Exscan)(v.data(), &out[1], 10, MPI_LONG, MPI_SUM, at.comm);
    if (at.rank == 0) out.resize(1);  // Undefined there.
    return out;
}

// On a ring: each rank has two neighbours.
struct on_a_ring {
    explicit on_a_ring(const place& at) {
        int sizes[] = {at.size}, wraps[] = {1};
        CALL(Cart_create)(at.comm, 1, sizes, wraps, 0, &comm);
    }
    ~on_a_ring() { MPI_Comm_free(&comm); }
    on_a_ring(const on_a_ring&) = delete;
    on_a_ring& operator=(const on_a_ring&) = delete;

    MPI_Comm comm;
    int of[2] = {2, 2}, where[2] = {0, 2};
    MPI_Aint bytes[2] = {0, 2 * sizeof(long)};
    MPI_Datatype types[2] = {MPI_LONG, MPI_LONG};
    seen out = seen(5, -1);
};
seen Neighbor_allgather_(const place& at) {
    on_a_ring r{at};
    const auto v = numbers(at, 2);
    r.out[0] = CALL(Neighbor_allgather)(v.data(), 2, MPI_LONG, &r.out[1], 2, MPI_LONG, r.comm);
    return r.out;
}
seen Neighbor_allgatherv_(const place& at) {
    on_a_ring r{at};
    const auto v = numbers(at, 2);
    r.out[0] = CALL(Neighbor_allgatherv)(v.data(), 2, MPI_LONG, &r.out[1], r.of, r.where, MPI_LONG,
                                         r.comm);
    return r.out;
}
seen Neighbor_alltoall_(const place& at) {
    on_a_ring r{at};
    const auto v = numbers(at, 4);
    r.out[0] = CALL(Neighbor_alltoall)(v.data(), 2, MPI_LONG, &r.out[1], 2, MPI_LONG, r.comm);
    return r.out;
}
seen Neighbor_alltoallv_(const place& at) {
    on_a_ring r{at};
    const auto v = numbers(at, 4);
    r.out[0] = CALL(Neighbor_alltoallv)(v.data(), r.of, r.where, MPI_LONG, &r.out[1], r.of, r.where,
                                        MPI_LONG, r.comm);
    return r.out;
}
seen Neighbor_alltoallw_(const place& at) {
    on_a_ring r{at};
    const auto v = numbers(at, 4);
    r.out[0] = CALL(Neighbor_alltoallw)(v.data(), r.of, r.bytes, r.types, &r.out[1], r.of, r.bytes,
                                        r.types, r.comm);
    return r.out;
}

// What a new communicator is good for, and how it compares with the one it came of.
void use(const place& at, MPI_Comm made, seen& out) {
    int compared = -1;
    MPI_Comm_compare(at.comm, made, &compared);
    long sum = -1;
    const long one = at.rank;
    CALL(Allreduce)(&one, &sum, 1, MPI_LONG, MPI_SUM, made);
    out.insert(out.end(), {compared, sum, rank_in(made), size_of(made)});
    out.push_back(CALL(Comm_free)(&made));
}
seen Comm_dup_(const place& at) {
    MPI_Comm made;
    seen out{CALL(Comm_dup)(at.comm, &made)};
    use(at, made, out);
    return out;
}
seen Comm_split_(const place& at) {
    MPI_Comm made;
    seen out{CALL(Comm_split)(at.comm, at.rank % 2, -at.rank, &made)};
    use(at, made, out);
    return out;
}

// --- Windows and files: calls without a twin ---

// A window is a resource of the process, and some MPIs make few: one fiber at a time does this.
seen Win_(const place& at) {
    seen out;
    std::vector<long> memory(2, -1);
    MPI_Win win;
    out.push_back(CALL(Win_create)(memory.data(), 2 * sizeof(long), sizeof(long), MPI_INFO_NULL,
                                   at.comm, &win));
    out.push_back(CALL(Win_fence)(0, win));
    const long mine = at.rank;
    MPI_Put(&mine, 1, MPI_LONG, at.next, 0, 1, MPI_LONG, win);
    out.push_back(CALL(Win_fence)(0, win));
    out.push_back(memory[0]);
    CALL(Barrier)(at.comm);
    out.push_back(CALL(Win_lock)(MPI_LOCK_SHARED, at.previous, 0, win));
    long got = -1;
    MPI_Get(&got, 1, MPI_LONG, at.previous, 0, 1, MPI_LONG, win);
    out.push_back(CALL(Win_flush)(at.previous, win));
    out.push_back(got);
    out.push_back(CALL(Win_unlock)(at.previous, win));
    out.push_back(CALL(Win_free)(&win));
    return out;
}

struct one_case {
    const char* name;
    seen (*run)(const place&);
    enum { anywhere, without_twin, alone } where = anywhere;
};
const one_case cases[] = {
#define CASE(name) \
    { #name, name##_ }
// They also call what has no twin, such as MPI_Comm_free(): at SERIALIZED while nothing else is
// called.
#define TWINLESS_CASE(name) \
    { #name, name##_, one_case::without_twin }
    CASE(Send),
    CASE(Ssend),
    CASE(Bsend),
    CASE(Rsend),
    CASE(Sendrecv),
    CASE(Sendrecv_replace),
    CASE(Probe),
    CASE(Mprobe),
    CASE(Wait),
    CASE(Waitall),
    CASE(Waitany),
    CASE(Waitsome),
    CASE(Barrier),
    CASE(Bcast),
    CASE(Gather),
    CASE(Gatherv),
    CASE(Scatter),
    CASE(Scatterv),
    CASE(Allgather),
    CASE(Allgatherv),
    CASE(Alltoall),
    CASE(Alltoallv),
    CASE(Alltoallw),
    CASE(Reduce),
    CASE(Allreduce),
    CASE(Reduce_scatter),
    CASE(Reduce_scatter_block),
    CASE(Scan),
    CASE(Exscan),
    TWINLESS_CASE(Neighbor_allgather),
    TWINLESS_CASE(Neighbor_allgatherv),
    TWINLESS_CASE(Neighbor_alltoall),
    TWINLESS_CASE(Neighbor_alltoallv),
    TWINLESS_CASE(Neighbor_alltoallw),
    TWINLESS_CASE(Comm_dup),
    TWINLESS_CASE(Comm_split),
    {"Win", Win_, one_case::alone},
};

void compare(const place& at, const std::vector<seen>& expected, int most, const char* where) {
    for (std::size_t i = 0; i < std::size(cases); ++i) {
        if (cases[i].where > most) continue;
        const seen got = cases[i].run(at);
        if (got == expected[i]) continue;
        const auto first =
            std::mismatch(got.begin(), got.end(), expected[i].begin(), expected[i].end());
        std::fprintf(stderr, "rank %d, %s: %s differs at %td of %zu\n", at.rank, where,
                     cases[i].name, first.first - got.begin(), expected[i].size());
        ++failures;
    }
}

}  // namespace

int main(int argc, char** argv) {
    start_mpi(argc, argv);
    int level = 0;
    MPI_Query_thread(&level);
    std::vector<char> buffer(1 << 20);
    MPI_Buffer_attach(buffer.data(), static_cast<int>(buffer.size()));

    MPI_Comm own[4];
    for (MPI_Comm& each : own) MPI_Comm_dup(MPI_COMM_WORLD, &each);
    std::vector<seen> expected;
    for (const one_case& each : cases) expected.push_back(each.run({own[0], true}));
    compare({own[0], false}, expected, one_case::alone, "a plain thread");
    ums::run({.processors = processors()}, [&] {
        compare({own[0], false}, expected, one_case::alone, "a fiber alone");
        const int most = level == MPI_THREAD_MULTIPLE ? one_case::without_twin : one_case::anywhere;
        std::vector<ums::fiber> all;
        for (const MPI_Comm comm : own)
            all.emplace_back([&, comm] {
                compare({comm, false}, expected, most, "one of four fibers");
            });
        for (ums::fiber& each : all) each.join();
    });
    compare({own[0], false}, expected, one_case::alone, "a plain thread, later");

    void* detached = nullptr;
    int bytes = 0;
    MPI_Buffer_detach(static_cast<void*>(&detached), &bytes);
    CHECK(detached == buffer.data() && bytes == static_cast<int>(buffer.size()));
    for (MPI_Comm& each : own) MPI_Comm_free(&each);
    MPI_Finalize();
    if (failures == 0) std::puts("passed");
    return failures != 0;
}
