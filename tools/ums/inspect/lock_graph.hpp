// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/lock_graph.hpp: which fibers wait for each other's mutexes or ends, and which
// do so in a circle.

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot.hpp"

namespace tool::inspect {

class lock_graph {
public:
    explicit lock_graph(const snapshot& s);

    // Fibers (below the number of fibers) and plain threads (above it) that wait for each other.
    [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& circles() const {
        return circles_;
    }

    // Circles first, then each lock with its holder and its waiters, most waiters first.
    [[nodiscard]] std::string in_words() const;
    // The same as JSON.
    [[nodiscard]] std::string json() const;

private:
    struct lock {
        std::uint32_t holder;  // A node, or nobody: readers, a thread that does not wait, or none.
        std::uint64_t object;
        std::vector<std::uint32_t> waiting;  // Fibers, at least one.
    };
    // The lock with most waiters first.
    [[nodiscard]] std::vector<lock> locks() const;
    [[nodiscard]] std::string name(std::uint32_t node) const;
    [[nodiscard]] std::string waits(std::uint32_t node) const;
    void find_circles();

    const snapshot& of_;
    // What each node waits for; nobody: it does not wait for a node.
    std::vector<std::uint32_t> next_;
    std::vector<std::vector<std::uint32_t>> circles_;
};

}  // namespace tool::inspect
