// SPDX-License-Identifier: MIT
#pragma once

// block/watched.hpp: a kernel thread whose blocking in the kernel somebody wants to hear of.
//
// A detector asks is_of_interest() whenever the thread may have blocked, and calls on_block() if it
// has. All three functions run on the detector's thread, at any moment between add() and the return of
// remove(); they must not block, and must not call add() or remove().
//
// on_block() may come more than once for one long block while the thread is of interest: who has dealt with
// it makes it uninteresting. It is a hint that was true a moment ago: by the time it is acted upon the
// thread may run again. notice::activity is there for that: the thread was seen blocked while activity()
// had this value, so a compare-and-swap from a word that holds it decides.

#include <cstdint>

#include "os/clock.hpp"
#include "os/thread_state.hpp"

namespace ums::block {

enum class cause : unsigned char {
    unknown,  // /proc does not tell.
    system_call,
    page_fault,  // Or anything else that blocks outside of a system call.
};

struct notice {
    cause why;
    long call;             // The system call's number, if it is one; else -1.
    os::nanoseconds when;  // When it left its CPU; or, if only seen blocked, when it was seen.
    std::uint64_t activity;
};

class watched {
public:
    explicit watched(int tid) noexcept : tid_{tid}, state_{tid} {}
    watched(const watched&) = delete;
    watched& operator=(const watched&) = delete;

    [[nodiscard]] int tid() const noexcept { return tid_; }

    // Whether its blocking would matter now: not while it waits because it has nothing to do.
    [[nodiscard]] virtual bool is_of_interest() const noexcept = 0;

    // A number that changes at least each time the thread becomes of interest, and each time it turns
    // to something else, never back. Read with acquire.
    [[nodiscard]] virtual std::uint64_t activity() const noexcept = 0;

    virtual void on_block(const notice& what) noexcept = 0;

protected:
    ~watched() = default;  // Requires: removed from its detector.

private:
    friend class watch_list;
    friend class perf_detector;
    friend class thread_perf_detector;
    friend class monitor_detector;

    const int tid_;
    const os::thread_state state_;

    // Guarded by the watch_list's lock:
    watched* next_ = nullptr;  // Of all, a ring.
    watched* previous_ = nullptr;
    watched* next_in_bucket_ = nullptr;
    unsigned pins_ = 0;
    bool is_leaving_ = false;
    std::uint64_t scan_ = 0;
    // The last record of it, if a perf_detector watches it.
    bool is_off_ = false;
    os::nanoseconds since_ = 0;

    // Owned by the thread of the monitor_detector that watches it:
    std::uint64_t sampled_ = 0;
};

}  // namespace ums::block
