// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/symbol_files.hpp: what the files of a process say of addresses, by elfutils'
// libdwfl.
//
// Debug information is found as debuggers find it: in the file itself, beside it, or by its build
// id. A file made on purpose can make libdw read for ever, fill the memory or crash, so only the
// helper process of symbols.hpp uses this.

#include "symbols.hpp"

struct Dwfl;

namespace tool::inspect {

// A program or library of the process.
struct module_file {
    std::string path;  // The path that the process knows.
    std::string file;  // Where it can be opened from here.
    address bias = 0;  // What to add to the addresses in the file.
};

class symbol_files {
public:
    // Opens all files now, because the process may end soon. One that cannot be opened, or is not
    // an ELF file, gives no names.
    explicit symbol_files(const std::vector<module_file>& files);
    ~symbol_files();
    symbol_files(const symbol_files&) = delete;
    symbol_files& operator=(const symbol_files&) = delete;

    // The name of the function at an address; empty: there is none.
    [[nodiscard]] std::string function(address at);
    // The inlined functions at an address, innermost first, and last the function they are in.
    [[nodiscard]] std::vector<source_frame> frames(address pc);
    [[nodiscard]] unwind_plan plan(address pc);
    // As symbols'.
    [[nodiscard]] std::string beginning_at(address at);
    [[nodiscard]] source_frame lambda_of(address run);

private:
    Dwfl* dwfl_ = nullptr;
};

}  // namespace tool::inspect
