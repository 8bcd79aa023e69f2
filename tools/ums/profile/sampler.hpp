// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/profile/sampler.hpp: looks at a process again and again, and remembers what it saw.
//
// On a CPU: ptrace(2) stops every kernel thread that runs for some microseconds, in which the
// sampler reads its registers, the fiber it runs and the top of its stack. A sample stands for the
// time that the thread has been on a CPU, as the kernel counts it, since the sample before.
// perf_event_open(2) would do without the stop, but most containers refuse it; this needs only what
// reading a process needs. A thread in a system call is left alone until it is back, so no call
// ends with EINTR, except one that begins to wait at that very moment.
//
// Off a CPU: a snapshot of all fibers, as `ums ps` makes it, and the stacks of those that do not
// run. Each stands for the time since the look before.
//
// Below its first frame, a fiber's stack continues with the code that spawned it, then with its
// spawner's start function, and so on, as far as the spawners were seen.

#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <unordered_map>
#include <vector>

#include "../inspect/layout.hpp"
#include "../inspect/live_process.hpp"
#include "../inspect/snapshot.hpp"
#include "../inspect/unwinder.hpp"
#include "../inspect/words.hpp"
#include "profile_data.hpp"

namespace tool::profiling {

class sampler {
public:
    sampler(const inspect::live_process& of, const inspect::layout& how, inspect::symbols& names);

    // Blocks for that long. Returns what was seen, up to the process's end if it ends meanwhile.
    // Throws std::runtime_error if it must not be stopped.
    [[nodiscard]] profile_data run(double seconds, double frequency, bool on_cpu, bool off_cpu);

private:
    using clock = std::chrono::steady_clock;
    using address = inspect::address;

    // What does not change while a fiber lives.
    struct origin {
        address start = 0, spawned_at = 0;  // By start_names::key().
        std::uint64_t spawner = 0;
        bool is_main = false;  // The fiber in which ums::run() began.
    };
    // The numbers of the frames, outermost first, and what the fiber waits for.
    struct key {
        std::vector<std::uint32_t> frames;
        inspect::wait waits = inspect::wait::none;
        bool is_on_cpu = false;
        friend auto operator<=>(const key&, const key&) = default;
    };
    struct sum {
        double ns = 0;
        std::uint64_t count = 0;
    };

    [[nodiscard]] origin origin_of(const inspect::fiber_record& f);
    void find_threads();
    void learn_origins();
    void look_on_cpu();
    void glimpse(int tid, address carrier, std::int64_t ns);
    void look_off_cpu(double ns);
    [[nodiscard]] std::vector<std::uint32_t> spawners(const origin& of);
    void add_calls(std::vector<std::uint32_t>& to, const inspect::call_stack& calls, bool is_fiber);
    [[nodiscard]] sum& sum_of(key k);
    [[nodiscard]] std::uint32_t number(frame f);
    [[nodiscard]] std::uint32_t label(std::string text) { return number({std::move(text), {}, 0}); }
    [[nodiscard]] const std::vector<std::uint32_t>& frames_of(address pc);
    [[nodiscard]] std::int64_t cpu_time() const;

    const inspect::live_process& of_;
    const inspect::layout& how_;
    inspect::symbols& names_;
    inspect::start_names starts_;
    inspect::unwinder by_;
    std::minstd_rand random_{1};

    std::vector<int> threads_;
    std::unordered_map<int, address> carrier_of_;  // By thread.
    // The nanoseconds that the thread had used when it was last seen.
    std::unordered_map<int, std::int64_t> cpu_of_;
    std::unordered_map<std::uint64_t, origin> origins_;
    std::vector<frame> frames_;
    std::map<frame, std::uint32_t> numbers_;
    std::unordered_map<address, std::vector<std::uint32_t>> known_;
    std::map<key, sum> sums_;
    std::uint64_t stops_ = 0, refused_ = 0, looks_ = 0;
    std::int64_t stopped_ns_ = 0;
};

}  // namespace tool::profiling
