// SPDX-License-Identifier: MIT
#pragma once

// carry/load.hpp: a load, which runs on a kernel thread and moves to another when that thread
// blocks.
//
// There are two kinds: a processor (fibers) and a scheduler's seat (the UMS API). Kernel threads
// that carry nothing, such as those that block with a fiber for an hour, are not watched and cost
// nothing.
//
// A detector asks is_of_interest() whenever the thread may have blocked, and calls on_block() if it
// has. All functions run on a detector's threads, perhaps on several at once, at any moment between
// add() and the return of remove(); they must not block, and must not call add() or remove().
//
// on_block() may come more than once for one long block while the load is of interest. It is a hint
// that was true a moment ago: by the time a thread acts upon it, the kernel thread may run again,
// or the load may be on another one. notice::tid and notice::activity are there for that: the
// thread `tid` carried the load and was seen blocked while activity() had this value, so the thread
// that acts compares both, under a claim.

#include <cstdint>

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "os/thread/thread_state.hpp"

namespace ums::carry {

enum class cause : unsigned char {
    unknown,  // /proc does not say.
    system_call,
    page_fault,  // Also anything else that blocks outside of a system call.
};

struct notice {
    cause why;
    long call;  // The number of the system call, if it is one; otherwise -1.
    // When the thread left its CPU; or, if it was only seen blocked, when that was.
    os::nanoseconds when;
    int tid;
    int free_cpu;  // A CPU that is about to be idle, where the load should continue; -1: not known.
    std::uint64_t activity;
};

class load {
public:
    load() noexcept = default;
    load(const load&) = delete;
    load& operator=(const load&) = delete;

    // The kernel thread that carries it now; 0: none.
    [[nodiscard]] virtual int tid() const noexcept = 0;

    // The CPU on which that thread runs or ran last; -1: unknown, and then no sentinel looks at it.
    [[nodiscard]] virtual int cpu() const noexcept { return -1; }

    // Whether a block would matter now: not while the thread waits because it has nothing to do.
    [[nodiscard]] virtual bool is_of_interest() const noexcept = 0;

    // A number that changes at least each time the load becomes of interest, and each time it turns
    // to something else; it never takes an old value again. Read with acquire.
    [[nodiscard]] virtual std::uint64_t activity() const noexcept = 0;

    // Returns false if the thread was no longer blocked, or not there, or cannot be looked at just
    // now.
    virtual bool on_block(const notice& what) noexcept = 0;

    // Called only by the monitor, at each of its looks, whether the load is of interest or not: for
    // the load's own affairs that need a look now and then. Returns after how long the next look is
    // needed at the latest; os::never: none is, and the monitor may sleep.
    virtual os::nanoseconds look_after([[maybe_unused]] os::nanoseconds now) noexcept {
        return os::never;
    }

    // Whether look_after() is needed sooner than 10 ms after the load becomes of interest, as where
    // time slices are shorter. Then the monitor does not put off its first look.
    [[nodiscard]] virtual bool is_urgent() const noexcept { return false; }

    // Whether on_block() has returned true, and nothing has changed since. A hint.
    [[nodiscard]] bool is_reported() const noexcept {
        return reported_.load(base::relaxed) == activity();  // relaxed: a hint.
    }

protected:
    ~load() = default;  // Requires: removed from its detector.

private:
    friend class monitor_detector;
    friend bool report_if_blocked(load&, os::thread_states&, os::nanoseconds, bool, int) noexcept;

    base::atomic<std::uint64_t> reported_;  // The activity.

    // Owned by the thread of the monitor_detector that watches it:
    std::uint64_t sampled_ = 0;
};

}  // namespace ums::carry
