// SPDX-License-Identifier: MIT
#pragma once

// block/thread_perf_detector.hpp: the kernel tells of each thread that blocks, of a few threads that anybody made.
//
// A ring of context-switch records for each thread, of two pages: an unprivileged process may lock 516 KiB for each CPU. A
// thread for which there is no ring, and one whose ring has refused records, is found by the look at all threads of
// interest that the reader takes every 10 ms while there is one.
//
// Cost: a descriptor and 8 KiB a thread; each wait of such a thread wakes the reader, at most every `pause`.

#include <poll.h>
#include <string>
#include <thread>
#include <vector>

#include "block/detector.hpp"
#include "block/watch_list.hpp"
#include "os/perf.hpp"

namespace ums::block {

class thread_perf_detector final : public detector {
public:
    static constexpr os::nanoseconds pause = 30'000, look = 10'000'000;

    thread_perf_detector() noexcept = default;
    ~thread_perf_detector() override { stop(); }

    // `root` is not used.
    [[nodiscard]] std::string start(int root) override;
    void stop() noexcept override;
    void add(watched& w) noexcept override;
    void remove(watched& w) noexcept override;
    [[nodiscard]] detector_kind kind() const noexcept override { return detector_kind::perf; }

private:
    struct watched_ring {
        int tid;
        os::switch_ring ring;
    };

    void run() noexcept;
    void wait() noexcept;
    void read_rings() noexcept;
    bool look_at_all() noexcept;  // Whether any is of interest.

    watch_list all_;
    base::atomic<std::uint32_t> ends_;
    int event_ = -1;  // Raised when the rings change, and at the end.

    os::lock lock_{os::lock_rank::depot};
    // Guarded by lock_:
    std::vector<std::unique_ptr<watched_ring>> rings_;

    // Owned by the reader:
    std::vector<pollfd> polled_;
    struct suspect {
        int tid;
        os::nanoseconds since;
    };
    std::vector<suspect> suspects_;
    os::nanoseconds looked_at_ = 0;
    bool any_of_interest_ = false;

    std::thread reader_;
};

}  // namespace ums::block
