// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/words.hpp: what lists and pages of fibers have in common.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "snapshot.hpp"
#include "symbols.hpp"

namespace tool::inspect {

// The names of the functions that fibers were made with. Each is looked up once.
class start_names {
public:
    explicit start_names(symbols& from) : from_{from} {}
    // Empty: not known.
    [[nodiscard]] const std::string& of(address run);

private:
    symbols& from_;
    std::map<address, std::string> known_;
};

[[nodiscard]] const char* cluster_of(const snapshot& s, const fiber_record& f);
// The number of its processor in the cluster, or "-".
[[nodiscard]] std::string processor_of(const snapshot& s, const fiber_record& f);

// The beginning of a function's name: as much as fits on one line.
[[nodiscard]] std::string shortened(std::string name, std::size_t most = 60);
// "9120", "64K", "17M"; "-" for none.
[[nodiscard]] std::string bytes_in_words(std::uint64_t n);

using name_counts = std::map<std::string, std::size_t>;
[[nodiscard]] name_counts by_state(const snapshot& s);
[[nodiscard]] name_counts by_wait(const snapshot& s);
// "21 parked, 1 blocked": the most frequent one first.
[[nodiscard]] std::string in_words(const name_counts& all);

}  // namespace tool::inspect
