// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/selection.hpp: which fibers the user asked for, and in which order.

#include <functional>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "snapshot.hpp"

namespace tool::inspect {

class selection {
public:
    // Lists with commas; empty: all. Throws usage_error for an unknown word.
    selection(const std::string& states, const std::string& waits, const std::string& cluster,
              const std::string& match);

    // Calls `start` only if it is needed.
    [[nodiscard]] bool has(const fiber_record& f, const std::string& cluster,
                           const std::function<std::string()>& start) const;

private:
    std::set<std::string> states_, waits_;
    std::string cluster_;
    std::optional<std::regex> match_;
};

// `key`: id, name, state, stack (deepest first), since, cpu, deadline or start. Throws
// usage_error.
void sort_fibers(const std::string& key, const snapshot& s, std::vector<std::uint32_t>& chosen,
                 const std::function<std::string(const fiber_record&)>& start);

}  // namespace tool::inspect
