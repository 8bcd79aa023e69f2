// SPDX-License-Identifier: MIT
#pragma once

// os/source_lines.hpp: what to write of an address in a report: function, file and line.
//
// Only debug information knows them, and a program that has just crashed is in no state to read it.
// So the addr2line of this machine does, as a process of its own: binutils' or LLVM's, as $PATH
// says. It has three seconds for all. Without one, a line says what addr2line must be given.
//
// Async-signal-safe as far as dladdr() is, which backtrace_symbols_fd() calls too: nothing here
// allocates, and the helper begins by clone(2) with a stack of its own and no signal at its end, so
// the program's handlers and waits do not meet it.

#include <cstddef>
#include <cstdint>

namespace ums::os {

// The calls of a stack, innermost first. What repeats, as in a recursion, is kept once.
class call_list {
public:
    static constexpr unsigned most = 64;

    // `at` is the call itself, not where it returns to. Returns false if there is no room for more.
    bool add(std::uintptr_t at) noexcept;
    // The caller's own stack. In a signal handler: that of the code that the signal met.
    void add_own() noexcept;

    struct call {
        std::uintptr_t at;
        // The last `of` calls, this one among them, came so many times more.
        unsigned again, of;
    };
    [[nodiscard]] unsigned size() const noexcept { return size_; }
    [[nodiscard]] const call& operator[](unsigned i) const noexcept { return all_[i]; }
    void clear() noexcept { size_ = start_ = period_ = matched_ = 0; }

private:
    bool push(std::uintptr_t at) noexcept;

    call all_[most];
    unsigned size_ = 0;
    unsigned start_ = 0;    // Behind the last repetition.
    unsigned period_ = 0;   // Of the repetition that goes on; 0: none does.
    unsigned matched_ = 0;  // How many calls of its next turn have come.
};

class source_lines {
public:
    static constexpr unsigned most = 256;
    using put_fn = void (*)(void* to, const char* text, std::size_t bytes);

    source_lines(put_fn put, void* to) noexcept;

    // First all that will be written; what is too much gets no line of source.
    void want(std::uintptr_t at) noexcept;
    void want(const call_list& calls) noexcept;
    // Then this, once. Under a filter of system calls (seccomp) it does nothing, for the filter may
    // end the program for it: a container's lets it pass, a sandbox's may not.
    void look_up() noexcept;
    // Also under a filter: the program is about to end anyway. Write before, and if this returns
    // true, there is more to write now.
    bool look_up_at_risk() noexcept;
    [[nodiscard]] static bool is_at_risk() noexcept;
    void write(const call_list& calls, const char* indent) noexcept;
    void write(std::uintptr_t at, const char* before) noexcept;
    // At last: the commands for what could not be looked up.
    void write_commands() noexcept;

private:
    struct place {
        std::uintptr_t at, base;  // base: what its file was moved by.
        const char* function;     // A dynamic symbol, or null.
        std::uintptr_t function_at;
        const char* file;  // The file that it is in, or null.
        const char* text;  // What the helper said, or null.
        unsigned text_bytes;
    };
    [[nodiscard]] const place* find(std::uintptr_t at) const noexcept;
    void look_up_file(const char* tool, const char* file, std::int64_t until) noexcept;
    // Fills `out_` from `used_` on with what the helper writes. Returns where that ends.
    std::size_t run(const char* const* words, std::int64_t until) noexcept;
    void print(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

    put_fn put_;
    void* to_;
    unsigned count_ = 0;
    std::size_t used_ = 0;
    place all_[most];
    char program_[512];
    char out_[96 * 1024];
    alignas(16) char stack_[16 * 1024];  // The helper's, until it is another program.
};

}  // namespace ums::os
