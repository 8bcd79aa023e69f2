// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/trace/live_rings.hpp: the rings of a running process.
//
// They are switched on and off by one word, written by process_vm_writev(2), and read by
// process_vm_readv(2) while the process writes them. Both need the kernel's permission to trace the
// process, and nothing else; nothing is stopped.

#include <map>
#include <optional>

#include "../inspect/layout.hpp"
#include "../inspect/process.hpp"
#include "record.hpp"

namespace tool::tracing {

class live_rings {
public:
    // Throws std::runtime_error with one line if this libums cannot be traced.
    live_rings(const inspect::process& of, const inspect::layout& how);

    [[nodiscard]] bool is_on() const;
    // `ring_bytes` applies to rings that are made from now on; 0 leaves it unchanged. Throws
    // std::runtime_error.
    void switch_on(std::uint32_t ring_bytes) const;
    void switch_off() const;

    // Begins now: skips what is already in the rings.
    void skip();
    // Adds what has come since the last call. Returns false if the recording is as large as this
    // machine allows: an eighth of its memory.
    bool collect(recording& into);

private:
    struct place {
        std::size_t index = 0;
        std::uint64_t read = 0;  // How many of its records have been read.
    };
    void collect_ring(inspect::address at, recording* into);
    void walk(recording* into);
    template <class T>
    void put(std::size_t offset, T value) const;

    const inspect::process& of_;
    inspect::address control_;
    std::map<inspect::address, place> known_;
    std::uint64_t records_left_;
};

// What the rings hold. Nothing if the process does not record, or is a core file: that has no
// second pair of clocks, so nothing says how long the unit of a time stamp is.
[[nodiscard]] std::optional<recording> recorded_by(const inspect::process& of,
                                                   const inspect::layout& how);

}  // namespace tool::tracing
