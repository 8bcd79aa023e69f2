// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/symbols.hpp: names, files and lines of addresses, by elfutils' libdwfl.
//
// Debug information is found as debuggers find it: in the file itself, beside it, or by its build
// id.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "process.hpp"

struct Dwfl;
struct Dwarf_CFI_s;

namespace tool::inspect {

struct source_frame {
    std::string function;  // Empty: not known.
    std::string file;
    int line = 0;
    bool is_inlined = false;
};

class symbols {
public:
    explicit symbols(const process& of);
    ~symbols();
    symbols(const symbols&) = delete;
    symbols& operator=(const symbols&) = delete;

    // The name of the function at an address, or "PATH+0x123", or the address.
    [[nodiscard]] std::string function(address at);
    // The inlined functions at an address, innermost first, and last the function they are in.
    // Looked up once.
    [[nodiscard]] const std::vector<source_frame>& frames(address pc);

    // The unwind tables for an address, and what to subtract from addresses before using them; may
    // be null.
    struct tables {
        Dwarf_CFI_s* of[2] = {};
        std::uint64_t bias[2] = {};
    };
    [[nodiscard]] tables unwind_tables(address at);

private:
    [[nodiscard]] std::vector<source_frame> look_up(address pc);

    Dwfl* dwfl_ = nullptr;
    std::unordered_map<address, std::vector<source_frame>> known_;
};

// Removes the template's own words, so that the function remains that the fiber was made to call.
[[nodiscard]] std::string start_function(std::string demangled);

}  // namespace tool::inspect
