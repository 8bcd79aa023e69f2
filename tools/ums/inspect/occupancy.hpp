// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/occupancy.hpp: samples many times a second which fiber each processor runs.
//
// A look reads five words of each processor by five system calls (six for a plain function), and
// stops nothing. Shares follow from many looks: they are samples, not measurements. A fiber that is
// blocked in the kernel occupies its processor until that is handed off.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "snapshot.hpp"
#include "words.hpp"

namespace tool::inspect {

class occupancy {
public:
    occupancy(const process& of, const layout& how, start_names& names)
        : of_{of}, how_{how}, names_{names} {}

    // Forgets what was seen; from now on it looks at these.
    void start(std::span<const processor_record> processors);
    void look();

    [[nodiscard]] std::uint64_t looks() const { return looks_; }
    // From 0 to 1: the share of the looks since start().
    [[nodiscard]] double busy(address processor) const;
    // Likewise, the share of one processor's time, for the fiber with this id.
    [[nodiscard]] double of_fiber(std::uint64_t id) const;
    // By the function that the fibers were made with (start_names::key()); includes fibers that
    // have ended.
    [[nodiscard]] const std::unordered_map<address, std::uint64_t>& by_start() const {
        return by_start_;
    }

private:
    const process& of_;
    const layout& how_;
    start_names& names_;
    std::vector<address> processors_;
    std::vector<address> holders_, fibers_;  // One for each processor; kept to save allocations.
    std::vector<std::uint64_t> ids_, starts_, callables_;
    std::vector<piece> pieces_;
    std::unordered_map<address, std::uint64_t> busy_, by_start_;
    std::unordered_map<std::uint64_t, std::uint64_t> by_fiber_;
    std::uint64_t looks_ = 0;
};

}  // namespace tool::inspect
