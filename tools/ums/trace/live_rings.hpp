// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/trace/live_rings.hpp: the rings of a process that runs.
//
// Switched on and off by one word, written by process_vm_writev(2); read by process_vm_readv(2)
// while they are written. Both need the kernel's permission to trace the process, and nothing else;
// nothing is stopped.

#include <map>

#include "../inspect/layout.hpp"
#include "../inspect/process.hpp"
#include "record.hpp"

namespace tool::tracing {

class live_rings {
public:
    // Throws std::runtime_error with one line: this libums cannot be traced.
    live_rings(const inspect::process& of, const inspect::layout& how);

    [[nodiscard]] bool is_on() const;
    // `ring_bytes`: of rings that are made from now on; 0: as it is. Throws std::runtime_error.
    void switch_on(std::uint32_t ring_bytes) const;
    void switch_off() const;

    // From now on: what is in the rings already is not wanted.
    void skip();
    // Adds what has come since the last call.
    void collect(recording& into);

private:
    struct place {
        std::size_t index = 0;
        std::uint64_t read = 0;  // So many of its records.
    };
    void collect_ring(inspect::address at, recording* into);
    void walk(recording* into);
    template <class T>
    void put(std::size_t offset, T value) const;

    const inspect::process& of_;
    inspect::address control_;
    std::map<inspect::address, place> known_;
};

}  // namespace tool::tracing
