// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/run/looks.hpp: looks at the threads of a process, from outside.
//
// Two files of /proc tell of a thread what it waits for and how many times it has been given a CPU
// (syscall, schedstat). Reading them costs 3 us and stops nothing.
//
// A look reads the files of all threads once: how many of them run or are ready, and which have
// waited since the last look. Then it reads those of a few of these again and again, for 0.3 ms. A
// wait that ends meanwhile is counted for what it was seen to be, so the counts are proportional to
// how many waits there are of each kind. (What threads are found in at single moments would be
// proportional to how long they last: one that waits 10 us for a lock and then 1 ms for a
// connection, again and again, would be found at the connection 99 times in 100.)
//
// Rejected: a library by LD_PRELOAD counts calls, and not whether they wait; it does not see what
// the C library itself waits in, nor programs that are static or setuid, and changes what it
// measures by its locks, its environment and its thread. ptrace(2) costs several times what the
// calls cost. perf events and tracepoints need privileges.

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "waits.hpp"

namespace tool::running {

// A share for each kind of wait.
using shares = std::array<double, wait_count>;

class looks {
public:
    explicit looks(int pid);
    ~looks();
    looks(const looks&) = delete;
    looks& operator=(const looks&) = delete;

    // Returns after how many seconds the next look should come: they take a hundredth of a CPU, and
    // three hundredths until enough has been seen.
    double look();

    [[nodiscard]] int count() const { return looks_; }
    [[nodiscard]] std::size_t most_threads() const { return most_threads_; }
    // Whether the kernel refuses the files.
    [[nodiscard]] bool is_refused() const { return is_refused_; }
    // Whether the kinds say more than chance. On a busy machine the command may
    // look seldom, and the program may be over soon.
    [[nodiscard]] bool is_enough() const;
    // The share of each kind among the waits; all 0: no wait has been seen.
    [[nodiscard]] shares kinds() const;
    // How many threads were ready beside the one that ran, at the looks that found one running.
    [[nodiscard]] double ready() const { return running_ != 0 ? ready_ / running_ : 0; }
    // At what share of these looks there was any.
    [[nodiscard]] double any_ready() const { return running_ != 0 ? accompanied_ / running_ : 0; }
    // How many times its threads were given a CPU, as far as they were seen.
    [[nodiscard]] double runs() const { return runs_; }
    // Whether the library of C++ is loaded.
    [[nodiscard]] bool has_cxx() const { return has_cxx_; }

private:
    struct thread {
        int call = -1, times = -1;  // The two files.
        wait in = wait::unknown;    // What it was seen in last.
        std::uint64_t runs = 0;     // How many times it had been given a CPU by then,
        std::uint64_t counted = 0;  // and at the last look.
        bool is_listed = false;
    };

    void list();
    static void close_files(const thread& one);
    // Returns how many of the thread's waits have ended since it was last observed.
    std::uint64_t observe(thread& one);
    void watch(std::vector<thread*>& active);
    void look_for_cxx();

    int pid_;
    wait_reader reader_;
    std::map<int, thread> threads_;
    std::minstd_rand random_{1};
    int looks_ = 0;
    std::size_t most_threads_ = 0;
    bool is_refused_ = false, has_cxx_ = false;
    double runs_ = 0;
    double running_ = 0, accompanied_ = 0, ready_ = 0;
    int watched_ = 0;   // How many times a watched thread's wait was seen to have ended.
    shares ended_{};    // Ends of waits by kind, for all threads, from these.
    shares found_{};    // Ends of waits since the last look, for what it had found.
    int findings_ = 0;  // How many threads, at how many looks, found_ is from.
};

}  // namespace tool::running
