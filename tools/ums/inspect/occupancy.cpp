// SPDX-License-Identifier: MIT
#include "occupancy.hpp"

#include <cassert>

namespace tool::inspect {

void occupancy::start(std::span<const processor_record> processors) {
    processors_.clear();
    for (const processor_record& p : processors)
        if (!p.is_retired) processors_.push_back(p.at);
    busy_.clear();
    by_start_.clear();
    by_fiber_.clear();
    looks_ = 0;
}

void occupancy::look() {
    const std::size_t n = processors_.size();
    ++looks_;
    // Reads one word of each processor, at the address that `at` returns; 0: none.
    const auto read_all = [&](std::vector<std::uint64_t>& into, auto at) {
        into.assign(n, 0);
        pieces_.clear();
        for (std::size_t i = 0; i < n; ++i)
            if (const address a = at(i); a != 0)
                pieces_.push_back({a, &into[i], sizeof(std::uint64_t), false});
        of_.read(pieces_);
    };
    const auto field = [](const std::vector<address>& of, std::size_t i, std::size_t offset) {
        return of[i] != 0 ? of[i] + offset : 0;
    };
    const std::size_t holder = how_.value("processor.holder"),
                      running = how_.value("carrier.running"), id = how_.value("fiber.id"),
                      run = how_.value("fiber.run"), callable = how_.value("fiber.callable");
    read_all(holders_, [&](std::size_t i) { return processors_[i] + holder; });
    read_all(fibers_, [&](std::size_t i) { return field(holders_, i, running); });
    read_all(ids_, [&](std::size_t i) { return field(fibers_, i, id); });
    read_all(starts_, [&](std::size_t i) { return field(fibers_, i, run); });
    read_all(callables_, [&](std::size_t i) { return field(fibers_, i, callable); });
    for (std::size_t i = 0; i < n; ++i) {
        if (fibers_[i] == 0) continue;
        ++busy_[processors_[i]];
        if (ids_[i] == 0) continue;  // The fiber has just ended.
        ++by_fiber_[ids_[i]];
        ++by_start_[names_.key(starts_[i], callables_[i])];
    }
}

double occupancy::busy(address processor) const {
    assert(looks_ != 0 && "a share of no look was asked for");
    const auto found = busy_.find(processor);
    return found == busy_.end() ? 0
                                : static_cast<double>(found->second) / static_cast<double>(looks_);
}

double occupancy::of_fiber(std::uint64_t id) const {
    assert(looks_ != 0 && "a share of no look was asked for");
    const auto found = by_fiber_.find(id);
    return found == by_fiber_.end()
               ? 0
               : static_cast<double>(found->second) / static_cast<double>(looks_);
}

}  // namespace tool::inspect
