// SPDX-License-Identifier: MIT
//
// A plate of metal with hot edges, cut into more tiles than there are ranks: a fiber a tile. Each
// step a fiber sends its edges to the fibers of the four tiles around it, wherever they are, and
// computes. While a tile waits for its neighbours, the rank's other tiles compute.
//
//   mpirun -n 4 mpi-stencil-openmpi [--by-hand] [--check] [TILES [SIDE [STEPS]]]
//
// TILES x TILES tiles of SIDE x SIDE points (8, 128), STEPS steps (100). --by-hand does the same
// with one thread a rank and non-blocking calls for all tiles at once, as programs without fibers
// do. --check also computes all of it on the first rank, and compares each bit.

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <mpi.h>

#include "ums/fiber.hpp"
#include "ums/run.hpp"

namespace {

struct plate {
    int tiles = 8, side = 128, steps = 100;

    [[nodiscard]] int count() const { return tiles * tiles; }
    // Neighbouring tiles lie on the same rank where they can.
    [[nodiscard]] int rank_of(int tile, int ranks) const {
        return static_cast<int>(static_cast<long>(tile) * ranks / count());
    }
};

enum direction { up, down, left, right };
direction opposite(int d) { return static_cast<direction>(d ^ 1); }

// A square of points with a frame, which is the neighbours' edges or the plate's.
class tile {
public:
    tile(const plate& p, int index) : side_{p.side}, index_{index} {
        const int row = index / p.tiles, column = index % p.tiles;
        neighbour = {row > 0 ? index - p.tiles : -1, row < p.tiles - 1 ? index + p.tiles : -1,
                     column > 0 ? index - 1 : -1, column < p.tiles - 1 ? index + 1 : -1};
        now_.assign(static_cast<std::size_t>((side_ + 2) * (side_ + 2)), 0.0);
        if (row == 0)
            for (int i = 0; i < side_ + 2; ++i) at(0, i) = 100.0;
        if (column == 0)
            for (int i = 0; i < side_ + 2; ++i) at(i, 0) = 50.0;
        next_ = now_;
        for (auto& each : edge) each.resize(static_cast<std::size_t>(side_));
        for (auto& each : frame) each.resize(static_cast<std::size_t>(side_));
    }

    std::array<int, 4> neighbour;              // By direction; -1: none.
    std::array<std::vector<double>, 4> edge;   // To send.
    std::array<std::vector<double>, 4> frame;  // What came.

    void take_edges() {
        for (int i = 0; i < side_; ++i) {
            const auto k = static_cast<std::size_t>(i);
            edge[up][k] = at(1, i + 1);
            edge[down][k] = at(side_, i + 1);
            edge[left][k] = at(i + 1, 1);
            edge[right][k] = at(i + 1, side_);
        }
    }

    void step() {
        for (int i = 0; i < side_; ++i) {
            const auto k = static_cast<std::size_t>(i);
            if (neighbour[up] >= 0) at(0, i + 1) = frame[up][k];
            if (neighbour[down] >= 0) at(side_ + 1, i + 1) = frame[down][k];
            if (neighbour[left] >= 0) at(i + 1, 0) = frame[left][k];
            if (neighbour[right] >= 0) at(i + 1, side_ + 1) = frame[right][k];
        }
        const std::size_t row = static_cast<std::size_t>(side_) + 2;
        for (int y = 1; y <= side_; ++y)
            for (int x = 1; x <= side_; ++x) {
                const std::size_t i =
                    static_cast<std::size_t>(y) * row + static_cast<std::size_t>(x);
                next_[i] = 0.25 * (now_[i - row] + now_[i + row] + now_[i - 1] + now_[i + 1]);
            }
        for (int y = 1; y <= side_; ++y)
            std::memcpy(&at(y, 1), &next_[static_cast<std::size_t>(y) * row + 1],
                        static_cast<std::size_t>(side_) * sizeof(double));
    }

    // A number that is another one if a bit is.
    [[nodiscard]] std::uint64_t fingerprint() const {
        std::uint64_t sum = static_cast<std::uint64_t>(index_) + 1;
        for (int y = 1; y <= side_; ++y)
            for (int x = 1; x <= side_; ++x) {
                std::uint64_t bits;
                std::memcpy(&bits, &now_[static_cast<std::size_t>(y * (side_ + 2) + x)],
                            sizeof bits);
                sum = (sum ^ bits) * 0x100000001b3u;
                sum ^= sum >> 29;
            }
        return sum;
    }

private:
    double& at(int y, int x) { return now_[static_cast<std::size_t>(y * (side_ + 2) + x)]; }

