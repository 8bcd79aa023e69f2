// SPDX-License-Identifier: MIT
#pragma once

// carry/perf_detector.hpp: the kernel tells of each thread that blocks.
//
// One ring of context-switch records for each CPU that was online at the start, inherited by every
// thread that the root creates. One thread, outside of that tree, waits until a ring has something.
//
// Cost: nothing while nobody blocks. A record makes the kernel interrupt the CPU that writes it, once its
// own switch is over, to wake the reader; in a virtual machine that is 10 us. Threads that wait because they
// have nothing to do write records, too, and there can be a hundred thousand waits a second. And where the
// reader shares its CPU with who it watches, each of its own turns takes that one off the CPU and so writes the
// records that call it again. So where records come in floods, or it looked for nothing again and again, the reader
// does not listen for a while (flood_gauge.hpp): the rings are paused, and it looks at the threads of interest now
// and then. Listening, it looks into the rings every `pause` at most; a record that comes after a quiet time is seen
// at once.

#include <memory>
#include <poll.h>
#include <string>
#include <thread>

#include "carry/detector.hpp"
#include "carry/flood_gauge.hpp"
#include "carry/watch_list.hpp"
#include "os/perf.hpp"
#include "os/thread_state.hpp"

namespace ums::carry {

class perf_detector final : public detector {
public:
    static constexpr os::nanoseconds pause = 50'000;

    // `ring_pages`: for each CPU; 0: as many as suit their number. A small one is for tests.
    explicit perf_detector(unsigned ring_pages = 0) noexcept : ring_pages_{ring_pages} {}
    ~perf_detector() override { stop(); }

    [[nodiscard]] std::string start(int root) override;
    void stop() noexcept override;
    void add(load& w) override { all_.add(w); }
    void remove(load& w) noexcept override { all_.remove(w); }
    [[nodiscard]] bool works() const noexcept override;
    [[nodiscard]] detector_kind kind() const noexcept override { return detector_kind::perf; }

    // How often it had to look at all threads because records may have been lost.
    [[nodiscard]] std::uint64_t overflows() const noexcept { return overflows_.get(); }
    [[nodiscard]] std::uint64_t records() const noexcept { return records_.get(); }

    // How often it did not listen for a while.
    [[nodiscard]] std::uint64_t lulls() const noexcept { return lulls_.get(); }

    // What it says when the kernel refuses: "perf_event_open: Permission denied (...)".
    // Its requests to the kernel look like wrong addresses to it.
    static constexpr const char* not_under_valgrind = "Valgrind does not know perf events";
    [[nodiscard]] static std::string explain(const char* call, long error);

private:
    [[nodiscard]] std::string open_rings(int root, unsigned cpus);
    void run() noexcept;
    [[nodiscard]] bool wait() noexcept;
    void read_rings() noexcept;
    static void note(load& w, const os::switch_record& record) noexcept;
    void look_at_suspects() noexcept;
    bool look_at_all() noexcept;  // Whether any is of interest.
    void look_at(load& w, os::nanoseconds when, bool if_unknown) noexcept;
    void lull() noexcept;
    [[nodiscard]] bool is_stopped_within(os::nanoseconds time) noexcept;

    // Set once in start(), then read-only:
    unsigned ring_pages_;
    unsigned rings_ = 0;
    std::unique_ptr<os::switch_ring[]> ring_;
    // Those of the rings, then stop_event_. The reader writes results.
    std::unique_ptr<pollfd[]> polled_;
    int stop_event_ = -1;

    watch_list all_;
    watch_list::observer looks_{all_};  // The reader's.
    os::thread_states states_;
    // 0 until the rings are there, then 1; 2: no reader is needed.
    base::atomic<std::uint32_t> go_;
    base::atomic<std::uint32_t> is_lost_;

    // Owned by the reader:
    bool must_look_at_all_ = false;
    base::owned<std::uint64_t> overflows_{0};
    base::owned<std::uint64_t> records_{0};
    base::owned<std::uint64_t> lulls_{0};
    flood_gauge gauge_{0};

    std::thread reader_;
};

}  // namespace ums::carry
