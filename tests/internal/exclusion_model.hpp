// SPDX-License-Identifier: MIT
#pragma once

// internal/exclusion_model.hpp: for tests: what a lock guards in an execution of
// internal/tso_model.hpp, and whether the lock did guard it.

#include <string>

#include "internal/tso_model.hpp"

namespace ums::tso {

// A number that only the lock protects. Made inside model::explore().
struct guarded_number {
    modelled_base::atomic<int> number;
    // For the proof: how many strands are inside, and how many have been.
    model::cell inside = model::running().make(0);
    model::cell sections = model::running().make(0);

    // Requires: the lock.
    void section() {
        model& m = model::running();
        if (++m.at(inside) != 1) m.fail("two are inside");
        m.step("inside");
        number.store(number.load(base::relaxed) + 1, base::relaxed);
        --m.at(inside);
        ++m.at(sections);
    }

    // Call when all strands are at rest: returns what went wrong, or nothing.
    [[nodiscard]] std::string verdict(model& m) const {
        return m.at(number.cell()) == m.at(sections) ? "" : "an addition was lost";
    }
};

// Whether an error is about exclusion.
inline bool is_exclusion_broken(const std::string& error) {
    return error.starts_with("two are inside") || error.starts_with("an addition was lost");
}

}  // namespace ums::tso
