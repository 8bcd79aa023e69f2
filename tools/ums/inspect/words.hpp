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

// A function that fibers were made with.
struct start {
    std::string name;   // Empty: not known.
    std::string place;  // Of a lambda, "path:line"; empty: it is none, or nothing tells.
    std::string shown;  // For lists: a lambda's file and line, otherwise the name.
    // What an expression for start functions may match.
    [[nodiscard]] std::string words() const { return place.empty() ? name : name + " " + place; }
};

// The functions that fibers were made with. Each is looked up once.
class start_names {
public:
    start_names(symbols& from, const memory& of) : from_{from}, of_{of} {}

    // An address that stands for the function: a plain one's own, otherwise that of the code that
    // calls it. Reads memory, so ask while the fiber lives.
    [[nodiscard]] address key(address run, address callable);
    [[nodiscard]] address key(const fiber_record& f) { return key(f.run, f.callable); }
    // By key. Valid until the next call.
    [[nodiscard]] const start& of(address key);
    [[nodiscard]] const start& of(const fiber_record& f) { return of(key(f)); }

private:
    struct known_start : start {
        bool is_pointer = false;  // The name is a type; memory tells which function it is.
    };
    const known_start& known(address key);

    symbols& from_;
    const memory& of_;
    std::map<address, known_start> known_;
    std::map<address, std::string> functions_;  // That begin at an address; empty: none does.
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
// "21 parked, 1 blocked": the most frequent one first. Without numbers: "parked, blocked".
[[nodiscard]] std::string in_words(const name_counts& all, bool with_numbers = true);

}  // namespace tool::inspect
