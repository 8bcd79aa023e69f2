// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/symbols.hpp: names, files and lines of addresses, and how to unwind from them.
//
// They come from the program's files (symbol_files.hpp), which whoever made the program has
// written. So a helper process reads them, with a bound on its memory and on the time it may take.
// If it dies, or does not answer, addresses are all there is from then on. All text is short, and
// fit for a terminal.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "process.hpp"

namespace tool::inspect {

// Whose code a frame is.
enum class owner : std::uint8_t { program, libums, standard_library };

struct source_frame {
    std::string function;  // Empty: not known.
    std::string file;
    int line = 0;
    bool is_inlined = false;
    owner of = owner::program;
};

// One operation of a DWARF expression.
struct unwind_op {
    static constexpr std::size_t most = 64;  // Of one expression.
    std::uint8_t atom = 0;
    std::uint64_t number = 0, number2 = 0;
};

// Where the caller's value of a register is.
struct unwind_rule {
    enum kind : std::uint8_t { undefined, same, expression } is = same;
    std::vector<unwind_op> ops;
};

// How to get from a frame to its caller's.
struct unwind_plan {
    bool is_there = false;
    bool is_signal = false;
    std::vector<unwind_op> cfa;
    unwind_rule rules[registers::count];
};

class symbols {
public:
    explicit symbols(const process& of);
    ~symbols();  // Says on stderr if names are missing because the helper had to be ended.
    symbols(const symbols&) = delete;
    symbols& operator=(const symbols&) = delete;

    // The name of the function at an address, or "PATH+0x123", or the address.
    [[nodiscard]] std::string function(address at);
    // The inlined functions at an address, innermost first, and last the function they are in.
    // Looked up once. Valid until the next call.
    [[nodiscard]] const std::vector<source_frame>& frames(address pc);
    [[nodiscard]] unwind_plan plan(address pc);
    // The name of the function that begins at exactly this address; empty: none does.
    [[nodiscard]] std::string beginning_at(address at);
    // Where the lambda is written that the code at `run` calls for a fiber. Without a file: nothing
    // tells.
    [[nodiscard]] source_frame lambda_of(address run);

private:
    using clock = std::chrono::steady_clock;
    struct module {
        address begin, end, bias;
        std::string path;
    };
    enum class question : std::uint32_t { function, frames, plan, beginning, lambda };

    [[nodiscard]] const module* module_of(address at) const;
    [[nodiscard]] std::string in_module(address at) const;
    // The answer's bytes; empty: there is none.
    [[nodiscard]] std::string ask(question what, address at);
    [[nodiscard]] bool receive(void* into, std::size_t bytes, clock::time_point until);
    void end_helper();
    void give_up();

    std::vector<module> modules_;  // By address.
    std::unordered_map<address, std::vector<source_frame>> known_;
    int helper_ = -1;
    int socket_ = -1;
    clock::duration left_;  // Of the time to wait for it.
    std::string complaint_;
};

// Removes the template's own words, so that the function remains that the fiber was made to call:
// of a plain one, its type.
[[nodiscard]] std::string start_function(std::string demangled);
// The first `c` of a demangled name that is in no parentheses, braces or template arguments; npos:
// there is none.
[[nodiscard]] std::size_t find_outside(std::string_view name, char c);

}  // namespace tool::inspect
