// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/layout.hpp: the constant by which libums describes itself
// (src/runtime/root.hpp), as found in a process.

#include <string>
#include <string_view>
#include <unordered_map>

#include "process.hpp"

namespace tool::inspect {

class layout {
public:
    // Throws std::runtime_error with one line if there is no libums inside, or one with another
    // layout.
    explicit layout(const process& of);

    // Throws std::runtime_error if this libums does not have it.
    [[nodiscard]] std::size_t value(std::string_view name) const;
    [[nodiscard]] address place(std::string_view name) const;
    [[nodiscard]] bool has(std::string_view name) const {
        return values_.contains(std::string{name});
    }
    // The version of the library.
    [[nodiscard]] const std::string& library() const { return library_; }

private:
    [[nodiscard]] bool read_from(const process& of, address at, const char* magic);

    std::unordered_map<std::string, std::size_t> values_;
    std::unordered_map<std::string, address> places_;
    std::string library_;
    std::string refusal_;
};

}  // namespace tool::inspect