    const int side_, index_;
    std::vector<double> now_, next_;
};

// The tag says to which tile, and from which side it comes.
int tag_of(int tile, int from) { return tile * 4 + from; }

// Begins to receive and to send a tile's edges.
void exchange(const plate& p, int index, tile& t, int ranks, std::vector<MPI_Request>& all) {
    t.take_edges();
    const auto edge = static_cast<std::size_t>(p.side);
    for (int d = 0; d < 4; ++d) {
        const auto k = static_cast<std::size_t>(d);
        const int other = t.neighbour[k];
        if (other < 0) continue;
        const int where = p.rank_of(other, ranks);
        all.resize(all.size() + 2);
        MPI_Irecv(t.frame[k].data(), static_cast<int>(edge), MPI_DOUBLE, where, tag_of(index, d),
                  MPI_COMM_WORLD, &all[all.size() - 2]);
        MPI_Isend(t.edge[k].data(), static_cast<int>(edge), MPI_DOUBLE, where,
                  tag_of(other, opposite(d)), MPI_COMM_WORLD, &all[all.size() - 1]);
    }
}

void wait_for(std::vector<MPI_Request>& all) {
    MPI_Waitall(static_cast<int>(all.size()), all.data(), MPI_STATUSES_IGNORE);
    all.clear();
}

using own_tiles = std::vector<std::pair<int, tile>>;

void by_fibers(const plate& p, own_tiles& own, int ranks) {
    ums::run({.processors = 1}, [&] {
        std::vector<ums::fiber> all;
        for (auto& [index, t] : own)
            all.emplace_back([&p, &t = t, index = index, ranks] {
                std::vector<MPI_Request> requests;
                for (int i = 0; i < p.steps; ++i) {
                    exchange(p, index, t, ranks, requests);
                    wait_for(requests);  // Here the other tiles run.
                    t.step();
                }
            });
        for (ums::fiber& each : all) each.join();
    });
}

void by_hand(const plate& p, own_tiles& own, int ranks) {
    std::vector<MPI_Request> requests;
    for (int i = 0; i < p.steps; ++i) {
        for (auto& [index, t] : own) exchange(p, index, t, ranks, requests);
        wait_for(requests);
        for (auto& [index, t] : own) t.step();
    }
}

// The same plate without MPI.
std::vector<std::uint64_t> serially(const plate& p) {
    std::vector<tile> all;
    for (int i = 0; i < p.count(); ++i) all.emplace_back(p, i);
    for (int i = 0; i < p.steps; ++i) {
        for (tile& t : all) t.take_edges();
        for (tile& t : all)
            for (int d = 0; d < 4; ++d)
                if (const int other = t.neighbour[static_cast<std::size_t>(d)]; other >= 0)
                    t.frame[static_cast<std::size_t>(d)] =
                        all[static_cast<std::size_t>(other)].edge[opposite(d)];
        for (tile& t : all) t.step();
    }
    std::vector<std::uint64_t> prints;
    for (const tile& t : all) prints.push_back(t.fingerprint());
    return prints;
}

}  // namespace

int main(int argc, char** argv) {
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    bool is_by_hand = false, is_checked = false;
    plate p;
    int* const numbers[] = {&p.tiles, &p.side, &p.steps};
    std::size_t given = 0;
    for (int i = 1; i < argc; ++i) {
        if (std::string_view{argv[i]} == "--by-hand")
            is_by_hand = true;
        else if (std::string_view{argv[i]} == "--check")
            is_checked = true;
        else if (given < std::size(numbers) && std::atoi(argv[i]) > 0)
            *numbers[given++] = std::atoi(argv[i]);
        else
            return std::fprintf(stderr, "what is '%s'?\n", argv[i]), 2;
    }

    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    own_tiles own;
    for (int i = 0; i < p.count(); ++i)
        if (p.rank_of(i, ranks) == rank) own.emplace_back(i, tile{p, i});

    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    is_by_hand ? by_hand(p, own, ranks) : by_fibers(p, own, ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    const double took = MPI_Wtime() - begin;

    // Each tile's fingerprint is its owner's; the others add nothing.
    std::vector<std::uint64_t> mine(static_cast<std::size_t>(p.count())), all(mine.size());
    for (const auto& [index, t] : own) mine[static_cast<std::size_t>(index)] = t.fingerprint();
    MPI_Reduce(mine.data(), all.data(), p.count(), MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
    bool is_right = true;
    if (rank == 0) {
        if (is_checked) is_right = all == serially(p);
        std::printf("%s, %d ranks, %d tiles of %d x %d points: %.1f us a step%s\n",
                    is_by_hand ? "by hand" : "a fiber a tile", ranks, p.count(), p.side, p.side,
                    took / p.steps * 1e6,
                    !is_checked ? ""
                    : is_right  ? ", each bit as without MPI"
                                : ", NOT as without MPI");
    }
    MPI_Finalize();
    return is_right ? 0 : 1;
}
